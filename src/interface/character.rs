//! A character that may not stand where it stands, for the text of a fault (ERR-10).
//!
//! Invariant: a text shows punctuation, and the number of a character outside ASCII; it never shows a letter or a digit, of which ids,
//! accounts and keys consist. Bytes count from 0.

use std::fmt;

/// A character that may not stand at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OddCharacter {
    at: usize,
    found: Found,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Character(char),
    /// A byte that begins no character of UTF-8.
    Byte(u8),
    End,
}

impl OddCharacter {
    /// The first byte of a value that does not fit; `None` if every byte fits.
    pub fn first(value: &[u8], fits: impl Fn(u8) -> bool) -> Option<Self> {
        let at = value.iter().position(|byte| !fits(*byte))?;
        Some(Self::at(value, at))
    }

    /// The first character outside visible ASCII; `None` if there is none.
    pub fn outside_ascii(value: &[u8]) -> Option<Self> {
        Self::first(value, |byte| byte.is_ascii_graphic())
    }

    /// The character at a byte of a value, or its end.
    pub fn at(value: &[u8], at: usize) -> Self {
        let rest = value.get(at..).unwrap_or_default();
        let found = match rest.first() {
            None => Found::End,
            Some(byte) => first_character(rest).map_or(Found::Byte(*byte), Found::Character),
        };
        Self { at, found }
    }

    /// The same character, where the value begins at this byte of a longer one.
    pub const fn behind(self, bytes: usize) -> Self {
        Self {
            at: self.at.saturating_add(bytes),
            found: self.found,
        }
    }

    /// The byte of the character, from 0.
    pub const fn byte(&self) -> usize {
        self.at
    }

    /// The character; `None` at the end, and for a byte that is no UTF-8.
    pub const fn character(&self) -> Option<char> {
        match self.found {
            Found::Character(character) => Some(character),
            Found::Byte(_) | Found::End => None,
        }
    }

    /// The same with the whole that the bytes count in: `at byte 4 of keyId stands ':'`.
    pub fn within(&self, whole: &str) -> String {
        format!("at byte {} of {whole} stands {}", self.at, self.name())
    }

    /// The name of the character, without its place.
    pub fn name(&self) -> String {
        match self.found {
            Found::Character(character) => name(character),
            Found::Byte(byte) => format!("the byte {byte:02X}, which is no UTF-8"),
            Found::End => "nothing more".to_owned(),
        }
    }
}

impl fmt::Display for OddCharacter {
    /// `at byte 7 stands U+0131, which is outside ASCII`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at byte {} stands {}", self.at, self.name())
    }
}

/// The name of a character.
pub fn name(character: char) -> String {
    match character {
        ' ' => "a blank".to_owned(),
        '\t' => "a tab".to_owned(),
        '\\' => "a backslash".to_owned(),
        '"' => "a quotation mark".to_owned(),
        'a'..='z' => "a small letter".to_owned(),
        'A'..='Z' => "a capital".to_owned(),
        '0'..='9' => "a digit".to_owned(),
        character if !character.is_ascii() => {
            format!("U+{:04X}, which is outside ASCII", u32::from(character))
        }
        character if character.is_ascii_control() => {
            format!("the control character U+{:04X}", u32::from(character))
        }
        character => format!("'{character}'"),
    }
}

/// The first character, of at most four bytes.
fn first_character(bytes: &[u8]) -> Option<char> {
    (1..=4).find_map(|length| {
        let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
        text.chars().next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_by_their_names() {
        let table: [(&[u8], &str); 9] = [
            (
                "x-request-\u{131}d".as_bytes(),
                "at byte 10 stands U+0131, which is outside ASCII",
            ),
            (b"ab c", "at byte 2 stands a blank"),
            (b"\\", "at byte 0 stands a backslash"),
            (b"a\"", "at byte 1 stands a quotation mark"),
            (b"a%3D", "at byte 1 stands '%'"),
            (b"a\xff", "at byte 1 stands the byte FF, which is no UTF-8"),
            (b"\0", "at byte 0 stands the control character U+0000"),
            (b"-A", "at byte 1 stands a capital"),
            (b"-7", "at byte 1 stands a digit"),
        ];
        for (value, expected) in table {
            let fits = |byte: u8| byte == b'-' || byte.is_ascii_lowercase();
            let odd = OddCharacter::first(value, fits).unwrap();
            assert_eq!(odd.to_string(), expected);
        }
        assert_eq!(OddCharacter::outside_ascii(b"a-7"), None);
        let end = OddCharacter::at(b"ab", 2).behind(3);
        assert_eq!(end.to_string(), "at byte 5 stands nothing more");
    }
}
