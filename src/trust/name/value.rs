//! Attribute values: the string types of X.520 become text; every other type is kept as DER.
//!
//! Invariant: a value has one folded form, and two values are equal if and only if their folded forms are (SIG-4; modelled on RFC 4518).
//! Deliberately not here: Unicode normalisation. A letter as one code point does not match the same letter as two code points; the mismatch
//! shows both.

use std::fmt;

use crate::der::{Element, tag};
use portvakt_base::hex;

/// An attribute's value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AttributeValue {
    /// The text of a string type, independent of the type.
    Text(String),
    /// Any other type, and a string that is not valid for its type: tag, length and content.
    Der(Vec<u8>),
}

impl AttributeValue {
    /// The value of an element.
    pub(super) fn from_element(element: &Element<'_>) -> AttributeValue {
        match text_of(element) {
            Some(text) => AttributeValue::Text(text),
            None => AttributeValue::Der(element.whole.to_vec()),
        }
    }

    /// Java's RFC 2253 text for the element, if it differs from the element's text. Java reads the bytes of every string type as UTF-8, so
    /// a BMPString `ab` becomes `\\00a\\00b`, and UTF-8 in a TeletexString is decoded correctly. `None` if Java would write a replacement
    /// character, because that could mean more than one name.
    pub(super) fn as_java_reads_it(element: &Element<'_>) -> Option<AttributeValue> {
        let text = text_of(element)?;
        let utf8 = std::str::from_utf8(element.content).ok()?;
        (utf8 != text).then(|| AttributeValue::Text(utf8.to_owned()))
    }

    /// The form that is compared: without letter case, outer white space and the length of inner white space. DER is unchanged.
    pub(super) fn folded(&self) -> AttributeValue {
        match self {
            AttributeValue::Text(text) => AttributeValue::Text(fold(text)),
            AttributeValue::Der(der) => AttributeValue::Der(der.clone()),
        }
    }
}

/// Writes the value in RFC 2253 form: special characters after a backslash, control characters as hex pairs, UTF-8 unchanged, DER as
/// `#hex`.
impl fmt::Display for AttributeValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeValue::Text(text) => write_escaped(text, out),
            AttributeValue::Der(der) => write!(out, "#{}", hex::encode(der)),
        }
    }
}

/// Lower case, one space for each run of white space, and no white space at the ends.
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(word.chars().flat_map(char::to_lowercase).map(one_sigma));
    }
    folded
}

/// Maps both Greek small sigmas to one, because they share a capital: with lower case only, `ΟΔΟΣ` and `οδος` would differ.
fn one_sigma(letter: char) -> char {
    if letter == 'ς' { 'σ' } else { letter }
}

/// The text of a string type; `None` for other types and for bytes that are not valid for the type.
///
/// The one-byte types are read as Latin-1, as OpenSSL and Java read TeletexString. Certificates use characters in a PrintableString that
/// X.680 does not allow; a refusal here would only hide the name from the comparison.
fn text_of(element: &Element<'_>) -> Option<String> {
    let content = element.content;
    match element.tag {
        tag::UTF8_STRING => String::from_utf8(content.to_vec()).ok(),
        tag::NUMERIC_STRING
        | tag::PRINTABLE_STRING
        | tag::TELETEX_STRING
        | tag::IA5_STRING
        | tag::VISIBLE_STRING => Some(content.iter().copied().map(char::from).collect()),
        tag::BMP_STRING => utf16(content),
        tag::UNIVERSAL_STRING => utf32(content),
        _ => None,
    }
}

fn utf16(content: &[u8]) -> Option<String> {
    let (pairs, []) = content.as_chunks::<2>() else {
        return None;
    };
    char::decode_utf16(pairs.iter().copied().map(u16::from_be_bytes))
        .collect::<Result<_, _>>()
        .ok()
}

fn utf32(content: &[u8]) -> Option<String> {
    let (quads, []) = content.as_chunks::<4>() else {
        return None;
    };
    quads
        .iter()
        .copied()
        .map(|quad| char::from_u32(u32::from_be_bytes(quad)))
        .collect()
}

fn write_escaped(text: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    use fmt::Write as _;

    let last = text.chars().count().saturating_sub(1);
    for (index, letter) in text.chars().enumerate() {
        let special = match letter {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => true,
            '#' => index == 0,
            ' ' => index == 0 || index == last,
            _ => false,
        };
        if special {
            out.write_char('\\')?;
        }
        if letter.is_control() {
            let mut utf8 = [0; 4];
            for octet in letter.encode_utf8(&mut utf8).bytes() {
                write!(out, "\\{octet:02X}")?;
            }
        } else {
            out.write_char(letter)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_types_become_text_and_the_rest_stays_der() {
        let check = |der: &[u8], expect: Option<&str>| {
            let value = AttributeValue::from_element(&Element::only(der).unwrap());
            let expect = match expect {
                Some(text) => AttributeValue::Text(text.to_owned()),
                None => AttributeValue::Der(der.to_vec()),
            };
            assert_eq!(value, expect, "{der:02x?}");
        };
        check(&[0x0c, 2, 0xc3, 0xad], Some("í"));
        check(&[0x0c, 1, 0xed], None);
        for one_byte in [0x12, 0x13, 0x14, 0x16, 0x1a] {
            check(&[one_byte, 2, b'1', 0xed], Some("1í"));
        }
        check(&[0x1e, 4, 0x01, 0x42, 0, b'a'], Some("ła"));
        check(&[0x1e, 3, 0x01, 0x42, 0], None);
        check(&[0x1e, 2, 0xd8, 0], None);
        check(&[0x1c, 4, 0, 0, 0x01, 0x42], Some("ł"));
        check(&[0x1c, 4, 0, 0x11, 0, 0], None);
        check(&[0x1c, 3, 0, 0, 0x41], None);
        check(&[0x02, 1, 5], None);
        check(&[0x1b, 1, b'g'], None);
        check(&[0x2c, 3, 0x0c, 1, b'x'], None);
    }

    #[test]
    fn folding_keeps_words_apart_and_letters_distinct() {
        assert_eq!(fold(" \t Prvn\u{cd}\r\n a.S. "), "první a.s.");
        assert_eq!(fold("ΟΔΟΣ"), fold("οδος"));
        assert_ne!(fold("ab"), fold("a b"));
        assert_ne!(fold("ı"), fold("i"));
        assert_ne!(fold("ß"), fold("ss"));
        assert_eq!(fold(" \u{a0} "), "");
    }

    #[test]
    fn display_escapes_what_rfc_2253_escapes() {
        let check = |text: &str, expect: &str| {
            assert_eq!(AttributeValue::Text(text.to_owned()).to_string(), expect);
        };
        check("a,b+c\"d\\e<f>g;h", "a\\,b\\+c\\\"d\\\\e\\<f\\>g\\;h");
        check("#1 # 2", "\\#1 # 2");
        check("  x  ", "\\  x \\ ");
        check(" ", "\\ ");
        check("a\nb\u{85}č", "a\\0Ab\\C2\\85č");
        check("", "");
        assert_eq!(AttributeValue::Der(vec![2, 1, 0xab]).to_string(), "#0201ab");
    }
}
