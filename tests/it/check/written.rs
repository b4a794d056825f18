//! `portvakt config show` and `portvakt config schema`, on the same configurations.

use super::{Case, SANDBOX, Site, all_cases};
use crate::{harness::missing, signers::python_with};
use portvakt::config::{Reloadable, Settings};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert!(done.status.success(), "{}", text(done.stderr));
    text(done.stdout)
}

fn show(site: &Site, file: &str) -> String {
    run(&mut site.shell(&format!("exec \"$0\" config show --config {file}")))
}

/// The settings without what differs between two reads: caches, and positions in the file.
fn settings(path: &Path) -> String {
    let Settings { fixed, reloadable } = Settings::load(path).unwrap();
    let Reloadable {
        certificates,
        ticket_keys,
        control,
        sca,
        snapshot,
        trust,
        operations,
        upstreams,
        ..
    } = reloadable;
    let policy = &snapshot.policy;
    let registers = snapshot
        .registers
        .as_ref()
        .map(|registers| registers.settings().clone());
    let revocation = snapshot
        .trust
        .revocation()
        .map(|revocation| revocation.copies().map(Path::to_owned));
    let rates = snapshot.rates.settings();
    let text = format!(
        "{fixed:?} {certificates:?} {ticket_keys:?} {control:?} {sca:?} {policy:?} {trust:?} {operations:?} {registers:?} {revocation:?} {rates:?}"
    );
    // A default that is written out is the same time.
    let shutdown = format!("{:?}", fixed.shutdown);
    let finish = fixed.shutdown.finish(&fixed.listener, upstreams.longest());
    // Keys have no equality: each is shown as its place in memory.
    text.replace(&shutdown, &format!("{finish:?}")) + &format!("{:?}", fixed.shutdown.lame_duck)
}

