//! The text form of a distinguished name: RFC 2253, and the variants of RFC 1779, RFC 4514, Java, OpenSSL and Windows.
//!
//! Invariant: the parser makes one pass, one letter at a time. A boundary between RDNs is only a `,`, `;` or `+` outside quotation marks
//! and without a backslash before it, so no value can become a boundary, however it is escaped. Deliberately not here: encodings that a
//! client added to the text (`reading`), and the equality of values (`value`).

use super::fault::NameMismatch;
use super::kind;
use super::rdn::{Attribute, Rdn};
use super::value::AttributeValue;
use crate::der::Element;
use portvakt_base::hex;

/// The offset in bytes at which the text is not a name, and the expected syntax there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) at: usize,
    pub(super) why: &'static str,
}

impl From<Unreadable> for NameMismatch {
    fn from(fault: Unreadable) -> Self {
        NameMismatch::Unreadable {
            at: fault.at,
            why: fault.why,
        }
    }
}

/// Parses a whole text as a name, with the RDNs in the order of the text. A text of white space only is the name without RDNs.
pub(super) fn read(text: &str) -> Result<Vec<Rdn>, Unreadable> {
    let mut cursor = Cursor::new(text);
    let mut rdns = Vec::new();
    let mut attributes = Vec::new();
    cursor.skip_space();
    if cursor.peek().is_none() {
        return Ok(rdns);
    }
    loop {
        attributes.push(attribute(&mut cursor)?);
        match cursor.peek() {
            Some('+') => {}
            Some(',' | ';') => rdns.push(Rdn::new(std::mem::take(&mut attributes))),
            Some(_) => return cursor.fault(
                "a comma, a plus sign or the end is expected after a value in quotes or behind #",
            ),
            None => {
                rdns.push(Rdn::new(attributes));
                return Ok(rdns);
            }
        }
        cursor.next();
    }
}

