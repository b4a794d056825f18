//! Attribute types: the keywords that clients print for them, and their OIDs.
//!
//! Invariant: an attribute type is its OID in dotted decimal, which has one spelling. Keywords are only read, and each keyword means one
//! OID. Deliberately not here: OpenSSL's `uid` (0.9.2342.19200300.100.1.44), which differs from `UID` in letter case only, and
//! `uniqueIdentifier`, which OpenSSL and BouncyCastle map to different OIDs. Clients must write these types as OIDs.

use std::borrow::Cow;
use std::cmp::Ordering;

/// The OID of `word` in dotted decimal. `word` is a keyword in any letter case, or an OID with or without the prefix `OID.`.
pub(super) fn oid_of(word: &str) -> Option<Cow<'static, str>> {
    let after_prefix = match word.split_at_checked(4) {
        Some((prefix, rest)) if prefix.eq_ignore_ascii_case("OID.") => Some(rest),
        _ => None,
    };
    let dotted = after_prefix.unwrap_or(word);
    if dotted.starts_with(|first: char| first.is_ascii_digit()) {
        return is_oid(dotted).then(|| Cow::Owned(dotted.to_owned()));
    }
    if after_prefix.is_some() {
        return None;
    }
    let found = KEYWORDS
        .binary_search_by(|(keyword, _)| ignoring_case(keyword, word))
        .ok()?;
    KEYWORDS.get(found).map(|(_, oid)| Cow::Borrowed(*oid))
}

/// The text of an OID before `=`: the keyword if RFC 2253, section 2.3, has one, otherwise the OID itself.
pub(super) fn keyword_of(oid: &str) -> &str {
    match oid {
        "2.5.4.3" => "CN",
        "2.5.4.6" => "C",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.9" => "STREET",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "0.9.2342.19200300.100.1.1" => "UID",
        "0.9.2342.19200300.100.1.25" => "DC",
        other => other,
    }
}

/// Whether the text is an OID of X.660: at least two arcs, the first 0 to 2, the second below 40 if the first is 0 or 1, no leading zeros,
/// and no arc wider than the 128 bits that the reader of the certificate supports.
fn is_oid(text: &str) -> bool {
    let mut arcs = text.split('.').map(arc);
    let (Some(Some(first)), Some(Some(second))) = (arcs.next(), arcs.next()) else {
        return false;
    };
    (first == 2 || (first < 2 && second < 40)) && arcs.all(|arc| arc.is_some())
}

fn arc(digits: &str) -> Option<u128> {
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit()) && !leading_zero;
    digits.parse().ok().filter(|_| plain)
}

/// Compares a keyword of the table, which is lower case, with a word in any letter case.
fn ignoring_case(keyword: &str, word: &str) -> Ordering {
    keyword
        .bytes()
        .cmp(word.bytes().map(|letter| letter.to_ascii_lowercase()))
}

