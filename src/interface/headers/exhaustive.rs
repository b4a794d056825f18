//! The forms of headers over every short string of the parts that matter for each form, beside the rule as it is written here anew.
//!
//! A string has at most four parts, and with `PORTVAKT_EXHAUST=all` (`make exhaust`) at most six; in some forms one more.

use super::{
    PsuId, RequestId,
    accept_fix::{self, Fixes},
    digest, encoded_word, network,
};
use http::HeaderValue;
use std::collections::BTreeSet;

/// Whether the whole spaces are asked for.
pub(super) fn is_whole() -> bool {
    std::env::var("PORTVAKT_EXHAUST").as_deref() == Ok("all")
}

/// The number of parts of the longest strings.
pub(super) fn most_parts() -> usize {
    if is_whole() { 6 } else { 4 }
}

/// Judges every string of at most so many parts.
pub(super) fn each_string(parts: &[&str], most: usize, mut judge: impl FnMut(&str)) {
    extend(&mut String::new(), parts, most, &mut judge);
}

fn extend(text: &mut String, parts: &[&str], left: usize, judge: &mut impl FnMut(&str)) {
    judge(text);
    if left == 0 {
        return;
    }
    let length = text.len();
    for part in parts {
        text.push_str(part);
        extend(text, parts, left - 1, judge);
        text.truncate(length);
    }
}

#[test]
fn each_string_is_judged_once() {
    let mut judged = Vec::new();
    each_string(&["a", "b"], 2, |text| judged.push(text.to_owned()));
    assert_eq!(judged, ["", "a", "aa", "ab", "b", "ba", "bb"]);
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// HDR-11, by the value of the number: no string is so long that its rounding matters.
fn is_place(text: &str) -> bool {
    let is_within = |degrees: &str, limit: f64| {
        let digits = degrees.strip_prefix('-').unwrap_or(degrees);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let has_form = are_digits(whole) && whole.len() <= 3 && are_digits(fraction);
        has_form && digits.parse::<f64>().is_ok_and(|number| number <= limit)
    };
    let degrees: Vec<&str> = match text.strip_prefix("GEO:") {
        Some(place) => place.split([',', ';']).collect(),
        None => Vec::new(),
    };
    match degrees.as_slice() {
        [latitude, longitude] => is_within(latitude, 90.0) && is_within(longitude, 180.0),
        _ => false,
    }
}

//= HDR-11 accepted
//= HDR-11 refused
#[test]
fn places() {
    let parts = ["0", "9", "18", "90", "180", ".", ",", ";", "-", "G"];
    let mut passed = 0;
    let mut judge = |text: &str| {
        let is_location = network::is_location(text.as_bytes());
        assert_eq!(is_location, is_place(text), "{text}");
        if is_location {
            passed += 1;
        } else {
            assert!(!network::fault_of_location(text.as_bytes()).is_empty());
        }
    };
    each_string(&parts, most_parts() + 1, |text| {
        judge(&format!("GEO:{text}"));
    });
    let parts = ["GEO:", "geo:", "GEO", ":", " ", "+", "1", ",", "e"];
    each_string(&parts, most_parts(), judge);
    assert!(passed > 500, "{passed}");
}

//= HDR-11 accepted
//= HDR-11 refused
#[test]
fn ports() {
    for number in 0..200_000_u32 {
        let expected = u16::try_from(number).ok().filter(|port| *port > 0);
        let text = number.to_string();
        assert_eq!(network::port(text.as_bytes()), expected, "{text}");
        let padded = format!("0{number}");
        assert_eq!(network::port(padded.as_bytes()), None, "{padded}");
    }
    let parts = ["0", "1", "6", "9", "+", "-", " ", ".", "x"];
    each_string(&parts, most_parts(), |text| {
        let has_form = are_digits(text) && !text.starts_with('0');
        let number = text.parse::<u64>().ok().filter(|_| has_form);
        let expected = number.filter(|number| *number <= 65_535);
        let port = network::port(text.as_bytes());
        assert_eq!(port.map(u64::from), expected, "{text}");
        if port.is_none() {
            assert!(!network::fault_of_port(text.as_bytes()).is_empty());
        }
    });
}

fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_part = |part: &&str| {
        let has_zero = part.len() > 1 && part.starts_with('0');
        are_digits(part) && !has_zero && part.parse::<u64>().is_ok_and(|part| part <= 255)
    };
    parts.len() == 4 && parts.iter().all(is_part)
}

