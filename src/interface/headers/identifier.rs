//! `X-Request-ID` and `TPP-Session-ID` (HDR-7): 1 to 128 visible ASCII characters. The interface says string, not UUID.
//!
//! Both share the storage of the header value, so that parsing does not allocate.

use super::trim;
use crate::character::OddCharacter;
use http::HeaderValue;
use std::fmt;

/// HDR-7.
pub const MAX_LENGTH: usize = 128;

/// The reason why a value is not of this form (ERR-10).
pub fn fault(value: &[u8]) -> String {
    match OddCharacter::outside_ascii(value) {
        Some(odd) => format!("{odd}; it consists of visible ASCII characters without blanks"),
        None => format!("it has {} characters; 1 to {MAX_LENGTH} pass", value.len()),
    }
}

/// The X-Request-ID of a request (REP-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

/// The TPP-Session-ID, the TPP's id of a session of a PSU (SCA-4). `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionId(HeaderValue);

impl RequestId {
    /// The id in a header's value; white space around it does not count.
    pub fn parse(value: &HeaderValue) -> Option<Self> {
        is_valid(trim(value.as_bytes())).then(|| Self(value.clone()))
    }

    /// The id, without white space around it.
    pub fn as_bytes(&self) -> &[u8] {
        trim(self.0.as_bytes())
    }

    /// The id, without white space around it.
    pub fn as_str(&self) -> &str {
        text(self.as_bytes())
    }

    /// The header's value, as it was received.
    pub const fn value(&self) -> &HeaderValue {
        &self.0
    }
}

impl SessionId {
    /// The id in a header's value; white space around it does not count.
    pub fn parse(value: &HeaderValue) -> Option<Self> {
        is_valid(trim(value.as_bytes())).then(|| Self(value.clone()))
    }

    /// An id from a token, or a new id.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::parse(&HeaderValue::from_str(text).ok()?)
    }

    /// The id, without white space around it.
    pub fn as_bytes(&self) -> &[u8] {
        trim(self.0.as_bytes())
    }

    /// The id, without white space around it.
    pub fn as_str(&self) -> &str {
        text(self.as_bytes())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionId(***)")
    }
}

/// Visible ASCII, which is text.
fn text(id: &[u8]) -> &str {
    std::str::from_utf8(id).unwrap_or_default()
}

fn is_valid(value: &[u8]) -> bool {
    (1..=MAX_LENGTH).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(value: &[u8]) -> Option<RequestId> {
        RequestId::parse(&HeaderValue::from_bytes(value).unwrap())
    }

    #[test]
    fn identifiers() {
        let long = "a".repeat(MAX_LENGTH + 1);
        assert!(fault(long.as_bytes()).starts_with("it has 129 characters; 1 to 128"));
        assert!(fault("x-request-\u{131}d".as_bytes()).starts_with("at byte 10 stands U+0131"));
        assert!(fault(b"a b").starts_with("at byte 1 stands a blank"));
        for good in [
            &b"a"[..],
            &[b'~'; 128],
            b"0192f0c1-5a5b-7def-8000-1234567890ab",
        ] {
            assert_eq!(request(good).unwrap().as_bytes(), good);
            let text = std::str::from_utf8(good).unwrap();
            assert_eq!(SessionId::from_text(text).unwrap().as_str(), text);
        }
        for bad in [&b""[..], &[b'a'; 129], b"a b", "\u{f8}".as_bytes()] {
            assert_eq!(request(bad), None);
            let text = std::str::from_utf8(bad).unwrap();
            assert_eq!(SessionId::from_text(text), None);
        }
        assert_eq!(SessionId::from_text("\x7f"), None);
    }

    #[test]
    fn white_space_around_an_id_is_kept_for_the_answer_alone() {
        let id = request(b" a\t").unwrap();
        assert_eq!(
            (id.as_bytes(), id.value().as_bytes()),
            (&b"a"[..], &b" a\t"[..])
        );
        let session = SessionId::from_text(" a ").unwrap();
        assert_eq!(session.as_str(), "a");
        assert_eq!(format!("{session:?}"), "SessionId(***)");
    }
}