#[test]
fn what_show_writes_reads_as_the_same_configuration() {
    let mut count = 0;
    for case in all_cases()
        .iter()
        .filter(|case| case.expected.contains("status 0"))
    {
        let site = Site::new(case);
        let text = show(&site, "gateway.yaml");
        fs::write(site.folder.join("shown.yaml"), &text).unwrap();
        let [before, after] =
            ["gateway.yaml", "shown.yaml"].map(|file| settings(&site.folder.join(file)));
        assert_eq!(before, after, "{}: {text}", case.name);
        assert_eq!(show(&site, "shown.yaml"), text, "{}", case.name);
        for secret in [
            "0123456789abcdef",
            "PRIVATE KEY",
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        ] {
            assert!(!text.contains(secret), "{text}");
        }
        count += 1;
    }
    assert!(count >= 30, "{count}");
    let base = Site::new(&Case::of("the base", "control: {socket: control.sock}\n"));
    let text = show(&base, "gateway.yaml");
    for line in [
        "  per_tpp: 1000\n",
        "  max_in_flight: 512\n",
        "  token_seals: state/sca-token.keys.seals\n",
        "  copies: state/revocation\n",
        "  token_lifetime: 15m\n",
        "system: portvakt\n",
        "  timeout: 32s\n",
        "  finish: 172s\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("127.0.0.1:9100"), "{text}");
}

#[test]
fn groups_are_shown_with_their_defaults() {
    let one = "upstream: {address: '127.0.0.1:9'}\n";
    let groups = "upstreams:\n  payments: {endpoints: [{address: '127.0.0.1:18080'}], operations: [payments], read_timeout: 100s}\n\
        \x20 rest: {endpoints: [{address: '127.0.0.1:18081'}]}\n";
    let yaml = format!("@ raw\n{}", SANDBOX.replace(one, groups));
    let site = Site::new(&Case::of("groups", &yaml));
    let text = show(&site, "gateway.yaml");
    let shown: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    let (payments, rest) = (&shown["upstreams"]["payments"], &shown["upstreams"]["rest"]);
    assert_eq!(payments["read_timeout"], "100s");
    assert_eq!(payments["timeout"], "102s");
    assert_eq!(payments["max_in_flight"], 512);
    assert_eq!(
        (&rest["read_timeout"], &rest["timeout"]),
        (&"30s".into(), &"32s".into())
    );
    assert!(
        rest["operations"].is_null() && shown["upstream"].is_null(),
        "{text}"
    );
    // 10 s, the body, the core's longest answer, and the answer.
    assert_eq!(shown["shutdown"]["finish"], "242s");
    fs::write(site.folder.join("shown.yaml"), &text).unwrap();
    assert_eq!(show(&site, "shown.yaml"), text);
}

/// A fault of this kind is visible without the program: the schema must refuse the configuration too.
fn shows_in_a_schema(line: &str) -> bool {
    let kinds = [
        "unknown key",
        "missing key",
        "expected one of",
        "expected a whole number",
        "expected true or false",
        "expected a list",
        "expected a mapping",
    ];
    line.starts_with("gateway.yaml:")
        && kinds.iter().any(|kind| line.contains(kind))
        // Conditions between keys.
        && !["learning has", "<<"].iter().any(|text| line.contains(text))
}

/// The blocks of the documents that are sections of a configuration, each in place of the base's: `check` accepts them, but for the
/// files that only the reader of the document has.
fn documented() -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md")];
    pages.extend(
        fs::read_dir(root.join("docs"))
            .unwrap()
            .map(|entry| entry.unwrap().path()),
    );
    let mut found = Vec::new();
    for page in pages
        .iter()
        .filter(|page| page.extension().is_some_and(|end| end == "md"))
    {
        let text = fs::read_to_string(page).unwrap();
        let fenced = text.split("```yaml\n").skip(1);
        let fenced = fenced.filter_map(|rest| Some(rest.split_once("```")?.0.to_owned()));
        let indented = text.split("\n\n").filter(|part| part.starts_with("    "));
        let indented = indented.map(|part| part.replace("\n    ", "\n").trim_start().to_owned());
        // A line that observes, such as `observe: {checks: all}`, stands in the text.
        let inline = text.split('`').skip(1).step_by(2).map(str::to_owned);
        for block in fenced.chain(indented).chain(inline) {
            if !is_sections(&block) {
                continue;
            }
            let rest = SANDBOX
                .lines()
                .filter(|line| !line.starts_with("upstream:"));
            let is_grouped = block.lines().any(|line| line.starts_with("upstreams:"));
            let base: String = rest.map(|line| format!("{line}\n")).collect();
            let given = if is_grouped {
                format!("@ raw\n{base}{block}\n")
            } else {
                format!("{block}\n")
            };
            let case = Case::of("", &given);
            let Ok(whole) = serde_yaml::from_str::<Value>(&case.yaml()) else {
                continue;
            };
            let (printed, status) = Site::new(&case).check("--no-bind");
            let is_file = |line: &str| line.contains("No such file or directory");
            if status == 0 || printed.lines().all(is_file) {
                let name = format!("{}: {}", page.display(), case.given);
                found.push(json!({ "name": name, "valid": true, "document": whole }));
            }
        }
    }
    assert!(found.len() >= 5, "{}", found.len());
    for (name, yaml) in [
        ("all checks", "observe: {checks: all}\n"),
        (
            "only a CA",
            "upstream: {address: '127.0.0.1:9', tls: {ca: server.pem}}\n",
        ),
    ] {
        let case = Case::of(name, yaml);
        let whole: Value = serde_yaml::from_str(&case.yaml()).unwrap();
        assert_eq!(Site::new(&case).check("--no-bind").1, 0, "{name}");
        found.push(json!({ "name": name, "valid": true, "document": whole }));
    }
    for (name, yaml) in [
        ("no check", "observe: {checks: [nonsense]}\n"),
        (
            "no check of a TPP",
            "observe: {tpps: {PSDNO-FSA-1: [nonsense]}}\n",
        ),
        (
            "both forms",
            "upstreams: {a: {endpoints: [{address: '127.0.0.1:9'}]}}\n",
        ),
    ] {
        let case = Case::of(name, yaml);
        let whole: Value = serde_yaml::from_str(&case.yaml()).unwrap();
        assert_eq!(Site::new(&case).check("--no-bind").1, 2, "{name}");
        found.push(json!({ "name": name, "valid": false, "document": whole }));
    }
    found
}

