//! docs/threat-model.md, docs/reliability.md and docs/security-review.md name existing tests: a claim whose test was removed or renamed
//! fails here.

// The source of each header.
mod words;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const DOCUMENT: &str = include_str!("../../docs/threat-model.md");

/// Each page, and how many tests it names at least.
const PAGES: [(&str, usize); 3] = [
    (DOCUMENT, 60),
    (include_str!("../../docs/reliability.md"), 40),
    (include_str!("../../docs/security-review.md"), 5),
];

/// The tests that a page names, as `file::test`, or as `test` alone after others of the same file.
fn named(page: &str) -> BTreeSet<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    let is_test = |text: &&str| {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:/".contains(c);
        let is_long = text.split('_').count() > 3 && !text.starts_with("portvakt_");
        text.chars().all(is_name) && (text.contains("::") || is_long)
    };
    quoted
        .filter(is_test)
        .map(|text| text.rsplit('/').next().unwrap_or(text))
        .collect()
}

/// Every function of the code and the tests, as `file::function` and as `function`.
fn functions() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = vec![root.join("src"), root.join("tests/it")];
    let mut functions = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // The tests of a folder stand in its mod.rs.
            let file = path.with_extension("");
            let is_mod = file.ends_with("mod");
            let file = if is_mod { &folder } else { &file };
            let file = file.file_name().unwrap().to_string_lossy();
            let text = fs::read_to_string(&path).unwrap();
            for line in text.lines() {
                let line = line.trim();
                let line = line.strip_prefix("async ").unwrap_or(line);
                let name = line
                    .strip_prefix("fn ")
                    .and_then(|rest| rest.split(['(', '<']).next());
                if let Some(name) = name {
                    functions.insert(format!("{file}::{name}"));
                    functions.insert(name.to_owned());
                }
            }
        }
    }
    functions
}

#[test]
fn the_pages_name_tests_that_exist() {
    let functions = functions();
    for (page, least) in PAGES {
        let named = named(page);
        assert!(named.len() > least, "{} tests are named", named.len());
        let gone: Vec<_> = named
            .iter()
            .filter(|name| !functions.contains(**name))
            .collect();
        assert!(gone.is_empty(), "no such tests: {gone:?}");
    }
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