/// Parses one `type=value`, with the white space around each part.
fn attribute(cursor: &mut Cursor<'_>) -> Result<Attribute, Unreadable> {
    cursor.skip_space();
    if cursor.peek() == Some('/') {
        return cursor
            .fault("RFC 2253 separates RDNs with commas, last RDN first, not with slashes");
    }
    let start = *cursor;
    let word =
        cursor.take_while(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-'));
    cursor.skip_space();
    if word.is_empty() || cursor.peek() != Some('=') {
        return start.fault("an attribute type and = are expected here; a comma, semicolon or plus sign inside a value is written with a backslash before it");
    }
    let Some(oid) = kind::oid_of(word) else {
        return start.fault("this attribute type is not known; write it as a dotted OID");
    };
    cursor.next();
    cursor.skip_space();
    match cursor.peek() {
        Some('"') => {
            let text = quoted(cursor)?;
            let literal = AttributeValue::Text(format!("\"{text}\""));
            Ok(Attribute::new(
                oid,
                AttributeValue::Text(text),
                Some(&literal),
            ))
        }
        Some('#') => Ok(Attribute::new(oid, der(cursor)?, None)),
        _ => Ok(Attribute::new(
            oid,
            AttributeValue::Text(plain(cursor)?),
            None,
        )),
    }
}

/// Parses an unquoted value up to the next boundary. White space at the end is dropped unless it is escaped.
fn plain(cursor: &mut Cursor<'_>) -> Result<String, Unreadable> {
    let mut value = Unescaped::default();
    loop {
        let space = cursor.take_while(char::is_whitespace);
        match cursor.peek() {
            None | Some(',' | ';' | '+') => return Ok(value.finish()),
            Some('"') => {
                return cursor.fault(
                    "a quotation mark inside a value is written with a backslash before it",
                );
            }
            Some(letter) => {
                space.chars().for_each(|blank| value.push(blank));
                if letter == '\\' {
                    escape(cursor, &mut value)?;
                } else {
                    value.push(letter);
                    cursor.next();
                }
            }
        }
    }
}

/// Parses a quoted value and the white space after it. Two quotation marks in a row mean one, as Windows writes it.
fn quoted(cursor: &mut Cursor<'_>) -> Result<String, Unreadable> {
    let start = *cursor;
    let mut value = Unescaped::default();
    cursor.next();
    loop {
        match cursor.peek() {
            None => return start.fault("this quotation mark is not closed"),
            Some('\\') => {
                escape(cursor, &mut value)?;
                continue;
            }
            Some('"') => {
                cursor.next();
                if cursor.peek() != Some('"') {
                    cursor.skip_space();
                    return Ok(value.finish());
                }
                value.push('"');
            }
            Some(letter) => value.push(letter),
        }
        cursor.next();
    }
}

/// Parses a value after `#`: the hex digits of one DER element, and the white space after it.
fn der(cursor: &mut Cursor<'_>) -> Result<AttributeValue, Unreadable> {
    let start = *cursor;
    cursor.next();
    let digits = cursor.take_while(|letter| letter.is_ascii_hexdigit());
    let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
    let octets: Option<Vec<u8>> = pairs
        .iter()
        .map(|&[high, low]| hex::byte(high, low))
        .collect();
    let element = octets
        .as_deref()
        .filter(|_| odd.is_empty())
        .and_then(Element::only);
    match element {
        Some(element) => {
            cursor.skip_space();
            Ok(AttributeValue::from_element(&element))
        }
        None => start.fault("behind # stand the hex digits of one whole DER value; a value that begins with # is written \\#"),
    }
}

/// Parses an escape after a backslash: two hex digits for a byte, or a literal letter.
fn escape(cursor: &mut Cursor<'_>, value: &mut Unescaped) -> Result<(), Unreadable> {
    let start = *cursor;
    cursor.next();
    match cursor.next() {
        Some(first) if first.is_ascii_alphanumeric() => {
            let octet = |second| hex::byte(u8::try_from(first).ok()?, u8::try_from(second).ok()?);
            match cursor.next().and_then(octet) {
                Some(octet) => value.push_octet(octet),
                None => {
                    return start
                        .fault("a backslash stands before a special character or two hex digits");
                }
            }
        }
        Some(letter) => value.push(letter),
        None => return start.fault("the name ends in the middle of an escape"),
    }
    Ok(())
}

/// A value during parsing. Hex pairs are bytes; a run of them is UTF-8, or Latin-1 if it is not valid UTF-8 (OpenSSL without `utf8`).
#[derive(Default)]
struct Unescaped {
    text: String,
    octets: Vec<u8>,
}

impl Unescaped {
    fn push(&mut self, letter: char) {
        self.end_run();
        self.text.push(letter);
    }

    fn push_octet(&mut self, octet: u8) {
        self.octets.push(octet);
    }

    fn finish(mut self) -> String {
        self.end_run();
        self.text
    }

    fn end_run(&mut self) {
        if !self.octets.is_empty() {
            self.text.push_str(&super::reading::decoded(&self.octets));
            self.octets.clear();
        }
    }
}

/// The parser's position in the text.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    rest: &'a str,
    length: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Cursor {
            rest: text,
            length: text.len(),
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next();
        self.rest = letters.as_str();
        letter
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self
            .rest
            .find(|letter| !wanted(letter))
            .unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn fault<T>(&self, why: &'static str) -> Result<T, Unreadable> {
        let at = self.length.saturating_sub(self.rest.len());
        Err(Unreadable { at, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let read: Vec<String> = read(text).unwrap().iter().map(Rdn::to_string).collect();
        assert_eq!(read, expect, "{text}");
    }

    #[test]
    fn values_are_read_as_they_are_meant() {
        check("", &[]);
        check("  ", &[]);
        check("CN=a", &["CN=a"]);
        check(" cn = a ; O=b", &["CN=a", "O=b"]);
        check(r"O=a\, b\+\;\=\#\ ,C=DE", &[r"O=a\, b\+\;=#\ ", "C=DE"]);
        check(
            r#"O="a, b+c;d=""e""\"f" , C=DE"#,
            &[r#"O=a\, b\+c\;d=\"e\"\"f"#, "C=DE"],
        );
        check(r"O=Prvn\C3\AD,O=Prvn\ED", &["O=První", "O=První"]);
        check("O=,CN=\"\"", &["O=", "CN="]);
        check("O=a=b", &["O=a=b"]);
        check("O=#0c0161 ,CN=#020105", &["O=a", "CN=#020105"]);
        check("CN=a+OU=b", &["OU=b+CN=a"]);
    }

    #[test]
    fn faults_say_where_and_why() {
        let check = |text: &str, at: usize, why: &str| {
            let fault = read(text).unwrap_err();
            assert_eq!(fault.at, at, "{text}: {}", fault.why);
            assert!(fault.why.contains(why), "{text}: {}", fault.why);
        };
        check("/C=DE/O=x", 0, "slashes");
        check("O=První, a.s.,C=CZ", 10, "inside a value");
        check("O=a,", 4, "attribute type");
        check("O=a,,C=b", 4, "attribute type");
        check("=a", 0, "attribute type");
        check("XY=a", 0, "dotted OID");
        check("O=a\"b", 3, "quotation mark");
        check("O=\"a", 2, "not closed");
        check("O=\"a\"b", 5, "after a value");
        check("O=#0c0161x", 9, "after a value");
        for not_der in [
            "O=#",
            "O=#0",
            "O=#0c",
            "O=#0c02",
            "O=#0c01616",
            "O=#0c016100",
            "O=#xyz",
        ] {
            check(not_der, 2, "one whole DER value");
        }
        check("O=a\\", 3, "middle of an escape");
        check("O=\\U0142", 2, "two hex digits");
        check("O=\\a", 2, "two hex digits");
        check("O=\\a,C=b", 2, "two hex digits");
    }
}
