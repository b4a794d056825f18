//! The table of rules, code and tests, docs/rules.md: generated from the rules, the citations in the code and the annotations
//! above the tests. This test keeps the table complete.
//!
//! A rule is either open, and in [`OPEN`], or implemented: then code cites the rule, one test shows an accepted case and, if a
//! violation has an outcome, another test shows a refusal. `PORTVAKT_BLESS=1 cargo test` writes the table again.

use crate::harness::skipped;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

/// Rules that are not implemented yet; a prefix stands for a whole family.
const OPEN: &[&str] = &[];

/// Partly implemented rules, each with the missing part. Code and tests may cite them; the table shows the missing part.
const PARTLY: &[(&str, &str)] = &[
    ("HTTP-7", "the JSON body where HTTP/2 itself refuses"),
    (
        "ERR-8",
        "the JSON body where the HTTP/2 library or pingora refuses a stream by itself",
    ),
];

#[derive(serde::Deserialize)]
struct Rule {
    id: String,
    outcome: String,
}

/// The code and the tests of one rule.
#[derive(Default)]
struct Coverage {
    code: BTreeSet<String>,
    accepted: BTreeSet<String>,
    refused: BTreeSet<String>,
}

#[test]
fn every_rule_is_open_or_has_code_and_tests() {
    let rules = rules();
    let coverage = coverage(&rules);
    let mut faults = Vec::new();
    for rule in &rules {
        let found = &coverage[&rule.id];
        let annotated = !found.accepted.is_empty() || !found.refused.is_empty();
        if missing(&rule.id).is_some() {
            continue;
        }
        match (is_open(&rule.id), annotated) {
            (true, true) => faults.push(format!("{} has tests: take it out of OPEN", rule.id)),
            (true, false) => {}
            (false, _) => {
                if found.code.is_empty() {
                    faults.push(format!("no code cites {}", rule.id));
                }
                if found.accepted.is_empty() {
                    faults.push(format!("no test shows what {} accepts", rule.id));
                }
                if rule.outcome != "-" && found.refused.is_empty() {
                    faults.push(format!("no test shows what {} refuses", rule.id));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_table_of_rules_is_true() {
    let rules = rules();
    let expected = table(&rules, &coverage(&rules));
    let path = root().join("docs/rules.md");
    if std::env::var_os("PORTVAKT_BLESS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == expected,
        "docs/rules.md is not what the code says: run PORTVAKT_BLESS=1 make test"
    );
}

#[test]
fn our_copy_of_the_rules_is_the_specification() {
    let original = root().join("../shared/spec/rules.yaml");
    match fs::read_to_string(&original) {
        Ok(original) => assert_eq!(
            fs::read_to_string(root().join("docs/rules.yaml")).unwrap(),
            original
        ),
        Err(_) => skipped("the specification is not beside this checkout"),
    }
}

fn is_open(id: &str) -> bool {
    OPEN.iter()
        .any(|open| *open == id || open.ends_with('-') && id.starts_with(open))
}

fn missing(id: &str) -> Option<&'static str> {
    let found = PARTLY.iter().find(|(partly, _)| *partly == id);
    found.map(|(_, missing)| *missing)
}

fn rules() -> Vec<Rule> {
    let text = fs::read_to_string(root().join("docs/rules.yaml")).unwrap();
    let families: BTreeMap<String, Vec<Rule>> = serde_yaml::from_str(&text).unwrap();
    // The order of the ids in the text is the order of the rules; a map does not keep it.
    let mut rules: Vec<Rule> = families.into_values().flatten().collect();
    rules.sort_by_key(|rule| text.find(&format!("{{id: {},", rule.id)));
    rules
}

fn coverage(rules: &[Rule]) -> BTreeMap<String, Coverage> {
    let mut coverage: BTreeMap<String, Coverage> = rules
        .iter()
        .map(|rule| (rule.id.clone(), Coverage::default()))
        .collect();
    for path in sources("src") {
        let text = fs::read_to_string(&path).unwrap();
        for (id, found) in &mut coverage {
            if cites(&text, id) {
                found.code.insert(shown(&path));
            }
        }
        annotations(&path, &text, &mut coverage);
    }
    for path in sources("tests/it") {
        annotations(&path, &fs::read_to_string(&path).unwrap(), &mut coverage);
    }
    coverage
}

/// Reads `//= HTTP-1 refused` lines, which belong to the next function.
fn annotations(path: &Path, text: &str, coverage: &mut BTreeMap<String, Coverage>) {
    let mut pending: Vec<(&str, &str)> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(annotation) = line.strip_prefix("//= ") {
            pending.push(
                annotation
                    .split_once(' ')
                    .unwrap_or_else(|| panic!("{}: {line}", path.display())),
            );
        } else if let Some(name) = line
            .strip_prefix("fn ")
            .or_else(|| line.strip_prefix("async fn "))
        {
            let name = name.split(['(', '<']).next().unwrap();
            for (id, side) in pending.drain(..) {
                let found = coverage
                    .get_mut(id)
                    .unwrap_or_else(|| panic!("{}: there is no rule {id}", path.display()));
                let test = format!("{}::{name}", path.file_stem().unwrap().to_string_lossy());
                match side {
                    "accepted" => found.accepted.insert(test),
                    "refused" => found.refused.insert(test),
                    _ => panic!("{}: {side} is neither accepted nor refused", path.display()),
                };
            }
        }
    }
}

/// Whether a text names a rule, also as one of a range such as "HDR-1 to HDR-7".
fn cites(text: &str, id: &str) -> bool {
    text.match_indices(id)
        .any(|(at, _)| !text[at + id.len()..].starts_with(|next: char| next.is_ascii_digit()))
        || in_range(text, id)
}

fn in_range(text: &str, id: &str) -> bool {
    let (family, number) = id.split_once('-').unwrap();
    let number: u32 = number.parse().unwrap();
    let start = format!("{family}-");
    text.match_indices(&start).any(|(at, _)| {
        let Some((from, rest)) = leading_number(&text[at + start.len()..]) else {
            return false;
        };
        let to = rest
            .strip_prefix(" to ")
            .and_then(|rest| rest.strip_prefix(&start))
            .and_then(leading_number);
        to.is_some_and(|(to, _)| (from..=to).contains(&number))
    })
}

fn leading_number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

fn table(rules: &[Rule], coverage: &BTreeMap<String, Coverage>) -> String {
    let mut text = String::from(
        "# Rules, code and tests\n\n\
         Made by a test from [rules.yaml](rules.yaml), the code and the tests; `PORTVAKT_BLESS=1 make test` writes it anew.\n\
         Every rule that is not open has code that cites it, a test of what it accepts, and, where a breach has an\n\
         outcome, a test of what it refuses, in which the upstream sees nothing.\n\n\
         | rule | code | accepted | refused |\n|---|---|---|---|\n",
    );
    let joined = |names: &BTreeSet<String>| {
        names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join("<br>")
    };
    for rule in rules {
        let found = &coverage[&rule.id];
        if is_open(&rule.id) {
            writeln!(text, "| {} | open | | |", rule.id).unwrap();
        } else {
            let refused = if rule.outcome == "-" && found.refused.is_empty() {
                "–".into()
            } else {
                joined(&found.refused)
            };
            writeln!(
                text,
                "| {} | {}{} | {} | {refused} |",
                rule.id,
                missing(&rule.id)
                    .map_or_else(String::new, |missing| format!("open: {missing}<br>")),
                joined(&found.code),
                joined(&found.accepted)
            )
            .unwrap();
        }
    }
    text
}

fn sources(folder: &str) -> Vec<PathBuf> {
    let mut folders = vec![root().join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
