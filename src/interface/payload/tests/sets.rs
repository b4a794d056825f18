//! The sets of codes are the interface's, where its text is beside this checkout.

use super::super::{codes, country, currency};
use std::{fs, path::Path};

/// The lines `- A: ...` below a heading.
fn listed<'a>(text: &'a str, heading: &str) -> Vec<(&'a str, &'a str)> {
    let (_, section) = text.split_once(heading).unwrap();
    let section = section.split("\n#").next().unwrap();
    let lines = section.lines().filter_map(|line| line.strip_prefix("- "));
    lines.filter_map(|line| line.split_once(": ")).collect()
}

/// What stands behind `One of` in the row of a member.
fn one_of<'a>(text: &'a str, member: &str) -> &'a str {
    let row = text
        .lines()
        .find(|line| line.starts_with(&format!("| {member} | string |")));
    let (_, list) = row.unwrap().split_once("One of ").unwrap();
    list.split([';', '(', '|']).next().unwrap().trim()
}

#[test]
fn sets_are_those_of_the_interface() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/spec/interface.md");
    let Ok(text) = fs::read_to_string(path) else {
        return;
    };
    assert_eq!(listed(&text, "### Currency codes"), currency::ACCEPTED);
    assert_eq!(listed(&text, "### Country codes"), country::ACCEPTED);
    assert_eq!(one_of(&text, "purposeCode"), codes::PURPOSES);
    assert_eq!(one_of(&text, "regulatoryReportingCode"), codes::REPORTING);
}
