//! Names of query parameters (QRY-3), percent-decoded, and what comes too near to one.

use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// The longest name that a fault repeats or a catalogue has, in bytes.
const MAX_SHOWN: usize = 64;

/// A name of a query, decoded.
#[derive(Debug)]
pub(super) struct Name<'a> {
    /// As received where it cannot be decoded.
    text: Cow<'a, str>,
    readable: bool,
}

impl<'a> Name<'a> {
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

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn is(&self, known: &str) -> bool {
        self.readable && self.text == known
    }

    /// Whether some server reads it as `known`: in another letter case, or as an element of a list of that name.
    pub(super) fn looks_like(&self, known: &str) -> bool {
        let name = self.text.split('[').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case(known) || !name.is_ascii() && folded(name) == folded(known)
    }
}

/// Percent-decodes a name or a value; `+` is a space to whoever reads a query as a form. None where that is not UTF-8 or
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

/// Without letter case, in whatever direction a server folds: ſ is an S to one, the Kelvin sign a k to another.
fn folded(text: &str) -> String {
    text.to_lowercase().to_uppercase()
}

/// Whether a name can be a catalogue's: letters, digits, `-`, `_` and `.`, at most 64 of them.
pub fn is_word(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_SHOWN).contains(&text.len()) && text.bytes().all(fits)
}

/// Whether a stranger's name can be repeated: no number in it, so that it is nobody's.
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
        ] {
            assert!(Name::decode(near).looks_like("dateFrom"), "{near}");
        }
        assert!(Name::decode("off%C5%BFet").looks_like("offset"));
        assert!(Name::decode("boo%E2%84%AAingStatus").looks_like("bookingStatus"));
        for other in ["date", "dateFroms", "xdateFrom", "date-from", "[]", ""] {
            assert!(!Name::decode(other).looks_like("dateFrom"), "{other}");
        }
        assert!(Name::decode("%64ateFrom").is("dateFrom"));
    }

    #[test]
    fn what_cannot_be_read() {
        for bad in ["%", "%4", "%zz", "a%C3", "a%00", "a%0Ab", "%ff"] {
            assert!(!Name::decode(bad).is_readable(), "{bad}");
        }
        assert!(Name::decode("a+b%20%C3%A6").is_readable());
    }
}
