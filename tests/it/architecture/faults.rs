//! The faults that tests/model/faults.sh plants belong to the source as it is: a change that moves what a fault replaces fails here, and
//! not weeks later, when somebody plants them.

use std::fs;

/// The number of faults.
const LEAST: usize = 40;

/// What is wrong with a patch: the places of its hunks that `source` does not have once.
fn misplaced(patch: &str, source: impl Fn(&str) -> String) -> Vec<String> {
    let mut misplaced = Vec::new();
    for file in patch.split("--- a/").skip(1) {
        let (path, hunks) = file.split_once('\n').expect("a path");
        let source = source(path);
        for hunk in hunks.split("\n@@ ").skip(1) {
            let replaced: String = hunk
                .lines()
                .skip(1)
                .filter_map(|line| line.strip_prefix([' ', '-']))
                .flat_map(|line| [line, "\n"])
                .collect();
            if source.matches(&replaced).count() != 1 {
                misplaced.push(format!("{path}: {replaced}"));
            }
        }
    }
    misplaced
}

#[test]
fn every_planted_fault_has_its_place() {
    let mut faults = 0;
    for entry in fs::read_dir("tests/model/faults").unwrap() {
        let patch = fs::read_to_string(entry.unwrap().path()).unwrap();
        let source = |path: &str| fs::read_to_string(path).unwrap();
        assert_eq!(misplaced(&patch, source), [""; 0]);
        faults += 1;
    }
    // The first only says how the others are chosen.
    assert!(faults > LEAST, "{faults}");
}

#[test]
fn a_fault_whose_place_has_changed_is_found() {
    let patch = "--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
    assert_eq!(misplaced(patch, |_| "one\ntwo\n".into()), [""; 0]);
    for source in ["one\nTwo\n", "one\ntwo\none\ntwo\n"] {
        assert_eq!(misplaced(patch, |_| source.into()), ["a.rs: one\ntwo\n"]);
    }
}
