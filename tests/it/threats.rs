//! docs/threat-model.md names existing tests: a threat whose test was removed or renamed fails here.

// The source of each header.
mod words;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const DOCUMENT: &str = include_str!("../../docs/threat-model.md");

/// The tests that the document names, as `file::test`.
fn named() -> BTreeSet<&'static str> {
    let quoted = DOCUMENT.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.contains("::")).collect()
}

/// Every function of the code and the tests, as `file::function`.
fn functions() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = vec![root.join("src"), root.join("tests/it")];
    let mut functions = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let file = path.file_stem().unwrap().to_string_lossy();
            let text = fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| {
                let line = line.trim();
                let line = line.strip_prefix("async ").unwrap_or(line);
                line.strip_prefix("fn ")?.split(['(', '<']).next()
            });
            functions.extend(names.map(|name| format!("{file}::{name}")));
        }
    }
    functions
}

#[test]
fn the_threat_model_names_tests_that_exist() {
    let functions = functions();
    let named = named();
    assert!(named.len() > 60, "{} tests are named", named.len());
    let gone: Vec<_> = named
        .iter()
        .filter(|name| !functions.contains(**name))
        .collect();
    assert!(gone.is_empty(), "no such tests: {gone:?}");
}

/// Every attack has a test, or is marked as open.
#[test]
fn every_attack_has_a_test() {
    let (_, attacks) = DOCUMENT.split_once("## Attacks").unwrap();
    let (attacks, _) = attacks.split_once("## Trusted by ruling").unwrap();
    let rows = attacks.lines().filter(|line| line.starts_with("| "));
    let without = rows.filter(|row| !row.starts_with("| attack ") && !row.contains("::"));
    let without: Vec<_> = without
        .filter(|row| !row.contains("not closed yet"))
        .collect();
    assert!(without.is_empty(), "{without:#?}");
}
