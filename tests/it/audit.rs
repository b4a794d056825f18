//! docs/audit.md: what is recorded, that a change is found, that nothing that the core saw is lost, and that a PSU can be erased.

use crate::{
    disk::with_small_disk,
    harness::{
        Call, Gate, Protocol, accepted, check_error, eventually, let_pass, pki::LeafSpec, refused,
        skipped, world,
    },
};
use portvakt::audit::{Class, verify};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Duration,
};
use tempfile::TempDir;
use time::macros::datetime;

/// Switches the audit on.
pub(crate) const ON: &str = "audit: {write: on, folder: state/audit}";

fn portvakt(args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    program.args(args).output().unwrap()
}

fn text(output: &Output) -> String {
    let Output { stdout, stderr, .. } = output;
    [stdout, stderr]
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .concat()
}

/// The folder of the audit.
pub(crate) fn audit_of(gate: &Gate) -> PathBuf {
    gate.folder().join("state/audit")
}

/// Every record of an audit, in the order of its files.
pub(crate) fn records(audit: &Path) -> Vec<Value> {
    let mut found = Vec::new();
    for class in Class::ALL {
        for file in files(audit, class) {
            let text = fs::read_to_string(file).unwrap();
            found.extend(
                text.lines()
                    .map(|line| serde_json::from_str::<Value>(line).unwrap()),
            );
        }
    }
    found
}

fn files(audit: &Path, class: Class) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(audit.join("1")) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        file.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(class.name())
    });
    files.sort();
    files
}

/// The members of records are those of the table in docs/audit.md, with their types.
fn are_documented(records: &[Value]) -> BTreeSet<String> {
    let document = include_str!("../../docs/audit.md");
    let rows: Vec<(&str, &str)> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(name, rest)| (name, rest.split(" | ").next().unwrap()))
        .collect();
    let mut seen = BTreeSet::new();
    for record in records {
        for (name, value) in record.as_object().unwrap() {
            let own = match value {
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "list",
                _ => "none of them",
            };
            assert!(
                rows.contains(&(name, own)),
                "{name}, {own}, is not documented: {record}"
            );
            seen.insert(name.clone());
        }
    }
    seen
}

const PSU: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";

/// A gate with records of every kind that a test can cause.
fn with_records() -> (Gate, String) {
    let gate = Gate::builder().line(ON).with_a_file().start();
    let tpp = gate.world().both.id().unwrap();
    let payment = Call::payment().only(Protocol::Http1);
    accepted(&gate, &payment);
    gate.send(&Call::payment().json("{\"a\":"), Protocol::Http1);
    gate.send(&Call::accounts().off_by(-61), Protocol::Http1);
    gate.upstream().away(|| {
        assert_eq!(
            gate.send(&Call::accounts().present(), Protocol::Http1)
                .status,
            502
        );
    });
    let who = json!({"tpp": tpp, "psu_id": PSU, "last_sca": gate.now().to_string(), "consent_at": gate.now().to_string()});
    assert_eq!(gate.tell("/psu/bind", &who).status, 200);
    let who = json!({"tpp": tpp, "psu_id": PSU});
    assert_eq!(gate.tell("/psu/read", &who).status, 200);
    let withdraw = json!({"tpp": tpp, "psu_id": PSU, "what": "consents"});
    assert_eq!(gate.tell("/psu/withdraw", &withdraw).status, 200);
    assert_eq!(gate.tell("/psu/unbind", &who).status, 200);
    assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    fs::write(gate.folder().join("gateway.yaml"), "colour: red\n").unwrap();
    assert_eq!(gate.tell("/reload", &json!({})).status, 422);
    let audit = audit_of(&gate);
    eventually("all records are written", || {
        let records = records(&audit);
        records
            .iter()
            .any(|record| record["kind"] == "reload-refused")
            && records.iter().any(|record| record["kind"] == "outcome")
            && records
                .iter()
                .any(|record| record["reason"] == "date-skewed")
            && records
                .iter()
                .filter(|record| record["call"] == "/reload")
                .count()
                == 2
    });
    (gate, tpp)
}

