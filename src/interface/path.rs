//! Paths and their characters (HTTP-10).
//!
//! A target is read and never rewritten: the bytes that were received and signed are forwarded. A target that two servers could interpret
//! differently is refused, so that the core cannot read another resource than the judged one. The operation defines the characters of an
//! id: [`AccountIds`] for accounts, whose ids are keys of quotas and consents, and [`MAX_ID`] for the others.

mod account_ids;
mod characters;

pub use account_ids::{AccountIds, IdFault};

use super::character::OddCharacter;
use characters::is_unreserved;
use percent_encoding::percent_decode_str;
use portvakt_base::hex;
use std::borrow::Cow;

/// The maximum length of a decoded id other than an account's, in characters (HTTP-10).
pub const MAX_ID: usize = 256;

/// A request target in origin form, checked: path and query exactly as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    path: &'a str,
    query: Option<&'a str>,
}

/// The reason why a request target is refused (HTTP-10): the fault, and its byte, from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}, at byte {at} of the request target")]
pub struct TargetFault {
    what: Cow<'static, str>,
    at: usize,
}

impl TargetFault {
    fn of(what: impl Into<Cow<'static, str>>, at: usize) -> Self {
        Self {
            what: what.into(),
            at,
        }
    }

    /// A character that must be percent-encoded in this part of the target.
    fn character(part: &str, raw: &[u8], at: usize) -> Self {
        let found = OddCharacter::at(raw, at).name();
        let what = format!("{part} has {found}, which must be percent-encoded");
        Self::of(what, at)
    }

    /// The fault, without its place.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl<'a> Target<'a> {
    /// Reads a request target.
    ///
    /// # Errors
    /// The fault (HTTP-10), as a sentence for the caller.
    pub fn parse(raw: &'a [u8]) -> Result<Self, TargetFault> {
        let text = std::str::from_utf8(raw).map_err(|fault| {
            TargetFault::character("the request target", raw, fault.valid_up_to())
        })?;
        let (path, query) = match text.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (text, None),
        };
        let is_plain = path.starts_with('/') && segments(path).all(is_plain);
        if is_plain && query.is_none_or(|query| query.bytes().all(is_of_query)) {
            return Ok(Self { path, query });
        }
        Err(fault_of(raw, path, query))
    }

    /// The path as received.
    pub const fn path(&self) -> &'a str {
        self.path
    }

    /// The query as received, without the `?`.
    pub const fn query(&self) -> Option<&'a str> {
        self.query
    }

    /// The segments of the path as received.
    pub fn segments(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        segments(self.path)
    }
}

/// An id in a path, percent-decoded: ids are matched and keyed decoded (HTTP-10).
pub fn decode(segment: &str) -> Cow<'_, str> {
    percent_decode_str(segment).decode_utf8_lossy()
}

/// The segments of a path that starts with a slash.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('/').unwrap_or(path).split('/')
}

const fn is_of_query(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'#'
}

/// Whether every server reads a segment in the same way.
fn is_plain(segment: &str) -> bool {
    if matches!(segment, "" | "." | "..") {
        return false;
    }
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        let fits = match byte {
            b'%' => check_escape(bytes.next(), bytes.next()).is_ok(),
            _ => is_of_segment(byte),
        };
        if !fits {
            return false;
        }
    }
    true
}

const fn is_of_segment(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(
            byte,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b'=' | b':' | b'@'
        )
}

/// The fault of a target that is refused.
fn fault_of(raw: &[u8], path: &str, query: Option<&str>) -> TargetFault {
    if !path.starts_with('/') {
        return TargetFault::of(no_origin_form(path), 0);
    }
    let mut at = 1_usize;
    for segment in segments(path) {
        if let Some(fault) = fault_of_segment(path, segment, at) {
            return fault;
        }
        at = at.saturating_add(segment.len()).saturating_add(1);
    }
    let odd = query.and_then(|query| query.bytes().position(|byte| !is_of_query(byte)));
    TargetFault::character("the query", raw, at.saturating_add(odd.unwrap_or_default()))
}

/// The form of a target that does not begin with a slash (RFC 9112, section 3.2).
fn no_origin_form(path: &str) -> &'static str {
    match path {
        "" => "the request target has no path",
        "*" => "the request target is an asterisk; send a path",
        _ if path.contains("://") => {
            "the request target has a scheme and a host (absolute form); send the path alone, and the host in Host"
        }
        _ => "the request target does not begin with a slash (origin form)",
    }
}

