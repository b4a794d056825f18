//! Attribute values: the string types of X.520 become text, everything else stays the DER that it is.
//!
//! Invariant: a value has one folded form, and two values are the same exactly when their folded forms are (SIG-4; RFC 4518 in spirit).
//! Not here: Unicode normalisation. A certificate and a client that spell one letter as one code point and as two are told so.

use std::fmt;

use crate::trust::der::{Element, tag};

/// An attribute's value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AttributeValue {
    /// What a string type says, whichever of them said it.
    Text(String),
    /// Any other type, and a string whose bytes are not what its type promises: tag, length and content.
    Der(Vec<u8>),
}

impl AttributeValue {
    /// The value that an element holds.
    pub(super) fn from_element(element: &Element<'_>) -> AttributeValue {
        match text_of(element) {
            Some(text) => AttributeValue::Text(text),
            None => AttributeValue::Der(element.whole.to_vec()),
        }
    }

    /// What Java prints for the element in RFC 2253 where that is not its text: it reads the bytes of every string type as UTF-8, so that
    /// a BMPString `ab` becomes `\\00a\\00b` and UTF-8 in a TeletexString comes out right. `None` where Java would put a replacement character:
    /// that could stand for more than one name.
    pub(super) fn as_java_reads_it(element: &Element<'_>) -> Option<AttributeValue> {
        let text = text_of(element)?;
        let utf8 = std::str::from_utf8(element.content).ok()?;
        (utf8 != text).then(|| AttributeValue::Text(utf8.to_owned()))
    }

    /// What is compared: without regard to case, outer white space and the length of inner white space. DER is compared as it is.
    pub(super) fn folded(&self) -> AttributeValue {
        match self {
            AttributeValue::Text(text) => AttributeValue::Text(fold(text)),
            AttributeValue::Der(der) => AttributeValue::Der(der.clone()),
        }
    }
}

/// The value as RFC 2253 writes it: specials behind a backslash, control characters as hex pairs, UTF-8 as it is, DER as `#hex`.
impl fmt::Display for AttributeValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeValue::Text(text) => write_escaped(text, out),
            AttributeValue::Der(der) => {
                out.write_str("#")?;
                der.iter().try_for_each(|octet| write!(out, "{octet:02x}"))
            }
        }
    }
}

/// One letter case, one space for each run of white space, none at the ends.
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

/// Greek has two small sigmas and one capital, so lower case alone would keep `ΟΔΟΣ` and `οδος` apart.
fn one_sigma(letter: char) -> char {
    if letter == 'ς' { 'σ' } else { letter }
}

/// The text of a string type; `None` for other types and for bytes that the type does not allow.
///
/// The one-byte types are read as Latin-1, as OpenSSL and Java read TeletexString; certificates put more into a PrintableString than
/// X.680 allows, and refusing that here would only hide the name from the comparison.
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