#[test]
fn what_the_bank_must_show_is_recorded() {
    let (gate, tpp) = with_records();
    let records = records(&audit_of(&gate));
    let of = |kind: &str| {
        let mut own = records.iter().filter(|record| record["kind"] == kind);
        own.next()
            .unwrap_or_else(|| panic!("no {kind}: {records:#?}"))
    };
    let forwarding = of("forwarding");
    assert_eq!(
        (&forwarding["tpp"], &forwarding["operation"]),
        (&tpp.as_str().into(), &"payment-create".into())
    );
    let outcome = of("outcome");
    assert_eq!(outcome["trace_id"], forwarding["trace_id"]);
    assert_eq!(
        (&outcome["outcome"], &outcome["upstream_status"]),
        (&"forwarded".into(), &200.into())
    );
    assert_eq!(of("refused")["reason"], "payload-malformed");
    // Also where the request was refused before its certificate was judged.
    let mut refused = records.iter().filter(|record| record["kind"] == "refused");
    let skewed = refused.find(|record| record["reason"] == "date-skewed");
    assert_eq!(skewed.unwrap()["shown_tpp"], tpp);
    assert_eq!(of("failed")["status"], 502);
    for kind in ["outcome", "failed"] {
        let core = gate.upstream().address().to_string();
        assert_eq!(of(kind)["endpoint"], core, "{kind}");
    }
    assert_eq!(of("bound")["consent"], "all");
    assert_eq!(of("withdrawn")["what"], "consents");
    let mut bound = records.iter().filter(|record| record["kind"] == "bound");
    assert!(bound.any(|record| record["psu"] == of("unbound")["psu"]));
    assert_eq!(of("call")["credential"], "none");
    assert_eq!(of("started")["configuration"].as_str().unwrap().len(), 64);
    assert_ne!(
        of("reloaded")["configuration"],
        of("reload-refused")["configuration"]
    );
    let seen = are_documented(&records);
    assert!(seen.len() > 20, "{seen:?}");
    // Neither the PSU-ID nor the state's hash of it.
    let all = serde_json::to_string(&records).unwrap();
    for psu in [PSU, &world().both.psu()] {
        assert!(!all.contains(psu) && !all.contains(&psu.replace('-', "")));
    }
    // Why was this TPP refused?
    let minute = &of("refused")["time"].as_str().unwrap()[..16];
    let audit = audit_of(&gate);
    let found = portvakt(&[
        "audit",
        "find",
        audit.to_str().unwrap(),
        "--tpp",
        &tpp,
        "--at",
        minute,
        "--kind",
        "refused",
    ]);
    assert!(found.status.success());
    assert!(
        text(&found).contains("payload-malformed") && text(&found).contains("portvakt explain"),
        "{}",
        text(&found)
    );
    let none = portvakt(&[
        "audit",
        "find",
        audit.to_str().unwrap(),
        "--tpp",
        "PSDNO-FSA-0",
    ]);
    assert_eq!(none.status.code(), Some(1));
}

/// The TPP whose certificate is refused is found by the name in it, in the audit and in the access log. A name that is no TPP's is not.
#[test]
fn a_refused_certificate_is_found_by_its_name() {
    const NAME: &str = "PSDNO-FSA-777001";
    let gate = Gate::builder()
        .line("  access_file: access.log")
        .line(ON)
        .for_program();
    let program = gate.run_silently(&mut gate.program());
    let endless = format!("{NAME}-{}", "7".repeat(60));
    for identity in [NAME, endless.as_str()] {
        let expired = world().issue(&LeafSpec {
            organization_identifier: Some(identity.to_owned()),
            not_after: datetime!(2020-01-01 0:00 UTC),
            ..world().leaf()
        });
        let call = Call::accounts().by(&expired).only(Protocol::Http1);
        refused(&gate, &call, 403, "FORBIDDEN", "certificate-expired");
    }
    let log = gate.folder().join("access.log");
    let shown = || -> Vec<Value> {
        let text = fs::read_to_string(&log).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["shown_tpp"].clone()).collect()
    };
    eventually("both lines", || shown().len() == 2);
    assert_eq!(shown(), [json!(NAME), Value::Null]);
    let audit = audit_of(&gate);
    let refusals = || {
        let mut records = records(&audit);
        records.retain(|record| record["kind"] == "refused");
        records
    };
    eventually("the record", || !refusals().is_empty());
    drop(program);
    assert_eq!(refusals().len(), 1);
    assert_eq!(
        (&refusals()[0]["shown_tpp"], &refusals()[0]["tpp"]),
        (&NAME.into(), &Value::Null)
    );
    let found = portvakt(&["audit", "find", audit.to_str().unwrap(), "--tpp", NAME]);
    assert!(
        text(&found).contains("certificate-expired"),
        "{}",
        text(&found)
    );
}

