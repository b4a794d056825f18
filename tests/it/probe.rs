//! `portvakt-sandbox probe` against the simulated core, in which it finds nothing, and against cores with one fault each. Probe and
//! cores are processes of their own.

/// A core with a fault.
mod core;

/// Cores that take facts from headers, in many disguises.
mod disguises;

/// Amounts in bulks.
mod amounts;

use crate::{
    bank::Bank,
    harness::{Call, Gate, Protocol, Upstream, accepted, free_address, write_private},
};
use portvakt::signing::AssertionKey;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};
use tempfile::TempDir;

/// Far more than a core needs for an answer; a core that never answers costs a test this time.
const TIMEOUT: &str = "10";

/// Runs the probe.
fn probe(core: &str, key: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portvakt-sandbox"))
        .args(["probe", "--core", core, "--timeout", TIMEOUT, "--key"])
        .arg(key)
        .args(arguments)
        .output()
        .unwrap()
}

/// The names of the checks that found a fault, and the whole report.
fn to_mend(output: &Output) -> (BTreeSet<String>, Value) {
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let checks = report["checks"].as_array().unwrap();
    let faulty = checks.iter().filter(|check| check["passed"] == false);
    let names: BTreeSet<_> = faulty
        .map(|check| check["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(report["to_mend"], names.len());
    assert_eq!(
        output.status.code(),
        Some(if names.is_empty() { 0 } else { 1 })
    );
    (names, report)
}

/// A signing key in a file.
fn key() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("assertion.key");
    AssertionKey::read_or_make(&file).unwrap();
    (folder, file)
}

/// Each fault with the checks that must find it, and those that may, because the fault shows there too.
fn found(cases: &[(&str, &[&str], &[&str])]) {
    found_with(&[], cases);
}

/// The same by a probe with further arguments.
fn found_with(arguments: &[&str], cases: &[(&str, &[&str], &[&str])]) {
    let (_folder, key) = key();
    let arguments = [&["--json"][..], arguments].concat();
    for cases in cases.chunks(8) {
        thread::scope(|scope| {
            for (fault, must, may) in cases {
                let (key, arguments) = (&key, &arguments);
                scope.spawn(move || {
                    let core = core::Faulty::start(fault, key);
                    let (names, report) = to_mend(&probe(&core.url(), key, arguments));
                    let names: BTreeSet<_> = names.iter().map(String::as_str).collect();
                    let must = must.iter().copied().collect::<BTreeSet<_>>();
                    let other: Vec<_> = names
                        .difference(&must)
                        .filter(|name| !may.contains(name))
                        .collect();
                    assert!(
                        must.is_subset(&names) && other.is_empty(),
                        "{fault}: {names:?} {report:#}"
                    );
                });
            }
        });
    }
}

/// The cores below have one fault each: this one has none.
#[test]
fn it_finds_nothing_in_a_core_as_the_contract_wants_it() {
    found(&[("none", &[], &[])]);
}

/// With the keys of a gateway, and with those that the probe publishes.
#[test]
fn it_finds_nothing_in_the_simulated_core() {
    let (gate, bank) = Bank::behind_a_gate();
    let file = gate.folder().join("state/assertion.key");
    let core = format!("http://{}", bank.address);
    let (names, report) = to_mend(&probe(&core, &file, &["--json"]));
    assert!(names.is_empty(), "{report:#}");

    let (folder, file) = key();
    let control = free_address();
    let bank = Bank::start(free_address(), control, folder.path());
    let core = format!("http://{}", bank.address);
    let output = probe(&core, &file, &["--publish", &control.to_string()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.ends_with("checks, nothing to mend\n"), "{text}");
    for line in text.lines().filter(|line| line.starts_with("  ")) {
        assert!(line.starts_with("  ok    "), "{line}");
    }
}

#[test]
fn it_finds_each_fault_of_the_assertion() {
    found(&[
        ("missing", &["missing"], &[]),
        ("malformed", &["malformed"], &[]),
        ("unsigned", &["unsigned"], &[]),
        ("another-key", &["another-key", "embedded-key"], &[]),
        ("signature", &["signature", "embedded-key"], &[]),
        ("hmac", &["hmac"], &[]),
        ("jwk", &["embedded-key"], &[]),
        ("jku", &["embedded-key"], &[]),
        ("x5c", &["embedded-key"], &[]),
        ("audience", &["audience"], &[]),
        ("issuer", &["issuer"], &[]),
        ("expired", &["expired"], &[]),
        ("method", &["method"], &[]),
        (
            "target",
            &[
                "target",
                "target-case",
                "target-encoding",
                "target-slash",
                "query",
            ],
            &[],
        ),
        ("target-case", &["target-case"], &[]),
        ("target-encoding", &["target-encoding"], &[]),
        ("target-slash", &["target-slash"], &[]),
        ("query", &["query"], &[]),
        ("body", &["body", "body-removed"], &[]),
        ("body-removed", &["body-removed"], &[]),
        (
            "headers",
            &["signature-header", "identity-header", "context-header"],
            &[],
        ),
        ("identity-header", &["identity-header"], &[]),
        ("repeated-get", &["repeated-get"], &[]),
        ("facts", &["facts", "facts-of-change"], &[]),
        ("psu-header", &["psu-header"], &[]),
        ("invented-psu", &["invented"], &[]),
        ("invented-agreement", &["invented"], &[]),
        ("sca-header", &["sca-header"], &[]),
        ("roles-header", &["roles-header"], &[]),
        ("bytes", &["bytes"], &[]),
        ("reads-only", &["missing"], &[]),
    ]);
}

/// A core that has an answer for each jti, but not for long enough or not in one step.
#[test]
fn it_finds_each_way_to_execute_a_request_twice() {
    found(&[
        (
            "replayed",
            &[
                "replayed",
                "replayed-after-another",
                "replayed-at-once",
                "replayed-later",
            ],
            &[],
        ),
        (
            "replayed-after-another",
            &["replayed-after-another", "replayed-later"],
            &[],
        ),
        ("replayed-at-once", &["replayed-at-once"], &[]),
        // On a busy machine a second passes between two requests.
        (
            "replayed-later",
            &["replayed-later"],
            &["replayed", "replayed-after-another"],
        ),
    ]);
}

#[test]
fn it_finds_each_fault_of_an_answer() {
    found(&[
        ("status", &["status", "unknown-payment"], &[]),
        (
            "no-failure",
            &["no-failure", "faulty-body", "empty-body"],
            &[],
        ),
        ("accepts-any-body", &["faulty-body"], &[]),
        ("knows-any-payment", &["unknown-payment"], &[]),
        ("two-lengths", &["framing"], &[]),
        ("length-and-chunks", &["framing"], &[]),
        ("other-coding", &["framing"], &[]),
        ("surplus", &["surplus"], &["kept", "unread-body"]),
        ("fields", &["head"], &[]),
        ("informational", &["head"], &[]),
        ("content-type", &["content-type", "errors"], &[]),
        ("html-errors", &["errors"], &[]),
        ("text-errors", &["errors"], &[]),
        ("hop-by-hop", &["hop-by-hop"], &[]),
        ("own-address", &["own-address"], &[]),
    ]);
}

#[test]
fn it_finds_each_fault_of_endurance() {
    found(&[
        ("largest-head", &["largest-head"], &[]),
        ("largest-body", &["largest-body"], &[]),
        ("empty-body", &["empty-body"], &["body-removed"]),
        ("slow", &["slow"], &["largest-body"]),
        ("kept", &["kept", "unread-body"], &[]),
        ("unread-body", &["unread-body"], &["kept", "surplus"]),
        ("idle", &["idle"], &[]),
        ("closed", &["closed"], &["unknown-payment", "faulty-body"]),
    ]);
}

/// A person reads what to mend.
#[test]
fn the_report_says_what_to_mend() {
    let (_folder, key) = key();
    let core = core::Faulty::start("audience", &key);
    let output = probe(&core.url(), &key, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let (_, rest) = text
        .split_once("\n  MEND  audience             GET: 200, PUT: 200\n")
        .unwrap();
    assert!(
        rest.starts_with("        -> compare aud with the gateway's assertion.audience"),
        "{text}"
    );
    assert!(text.ends_with("checks, 1 to mend\n"), "{text}");
}

#[test]
fn a_probe_that_cannot_be_made_ends_with_2() {
    let (folder, key) = key();
    let other = folder.path().join("other.key");
    write_private(&other, b"no key");
    let silent = free_address().to_string();
    let away = format!("http://{silent}");
    for (core, file, arguments, expected) in [
        (away.as_str(), &key, &[][..], "cannot be reached"),
        ("ftp://127.0.0.1:1", &key, &[], "no http://HOST:PORT"),
        (&away, &other, &[], "it holds no EC key"),
        (
            &away,
            &key,
            &["--read", "/v1/other"],
            "no operation of the interface",
        ),
        (&away, &key, &["--read", "/v1/accounts"], "--psu"),
        (&away, &key, &["--body", "{"], "no JSON"),
        (&away, &key, &["--publish", "192.0.2.1:1"], "--publish"),
        (&away, &key, &["--other"], "--other"),
    ] {
        let output = probe(core, file, arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

/// The probe's requests have the headers that a gateway sends.
#[test]
fn its_requests_are_like_the_gateways() {
    let (_folder, key) = key();
    let core = Upstream::start();
    probe(&format!("http://{}", core.address()), &key, &[]);
    let probed = core.take();
    let gate = Gate::builder()
        .line("assertion: {key: state/assertion.key}")
        .start();
    let own = [
        Call::plain().with("Accept", "application/json"),
        Call::new("PUT", "/v1/tpp/contact")
            .with("Accept", "application/json")
            .json(r#"{"email": "a@tpp.example"}"#),
    ];
    for call in own {
        let seen = accepted(&gate, &call.only(Protocol::Http1)).remove(0).seen;
        let names = |headers: Vec<String>| headers.into_iter().collect::<BTreeSet<_>>();
        let sent = probed
            .iter()
            .find(|sent| (&sent.method, &sent.target) == (&seen.method, &seen.target));
        assert_eq!(
            names(sent.unwrap().names()),
            names(seen.names()),
            "{}",
            seen.method
        );
    }
}
