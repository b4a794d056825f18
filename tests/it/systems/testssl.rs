//! testssl.sh examines the TLS of a running gateway: each finding stands in `testssl.txt`, with its reason.

use crate::harness::{Gate, world};
use serde_json::Value;
use std::{collections::BTreeMap, fs, process::Command};
use tempfile::TempDir;

/// The expected findings: id, severity and reason.
const EXPECTED: &str = include_str!("testssl.txt");

/// The severities that are no finding.
const FINE: [&str; 4] = ["OK", "INFO", "DEBUG", "NOT_TESTED"];

//= TLS-1 refused
#[test]
#[ignore = "make test-systems"]
fn testssl_finds_what_is_expected() {
    let gate = Gate::start();
    let mut listed = BTreeMap::new();
    for line in EXPECTED.lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.splitn(3, char::is_whitespace);
        let [id, severity, reason] = [(); 3].map(|()| parts.next().unwrap_or_default());
        assert!(!reason.trim().is_empty(), "no reason: {line}");
        listed.insert(id.to_owned(), severity.to_owned());
    }
    let mut found = findings(gate.address().port());
    // A busy machine makes single checks fail, not the same ones each time.
    for _ in 0..3 {
        let failed = found.extract_if(.., |_, (_, text)| text.contains("connect problem"));
        if failed.count() == 0 {
            break;
        }
        found.extend(findings(gate.address().port()));
    }
    assert_eq!(severities(&found), listed, "{found:#?}");
}

fn severities(found: &BTreeMap<String, (String, String)>) -> BTreeMap<String, String> {
    let of = |(id, (severity, _)): (&String, &(String, String))| (id.clone(), severity.clone());
    found.iter().map(of).collect()
}

/// The findings of testssl.sh, by id: severity and text.
fn findings(port: u16) -> BTreeMap<String, (String, String)> {
    let folder = TempDir::new().unwrap();
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, world().tls_ca.pem()).unwrap();
    let output = Command::new("testssl")
        .args(["--quiet", "--warnings", "off", "--color", "0"])
        .args(["--nodns", "min", "--ip", "127.0.0.1"])
        .args(["--openssl-timeout", "20"])
        .args(["--jsonfile", "found.json", "--add-ca"])
        .arg(&ca)
        .arg(format!("localhost:{port}"))
        .current_dir(folder.path())
        .output()
        .expect("testssl, of Debian's package testssl.sh");
    let text = fs::read_to_string(folder.path().join("found.json"));
    let text = text.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stdout)));
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    let member = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    // Without the many checks that pass, testssl.sh has not reached the gateway.
    assert!(all.len() > 100, "{text}");
    all.iter()
        .filter(|one| !FINE.contains(&&*member(one, "severity")))
        .map(|one| {
            (
                member(one, "id"),
                (member(one, "severity"), member(one, "finding")),
            )
        })
        .collect()
}