/// Copies the folder, changes the copy, and verifies it.
fn finds(audit: &Path, checkpoints: Option<&Path>, change: impl FnOnce(&Path)) -> String {
    let copy = TempDir::new().unwrap();
    fs::create_dir(copy.path().join("1")).unwrap();
    for class in Class::ALL {
        for file in files(audit, class) {
            fs::copy(&file, copy.path().join("1").join(file.file_name().unwrap())).unwrap();
        }
    }
    change(copy.path());
    let folder = copy.path().to_str().unwrap();
    let mut args = vec!["audit", "verify", folder];
    if let Some(file) = checkpoints {
        args.extend(["--checkpoints", file.to_str().unwrap()]);
    }
    let verified = portvakt(&args);
    let text = text(&verified);
    let is_whole = text.contains(", 0 faults");
    assert_eq!(verified.status.code(), Some(i32::from(!is_whole)), "{text}");
    if is_whole { "whole".to_owned() } else { text }
}

/// Changes the lines of the newest file of payments.
fn edit(audit: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let file = files(audit, Class::Payments).pop().unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<_> = text.lines().map(|line| format!("{line}\n")).collect();
    change(&mut lines);
    fs::write(file, lines.concat()).unwrap();
}

#[test]
fn every_manipulation_is_found() {
    let gate = Gate::builder()
        .line("audit: {write: on, folder: state/audit, file_size: 64KiB}")
        .start();
    // More than one file.
    let many = 110;
    for _ in 0..many {
        assert_eq!(gate.send(&Call::payment(), Protocol::Http1).status, 200);
    }
    let audit = audit_of(&gate);
    let outcomes = || {
        records(&audit)
            .iter()
            .filter(|record| record["kind"] == "outcome")
            .count()
    };
    eventually("all outcomes", || outcomes() == many);
    assert!(files(&audit, Class::Payments).len() > 1);
    let checkpoint = portvakt(&["audit", "checkpoint", audit.to_str().unwrap()]);
    let elsewhere = gate.folder().join("checkpoints.jsonl");
    fs::write(&elsewhere, &checkpoint.stdout).unwrap();
    let kept = Some(elsewhere.as_path());

    assert_eq!(finds(&audit, kept, |_| {}), "whole");
    let changed = finds(&audit, None, |copy| {
        edit(copy, |lines| {
            lines[2] = lines[2].replace("payment", "PAYMENT")
        });
    });
    assert!(changed.contains("was changed"), "{changed}");
    let removed = finds(&audit, None, |copy| {
        edit(copy, |lines| drop(lines.remove(2)))
    });
    assert!(removed.contains("missing"), "{removed}");
    let doubled = finds(&audit, None, |copy| {
        edit(copy, |lines| lines.insert(2, lines[2].clone()))
    });
    assert!(doubled.contains("doubled or moved"), "{doubled}");
    let moved = finds(&audit, None, |copy| edit(copy, |lines| lines.swap(1, 3)));
    assert!(
        moved.contains("missing") && moved.contains("moved"),
        "{moved}"
    );
    let file = finds(&audit, None, |copy| {
        fs::remove_file(&files(copy, Class::Payments)[0]).unwrap()
    });
    assert!(file.contains("missing"), "{file}");
    // Records of other chains: lines within a file, and a file in the place of another one.
    let other = fs::read_to_string(&files(&audit, Class::Control)[0]).unwrap();
    let joined = finds(&audit, None, |copy| {
        edit(copy, |lines| lines.push(other.clone()))
    });
    assert!(joined.contains("is a record of another chain"), "{joined}");
    let replaced = finds(&audit, None, |copy| {
        for file in files(copy, Class::Payments) {
            fs::remove_file(file).unwrap();
        }
        let first = "1/payments-00000000000000000001.jsonl";
        fs::write(copy.join(first), &other).unwrap();
    });
    assert!(
        replaced.contains("line 1 is a record of another chain"),
        "{replaced}"
    );
    // A line without its newline takes the next one with it.
    let glued = finds(&audit, None, |copy| {
        edit(copy, |lines| lines[1] = lines[1].trim_end().to_owned())
    });
    assert!(glued.contains("is no record"), "{glued}");
    let repeated = finds(&audit, None, |copy| {
        let newest = files(copy, Class::Payments).pop().unwrap();
        let first = fs::read(&files(copy, Class::Payments)[0]).unwrap();
        let mut file = File::options().append(true).open(newest).unwrap();
        file.write_all(&first).unwrap();
    });
    assert!(repeated.contains("line 1 stands after line"), "{repeated}");
    // The tail looks like an older audit, and only a checkpoint finds the cut.
    let cut = |copy: &Path| edit(copy, |lines| drop(lines.pop()));
    assert_eq!(finds(&audit, None, cut), "whole");
    let found = finds(&audit, kept, cut);
    assert!(found.contains("a checkpoint has line"), "{found}");
    let last = finds(&audit, kept, |copy| {
        edit(copy, |lines| {
            let last = lines.last_mut().unwrap();
            *last = last.replace("forwarded", "abandoned");
        });
    });
    assert!(last.contains("not the line of the checkpoint"), "{last}");
    // The chain goes on after the cut, up to the number of a checkpoint, and has a checkpoint there: the first one still counts.
    let later = TempDir::new().unwrap();
    let both = later.path().join("checkpoints.jsonl");
    let found = finds(&audit, Some(&both), |copy| {
        edit(copy, |lines| {
            let last = lines.last_mut().unwrap();
            *last = last.replace("forwarded", "abandoned");
        });
        let second = portvakt(&["audit", "checkpoint", copy.to_str().unwrap()]);
        fs::write(&both, [&checkpoint.stdout[..], &second.stdout].concat()).unwrap();
    });
    assert!(found.contains("not the line of the checkpoint"), "{found}");
    let class = finds(&audit, kept, |copy| {
        for file in files(copy, Class::Payments) {
            fs::remove_file(file).unwrap();
        }
    });
    assert!(class.contains("a checkpoint has line"), "{class}");
    // A folder without records, as after their removal, or at a wrong path.
    let nothing = finds(&audit, None, |copy| {
        fs::remove_dir_all(copy.join("1")).unwrap()
    });
    assert!(nothing.contains("has no record"), "{nothing}");
    let earlier = finds(&audit, None, |copy| {
        fs::rename(copy.join("1"), copy.join("2")).unwrap()
    });
    assert!(earlier.contains("1: is missing"), "{earlier}");
}