//= HDR-11 accepted
//= HDR-11 refused
#[test]
fn addresses() {
    let parts = [
        "0", "1", "25", "256", "1.", "255.", ".", ":", "::", "f", " ", "/",
    ];
    let (mut v4, mut v6) = (0, 0);
    each_string(&parts, most_parts(), |text| {
        let Some(address) = network::address(text.as_bytes()) else {
            assert!(!is_ipv4(text), "{text}");
            assert!(!network::fault_of_address(text.as_bytes()).is_empty());
            return;
        };
        assert_eq!(address.is_ipv4(), is_ipv4(text), "{text}");
        let again = address.to_string();
        assert_eq!(network::address(again.as_bytes()), Some(address), "{text}");
        if address.is_ipv4() {
            assert_eq!(again, text);
            v4 += 1;
        } else {
            let has_form = text.contains(':') && text.matches("::").count() <= 1;
            assert!(has_form && !text.contains(":::"), "{text}");
            v6 += 1;
        }
    });
    assert!(v4 > 10 && v6 > 10, "{v4} {v6}");
}

const FIXES: [&str; 4] = [
    "amount-as-string",
    "cardaccount-switch-originalamount-and-transactionamount",
    "longer-names",
    "cash-account-type-iso",
];

/// HDR-16 for a value without quotes.
fn fixes(text: &str) -> Option<BTreeSet<&str>> {
    let elements = text.split(',').map(|element| element.trim_matches(' '));
    let named: BTreeSet<_> = elements.filter(|element| !element.is_empty()).collect();
    let are_known = named.iter().all(|name| FIXES.contains(name));
    (are_known && !named.is_empty()).then_some(named)
}

/// The names in the header for the core.
fn written(fixes: Fixes) -> BTreeSet<String> {
    let value = fixes.header_value();
    let text = value.iter().map(|value| value.to_str().unwrap());
    let names = text.flat_map(|text| text.split(','));
    names.map(str::to_owned).collect()
}

fn parse_fixes(text: &str) -> Option<BTreeSet<String>> {
    accept_fix::parse([text.as_bytes()]).ok().map(written)
}

/// HDR-16. Quotes decide nothing: a value with quotes that passes names the same fixes without them.
//= HDR-16 accepted
//= HDR-16 refused
#[test]
fn lists_of_fixes() {
    let parts = [
        FIXES[0],
        FIXES[2],
        "Longer-Names",
        "longer-names ",
        "x",
        ",",
        " ",
        "\"",
    ];
    let mut passed = 0;
    each_string(&parts, most_parts(), |text| {
        let found = parse_fixes(text);
        let bare = text.replace('"', "");
        let expected = fixes(&bare);
        let expected: Option<BTreeSet<String>> =
            expected.map(|names| names.into_iter().map(str::to_owned).collect());
        if bare == text {
            assert_eq!(found, expected, "{text}");
            let quoted = format!("\"{text}\"");
            assert_eq!(parse_fixes(&quoted), expected, "{quoted}");
        } else if found.is_some() {
            assert_eq!(found, expected, "{text}");
            assert!((text.len() - bare.len()).is_multiple_of(2), "{text}");
        }
        if found.is_some() {
            passed += 1;
        } else {
            assert!(!accept_fix::fault([text.as_bytes()]).is_empty());
        }
    });
    assert!(passed > 100, "{passed}");
}

//= HDR-16 accepted
//= HDR-16 refused
#[test]
fn two_lines_of_fixes_are_one_list() {
    let parts = [FIXES[1], FIXES[3], "x", ",", " ", "\""];
    let mut lines = Vec::new();
    each_string(&parts, 2, |text| lines.push(text.to_owned()));
    for one in &lines {
        for other in &lines {
            let both = accept_fix::parse([one.as_bytes(), other.as_bytes()]).ok();
            let expected = parse_fixes(one).zip(parse_fixes(other));
            let expected = expected.map(|(one, other)| &one | &other);
            assert_eq!(both.map(written), expected, "{one} and {other}");
        }
    }
}

/// The hashes of an empty body.
const HASHES: [&str; 2] = [
    "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
];

