//! The reason why a Signature header cannot be parsed (ERR-10): one cause, with the parameter and the byte.
//!
//! A header that can be parsed never comes here, so these functions may look at a value several times, each time in one pass. Bytes count
//! from 0: those of the header, and within a parameter those of its value. A text repeats nothing of a value but a character, and the name
//! of an unknown parameter only if it consists of letters.

use super::{
    hint,
    list::{self, ListFault},
    parameter::PARAMETERS,
};
use crate::{character::OddCharacter, headers::white_space::trim};
use memchr::memmem;

/// Parameters that drafts and other versions of HTTP signatures have. No attribute of a distinguished name has such a name, so that each
/// ends keyId.
const FOREIGN: [&str; 9] = [
    "created", "expires", "nonce", "alg", "tag", "digest", "version", "opaque", "realm",
];

/// The longest name of an unknown parameter that a text repeats.
const MAX_SHOWN: usize = 32;

/// The reason why a Signature header cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFault {
    /// A parameter must begin, and there is something else.
    #[error("{0}; a parameter must begin there: keyId, algorithm, headers or signature")]
    NoName(OddCharacter),
    /// The value begins with the scheme of the header Authorization.
    #[error(
        "the value begins with the word {0}, as in Authorization; in this header it begins with keyId"
    )]
    Scheme(&'static str),
    /// The value of HTTP message signatures, which later became RFC 9421.
    #[error(
        "the value is that of HTTP message signatures (RFC 9421), which this interface does not use: send keyId=\"…\",algorithm=\"rsa-sha256\",headers=\"…\",signature=\"…\", and no Signature-Input"
    )]
    MessageSignature,
    /// A parameter of another letter case.
    #[error("at byte {at} the name {known} stands in another letter case: write it as {known}")]
    Spelling {
        /// The name in its own letter case.
        known: &'static str,
        /// The first byte of the name.
        at: usize,
    },
    /// A parameter other than the four.
    #[error(
        "at byte {at} stands the parameter {name}; the header has keyId, algorithm, headers and signature, and no other{hint}",
        hint = hint::time(.name)
    )]
    Unknown {
        /// Its name; `(not shown)` if the name could hold an id.
        name: String,
        /// The first byte of the name.
        at: usize,
    },
    /// The equals sign does not follow a name.
    #[error("= must follow the name of the parameter {0} at once; {1}")]
    NoEquals(&'static str, OddCharacter),
    /// A value does not begin with a quotation mark.
    #[error("the value of {0} must begin with a quotation mark; {1}{hint}", hint = hint::escape(*.1))]
    NotQuoted(&'static str, OddCharacter),
    /// A value does not end with a quotation mark.
    #[error("the value of {0}, which begins at byte {1}, has no quotation mark at its end")]
    NoEnd(&'static str, usize),
    /// Another parameter, without a comma before it.
    #[error("a comma is missing after the parameter {0}: at byte {1} the next parameter begins")]
    CommaMissing(&'static str, usize),
    /// Something else than a comma after a parameter.
    #[error("a comma or the end must follow the value of {0}; {1}{hint}", hint = hint::semicolon(*.1))]
    NoComma(&'static str, OddCharacter),
    /// Nothing after a comma.
    #[error("at byte {0} stands a comma that no parameter follows")]
    LastComma(usize),
    /// A parameter that stands twice.
    #[error("the parameter {0} stands twice, again at byte {1}")]
    Doubled(&'static str, usize),
    /// A parameter that is missing.
    #[error("the parameter {0} is missing")]
    Missing(&'static str),
    /// keyId is not `SN=…,CA=…`.
    #[error(
        "keyId must be SN=<serial in hexadecimal>,CA=<issuer name per RFC 2253>: {what}, at byte {at} of keyId"
    )]
    KeyId {
        /// What is wrong there.
        what: &'static str,
        /// The byte in the value of keyId.
        at: usize,
    },
    /// The serial number holds something else than hexadecimal digits.
    #[error("the serial number in keyId consists of hexadecimal digits; {odd}{hint}", odd = .0.within("keyId"), hint = hint::serial(*.0))]
    Serial(OddCharacter),
    /// The list of signed headers cannot be read.
    #[error(transparent)]
    List(#[from] ListFault),
    /// None of these; it cannot be read.
    #[error("the header must be keyId=\"…\",algorithm=\"…\",headers=\"…\",signature=\"…\"")]
    Unreadable,
}

impl SignatureFault {
    /// The fault of a value that cannot be parsed.
    pub(super) fn of(value: &[u8]) -> Self {
        let found = match parameters(value) {
            Ok(found) => found,
            Err(fault) => return fault,
        };
        let [key_id, _, headers, _] = found;
        let judged = key_id_fault(key_id).or_else(|| list::fault(headers).map(Self::List));
        judged.unwrap_or(Self::Unreadable)
    }

    /// The fault of a value that can be parsed, but only because keyId was read as far as the quotation mark of another parameter.
    pub fn hidden(value: &[u8]) -> Option<Self> {
        parameters(value).err()
    }
}

/// The values of the parameters, in the order of [`PARAMETERS`].
fn parameters(value: &[u8]) -> Result<[&[u8]; 4], SignatureFault> {
    let mut found: [Option<&[u8]>; 4] = [None; 4];
    let mut rest = trim(value);
    let position = |rest: &[u8]| value.len().saturating_sub(rest.len());
    loop {
        let at = position(rest);
        let (index, known, after) = named(value, rest, at)?;
        let begin = position(after);
        let end = if index == 0 {
            end_of_key_id(after)
        } else {
            memchr::memchr(b'"', after)
        };
        let content = end.and_then(|end| after.split_at_checked(end));
        let content = content.filter(|(content, _)| !holds_parameter(content));
        let (content, after) = content.ok_or(SignatureFault::NoEnd(known, begin))?;
        let slot = found.get_mut(index).ok_or(SignatureFault::Unreadable)?;
        if slot.replace(content).is_some() {
            return Err(SignatureFault::Doubled(known, at));
        }
        rest = trim(after.get(1..).unwrap_or_default());
        match rest.strip_prefix(b",") {
            None if rest.is_empty() => break,
            None => {
                return Err(no_comma(value, known, rest, position(rest)));
            }
            Some(next) if trim(next).is_empty() => {
                return Err(SignatureFault::LastComma(position(rest)));
            }
            Some(next) => rest = trim(next),
        }
    }
    let mut both = PARAMETERS.iter().zip(&found);
    match both.find(|(_, found)| found.is_none()) {
        Some((name, _)) => Err(SignatureFault::Missing(name)),
        None => Ok(found.map(Option::unwrap_or_default)),
    }
}

/// Something else than a comma stands behind the value of a parameter.
fn no_comma(value: &[u8], name: &'static str, rest: &[u8], at: usize) -> SignatureFault {
    let next = rest.get(..length_of_name(rest)).unwrap_or_default();
    if next.is_empty() || rest.get(next.len()) != Some(&b'=') {
        return SignatureFault::NoComma(name, OddCharacter::at(value, at));
    }
    SignatureFault::CommaMissing(name, at)
}

/// The parameter that begins here: its index, its name, and what follows its quotation mark.
fn named<'v>(
    value: &[u8],
    rest: &'v [u8],
    at: usize,
) -> Result<(usize, &'static str, &'v [u8]), SignatureFault> {
    let name = rest.get(..length_of_name(rest)).unwrap_or_default();
    let after = rest.get(name.len()..).unwrap_or_default();
    if name.is_empty() {
        return match rest.is_empty() {
            true => Err(SignatureFault::Missing("keyId")),
            false => Err(SignatureFault::NoName(OddCharacter::at(value, at))),
        };
    }
    if at == position_of_value(value) && is_scheme(name, after) {
        return Err(SignatureFault::Scheme("Signature"));
    }
    let alike = |known: &&str| known.as_bytes().eq_ignore_ascii_case(name);
    let index = PARAMETERS.iter().position(alike);
    let known = index.and_then(|index| PARAMETERS.get(index).copied());
    let (Some(index), Some(known)) = (index, known) else {
        if at == position_of_value(value) && is_label(after) {
            return Err(SignatureFault::MessageSignature);
        }
        let is_plain = name.len() <= MAX_SHOWN && name.iter().all(u8::is_ascii_alphabetic);
        let name = match std::str::from_utf8(name) {
            Ok(name) if is_plain => name,
            _ => "(not shown)",
        };
        return Err(SignatureFault::Unknown {
            name: name.to_owned(),
            at,
        });
    };
    if known.as_bytes() != name {
        return Err(SignatureFault::Spelling { known, at });
    }
    let behind = |bytes: usize| OddCharacter::at(value, at.saturating_add(bytes));
    let Some(after) = after.strip_prefix(b"=") else {
        return Err(SignatureFault::NoEquals(known, behind(name.len())));
    };
    let Some(after) = after.strip_prefix(b"\"") else {
        let odd = behind(name.len().saturating_add(1));
        return Err(SignatureFault::NotQuoted(known, odd));
    };
    Ok((index, known, after))
}

fn position_of_value(value: &[u8]) -> usize {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    value.iter().take_while(blank).count()
}

/// `Signature keyId="…"`, as RFC drafts write it in Authorization.
fn is_scheme(name: &[u8], after: &[u8]) -> bool {
    let next = trim(after);
    let length = length_of_name(next);
    name.eq_ignore_ascii_case(b"signature")
        && next.len() < after.len()
        && length > 0
        && next.get(length) == Some(&b'=')
}

/// `sig1=:…:` of Signature, or `sig1=("date" …)` of Signature-Input (RFC 9421).
fn is_label(after: &[u8]) -> bool {
    let next = after.strip_prefix(b"=").map(trim);
    next.is_some_and(|next| next.starts_with(b":") || next.starts_with(b"("))
}

fn length_of_name(text: &[u8]) -> usize {
    let is_of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.iter().take_while(is_of_name).count()
}

/// The first quotation mark that ends keyId: the header ends there, or another parameter follows, also a wrong one, and also where the
/// comma is missing. If there is none, the first one that a semicolon follows.
fn end_of_key_id(value: &[u8]) -> Option<usize> {
    let ends = |at: &usize| {
        let after = value.get(at.saturating_add(1)..).unwrap_or_default();
        let next = trim(after);
        let next = trim(next.strip_prefix(b",").unwrap_or(next));
        let next = trim(next.strip_prefix(b";").unwrap_or(next));
        let name = next.get(..length_of_name(next)).unwrap_or_default();
        let is_name = |known: &&str| known.as_bytes().eq_ignore_ascii_case(name);
        let is_parameter = PARAMETERS.iter().chain(&FOREIGN).any(is_name);
        next.is_empty() || is_parameter && next.get(name.len()) == Some(&b'=')
    };
    memchr::memchr_iter(b'"', value).find(ends)
}

/// Whether a value goes on into another parameter, because its quotation mark is missing.
fn holds_parameter(content: &[u8]) -> bool {
    let begins = |known: &&str| {
        let name = known.as_bytes();
        let mut places = memmem::find_iter(content, name);
        places.any(|at| {
            let after = content.get(at.saturating_add(name.len())..);
            after.is_some_and(|after| after == b"=" || after.starts_with(b"=\""))
        })
    };
    PARAMETERS.iter().any(begins)
}

fn key_id_fault(key_id: &[u8]) -> Option<SignatureFault> {
    let fault = |what, at| Some(SignatureFault::KeyId { what, at });
    let Some(after) = key_id.strip_prefix(b"SN=") else {
        return fault("it does not begin with SN=, in capitals", 0);
    };
    let end = memchr::memchr(b',', after).unwrap_or(after.len());
    let (serial, after) = after.split_at_checked(end)?;
    let begin = 3_usize.saturating_add(position_of_value(serial));
    let serial = trim(serial);
    if serial.is_empty() {
        return fault("the serial number is empty", 3);
    }
    if let Some(odd) = OddCharacter::first(serial, |byte| byte.is_ascii_hexdigit()) {
        let rest = serial.get(odd.byte()..).unwrap_or_default();
        let rest = rest.strip_prefix(b";").unwrap_or(rest);
        if odd.byte() > 0 && trim(rest).starts_with(b"CA=") {
            let what = "a comma is missing between the serial number and CA=";
            return fault(what, odd.behind(begin).byte());
        }
        return Some(SignatureFault::Serial(odd.behind(begin)));
    }
    let at = end.saturating_add(3);
    let Some(after) = after.strip_prefix(b",") else {
        return fault("no comma and no CA= follow the serial number", at);
    };
    let at = at
        .saturating_add(1)
        .saturating_add(position_of_value(after));
    match trim(after).strip_prefix(b"CA=") {
        None => fault(
            "CA=, in capitals, does not follow the comma after the serial number",
            at,
        ),
        Some(b"") => fault("the issuer is empty", at.saturating_add(3)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::signature::Signature;

    /// The sentence about a header that is refused, and about one that hides a parameter in keyId.
    fn said(text: &str) -> String {
        let fault = Signature::parse(text.as_bytes()).err();
        let fault = fault.or_else(|| SignatureFault::hidden(text.as_bytes()));
        fault.unwrap_or_else(|| panic!("{text}")).to_string()
    }

    //= ERR-10 refused
    #[test]
    #[allow(clippy::too_many_lines, reason = "a table is as long as its cases")]
    fn each_cause_has_its_sentence() {
        const REST: &str = r#"algorithm="a",headers="date",signature="A""#;
        let whole = |key_id: &str| format!(r#"keyId="{key_id}",{REST}"#);
        let listing = |list: &str| {
            format!(r#"keyId="SN=1,CA=x",algorithm="a",headers="{list}",signature="A""#)
        };
        let many: Vec<_> = (0..100).map(|n| format!("h{n}")).collect();
        let table = [
            (String::new(), "keyId is missing"),
            (
                "keyId".into(),
                "name of the parameter keyId at once; at byte 5 stands nothing more",
            ),
            (
                r#""keyId"="x""#.into(),
                "at byte 0 stands a quotation mark; a parameter",
            ),
            (
                format!(r#"Signature {}"#, whole("SN=1,CA=x")),
                "begins with the word Signature",
            ),
            (
                r#"keyId=\"SN=1,CA=x\",algorithm=\"a\""#.into(),
                "keyId must begin with a quotation mark; at byte 6 stands a backslash: send",
            ),
            (
                r#"keyId=SN=1A,CA=x,algorithm="a",headers="date",signature="A""#.into(),
                "value of keyId must begin with a quotation mark; at byte 6 stands a capital",
            ),
            (
                "keyId=\u{201c}SN=1,CA=x\u{201d}".into(),
                "at byte 6 stands U+201C",
            ),
            (
                r#"keyId="SN=1,CA=x"#.into(),
                "the value of keyId, which begins at byte 7, has no",
            ),
            (
                r#"keyId="SN=1,CA=x",algorithm="a"#.into(),
                "the value of algorithm, which begins at byte 29",
            ),
            (
                r#"keyId="SN=1,CA=x,algorithm="a",headers="date",signature="A""#.into(),
                "the value of keyId, which begins at byte 7, has no",
            ),
            (
                r#"keyId="SN=1,CA=x",algorithm="a,headers="date",signature="A""#.into(),
                "the value of algorithm, which begins at byte 29, has no",
            ),
            (
                r#"keyId="SN=1,CA=x" algorithm="a",headers="date",signature="A""#.into(),
                "a comma is missing after the parameter keyId: at byte 18 the next parameter begins",
            ),
            (
                r#"keyId="SN=1,CA=x";algorithm="a";headers="date""#.into(),
                "the value of keyId; at byte 17 stands ';': separate the parameters by commas",
            ),
            (
                r#"keyId="SN=1,CA=x",algorithm="a",headers="date",signature="A"x"#.into(),
                "value of signature; at byte 60 stands a small letter",
            ),
            (
                r#"algorithm="a" keyId="SN=1,CA=x",headers="date",signature="A""#.into(),
                "a comma is missing after the parameter algorithm: at byte 14 the next",
            ),
            (
                r#"keyId="SN=1,CA=x",algorithm="a"headers="date",signature="A""#.into(),
                "a comma is missing after the parameter algorithm: at byte 31 the next",
            ),
            (
                r#"algorithm="a" created=1,keyId="SN=1,CA=x""#.into(),
                "a comma is missing after the parameter algorithm: at byte 14 the next",
            ),
            (
                "sig1=:AAAA:".into(),
                "the value is that of HTTP message signatures (RFC 9421)",
            ),
            (
                r#"sig1=("date" "digest");created=1"#.into(),
                "the value is that of HTTP message signatures (RFC 9421)",
            ),
            (
                format!(r#"keyId="SN=1,CA=x",{REST},"#),
                "at byte 60 stands a comma that no parameter",
            ),
            (
                format!(r#"keyId="SN=1,CA=x",{REST},""#),
                "at byte 61 stands a quotation mark; a parameter",
            ),
            (
                format!(r#"keyId="SN=1,CA=x",{REST},created="1""#),
                "and no other; a later draft of HTTP signatures has it: leave it out",
            ),
            (
                format!(r#"keyId="SN=1,CA=x",{REST},created=1"#),
                "at byte 61 stands the parameter created;",
            ),
            (
                format!(r#"keyId="SN=1,CA=x",created=17,{REST}"#),
                "at byte 18 stands the parameter created;",
            ),
            (
                format!(r#"keyId="SN=1,CA=x",created="17",{REST}"#),
                "at byte 18 stands the parameter created;",
            ),
            (
                format!(r#"keyId="SN=1,CA=x",{REST},psu01010112345="1""#),
                "the parameter (not shown);",
            ),
            (
                format!(r#"keyid="SN=1,CA=x",{REST}"#),
                "at byte 0 the name keyId stands in another letter case",
            ),
            (
                format!(r#"keyId="SN=1,CA=x",{REST},signature="A""#),
                "signature stands twice, again at byte 61",
            ),
            (
                r#"keyId="SN=1,CA=x",algorithm="a",headers="date""#.into(),
                "signature is missing",
            ),
            (
                whole("CA=x,SN=1"),
                "does not begin with SN=, in capitals, at byte 0",
            ),
            (whole("sn=1,CA=x"), "does not begin with SN=, in capitals"),
            (whole("SN=,CA=x"), "the serial number is empty, at byte 3"),
            (
                whole("SN=0x1A,CA=x"),
                "hexadecimal digits; at byte 4 of keyId stands a small letter: write it without 0x",
            ),
            (
                whole("SN=1A CA=O=y,C=z"),
                "a comma is missing between the serial number and CA=, at byte 5 of keyId",
            ),
            (
                whole("SN=1A;CA=x"),
                "a comma is missing between the serial number and CA=, at byte 5 of keyId",
            ),
            (
                whole("SN=1:A,CA=x"),
                "hexadecimal digits; at byte 4 of keyId stands ':': write it without colons",
            ),
            (
                whole("SN=1A"),
                "no comma and no CA= follow the serial number, at byte 5",
            ),
            (
                whole("SN=1A,ca=x"),
                "CA=, in capitals, does not follow the comma after the serial number, at byte 6",
            ),
            (whole("SN=1,CA="), "the issuer is empty, at byte 8"),
            (listing(""), "headers is empty"),
            (
                listing("date,digest"),
                "at byte 4 of headers stands ',': separate the names by blanks, not by commas",
            ),
            (
                listing("(request-target),digest"),
                "separated by single blanks; at byte 16 of headers stands ',': separate",
            ),
            (
                listing("date (request-target)digest"),
                "separated by single blanks; at byte 21 of headers stands a small letter",
            ),
            (
                listing("(request-target);digest"),
                "at byte 16 of headers stands ';': separate the names by blanks",
            ),
            (
                listing("date\tdigest"),
                "at byte 4 of headers stands a tab: separate the names by blanks",
            ),
            (
                listing("(date digest)"),
                "at byte 0 of headers stands '(': no parentheses stand around the list",
            ),
            (
                listing("(date,digest)"),
                "at byte 0 of headers stands '(': no parentheses stand around the list",
            ),
            (
                listing("date: digest:"),
                "at byte 4 of headers stands ':': the names stand without colons",
            ),
            (
                listing("@method date"),
                "at byte 0 of headers stands '@': names with @ are those of RFC 9421",
            ),
            (
                listing("date x-request-\u{131}d"),
                "at byte 15 of headers stands U+0131, which is outside ASCII",
            ),
            (
                listing("date (Request-Target)"),
                "at byte 5 of headers stands a name in parentheses",
            ),
            (
                listing("(created) date"),
                "at byte 0 of headers stands (created), of a later draft",
            ),
            (
                listing("date (Expires),digest"),
                "at byte 5 of headers stands (expires), of a later draft",
            ),
            (
                listing("date (status)"),
                "at byte 5 of headers stands a name in parentheses",
            ),
            (
                listing("date digest Date"),
                "headers lists a name twice, again at its byte 12",
            ),
            (listing(&many.join(" ")), "more than 64 names"),
        ];
        for (text, expected) in table {
            let said = said(&text);
            assert!(said.contains(expected), "{text}\n{said}");
        }
    }

    #[test]
    fn no_name_of_an_issuer_ends_key_id() {
        let java = r#"keyId="SN=1A,CA=O="Bank, a.s.", OU="C, d", CN=x",algorithm="a",headers="date",signature="AA==""#;
        assert_eq!(SignatureFault::hidden(java.as_bytes()), None);
    }
}