/// Lines that no checkpoint proves are named, such as those of a chain that somebody added.
#[test]
fn lines_without_a_checkpoint_are_named() {
    let (gate, _) = with_records();
    let audit = audit_of(&gate);
    let folder = audit.to_str().unwrap();
    let kept = gate.folder().join("checkpoints.jsonl");
    let verify = || {
        let checkpoints = kept.to_str().unwrap();
        let verified = portvakt(&["audit", "verify", folder, "--checkpoints", checkpoints]);
        assert!(verified.status.success(), "{}", text(&verified));
        text(&verified)
    };
    let checkpoint = portvakt(&["audit", "checkpoint", folder]);
    fs::write(&kept, &checkpoint.stdout).unwrap();
    assert!(!verify().contains("no checkpoint proves"), "{}", verify());
    let control = fs::read_to_string(&files(&audit, Class::Control)[0]).unwrap();
    let second: Value = serde_json::from_str(control.lines().nth(1).unwrap()).unwrap();
    let earlier = json!({"chain": "1/control", "seq": 1, "hash": second["prev"]});
    fs::write(&kept, format!("{earlier}\n")).unwrap();
    let said = verify();
    assert!(
        said.contains("1/payments: no checkpoint proves any line"),
        "{said}"
    );
    assert!(
        said.contains("1/control: no checkpoint proves lines 2 to "),
        "{said}"
    );
}

