//! `Signature` over every short string of the parts that matter for its form (SIG-2, SIG-3, SIG-6), beside the rules as they are written
//! here anew.

use super::{Signature, SignatureFault};
use crate::headers::exhaustive::{each_string, is_whole, most_parts};
use std::collections::BTreeSet;

/// Parses a value; one that cannot be parsed has a sentence.
fn parse(value: &str) -> Option<Signature<'_>> {
    match Signature::parse(value.as_bytes()) {
        Ok(signature) => Some(signature),
        Err(fault) => {
            assert!(!fault.to_string().is_empty(), "{value}");
            None
        }
    }
}

/// SIG-2: exactly the four parameters, with a comma between each two of them.
fn has_the_four(value: &str) -> bool {
    let value = value.replace("SN=1,CA=x", "");
    let mut parts: Vec<&str> = value
        .split(',')
        .map(|part| part.trim_matches(' '))
        .collect();
    parts.sort_unstable();
    let expected = [
        r#"algorithm="a""#,
        r#"headers="date""#,
        r#"keyId="""#,
        r#"signature="A""#,
    ];
    parts == expected
}

/// A keyId may hold quotation marks, so that one may hold another parameter: such a value has a fault of its own.
//= SIG-2 accepted
//= SIG-2 refused
#[test]
fn parameters_in_any_order() {
    let parts = [
        r#"keyId="SN=1,CA=x""#,
        r#"algorithm="a""#,
        r#"headers="date""#,
        r#"signature="A""#,
        ",",
        " ",
    ];
    let most = if is_whole() { 8 } else { 7 };
    let mut passed = 0;
    each_string(&parts, most, |value| {
        let has_passed = parse(value).is_some();
        if has_passed != has_the_four(value) {
            let hidden = SignatureFault::hidden(value.as_bytes());
            assert!(has_passed && hidden.is_some(), "{value}");
        }
        passed += usize::from(has_passed);
    });
    // Every order of the four.
    assert!(passed >= 24, "{passed}");
}

#[test]
fn values_without_all_four_names() {
    let parts = [
        r#"keyId=""#,
        r#"algorithm=""#,
        "SN=1,CA=x",
        "\"",
        ",",
        " ",
        "\\",
        "=",
        "a",
    ];
    each_string(&parts, most_parts(), |value| {
        assert_eq!(parse(value), None, "{value}");
        let hidden = SignatureFault::hidden(value.as_bytes());
        assert!(hidden.is_some(), "{value}");
    });
}

/// SIG-3: the serial number and the issuer.
fn key_id(text: &str) -> Option<(&str, &str)> {
    let (serial, issuer) = text.split_once(',')?;
    let serial = serial.strip_prefix("SN=")?.trim_matches(' ');
    let issuer = issuer.trim_matches(' ').strip_prefix("CA=")?;
    let is_number = !serial.is_empty() && serial.chars().all(|digit| digit.is_ascii_hexdigit());
    (is_number && !issuer.is_empty()).then_some((serial, issuer))
}

//= SIG-3 accepted
//= SIG-3 refused
#[test]
fn key_ids() {
    let parts = ["SN=", "CA=", ",", " ", "1", "g", "\"", "\\"];
    let mut passed = 0;
    each_string(&parts, most_parts() + 1, |text| {
        let value = format!(r#"keyId="{text}",algorithm="a",headers="date",signature="A""#);
        let found = parse(&value);
        let found = found.as_ref().map(|found| (found.serial, found.issuer));
        let expected = key_id(text);
        let expected = expected.map(|(serial, issuer)| (serial.as_bytes(), issuer.as_bytes()));
        assert_eq!(found, expected, "{value}");
        passed += usize::from(found.is_some());
    });
    assert!(passed > 5, "{passed}");
}

/// SIG-6: distinct names with spaces between them. Of the parts below only letters are of a name.
fn listed(text: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = text.split(' ').filter(|name| !name.is_empty()).collect();
    let is_word = |name: &str| name.chars().all(|letter| letter.is_ascii_alphabetic());
    let are_names = names
        .iter()
        .all(|name| *name == "(request-target)" || is_word(name));
    let distinct: BTreeSet<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    (are_names && !names.is_empty() && distinct.len() == names.len()).then_some(names)
}

//= SIG-6 accepted
//= SIG-6 refused
#[test]
fn lists_of_names() {
    let parts = [" ", "a", "A", "b", ",", "(request-target)", "(", "\\", "\t"];
    let mut passed = 0;
    each_string(&parts, most_parts(), |text| {
        let value = format!(r#"keyId="SN=1,CA=x",algorithm="a",headers="{text}",signature="A""#);
        let found = parse(&value).map(|found| found.headers);
        assert_eq!(found, listed(text), "{value}");
        passed += usize::from(found.is_some());
    });
    assert!(passed > 100, "{passed}");
}

//= SIG-2 accepted
#[test]
fn values_are_taken_as_they_are_written() {
    let parts = ["a", "=", ",", " ", "\\", "keyId=", "SN=1"];
    each_string(&parts, most_parts(), |text| {
        let value =
            format!(r#"algorithm="{text}",keyId="SN=1,CA=x",signature="{text}",headers="date""#);
        let found = parse(&value);
        let found = found
            .as_ref()
            .map(|found| (found.algorithm, found.signature));
        assert_eq!(found, Some((text.as_bytes(), text.as_bytes())), "{value}");
    });
}
