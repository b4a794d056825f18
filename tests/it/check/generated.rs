//! Generated configurations: a good one with one change each, in a key, or in a file or folder that a key names. `check` and `serve` agree
//! on every one of them.
//!
//! The keys are those of `portvakt config schema`, so a new key is changed here as soon as the program reads it. A seed gives the same
//! configurations again: PORTVAKT_SEED=1 chooses another one.

use super::{Case, Judged, SANDBOX, Site, Start, judge, run_all};
use crate::harness::Dice;
use serde_json::{Map, Value, json};
use std::process::Command;

/// The seed, if the environment names no other.
const SEED: u64 = 40;

/// The least number of configurations.
const LEAST: usize = 200;

/// Makes the files that [`GOOD`] names beside those of every site.
const FILES: &str = "mkdir -p secrets keys seals hash logs && cp token.keys secrets/tickets.keys && \
    for key in second control core; do cp server.key secrets/$key.key; done && cp other.key secrets/assertion.key";

/// A good configuration, with as many files as one can have.
const GOOD: &str = "\
environment: sandbox
listener: {address: '127.0.0.1:11111', max_connections: 1000, certificate: server.pem, key: server.key, ticket_keys: secrets/tickets.keys, \
    client_auth: optional, client_anchors: anchors, other_certificates: [{certificate: server.pem, key: secrets/second.key}]}
control: {address: '127.0.0.1:12222', token_file: control.token, metrics_token_file: metrics.token, certificate: server.pem, \
    key: secrets/control.key, client_ca: anchors/root.pem}
upstream: {address: '127.0.0.1:9', tls: {ca: anchors/root.pem, name: core, certificate: server.pem, key: secrets/core.key}}
trust: {anchors: anchors, intermediates: intermediates}
registers: {check: 'on', eba: eba.json, local: local.yaml}
revocation: {check: 'on', copies: copies}
assertion: {key: secrets/assertion.key}
response_signing: {certificate: signer.pem, key: signer.key}
operations: operations.yaml
sca: {page: 'https://bank.example/sca', token_keys: keys/sca-token.keys, token_seals: seals/seals}
state: {file: state/portvakt.db, hash_key: hash/hash.key}
audit: {write: 'on', folder: audit}
log: {access_file: logs/access.log}
";

/// The keys of [`GOOD`] that name a file or a folder.
const NAMING: [&str; 25] = [
    "/listener/certificate",
    "/listener/key",
    "/listener/ticket_keys",
    "/listener/client_anchors",
    "/listener/other_certificates/0/key",
    "/control/token_file",
    "/control/metrics_token_file",
    "/control/key",
    "/control/client_ca",
    "/upstream/tls/ca",
    "/upstream/tls/key",
    "/trust/anchors",
    "/trust/intermediates",
    "/registers/eba",
    "/registers/local",
    "/revocation/copies",
    "/assertion/key",
    "/response_signing/certificate",
    "/response_signing/key",
    "/operations",
    "/sca/token_keys",
    "/sca/token_seals",
    "/state/file",
    "/state/hash_key",
    "/audit/folder",
];

/// Changes of what is at the path `F`, in the folder `D`. Nobody can make a file in /proc/sys, not even root.
const OF_FILES: [(&str, &str); 14] = [
    ("is missing", "rm -rf F"),
    ("is a dangling link", "rm -rf F && ln -s nowhere/nothing F"),
    ("is a link to itself", "rm -rf F && ln -s $(basename F) F"),
    ("is a folder", "rm -rf F && mkdir -p F"),
    ("is a folder with a folder", "rm -rf F && mkdir -p F/x.pem"),
    ("is an empty file", "rm -rf F && : > F && chmod 600 F"),
    ("is a FIFO", "rm -rf F && mkfifo F"),
    ("is a device", "rm -rf F && ln -s /dev/full F"),
    (
        "has other bytes",
        "rm -rf F && printf '\\001\\377\\000' > F && chmod 600 F",
    ),
    ("is everybody's", "if [ -e F ]; then chmod 666 F; fi"),
    ("lies in a file", "rm -rf D && : > D"),
    (
        "lies in a dangling link",
        "rm -rf D && ln -s nowhere/nothing D",
    ),
    (
        "lies in a folder that cannot be written",
        "rm -rf D && ln -s /proc/sys D",
    ),
    ("lies in a FIFO", "rm -rf D && mkfifo D"),
];