#[test]
fn a_psu_is_erased_and_the_chain_stays_whole() {
    let gate = Gate::builder().line(ON).for_program();
    let run = || gate.run_silently(&mut gate.program());
    let program = run();
    let who =
        json!({"tpp": gate.world().both.id(), "psu_id": PSU, "last_sca": gate.now().to_string()});
    assert_eq!(gate.tell("/psu/bind", &who).status, 200);
    let audit = audit_of(&gate);
    let config = gate.folder().join("gateway.yaml");
    let file = gate.folder().join("psu-id");
    fs::write(&file, format!("{PSU}\n")).unwrap();
    let [audit_arg, config_arg, file_arg] =
        [&audit, &config, &file].map(|path| path.to_str().unwrap());
    let find = || {
        portvakt(&[
            "audit", "find", audit_arg, "--psu", file_arg, "--config", config_arg,
        ])
    };
    assert!(text(&find()).contains("bound"), "{}", text(&find()));
    let pseudonym = records(&audit)
        .iter()
        .find(|record| record["kind"] == "bound")
        .unwrap()["psu"]
        .clone();
    let salt = || {
        let salts = rusqlite::Connection::open(audit.join("salts.db")).unwrap();
        let salt = salts.query_row("SELECT salt FROM salt", [], |row| row.get(0));
        salt.unwrap_or_else(|_| Vec::<u8>::new())
    };
    let old_salt = salt();
    assert_eq!(old_salt.len(), 32);
    // While the gateway runs.
    let erase = || portvakt(&["psu", "erase", file_arg, "--config", config_arg]);
    let erased = erase();
    assert!(erased.status.success(), "{}", text(&erased));
    assert_eq!(erase().status.code(), Some(1), "nothing is left");
    assert_eq!(salt().len(), 0);
    assert!(!contains(
        &fs::read(audit.join("salts.db")).unwrap(),
        &old_salt
    ));
    assert_eq!(find().status.code(), Some(1));
    eventually("the chain has the erasure", || {
        let records = records(&audit);
        records
            .iter()
            .any(|record| record["kind"] == "erased" && record["psu"] == pseudonym)
    });
    assert_eq!(
        gate.tell(
            "/psu/read",
            &json!({"tpp": gate.world().both.id(), "psu_id": PSU})
        )
        .status,
        404
    );
    assert_eq!(verify(&audit, &[]).unwrap().findings, []);
    // The same PSU, bound again, is another one to the audit.
    assert_eq!(gate.tell("/psu/bind", &who).status, 200);
    let last = records(&audit)
        .into_iter()
        .rfind(|record| record["kind"] == "bound")
        .unwrap();
    assert_ne!(last["psu"], pseudonym);
    drop(program);
}

