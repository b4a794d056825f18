//! docs/compatibility.md: what earlier versions wrote and read still counts.
//!
//! A folder of tests/it/compatibility is one released version: `gateway.yaml`, which `portvakt config show` of that version wrote from
//! config/gateway.yaml and which has every key, and `metrics.txt`, each metric of its scrape after `make demo` with its type and labels.
//! The files of a released version never change; a new minor version gets a folder. Those of a version that CHANGELOG.md calls unreleased are
//! what the program writes (`PORTVAKT_BLESS=1` writes them). State files are kept by their schema: tests/it/state/released.

use serde_yaml::Value;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The released versions.
const RELEASED: [&str; 1] = ["0.1.0"];

fn kept(version: &str, file: &str) -> String {
    let folder = repository().join("tests/it/compatibility");
    fs::read_to_string(folder.join(version).join(file)).unwrap()
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Each value of a configuration, with the keys that lead to it.
fn values(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Mapping(mapping) if !mapping.is_empty() => {
            for (key, value) in mapping {
                values(&format!("{path}{}.", key.as_str().unwrap()), value, found);
            }
        }
        _ => {
            found.insert(format!("{path} {value:?}"));
        }
    }
}

fn values_of(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    values("", &serde_yaml::from_str(text).unwrap(), &mut found);
    found
}

/// Keeps what the program writes today, if the version is not released yet.
fn follow(version: &str, file: &str, made: &str) {
    let changes = fs::read_to_string(repository().join("CHANGELOG.md")).unwrap();
    if !changes.contains(&format!("\n## [{version}] - unreleased\n")) {
        return;
    }
    if std::env::var_os("PORTVAKT_BLESS").is_some() {
        let folder = repository().join("tests/it/compatibility");
        fs::write(folder.join(version).join(file), made).unwrap();
    }
    let said = format!("{version}/{file}: PORTVAKT_BLESS=1 writes it anew");
    assert_eq!(kept(version, file), made, "{said}");
}

fn show_of(folder: &Path, configuration: &str) -> String {
    fs::write(folder.join("config/gateway.yaml"), configuration).unwrap();
    let mut show = Command::new(env!("CARGO_BIN_EXE_portvakt"));
    show.args(["config", "show", "--config"]);
    let shown = show
        .arg(folder.join("config/gateway.yaml"))
        .output()
        .unwrap();
    let errors = String::from_utf8(shown.stderr).unwrap();
    assert!(shown.status.success(), "{errors}");
    String::from_utf8(shown.stdout).unwrap()
}

/// A configuration of an earlier version is accepted, and each of its values has its effect.
#[test]
fn earlier_configurations_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut pki = Command::new(env!("CARGO_BIN_EXE_portvakt-sandbox"));
    pki.args(["pki", "--out"]).arg(folder.join("certs"));
    assert!(pki.output().unwrap().status.success());
    fs::create_dir(folder.join("config")).unwrap();
    fs::create_dir(folder.join("state")).unwrap();
    let operations = repository().join("config/operations.yaml");
    fs::copy(operations, folder.join("config/operations.yaml")).unwrap();
    let today = fs::read_to_string(repository().join("config/gateway.yaml")).unwrap();
    for version in RELEASED {
        follow(version, "gateway.yaml", &show_of(folder, &today));
        let kept = kept(version, "gateway.yaml");
        let [kept, now] = [&kept, &show_of(folder, &kept)].map(|text| values_of(text));
        assert!(kept.len() > 100, "{} values are compared", kept.len());
        let gone: Vec<_> = kept.difference(&now).collect();
        assert!(gone.is_empty(), "{version}: without effect: {gone:#?}");
    }
}

/// docs/metrics.md, which is made from the gateway's table, has each metric of an earlier version with its type and its labels.
#[test]
fn earlier_metrics_are_there() {
    let page = fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
    let now: Vec<_> = page.lines().filter_map(row).collect();
    let lines = now.iter().map(|(name, kind, labels)| {
        let mut labels = labels.clone();
        labels.sort_unstable();
        let line = format!("{name} {kind} {}", labels.join(","));
        line.trim_end().to_owned() + "\n"
    });
    let mut made: Vec<_> = lines.collect();
    made.sort();
    for version in RELEASED {
        follow(version, "metrics.txt", &made.concat());
        let kept = kept(version, "metrics.txt");
        assert!(kept.lines().count() > 60);
        for line in kept.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let labels = words
                .get(2)
                .map_or(vec![], |list| list.split(',').collect());
            let is_there = now.iter().any(|(name, kind, has)| {
                [*name, *kind] == words[..2] && labels.iter().all(|label| has.contains(label))
            });
            assert!(is_there, "{version}: {line}");
        }
    }
}

/// Name, type and labels of a row of the page.
fn row(line: &str) -> Option<(&str, &str, Vec<&str>)> {
    let mut cells = line.strip_prefix("| `")?.split(" | ");
    let (name, kind) = cells.next()?.split_once("`, ")?;
    let kind = kind.split([':', ' ']).next()?;
    let labels = cells.next()?.split("; ");
    let labels = labels.filter_map(|label| label.trim().strip_prefix('`')?.split('`').next());
    Some((name, kind, labels.collect()))
}

/// The newest folder is that of this minor version, and the page names the folders.
#[test]
fn this_version_is_kept() {
    let (minor, _) = env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap();
    let newest = RELEASED.last().unwrap();
    assert!(newest.starts_with(&format!("{minor}.")), "{newest}");
    let page = fs::read_to_string(repository().join("docs/compatibility.md")).unwrap();
    for folder in ["tests/it/compatibility/", "tests/it/state/released/"] {
        assert!(page.contains(folder) && Path::new(&repository().join(folder)).is_dir());
    }
}