/// The changes of each file that are tried.
const OF_EACH_FILE: usize = 4;

/// Values most of which are wrong at most places.
fn values() -> Vec<Value> {
    let texts = [
        "",
        " ",
        "x",
        "a b",
        "1",
        "off",
        "on",
        "0s",
        "1ms",
        "-5s",
        "1000000h",
        "99999GiB",
        "1B",
        "x:y",
        "127.0.0.1",
        "127.0.0.1:99999",
        "https://",
        "nowhere/x",
        "/proc/portvakt/x",
        "server.pem/x",
        "server.pem",
        "anchors",
        "${PORTVAKT_IS_NOT_SET}",
        "\u{1f600}",
        "*",
    ];
    let mut values: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
    values.extend([
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1),
        json!(1.5),
        json!(u64::MAX),
        json!([]),
        json!(["x"]),
        json!([null]),
        json!([[]]),
        json!({}),
        json!({"x": 1}),
    ]);
    values
}

/// A step from a place of the configuration to one in it.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    /// The first element of a list.
    Item,
    /// A key that the operator chooses.
    Any,
}

/// Every place below this one of the schema.
fn places(schema: &Value, path: &[Step], found: &mut Vec<Vec<Step>>) {
    if !path.is_empty() {
        found.push(path.to_vec());
    }
    let forms = schema["anyOf"].as_array().cloned();
    for form in forms.unwrap_or_else(|| vec![schema.clone()]) {
        let mut below = |step: Step, schema: &Value| {
            let path = [path, &[step]].concat();
            places(schema, &path, found);
        };
        for (key, schema) in form["properties"].as_object().into_iter().flatten() {
            below(Step::Key(key.clone()), schema);
        }
        if form["items"].is_object() {
            below(Step::Item, &form["items"]);
        }
        if form["additionalProperties"].is_object() {
            below(Step::Any, &form["additionalProperties"]);
        }
    }
}

/// The place in a document, with everything above it.
fn place<'d>(document: &'d mut Value, path: &[Step]) -> &'d mut Value {
    let mut key_above = "";
    let mut place = document;
    for step in path {
        let key = match step {
            Step::Key(key) => key.as_str(),
            Step::Any => match key_above {
                "redirect_hosts" | "tpps" => "PSDNO-FSA-1",
                "ibans" => "MA",
                "by_group" | "max_answer_size_by_group" => "payments",
                _ => "core",
            },
            Step::Item => {
                if place.as_array().is_none_or(Vec::is_empty) {
                    *place = json!([null]);
                }
                place = &mut place[0];
                continue;
            }
        };
        if !place.is_object() {
            *place = json!({});
        }
        key_above = key;
        place = &mut place[key];
    }
    place
}