/// An import names no PSU in its records: the erasure is the first one.
#[test]
fn the_erasure_of_an_imported_psu_is_recorded() {
    let gate = Gate::builder().line(ON).for_program();
    let program = gate.run_silently(&mut gate.program());
    let [psus, file, config] =
        ["psus.ndjson", "psu-id", "gateway.yaml"].map(|name| gate.folder().join(name));
    let line =
        json!({"tpp": gate.world().both.id(), "psu_id": PSU, "last_sca": gate.now().to_string()});
    fs::write(&psus, format!("{line}\n")).unwrap();
    fs::write(&file, format!("{PSU}\n")).unwrap();
    let psu = |call: &str, file: &Path| {
        let [file, config] = [file, &config].map(|path| path.to_str().unwrap());
        portvakt(&["psu", call, file, "--config", config])
    };
    let imported = psu("import", &psus);
    assert!(imported.status.success(), "{}", text(&imported));
    let erased = text(&psu("erase", &file));
    let (_, after) = erased
        .split_once("the pseudonym was ")
        .unwrap_or_else(|| panic!("{erased}"));
    let pseudonym = after.split_whitespace().next().unwrap();
    let audit = audit_of(&gate);
    eventually("the chain has the erasure", || {
        let records = records(&audit);
        records
            .iter()
            .any(|record| record["kind"] == "erased" && record["psu"] == pseudonym)
    });
    assert_eq!(
        psu("erase", &file).status.code(),
        Some(1),
        "nothing is left"
    );
    assert_eq!(verify(&audit, &[]).unwrap().findings, []);
    drop(program);
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Valid personal data and secrets of every kind that a request or a call can have: none is in any file of the audit.
#[test]
fn no_personal_data_and_no_key_is_in_the_audit() {
    let gate = Gate::builder().line(ON).with_a_file().start();
    let tpp = gate.world().both.id().unwrap();
    let session = "5b0c8a52-8c1e-4c0d-9c55-3e0a4b7f0a11";
    let corporate = "c56a4180-65aa-42ec-a945-5fd21dec0538";
    let bound = json!({
        "tpp": tpp, "psu_id": PSU, "psu_corporate_id": corporate, "last_sca": gate.now().to_string(),
        "consent_at": gate.now().to_string(), "accounts": ["NO9386011117947"],
    });
    assert_eq!(gate.tell("/psu/bind", &bound).status, 200);
    let calls = [
        Call::cross_border().with("TPP-Session-ID", session),
        Call::accounts()
            .present()
            .with("PSU-ID", PSU)
            .with("TPP-Session-ID", session),
        Call::accounts()
            .at("/v1/accounts/NO9386011117947/balances")
            .with("PSU-ID", PSU),
        Call::payment().with("PSU-ID", "01010112345"),
        Call::payment().with("X-PSU-IDENTITY", "01010112345"),
        Call::payment().with("Digest", "SHA-256=AAAA"),
    ];
    let mut secrets: Vec<String> = [
        PSU,
        "01010112345",
        "NO9386011117947",
        "DE89370400440532013000",
        "Werkzeugbau",
        session,
        corporate,
        "192.0.2.7",
    ]
    .map(str::to_owned)
    .into();
    secrets.push(PSU.replace('-', ""));
    secrets.push(world().both.psu());
    let mut answers = Vec::new();
    for call in calls {
        let sealed = gate.seal(&call.only(Protocol::Http1));
        answers.push(gate.send_sealed(&sealed, Protocol::Http1).unwrap().status);
    }
    assert!(
        answers.contains(&200) && answers.iter().any(|status| *status >= 400),
        "{answers:?}"
    );
    for seen in gate.upstream().take() {
        secrets.extend(seen.header("signature").map(str::to_owned));
    }
    let audit = audit_of(&gate);
    eventually("the outcomes are written", || {
        let records = records(&audit);
        let of = |kind: &str| {
            records
                .iter()
                .filter(|record| record["kind"] == kind)
                .count()
        };
        of("outcome") == of("forwarding") && of("outcome") > 0 && of("refused") > 0
    });
    let key = fs::read(gate.folder().join("state/hash.key")).unwrap();
    let mut found = 0;
    for folder in [&audit, &audit.join("1")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            for secret in &secrets {
                let secret = secret.as_bytes();
                assert!(!contains(&bytes, secret), "{}: {secret:?}", path.display());
                let upper = secret.to_ascii_uppercase();
                assert!(!contains(&bytes, &upper), "{}: {secret:?}", path.display());
            }
            for part in [
                key.trim_ascii(),
                uuid::Uuid::parse_str(PSU).unwrap().as_bytes(),
            ] {
                assert!(!contains(&bytes, part), "{}", path.display());
            }
            found += bytes.len();
        }
    }
    assert!(found > 1_000, "{found}");
}

/// Two processes on one folder, as during an upgrade: each has a chain of its own.
#[test]
fn two_gateways_do_not_disturb_each_other() {
    let folder = TempDir::new().unwrap();
    let line = format!(
        "audit: {{write: on, folder: {}}}",
        folder.path().join("audit").display()
    );
    let [one, two] = [(); 2].map(|()| Gate::builder().line(&line).start());
    for gate in [&one, &two, &one] {
        assert_eq!(gate.send(&Call::payment(), Protocol::Http1).status, 200);
    }
    drop((one, two));
    let verified = verify(&folder.path().join("audit"), &[]).unwrap();
    assert_eq!(verified.findings, []);
    let chains: Vec<_> = verified.ends.iter().map(|end| end.chain.as_str()).collect();
    assert!(
        chains.contains(&"1/payments") && chains.contains(&"2/payments"),
        "{chains:?}"
    );
}

