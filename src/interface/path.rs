//! Paths and their characters (HTTP-10).
//!
//! A target is read and never rewritten: the bytes that were received and signed are forwarded. A target that two servers could interpret
//! differently is refused, so that the core cannot read another resource than the judged one. The operation defines the characters of an
//! id: [`AccountIds`] for accounts, whose ids are keys of quotas and consents, and [`MAX_ID`] for the others.

mod account_ids;
mod characters;

pub use account_ids::{AccountIds, IdFault};

use characters::is_unreserved;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// The maximum length of a decoded id other than an account's, in characters (HTTP-10).
pub const MAX_ID: usize = 256;

/// A request target in origin form, checked: path and query exactly as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Reads a request target.
    ///
    /// # Errors
    /// The fault (HTTP-10), as a sentence for the caller.
    pub fn parse(raw: &'a [u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(raw).map_err(
            |_| "the request target holds bytes outside visible ASCII; percent-encode them",
        )?;
        let (path, query) = match text.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (text, None),
        };
        check_path(path)?;
        if query.is_some_and(|query| {
            !query
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'#')
        }) {
            return Err("the query holds a character that must be percent-encoded");
        }
        Ok(Self { path, query })
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

fn check_path(path: &str) -> Result<(), &'static str> {
    if !path.starts_with('/') {
        return Err("the request target must start with a slash (origin form)");
    }
    segments(path).try_for_each(check_segment)
}

fn check_segment(segment: &str) -> Result<(), &'static str> {
    match segment {
        "" => return Err("the path has an empty segment: a doubled or trailing slash"),
        "." | ".." => return Err("the path has a dot segment"),
        _ => {}
    }
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => check_escape(bytes.next(), bytes.next())?,
            b';' => return Err("the path holds a semicolon"),
            _ if is_unreserved(byte) || b"!$&'()*+,=:@".contains(&byte) => {}
            _ => return Err("the path holds a character that must be percent-encoded"),
        }
    }
    Ok(())
}

fn check_escape(high: Option<u8>, low: Option<u8>) -> Result<(), &'static str> {
    let digit = |byte: Option<u8>| {
        byte.and_then(|byte| char::from(byte).to_digit(16))
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let (Some(high), Some(low)) = (digit(high), digit(low)) else {
        return Err("the path holds an invalid percent-encoding");
    };
    match high << 4 | low {
        b'/' | b'\\' => Err("the path holds an encoded slash or backslash"),
        b'%' | b';' | b'?' | b'#' => Err(
            "the path holds an encoded delimiter: a percent sign, semicolon, question mark or hash",
        ),
        b' ' => Err("the path holds an encoded space"),
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