/// The fault of a segment, which begins at this byte of the path.
fn fault_of_segment(path: &str, segment: &str, begin: usize) -> Option<TargetFault> {
    match segment {
        "" => {
            let what = if begin >= path.len() {
                "the path has an empty segment: a slash at its end"
            } else {
                "the path has an empty segment: two slashes"
            };
            return Some(TargetFault::of(what, begin));
        }
        "." | ".." => return Some(TargetFault::of("the path has a dot segment", begin)),
        _ => {}
    }
    let mut bytes = segment.bytes().zip(begin..);
    while let Some((byte, at)) = bytes.next() {
        match byte {
            b'%' => {
                let (high, low) = (bytes.next(), bytes.next());
                let escape = check_escape(high.map(|high| high.0), low.map(|low| low.0));
                if let Err(what) = escape {
                    return Some(TargetFault::of(what, at));
                }
            }
            b';' => return Some(TargetFault::of("the path holds a semicolon", at)),
            _ if is_of_segment(byte) => {}
            _ => return Some(TargetFault::character("the path", path.as_bytes(), at)),
        }
    }
    None
}

fn check_escape(high: Option<u8>, low: Option<u8>) -> Result<(), &'static str> {
    let byte = high.zip(low).and_then(|(high, low)| hex::byte(high, low));
    let Some(byte) = byte else {
        return Err("the path has a percent sign without two hexadecimal digits");
    };
    match byte {
        b'/' => Err("the path holds an encoded slash"),
        b'\\' => Err("the path holds an encoded backslash"),
        b'%' => Err("the path holds an encoded percent sign"),
        b';' => Err("the path holds an encoded semicolon"),
        b'?' => Err("the path holds an encoded question mark"),
        b'#' => Err("the path holds an encoded hash"),
        b' ' => Err("the path holds an encoded blank"),
        byte if byte.is_ascii_control() => Err("the path holds an encoded control character"),
        byte if !byte.is_ascii() => Err("the path holds an encoded character outside ASCII"),
        byte if is_unreserved(byte) => {
            Err("the path percent-encodes a character that needs no encoding")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for good in [
            "/v1/accounts",
            "/v1/accounts/a%3Ab",
            "/v1/a:b@c,(d)",
            "/v1/accounts?x=%2e%2e/..;y&&",
            "/v1/%21%40%5b",
            "/v1/...",
        ] {
            assert!(Target::parse(good.as_bytes()).is_ok(), "{good}");
        }
        let bad = [
            "",
            "v1",
            "*",
            "https://a/v1",
            "/",
            "/v1/",
            "/v1//accounts",
            "/v1/./a",
            "/v1/../a",
            "/v1/a%2Fb",
            "/v1/a%5cb",
            "/v1/a\\b",
            "/v1/a;b",
            "/v1/a%00",
            "/v1/a%7f",
            "/v1/a%",
            "/v1/a%4",
            "/v1/a%zz",
            "/v1/%61",
            "/v1/%2e%2e/a",
            "/v1/%C3",
            "/v1/%C3%A6",
            "/v1/%ef%bb%bf",
            "/v1/a%20b",
            "/v1/a%2561",
            "/v1/a%3bb",
            "/v1/a%3F",
            "/v1/a%23",
            "/v1/a%1f",
            "/v1/a#b",
            "/v1/a?b#c",
            "/v1/a b",
            "/v1/æ",
            "/v1/a?b c",
            "/v1/<",
        ];
        for bad in bad {
            assert!(Target::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(Target::parse(b"/v1/\xff").is_err());
    }

    //= ERR-10 refused
    #[test]
    fn each_cause_has_its_sentence() {
        let table: [(&[u8], &str); 14] = [
            (b"", "has no path"),
            (b"*", "is an asterisk"),
            (b"https://a/v1", "has a scheme and a host (absolute form)"),
            (b"v1/accounts", "does not begin with a slash"),
            (b"/v1/", "a slash at its end, at byte 4"),
            (b"/v1//accounts", "two slashes, at byte 4"),
            (b"/v1/../a", "a dot segment, at byte 4"),
            (b"/v1/a%2Fb", "an encoded slash, at byte 5"),
            (b"/v1/a%", "without two hexadecimal digits, at byte 5"),
            (b"/v1/a;b", "a semicolon, at byte 5"),
            (
                b"/v1/a b",
                "the path has a blank, which must be percent-encoded, at byte 5",
            ),
            (
                b"/v1/\xc3\xa6",
                "the path has U+00E6, which is outside ASCII",
            ),
            (b"/v1/\xff", "the request target has the byte FF"),
            (
                b"/v1/a?b=\xc3\xa6",
                "the query has U+00E6, which is outside ASCII, which must be percent-encoded, at byte 8",
            ),
        ];
        for (target, expected) in table {
            let said = Target::parse(target).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn ids_are_decoded() {
        assert_eq!(decode("a%3Ab"), "a:b");
        let target = Target::parse(b"/v1/accounts/a%3Ab?x").unwrap();
        assert_eq!(
            target.segments().collect::<Vec<_>>(),
            ["v1", "accounts", "a%3Ab"]
        );
        assert_eq!(target.query(), Some("x"));
    }
}