/// A full disk: with `required`, every request stops with 503 and the core sees none; otherwise requests go on.
#[test]
fn a_full_disk_stops_requests_only_if_the_audit_is_required() {
    let tried = with_small_disk(1, TempDir::new().unwrap().path(), &Command::new("true")).output();
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        skipped(&format!("a file system cannot be mounted here: {tried:?}"));
        return;
    }
    for required in [true, false] {
        let line = format!("audit: {{write: on, folder: audit, required: {required}}}");
        let gate = Gate::builder().line(&line).for_program();
        let audit = gate.folder().join("audit");
        fs::create_dir(&audit).unwrap();
        let program = gate.run_silently(&mut with_small_disk(1, &audit, &gate.program()));
        let (payment, read) = (
            Call::payment().only(Protocol::Http1),
            Call::accounts().present().only(Protocol::Http1),
        );
        accepted(&gate, &payment);
        accepted(&gate, &read);
        let seen = PathBuf::from(format!("/proc/{}/root", program.0.id()));
        let filler = seen.join(audit.strip_prefix("/").unwrap()).join("filler");
        let mut file = File::create(&filler).unwrap();
        while file.write_all(&[0; 512]).is_ok() {}
        drop(file);
        // The last block of a file may have place for some records.
        let is_refused = || gate.send(&payment, Protocol::Http1).status == 503;
        let is_failing = || {
            gate.control("/readyz")
                .json()
                .to_string()
                .contains("audit: ")
        };
        for _ in 0..100 {
            is_refused();
        }
        eventually("/readyz names the audit", is_failing);
        let metric = |name: &str| gate.metric_now(name, &["cause=\"audit\""]);
        let shown = [metric("portvakt_not_ready"), metric("portvakt_degraded")];
        let required_fails = f64::from(u8::from(required));
        assert_eq!(shown, [required_fails, 1.0 - required_fails]);
        let why = |name| gate.metric_now("portvakt_write_fault", &["of=\"audit\"", name]);
        assert_eq!(why("why=\"no_space\""), 1.0);
        assert!(gate.metric_now("portvakt_audit_records_total", &["result=\"failed\""]) >= 1.0);
        gate.upstream().take();
        let status = if required { 503 } else { 200 };
        for call in [&payment, &read] {
            assert_eq!(gate.send(call, Protocol::Http1).status, status);
        }
        assert_eq!(gate.upstream().take().is_empty(), required);
        assert_eq!(gate.control("/readyz").status, status);
        fs::remove_file(&filler).unwrap();
        eventually("the audit is written again", || {
            gate.control("/readyz").json()["ready"] == true && !is_failing()
        });
        accepted(&gate, &payment);
        accepted(&gate, &read);
        assert_eq!(why(""), 0.0);
        assert_eq!(
            metric("portvakt_not_ready") + metric("portvakt_degraded"),
            0.0
        );
        let inside = seen.join(audit.strip_prefix("/").unwrap());
        assert_eq!(verify(&inside, &[]).unwrap().findings, []);
        let kinds: Vec<_> = records(&inside)
            .iter()
            .map(|record| record["kind"].clone())
            .collect();
        assert!(kinds.contains(&"outcome".into()));
    }
}

/// A disk that hangs during a payment, and writes its record after the payment was refused: the record has an outcome. After five seconds, a
/// disk that hangs counts as one that fails.
#[test]
fn a_disk_that_hangs_stops_requests_and_each_payment_has_an_outcome() {
    let gate = Gate::builder().line(ON).start();
    let (payment, read) = (
        Call::payment().only(Protocol::Http1),
        Call::accounts().present().only(Protocol::Http1),
    );
    accepted(&gate, &payment);
    accepted(&gate, &read);
    let audit = audit_of(&gate);
    // The writer reads salts.db every one or two seconds. SQLite opens a journal that it finds, and opening a FIFO waits for its other end.
    let journal = audit.join("salts.db-journal");
    let made = Command::new("mkfifo").arg(&journal).status();
    assert!(made.unwrap().success());
    // Mostly the writer hangs then, before the record of the payment comes: it is written late. Otherwise the record itself meets the error.
    let_pass(Duration::from_secs(3));
    let mut forwarded = 1;
    let stopped = eventually("a payment comes while the disk hangs", || {
        gate.upstream().take();
        let answer = gate.send(&payment, Protocol::Http1);
        forwarded += usize::from(answer.status == 200);
        (answer.status != 200).then_some(answer)
    });
    check_error("hangs", &stopped, 503, "SYSTEM_ERROR", "state-unavailable");
    assert!(gate.upstream().take().is_empty());
    refused(&gate, &read, 503, "SYSTEM_ERROR", "state-unavailable");
    let ready = gate.control("/readyz");
    assert_eq!(ready.status, 503);
    assert!(
        ready.json()["notWell"]
            .to_string()
            .contains("audit: the disk does not answer"),
        "{}",
        ready.json()
    );
    assert_eq!(
        gate.metric_now("portvakt_not_ready", &["cause=\"audit\""]),
        1.0
    );
    // The disk answers again.
    let away = audit.join("away");
    fs::rename(&journal, &away).unwrap();
    File::options().write(true).open(&away).unwrap();
    eventually("/readyz is 200", || gate.control("/readyz").status == 200);
    accepted(&gate, &payment);
    let of = |kind: &str| {
        let mut records = records(&audit);
        records.retain(|record| record["kind"] == kind);
        records
    };
    let traces = |kind: &str| -> BTreeSet<String> {
        let records = of(kind).into_iter();
        records
            .map(|record| record["trace_id"].to_string())
            .collect()
    };
    // One that the core never got, and the last.
    let expected = forwarded + 2;
    eventually("each forwarding has its outcome", || {
        let [forwardings, outcomes] = ["forwarding", "outcome"].map(traces);
        let found = (forwardings.len(), outcomes.len());
        let are_written = forwardings.len() > forwarded && forwardings.is_subset(&outcomes);
        let holds = are_written && outcomes.len() == expected;
        holds.then_some(()).ok_or((found, expected))
    });
    let outcomes: Vec<_> = of("outcome")
        .into_iter()
        .map(|record| (record["outcome"].clone(), record["reason"].clone()))
        .collect();
    let refused = (json!("refused"), json!("state-unavailable"));
    assert!(outcomes.contains(&refused), "{outcomes:?}");
    assert_eq!(verify(&audit, &[]).unwrap().findings, []);
}

