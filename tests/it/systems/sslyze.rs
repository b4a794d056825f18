//! sslyze compares the TLS of a running gateway with Mozilla's "intermediate" configuration, and tries known attacks: each finding stands
//! in `sslyze.txt`, with its reason.

use crate::harness::{Gate, world};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// The expected findings: id and reason.
const EXPECTED: &str = include_str!("sslyze.txt");

/// The version, which decides what is found.
const PACKAGE: &str = "sslyze==6.3.1";

/// Sslyze, in a folder of its own.
fn sslyze() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sslyze-6.3.1");
    let program = folder.join("bin/sslyze");
    if !program.exists() {
        let run = |command: &mut Command| {
            let output = command.output().unwrap();
            let fault = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command:?}: {fault}");
        };
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let mut install = Command::new(folder.join("bin/python"));
        run(install.args(["-m", "pip", "install", "--quiet", PACKAGE]));
    }
    program
}

//= TLS-1 refused
#[test]
#[ignore = "make test-systems"]
fn sslyze_finds_what_is_expected() {
    let gate = Gate::start();
    let folder = TempDir::new().unwrap();
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, world().tls_ca.pem()).unwrap();
    let output = Command::new(sslyze())
        .args(["--mozilla_config", "intermediate", "--certinfo_ca_file"])
        .arg(&ca)
        .arg(format!("localhost:{}", gate.address().port()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // Without these checks, sslyze has not reached the gateway.
    for passed in [
        "Not vulnerable to Heartbleed",
        "Not vulnerable to OpenSSL CCS injection",
        "Compression disabled",
    ] {
        assert!(text.contains(passed), "{passed}: {text}");
    }
    let (_, verdict) = text.split_once("COMPLIANCE AGAINST").unwrap();
    let found: BTreeSet<_> = verdict
        .lines()
        .filter_map(|line| line.trim().strip_prefix("* ")?.split(':').next())
        .collect();
    let mut listed = BTreeMap::new();
    for line in EXPECTED.lines().filter(|line| !line.starts_with('#')) {
        let (id, reason) = line.split_once(' ').unwrap_or((line, ""));
        assert!(!reason.trim().is_empty(), "no reason: {line}");
        listed.insert(id, reason);
    }
    assert_eq!(found, listed.into_keys().collect(), "{verdict}");
}