/// Whether a text is one section or several of a configuration.
fn is_sections(text: &str) -> bool {
    let parsed = serde_yaml::from_str::<serde_yaml::Mapping>(text);
    let known = [
        "environment",
        "listener",
        "control",
        "upstream",
        "upstreams",
        "trust",
        "registers",
        "revocation",
        "sca",
        "state",
    ];
    let more = [
        "log",
        "audit",
        "observe",
        "limits",
        "assertion",
        "response_signing",
        "signing",
        "shutdown",
        "reload",
        "operations",
    ];
    parsed.is_ok_and(|parsed| {
        let mut keys = parsed.iter();
        !parsed.is_empty()
            && keys.all(|(key, value)| {
                let key = key.as_str().unwrap_or_default();
                (known.contains(&key) || more.contains(&key))
                    && !value.is_string()
                    && !value.is_null()
            })
    })
}

#[test]
fn the_schema_and_check_agree() {
    let Some(mut python) = python_with("python-schema", "jsonschema", &["jsonschema"]) else {
        return missing("jsonschema cannot be had on this machine");
    };
    let base = Site::new(&Case::of("the base", ""));
    let schema: Value =
        serde_json::from_str(&run(&mut base.shell("exec \"$0\" config schema"))).unwrap();
    let mut cases = Vec::new();
    for case in all_cases() {
        let expected = if case.expected.contains("status 2") {
            case.expected
                .lines()
                .any(shows_in_a_schema)
                .then_some(false)
        } else {
            Some(true)
        };
        // Only files that are YAML at all can be told.
        let document = serde_yaml::from_str::<serde_yaml::Value>(&case.yaml());
        let document = document
            .ok()
            .and_then(|document| serde_json::to_value(document).ok());
        if let (Some(expected), Some(document)) = (expected, document) {
            cases.push(json!({ "name": case.name, "valid": expected, "document": document }));
        }
    }
    cases.extend(documented());
    let refused = cases.iter().filter(|case| case["valid"] == false).count();
    assert!(
        refused >= 12 && cases.len() - refused >= 40,
        "{refused} of {}",
        cases.len()
    );
    let script = "import json, sys, jsonschema\n\
        given = json.load(sys.stdin)\n\
        jsonschema.Draft7Validator.check_schema(given['schema'])\n\
        validator = jsonschema.Draft7Validator(given['schema'])\n\
        for case in given['cases']:\n\
        \x20   faults = [fault.message for fault in validator.iter_errors(case['document'])]\n\
        \x20   if (not faults) != case['valid']: print(case['name'], faults)\n";
    let mut judge = python
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let given = json!({ "schema": schema, "cases": cases });
    judge
        .stdin
        .take()
        .unwrap()
        .write_all(given.to_string().as_bytes())
        .unwrap();
    let told = judge.wait_with_output().unwrap();
    assert!(told.status.success());
    assert_eq!(String::from_utf8(told.stdout).unwrap(), "");
}

/// Editors complete each key of the example, and describe it.
#[test]
fn the_schema_has_every_key_of_the_example() {
    let base = Site::new(&Case::of("the base", ""));
    let schema: Value =
        serde_json::from_str(&run(&mut base.shell("exec \"$0\" config schema"))).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/gateway.yaml");
    let (mut section, mut count) = (String::new(), 0);
    for line in fs::read_to_string(example).unwrap().lines() {
        let rest = line.trim_start();
        let Some((key, _)) = rest.trim_start_matches('#').split_once(':') else {
            continue;
        };
        if rest.starts_with("# ")
            || key.is_empty()
            || !key
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        {
            continue;
        }
        let is_inner = rest.len() < line.len();
        if !is_inner {
            section = key.to_owned();
        }
        let place = &schema["properties"][&section];
        let found = if is_inner {
            &place["properties"][key]
        } else {
            place
        };
        assert!(found.is_object(), "{section}.{key}");
        count += 1;
    }
    assert!(count > 90, "{count}");
}
