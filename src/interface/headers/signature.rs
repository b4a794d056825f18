//! `Signature` (SIG-2, SIG-3, SIG-6): `keyId="SN=…,CA=…",algorithm="…",headers="…",signature="…"`.
//!
//! This file only parses the header; [`SignatureFault`] has the cause if it cannot. Admission compares keyId with the certificate, checks
//! the list of headers and verifies the signature.
//!
//! The end of a quoted value: the issuer name in keyId may itself hold quotation marks, because Java prints
//! `O="Bank, a.s."` and clients send that as it is. A quotation mark therefore ends keyId only where the header ends
//! or where a comma and another parameter follow; in the other values, which never hold one, it ends the value.
//! A wrong end can only cause a refusal, because the name is compared with that of the certificate.

// The cause of a header that cannot be parsed.
mod fault;
// The same of its list, and the ends of the texts.
mod hint;
mod list;
// The names of the parameters.
mod parameter;

pub use fault::SignatureFault;
pub use list::ListFault;
pub use parameter::MAX_LISTED;

use super::trim;
use crate::token::is_token_byte;
use parameter::PARAMETERS;

/// The parts of a Signature header, borrowed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature<'a> {
    /// The serial number in keyId: hexadecimal digits, as written.
    pub serial: &'a [u8],
    /// The issuer name in keyId, as written.
    pub issuer: &'a [u8],
    /// The algorithm, as written.
    pub algorithm: &'a [u8],
    /// The listed header names in signing order, in the letter case they were written in.
    pub headers: Vec<&'a str>,
    /// The signature in base64, as written.
    pub signature: &'a [u8],
}

impl<'a> Signature<'a> {
    /// Reads the header's value.
    ///
    /// # Errors
    /// The first fault (SIG-2, SIG-6).
    pub fn parse(value: &'a [u8]) -> Result<Self, SignatureFault> {
        Self::read(value).ok_or_else(|| SignatureFault::of(value))
    }

    fn read(value: &'a [u8]) -> Option<Self> {
        let [key_id, algorithm, headers, signature] = parameters(value)?;
        let (serial, issuer) = key_id_parts(key_id)?;
        Some(Self {
            serial,
            issuer,
            algorithm,
            headers: listed(headers)?,
            signature,
        })
    }

    /// Whether a name, given in lower case, is listed.
    pub fn lists(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|listed| listed.eq_ignore_ascii_case(name))
    }
}

/// The values of the four parameters, in the order of [`PARAMETERS`].
fn parameters(value: &[u8]) -> Option<[&[u8]; 4]> {
    let mut found: [Option<&[u8]>; 4] = [None; 4];
    let mut rest = trim(value);
    loop {
        let (name, after) = split_once(rest, b"=\"")?;
        let index = PARAMETERS
            .iter()
            .position(|known| known.as_bytes() == name)?;
        let (content, after) = if index == 0 {
            end_of_key_id(after)
        } else {
            split_once(after, b"\"")
        }?;
        if found.get_mut(index)?.replace(content).is_some() {
            return None;
        }
        rest = trim(after);
        match rest.strip_prefix(b",") {
            Some(next) => rest = trim(next),
            None if rest.is_empty() => break,
            None => return None,
        }
    }
    match found {
        [
            Some(key_id),
            Some(algorithm),
            Some(headers),
            Some(signature),
        ] => Some([key_id, algorithm, headers, signature]),
        _ => None,
    }
}

/// Splits at the first quotation mark that ends keyId: the header ends there, or another parameter follows.
fn end_of_key_id(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let ends = |after: &[u8]| match trim(after).strip_prefix(b",") {
        None => trim(after).is_empty(),
        Some(next) => {
            let next = trim(next);
            PARAMETERS.iter().any(|name| {
                next.strip_prefix(name.as_bytes())
                    .is_some_and(|rest| rest.starts_with(b"=\""))
            })
        }
    };
    memchr::memchr_iter(b'"', value)
        .filter_map(|at| Some((value.get(..at)?, value.get(at.checked_add(1)?..)?)))
        .find(|(_, after)| ends(after))
}

fn key_id_parts(key_id: &[u8]) -> Option<(&[u8], &[u8])> {
    let (serial, after) = split_once(key_id.strip_prefix(b"SN=")?, b",")?;
    let issuer = trim(after).strip_prefix(b"CA=")?;
    let serial = trim(serial);
    (!serial.is_empty() && serial.iter().all(u8::is_ascii_hexdigit) && !issuer.is_empty())
        .then_some((serial, issuer))
}

fn listed(list: &[u8]) -> Option<Vec<&str>> {
    let list = std::str::from_utf8(list).ok()?;
    let mut names: Vec<&str> = Vec::with_capacity(12);
    for name in list.split(' ').filter(|name| !name.is_empty()) {
        if name != "(request-target)" && !name.bytes().all(is_token_byte) {
            return None;
        }
        if names.len() == MAX_LISTED
            || names
                .iter()
                .any(|earlier| earlier.eq_ignore_ascii_case(name))
        {
            return None;
        }
        names.push(name);
    }
    (!names.is_empty()).then_some(names)
}

fn split_once<'a>(value: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let first = separator.first()?;
    let mut starts = memchr::memchr_iter(*first, value);
    starts.find_map(|at| {
        let (before, rest) = value.split_at_checked(at)?;
        Some((before, rest.strip_prefix(separator)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Signature<'_>, SignatureFault> {
        Signature::parse(text.as_bytes())
    }

    #[test]
    fn the_four_parts_in_any_order() {
        let expected = parse(r#"keyId="SN=1A,CA=CN=x",algorithm="rsa-sha256",headers="date x-request-id",signature="AA==""#).unwrap();
        assert_eq!(
            (expected.serial, expected.issuer),
            (&b"1A"[..], &b"CN=x"[..])
        );
        assert_eq!(expected.headers, ["date", "x-request-id"]);
        assert!(expected.lists("x-request-id") && !expected.lists("digest"));
        let same = [
            r#"signature="AA==" , headers="date x-request-id",	algorithm="rsa-sha256", keyId="SN=1A,CA=CN=x""#,
            r#" keyId="SN=1A, CA=CN=x",algorithm="rsa-sha256",headers=" date  x-request-id ",signature="AA==" "#,
        ];
        for text in same {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn quotation_marks_inside_key_id() {
        let java = r#"keyId="SN=1A,CA=O="Bank, a.s.", CN=x",algorithm="rsa-sha256",headers="date",signature="AA==""#;
        assert_eq!(parse(java).unwrap().issuer, br#"O="Bank, a.s.", CN=x"#);
        let last = r#"algorithm="rsa-sha256",headers="date",signature="AA==",keyId="SN=1A,CA=CN=x, O="Bank, a.s."""#;
        assert_eq!(parse(last).unwrap().issuer, br#"CN=x, O="Bank, a.s.""#);
    }

    #[test]
    fn long_nonsense_ends_quickly() {
        for filler in ["\"", "keyId=\"", ",", "=\"", "\","] {
            assert!(parse(&filler.repeat(4_000)).is_err());
            assert!(parse(&format!("keyId=\"{}", filler.repeat(4_000))).is_err());
        }
    }
}

#[cfg(test)]
mod exhaustive;
