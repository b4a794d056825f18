//! The reason why a text is not canonical base64 (RFC 4648, section 4), for the text of a fault (ERR-10).
//!
//! Invariant: no text shows a part of what was encoded: only the place and the kind of a character.

use super::character::OddCharacter;
use base64::{DecodeError, Engine, engine::general_purpose::STANDARD};
use std::fmt;

/// The reason why a text is not base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base64Fault {
    /// There is no text.
    Empty,
    /// A character that base64 does not have, or `=` before the end.
    Character(OddCharacter),
    /// The number of characters is not a multiple of four.
    Length(usize),
    /// The last character has bits that no encoder sets.
    Bits,
}

impl Base64Fault {
    /// Judges a text.
    ///
    /// # Errors
    /// The first fault.
    pub fn judge(text: &[u8]) -> Result<(), Self> {
        if text.is_empty() {
            return Err(Self::Empty);
        }
        let is_of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        let data = text
            .strip_suffix(b"==")
            .or_else(|| text.strip_suffix(b"="))
            .unwrap_or(text);
        if let Some(odd) = OddCharacter::first(data, is_of_base64) {
            return Err(Self::Character(OddCharacter::at(text, odd.byte())));
        }
        match STANDARD.decode(text) {
            Ok(_) => Ok(()),
            Err(DecodeError::InvalidLastSymbol(..)) => Err(Self::Bits),
            Err(_) => Err(Self::Length(text.len())),
        }
    }
}

impl fmt::Display for Base64Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let odd = match self {
            Self::Empty => return formatter.write_str("it is empty"),
            Self::Length(length) => {
                return write!(
                    formatter,
                    "it is not base64: it has {length} characters, and base64 has a multiple of 4, with = at its end"
                );
            }
            Self::Bits => {
                return formatter.write_str(
                    "it is not canonical base64: its last character before the end has bits that no encoder sets",
                );
            }
            Self::Character(odd) => odd,
        };
        let why = match odd.character() {
            Some('%') => "; in a header base64 is not percent-encoded",
            Some('-' | '_') => ", of base64url: in base64 - is written + and _ is written /",
            Some('=') => ", which stands at the end only",
            Some('\\') => "; line ends do not belong into it, nor do escapes",
            Some(' ' | '\t' | '\r' | '\n') => "; it stands on one line, without blanks",
            Some(':') => "; it has no colons around it here",
            _ => "",
        };
        write!(formatter, "it is not base64: {odd}{why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_sentence() {
        let table = [
            ("", "it is empty"),
            ("AAA%3D", "at byte 3 stands '%'; in a header"),
            ("AA-A", "at byte 2 stands '-', of base64url"),
            ("A=AA", "at byte 1 stands '=', which stands at the end"),
            ("AAAA\\nAAAA", "at byte 4 stands a backslash; line ends"),
            ("AAAA AAAA", "at byte 4 stands a blank; it stands on one"),
            (":AAAA:", "at byte 0 stands ':'; it has no colons"),
            ("AA\u{131}A", "at byte 2 stands U+0131"),
            ("AAA", "it has 3 characters"),
            ("AA=", "it has 3 characters"),
            ("AB==", "its last character"),
        ];
        for (text, expected) in table {
            let fault = Base64Fault::judge(text.as_bytes()).unwrap_err();
            assert!(fault.to_string().contains(expected), "{text}: {fault}");
        }
        for good in ["AA==", "AAA=", "AAAA", "+/+/"] {
            assert_eq!(Base64Fault::judge(good.as_bytes()), Ok(()), "{good}");
        }
        for text in ["====", "AAAA==", "A==="] {
            assert!(Base64Fault::judge(text.as_bytes()).is_err(), "{text}");
        }
    }
}
