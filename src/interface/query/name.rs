//! Names of query parameters (QRY-3), percent-decoded, and the names that are confused with them.

use crate::fold;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// The maximum length of a name that a fault repeats or a catalogue has, in bytes.
const MAX_SHOWN: usize = 64;

/// A name of a query, decoded.
#[derive(Debug)]
pub(super) struct QueryName<'a> {
    /// The name as received if it cannot be decoded.
    text: Cow<'a, str>,
    readable: bool,
}

impl<'a> QueryName<'a> {
    pub(super) fn decode(raw: &'a str) -> Self {
        match decode(raw) {
            Some(text) => Self {
                readable: !text.chars().any(char::is_control),
                text,
            },
            None => Self {
                text: Cow::Borrowed(raw),
                readable: false,
            },
        }
    }

    /// Decodes to text without control characters, at which some server could stop reading.
    pub(super) const fn is_readable(&self) -> bool {
        self.readable
    }

    /// The reason why the name is not readable (ERR-10). Bytes count in the name.
    pub(super) fn fault(&self) -> String {
        let mut controls = self.text.chars().filter(|found| found.is_control());
        match controls.next() {
            Some(control) => format!("it has the control character U+{:04X}", u32::from(control)),
            None => undecodable(&self.text),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn is(&self, known: &str) -> bool {
        self.readable && self.text == known
    }

    /// Whether some server reads the name as `known`.
    pub(super) fn looks_like(&self, known: &str) -> bool {
        looks_like(&self.text, known)
    }
}

/// Whether some server reads a decoded name as `known` (QRY-3): in another letter case; but for points, underscores,
/// hyphens and white space, which binders leave out or put in, or Spring's `!` in front; as an element of a list of that
/// name; as a member of an object (`request.dateFrom` and `filter[dateFrom]` to ASP.NET, `[dateFrom]` to qs).
fn looks_like(name: &str, known: &str) -> bool {
    let whole = name.split('[').next().unwrap_or_default();
    let mut parts = name.split(['.', '[', ']']);
    is_same(name, known) || is_same(whole, known) || parts.any(|part| is_same(part, known))
}

/// Whether two names are the same but for letter case and the characters that binders leave out. A known name is ASCII.
fn is_same(name: &str, known: &str) -> bool {
    if name.is_ascii() {
        return bare(name).eq(bare(known)) && bare(known).next().is_some();
    }
    let seen: String = name.chars().filter(|one| !one.is_whitespace()).collect();
    fold::fold(&seen).is_some_and(|folded| is_same(&folded, known))
}

/// The characters of a name that matter for the comparison.
fn bare(name: &str) -> impl Iterator<Item = u8> {
    let counts = |byte: &u8| !b"._-[]!".contains(byte) && !byte.is_ascii_whitespace();
    name.bytes()
        .filter(counts)
        .map(|byte| byte.to_ascii_lowercase())
}

/// Whether a piece could hold a name that [`hides`] finds: few do.
pub(super) fn may_hide(raw: &str) -> bool {
    memchr::memchr3(b'%', b'?', b';', raw.as_bytes()).is_some()
}

/// Whether a piece holds `known` to a server that decodes first and parts then, at `&`, `;` or another `?`, or that
/// decodes twice. `java.net.URI.getQuery` is decoded, and many split it. `from` is the first part that is looked at.
pub(super) fn hides(raw: &str, known: &str, from: usize) -> bool {
    let once = decode_somehow(raw);
    [decode_somehow(&once), once]
        .iter()
        .flat_map(|decoded| decoded.split(['&', ';', '?']).skip(from))
        .any(|piece| looks_like(piece.split('=').next().unwrap_or_default(), known))
}

/// Percent-decodes each valid escape.
fn decode_somehow(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// Percent-decodes a name or a value; `+` is a space to a server that reads a query as a form. None where that is not UTF-8 or
/// a `%` stands without its two digits.
pub(super) fn decode(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains(['%', '+']) {
        return Some(Cow::Borrowed(raw));
    }
    let whole = raw.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    let spaced = raw.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    whole.then(|| Cow::Owned(decoded.into_owned()))
}

/// The reason why a name or a value cannot be decoded (ERR-10). Bytes count in it, from 0.
pub(super) fn undecodable(raw: &str) -> String {
    let bytes = raw.as_bytes();
    let mut percents = memchr::memchr_iter(b'%', bytes);
    let lone = percents.find(|at| {
        let digits = bytes.get(at.saturating_add(1)..at.saturating_add(3));
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    match lone {
        Some(at) => format!("at byte {at} stands a percent sign without two hexadecimal digits"),
        None => "the bytes that its percent-encoding stands for are not UTF-8".to_owned(),
    }
}

/// Whether a name can be a catalogue's: letters, digits, `-`, `_` and `.`, at most 64 of them.
pub fn is_word(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_SHOWN).contains(&text.len()) && text.bytes().all(fits)
}

/// Whether an unknown name can be repeated: it has no digit, so it is not an id of a person.
pub(super) fn is_harmless(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphabetic() || b"-_.[]".contains(&byte);
    (1..=MAX_SHOWN).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_too_near() {
        for near in [
            "DATEFROM",
            "datefrom",
            "dateFrom[]",
            "dateFrom%5B%5D",
            "%64atefrom",
            "dateFrom[0]",
            "dateFrom+",
            "%20dateFrom",
            "date-from",
            "date_from",
            "_date.From_",
            "date+From",
            "date%C2%A0From",
            "dateFrom%EF%BB%BF",
            "da%E2%80%8Bte%EF%BC%BFFrom",
            "!dateFrom",
            "request.dateFrom",
            "filter[dateFrom]",
            "[date_from]",
            "dateFrom[a][b]",
            "date[From",
        ] {
            assert!(QueryName::decode(near).looks_like("dateFrom"), "{near}");
        }
        assert!(QueryName::decode("off%C5%BFet").looks_like("offset"));
        assert!(QueryName::decode("boo%E2%84%AAingStatus").looks_like("bookingStatus"));
        for other in [
            "date",
            "dateFroms",
            "xdateFrom",
            "date*from",
            "[]",
            "",
            "d%C3%A5teFrom",
        ] {
            assert!(!QueryName::decode(other).looks_like("dateFrom"), "{other}");
        }
        assert!(QueryName::decode("%64ateFrom").is("dateFrom"));
    }

    #[test]
    fn names_that_are_hidden() {
        for piece in [
            "x;dateFrom=1",
            "x=1;dateFrom",
            "x%3BdateFrom=1",
            "x=1%3bdateFrom%3d1",
            "x=1%26dateFrom=1",
            "x=1%26%20date_from",
            "?dateFrom=1",
            "x=y?DATEFROM=1",
            "dateFrom%3D1",
            "%2564ateFrom=1",
            "x=1%2526dateFrom=1",
            "dateFrom=%ff%26dateFrom",
        ] {
            assert!(hides(piece, "dateFrom", 0), "{piece}");
        }
        assert!(!hides("dateFrom=%41", "dateFrom", 1));
        assert!(hides("dateFrom=%26dateFrom=1", "dateFrom", 1));
        for piece in ["x=dateFrom", "x=%26date", "x%3D1", "x=%3F", "x=%C3%A6;y"] {
            assert!(!hides(piece, "dateFrom", 0), "{piece}");
        }
    }

    #[test]
    fn what_cannot_be_read() {
        for bad in ["%", "%4", "%zz", "a%C3", "a%00", "a%0Ab", "%ff"] {
            assert!(!QueryName::decode(bad).is_readable(), "{bad}");
        }
        assert!(QueryName::decode("a+b%20%C3%A6").is_readable());
    }
}