/// A line that a crash cut off was acknowledged to nobody: it is removed at the next start, and the chain goes on.
#[test]
fn a_line_that_a_crash_cut_off_is_removed() {
    let gate = Gate::builder().line(ON).for_program();
    let run = || gate.run_silently(&mut gate.program());
    let mut program = run();
    assert_eq!(gate.send(&Call::payment(), Protocol::Http1).status, 200);
    program.end();
    let audit = audit_of(&gate);
    let file = files(&audit, Class::Payments).pop().unwrap();
    let mut torn = File::options().append(true).open(&file).unwrap();
    torn.write_all(b"{\"seq\":9,\"prev").unwrap();
    let program = run();
    assert_eq!(gate.send(&Call::payment(), Protocol::Http1).status, 200);
    eventually("the chain goes on", || {
        let verified = verify(&audit, &[]).unwrap();
        verified.findings.is_empty()
            && records(&audit)
                .iter()
                .filter(|record| record["kind"] == "forwarding")
                .count()
                == 2
    });
    drop(program);
}

/// One TPP is refused as often as it can, and an unverified caller beside it: each of another's four refusals has its record, and records
/// say how many of the noise have none.
//= FWD-8 accepted
#[test]
fn the_noise_of_one_tpp_hides_nothing_of_another() {
    let rates = "rates: {per_address: off, per_tpp: off, unsafe_per_tpp: off, chains_per_address: off, chains: off}";
    let mut gate = Gate::builder().line(ON).line(rates).start();
    let quiet = gate.world().issue(&LeafSpec {
        organization_identifier: Some("PSDNO-FSA-765432".into()),
        ..world().leaf()
    });
    let broken = Call::payment().json("{\"a\":").only(Protocol::Http1);
    let of_quiet = broken.clone().by(&quiet);
    let unsigned = broken
        .clone()
        .altered(|request| request.set_header("X-Request-ID", "another"));
    let noise = || {
        for number in 0..100 {
            let call = if number % 4 == 0 { &unsigned } else { &broken };
            let answer = gate.send(call, Protocol::Http1);
            assert!([400, 401].contains(&answer.status), "{}", answer.reason());
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(noise);
        }
        noise();
        for _ in 0..4 {
            assert_eq!(gate.send(&of_quiet, Protocol::Http1).status, 400);
        }
    });
    let (audit, id) = (audit_of(&gate), gate.world().both.id().unwrap());
    gate.stop();
    let count = |records: &[Value], name: &str, tpp: &str| {
        let of_name = records.iter().filter(|record| !record[name].is_null());
        let counted = of_name.map(|record| match record["kind"].as_str() {
            Some("refused") if record[name] == tpp => 1,
            Some("left-out") => record["omitted"].as_u64().unwrap(),
            _ => 0,
        });
        counted.sum::<u64>()
    };
    let records = eventually("each refusal is recorded or counted", || {
        let records = records(&audit);
        let noted = count(&records, "tpp", &id);
        (noted == 375).then_some(records).ok_or(noted)
    });
    are_documented(&records);
    let of_quiet = records
        .iter()
        .filter(|record| record["tpp"] == "PSDNO-FSA-765432");
    assert_eq!(
        of_quiet
            .filter(|record| record["kind"] == "refused")
            .count(),
        4
    );
}