/// DIG-1 for an empty body.
fn is_digest(text: &str) -> bool {
    let instances = text.split(',').map(|instance| instance.trim_matches(' '));
    let pairs = instances.map(|instance| instance.split_once('=').unwrap_or((instance, "")));
    let known: Vec<bool> = pairs
        .filter_map(|(name, value)| match name.to_ascii_lowercase().as_str() {
            "sha-256" => Some(value == HASHES[0]),
            "sha-512" => Some(value == HASHES[1]),
            _ => None,
        })
        .collect();
    !known.is_empty() && known.into_iter().all(|is_right| is_right)
}

//= DIG-1 accepted
//= DIG-1 refused
#[test]
fn digests_of_an_empty_body() {
    let parts = [
        "SHA-256=", "sha-512=", HASHES[0], HASHES[1], "MD5=", ",", " ", "=",
    ];
    let mut passed = 0;
    each_string(&parts, most_parts(), |text| {
        let is_valid = digest::check(text.as_bytes(), b"").is_ok();
        assert_eq!(is_valid, is_digest(text), "{text}");
        passed += usize::from(is_valid);
    });
    assert!(passed > 10, "{passed}");
}

/// SIG-10. What is decoded is decoded to the same from a word that encodes each byte.
//= SIG-10 accepted
//= SIG-10 refused
#[test]
fn encoded_words() {
    let parts = [
        "=?utf-8?Q?",
        "=?UTF-8?b?",
        "?=",
        "a",
        "_",
        "=41",
        "YQ==",
        "=C3",
        "=A5",
        " ",
        "?",
    ];
    let (mut passed, mut plain) = (0, 0);
    each_string(&parts, most_parts(), |text| {
        let bare = text.trim_matches(' ');
        let Ok(decoded) = encoded_word::decode(text.as_bytes()) else {
            assert!(bare.starts_with("=?"), "{text}");
            return;
        };
        if !bare.starts_with("=?") {
            assert_eq!(&*decoded, bare.as_bytes(), "{text}");
            plain += 1;
            return;
        }
        for word in bare.split(' ').filter(|word| !word.is_empty()) {
            let has_form = word.starts_with("=?") && word.ends_with("?=");
            assert!(has_form && word.matches('?').count() == 4, "{text}");
        }
        let encoded: String = decoded.iter().map(|byte| format!("={byte:02X}")).collect();
        let again = format!("=?utf-8?q?{encoded}?=");
        let again = encoded_word::decode(again.as_bytes());
        assert_eq!(again.as_ref(), Ok(&decoded), "{text}");
        passed += 1;
    });
    assert!(passed > 10 && plain > 1_000, "{passed} {plain}");
}

//= HDR-7 accepted
//= HDR-7 refused
#[test]
fn identifiers_of_two_bytes_and_of_each_length() {
    let is_id = |bytes: &[u8]| {
        let value = HeaderValue::from_bytes(bytes).ok()?;
        Some(RequestId::parse(&value).is_some())
    };
    let is_blank = |byte: u8| byte == b' ' || byte == b'\t';
    let is_visible = |byte: u8| (0x21..=0x7e).contains(&byte);
    for one in 0..=u8::MAX {
        for other in 0..=u8::MAX {
            let is_one = is_visible(one) && (is_visible(other) || is_blank(other));
            let expected = is_one || is_blank(one) && is_visible(other);
            let found = is_id(&[one, other]);
            assert!(found.is_none_or(|found| found == expected), "{one} {other}");
            assert!(found.is_some() || !expected, "{one} {other}");
        }
    }
    for length in 0..1_000 {
        let expected = (1..=128).contains(&length);
        assert_eq!(is_id(&vec![b'a'; length]), Some(expected), "{length}");
    }
}

//= HDR-9 accepted
//= HDR-9 refused
#[test]
fn a_uuid_with_each_byte_at_each_place() {
    let written = b"0192f0c1-5a5b-7def-8000-1234567890ab";
    for place in 0..written.len() {
        for byte in 0..=u8::MAX {
            let mut text = written.to_vec();
            text[place] = byte;
            let expected = match written[place] {
                b'-' => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            };
            let id = PsuId::parse(&text);
            assert_eq!(id.is_some(), expected, "{place} {byte}");
            if let Some(id) = id {
                let shown = id.hyphenated().into_bytes();
                assert_eq!(shown, text.to_ascii_lowercase());
            }
            let mut longer = written.to_vec();
            longer.insert(place, byte);
            assert_eq!(PsuId::parse(&longer), None, "{place} {byte}");
        }
        assert_eq!(PsuId::parse(&written[..place]), None, "{place}");
    }
}
