//! Compares the sets of codes and the limits with the text of the interface, if that text is beside this checkout.

use super::super::{amount, basket, codes, country, currency, iban, rules};
use std::{fs, path::Path};

/// The lines `- A: ...` below a heading.
fn listed<'a>(text: &'a str, heading: &str) -> Vec<(&'a str, &'a str)> {
    let (_, section) = text.split_once(heading).unwrap();
    let section = section.split("\n#").next().unwrap();
    let lines = section.lines().filter_map(|line| line.strip_prefix("- "));
    lines.filter_map(|line| line.split_once(": ")).collect()
}

/// The text after `One of` in the row of a member.
fn one_of<'a>(text: &'a str, member: &str) -> &'a str {
    let row = text
        .lines()
        .find(|line| line.starts_with(&format!("| {member} | string |")));
    let (_, list) = row.unwrap().split_once("One of ").unwrap();
    list.split([';', '(', '|']).next().unwrap().trim()
}

/// The text of the interface.
fn interface() -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec/interface.md");
    fs::read_to_string(path).ok()
}

#[test]
fn limits_are_those_of_the_interface() {
    let Some(text) = interface() else { return };
    let (_, section) = text.split_once("\n## Limits\n").unwrap();
    let information = format!("1 to {} characters", rules::MAX_INFORMATION);
    let at_most = |most: usize| format!("at most {most}");
    for (row, limit) in [
        ("Payments per signing basket", at_most(basket::MAX_PAYMENTS)),
        ("creditorName length", at_most(rules::MAX_NAME)),
        ("street length", at_most(rules::MAX_NAME)),
        ("bban length", at_most(rules::MAX_BBAN)),
        ("iban length", at_most(iban::MAX_LENGTH)),
        ("remittanceInformationUnstructured length", information),
        (
            "regulatoryReportingInformation length",
            at_most(rules::MAX_INFORMATION),
        ),
    ] {
        let start = format!("| {row} | {limit} ");
        assert!(
            section.lines().any(|line| line.starts_with(&start)),
            "{start}"
        );
    }
    let (precision, scale) = (amount::PRECISION, amount::SCALE);
    assert!(text.contains(&format!("precision {precision} and scale {scale}")));
    // The interface's pattern of a BIC has no end anchor.
    let bic = codes::SHOWN_BIC.strip_suffix('$').unwrap();
    assert!(text.contains(&format!("| BIC, pattern {bic} |")));
}

#[test]
fn sets_are_those_of_the_interface() {
    let Some(text) = interface() else { return };
    assert_eq!(listed(&text, "### Currency codes"), currency::ACCEPTED);
    assert_eq!(listed(&text, "### Country codes"), country::ACCEPTED);
    assert_eq!(one_of(&text, "purposeCode"), codes::PURPOSES);
    assert_eq!(one_of(&text, "regulatoryReportingCode"), codes::REPORTING);
}