/// The keywords that Java (X500Principal), OpenSSL (short and long names), Python's cryptography, BouncyCastle, .NET and RFC 4519 print, in
/// lower case and in alphabetical order.
///
/// `SN` is the surname, as in RFC 4519 and OpenSSL; `S` and `SP` are the state, `T` the title, `E` the e-mail address, `G` the given name
/// and `I` the initials, as in Java and Windows.
#[rustfmt::skip]
const KEYWORDS: &[(&str, &str)] = &[
    ("businesscategory", "2.5.4.15"),
    ("c", "2.5.4.6"),
    ("c3", "2.5.4.98"),
    ("cn", "2.5.4.3"),
    ("commonname", "2.5.4.3"),
    ("countrycode3c", "2.5.4.98"),
    ("countrycode3n", "2.5.4.99"),
    ("countryname", "2.5.4.6"),
    ("dc", "0.9.2342.19200300.100.1.25"),
    ("description", "2.5.4.13"),
    ("destinationindicator", "2.5.4.27"),
    ("distinguishedname", "2.5.4.49"),
    ("dmdname", "2.5.4.54"),
    ("dn", "2.5.4.46"),
    ("dnq", "2.5.4.46"),
    ("dnqualifier", "2.5.4.46"),
    ("dnsname", "2.5.4.100"),
    ("domaincomponent", "0.9.2342.19200300.100.1.25"),
    ("e", "1.2.840.113549.1.9.1"),
    ("email", "1.2.840.113549.1.9.1"),
    ("emailaddress", "1.2.840.113549.1.9.1"),
    ("facsimiletelephonenumber", "2.5.4.23"),
    ("g", "2.5.4.42"),
    ("generation", "2.5.4.44"),
    ("generationqualifier", "2.5.4.44"),
    ("givenname", "2.5.4.42"),
    ("gn", "2.5.4.42"),
    ("houseidentifier", "2.5.4.51"),
    ("i", "2.5.4.43"),
    ("initials", "2.5.4.43"),
    ("internationalisdnnumber", "2.5.4.25"),
    ("ip", "1.3.6.1.4.1.42.2.11.2.1"),
    ("jurisdictionc", "1.3.6.1.4.1.311.60.2.1.3"),
    ("jurisdictioncountryname", "1.3.6.1.4.1.311.60.2.1.3"),
    ("jurisdictionl", "1.3.6.1.4.1.311.60.2.1.1"),
    ("jurisdictionlocalityname", "1.3.6.1.4.1.311.60.2.1.1"),
    ("jurisdictionst", "1.3.6.1.4.1.311.60.2.1.2"),
    ("jurisdictionstateorprovincename", "1.3.6.1.4.1.311.60.2.1.2"),
    ("l", "2.5.4.7"),
    ("localityname", "2.5.4.7"),
    ("mail", "0.9.2342.19200300.100.1.3"),
    ("n3", "2.5.4.99"),
    ("name", "2.5.4.41"),
    ("o", "2.5.4.10"),
    ("organizationalunitname", "2.5.4.11"),
    ("organizationidentifier", "2.5.4.97"),
    ("organizationname", "2.5.4.10"),
    ("ou", "2.5.4.11"),
    ("owner", "2.5.4.32"),
    ("physicaldeliveryofficename", "2.5.4.19"),
    ("postaladdress", "2.5.4.16"),
    ("postalcode", "2.5.4.17"),
    ("postofficebox", "2.5.4.18"),
    ("pseudonym", "2.5.4.65"),
    ("registeredaddress", "2.5.4.26"),
    ("rfc822mailbox", "0.9.2342.19200300.100.1.3"),
    ("role", "2.5.4.72"),
    ("s", "2.5.4.8"),
    ("serialnumber", "2.5.4.5"),
    ("sn", "2.5.4.4"),
    ("sp", "2.5.4.8"),
    ("st", "2.5.4.8"),
    ("stateorprovincename", "2.5.4.8"),
    ("street", "2.5.4.9"),
    ("streetaddress", "2.5.4.9"),
    ("surname", "2.5.4.4"),
    ("t", "2.5.4.12"),
    ("telephonenumber", "2.5.4.20"),
    ("title", "2.5.4.12"),
    ("uid", "0.9.2342.19200300.100.1.1"),
    ("unstructuredaddress", "1.2.840.113549.1.9.8"),
    ("unstructuredname", "1.2.840.113549.1.9.2"),
    ("userid", "0.9.2342.19200300.100.1.1"),
    ("x500uniqueidentifier", "2.5.4.45"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_lower_case() {
        assert!(KEYWORDS.is_sorted_by(|one, next| one.0 < next.0));
        for (keyword, oid) in KEYWORDS {
            assert_eq!(*keyword, keyword.to_ascii_lowercase());
            assert!(is_oid(oid), "{oid}");
            assert_eq!(oid_of(&keyword.to_ascii_uppercase()).as_deref(), Some(*oid));
            assert_eq!(oid_of(keyword_of(oid)).as_deref(), Some(*oid));
        }
    }

    #[test]
    fn an_oid_has_one_spelling() {
        let check = |word: &str, expect: Option<&str>| {
            assert_eq!(oid_of(word).as_deref(), expect, "{word}");
        };
        check("2.5.4.97", Some("2.5.4.97"));
        check("OID.2.5.4.97", Some("2.5.4.97"));
        check("oid.2.5.4.97", Some("2.5.4.97"));
        check("organizationIdentifier", Some("2.5.4.97"));
        check("0.39", Some("0.39"));
        check(
            "2.25.340282366920938463463374607431768211455",
            Some("2.25.340282366920938463463374607431768211455"),
        );
        for not_an_oid in [
            "",
            "2",
            "2.",
            "2..5",
            "2.05.4",
            "3.1",
            "1.40",
            "2.5.4.",
            "OID.",
            "OID.CN",
            "OID.OID.2.5.4.3",
            "2.5.+4",
            "2.5.x",
            "X",
            "CNN",
            "2.25.340282366920938463463374607431768211456",
            "é.é.é",
        ] {
            check(not_an_oid, None);
        }
    }
}