/// A value as YAML in one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let members = members.iter();
            let members: Vec<_> = members
                .map(|(key, value)| format!("{key}: {}", flow(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// The cases of a seed.
struct Generator {
    dice: Dice,
    good: Value,
    cases: Vec<Case>,
}

impl Generator {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice(seed),
            good: serde_yaml::from_str(GOOD).unwrap(),
            cases: Vec::new(),
        }
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let index = self.dice.below(of.len() as u64);
        &of[usize::try_from(index).unwrap()]
    }

    /// The good configuration, in either environment.
    fn document(&mut self) -> Value {
        let mut document = self.good.clone();
        if self.dice.one_in(3) {
            document["environment"] = json!("production");
        }
        document
    }

    fn add(&mut self, name: &str, document: &Value, command: &str) {
        let sections = document.as_object().unwrap();
        let lines = sections
            .iter()
            .map(|(key, value)| format!("{key}: {}\n", flow(value)));
        let yaml: String = lines.collect();
        let prepare = [FILES, command]
            .map(|command| format!("$ {command}\n"))
            .concat();
        self.cases
            .push(Case::of(name, &format!("@ raw\n{prepare}{yaml}")));
    }

    /// A value at a place. A place of `upstreams` needs a configuration with groups.
    fn change(&mut self, path: &[Step]) {
        let value = self.one(&values()).clone();
        let mut document = self.document();
        if matches!(path, [Step::Key(key), ..] if key == "upstreams") {
            let sections = document.as_object_mut().unwrap();
            sections.remove("upstream");
            sections.insert(
                "upstreams".to_owned(),
                json!({"core": {"endpoints": [{"address": "127.0.0.1:9"}]}}),
            );
        }
        *place(&mut document, path) = value.clone();
        self.add(&format!("{path:?}: {}", flow(&value)), &document, "true");
    }

    /// A key that nobody knows, or one that is left out.
    fn misname(&mut self, key: &str) {
        let mut document = self.document();
        let section = document[key].as_object_mut();
        let Some(section) = section else { return };
        section.insert("an_unknown_key".to_owned(), json!(1));
        self.add(
            &format!("{key}: a key that nobody knows"),
            &document,
            "true",
        );
        let mut document = self.document();
        let keys: Vec<_> = document[key]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect();
        let left_out = self.one(&keys).clone();
        if let Some(section) = document[key].as_object_mut() {
            section.remove(&left_out);
        }
        self.add(&format!("{key}: without {left_out}"), &document, "true");
    }

    /// Something else where a file or a folder should be.
    fn replace(&mut self, pointer: &str) {
        for _ in 0..OF_EACH_FILE {
            let document = self.document();
            let path = document.pointer(pointer).and_then(Value::as_str).unwrap();
            let folder = path.rsplit_once('/').map(|(folder, _)| folder);
            let (what, change) = *self.one(&OF_FILES);
            if change.contains('D') && folder.is_none() {
                continue;
            }
            let change = change
                .replace('F', path)
                .replace('D', folder.unwrap_or_default());
            let change = match folder {
                Some(folder) => format!("mkdir -p {folder} && {change}"),
                None => change,
            };
            self.add(&format!("{pointer} {what}"), &document, &change);
        }
    }
}

/// All configurations of a seed.
fn generate(seed: u64) -> Vec<Case> {
    let mut generator = Generator::new(seed);
    let document = generator.good.clone();
    generator.add("no change", &document, "true");
    let schema = Command::new(env!("CARGO_BIN_EXE_portvakt"))
        .args(["config", "schema"])
        .output();
    let schema: Value = serde_json::from_slice(&schema.unwrap().stdout).unwrap();
    let mut all = Vec::new();
    places(&schema, &[], &mut all);
    for path in &all {
        generator.change(path);
    }
    for key in document.as_object().unwrap().keys() {
        generator.misname(key);
    }
    for pointer in NAMING {
        generator.replace(pointer);
    }
    generator.cases
}

/// All outputs of a case in which the two disagree; both refuse it with the same text, or neither does. Also returns whether it is served.
fn disagreement(case: &Case) -> (Option<String>, bool) {
    let Judged {
        printed,
        status,
        errors,
        start,
        mut faults,
    } = judge(&Site::new(case));
    if status != 0 {
        // A fault that only `serve` finds. Its events are JSON.
        let own = errors
            .lines()
            .filter(|line| !line.starts_with('{') && !printed.contains(line));
        faults.extend(own.map(|line| format!("check does not print: {line}")));
    }
    let shown = format!(
        "== {}\n{}\n{}\ncheck printed, with {status}:\n{printed}serve printed, {start:?}:\n{errors}",
        case.name,
        case.given,
        faults.join("\n")
    );
    (
        (!faults.is_empty()).then_some(shown),
        start == Start::Serves,
    )
}

#[test]
fn check_and_serve_agree_on_generated_configurations() {
    let seed = std::env::var("PORTVAKT_SEED");
    let seed = seed.map_or(SEED, |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let cases = generate(seed);
    assert!(cases.len() >= LEAST, "{} cases", cases.len());
    let done = run_all(&cases, disagreement);
    assert!(done[0].1, "the good configuration is served");
    let served = done.iter().filter(|(_, is_served)| *is_served).count();
    assert!(
        served > 10 && served < cases.len() / 2,
        "{served} of {}",
        cases.len()
    );
    let faults: Vec<_> = done.into_iter().filter_map(|(fault, _)| fault).collect();
    assert!(
        faults.is_empty(),
        "seed {seed}: {} of {} configurations\n{}",
        faults.len(),
        cases.len(),
        faults.join("\n")
    );
}

/// The configuration of [`GOOD`] has every section of the base.
#[test]
fn the_good_configuration_is_no_smaller_than_the_base() {
    let [good, base] = [GOOD, SANDBOX].map(|text| serde_yaml::from_str::<Value>(text).unwrap());
    let sections = base.as_object().unwrap().keys();
    assert!(sections.into_iter().all(|key| !good[key].is_null()));
}
