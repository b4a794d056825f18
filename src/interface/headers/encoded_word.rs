//! A Signature as RFC 2047 encoded words (SIG-10): `=?utf-8?B?…?=`, one word or several with white space between them.
//!
//! Clients send encoded words if the issuer's name in keyId is not ASCII (§Request signing 9), and Java's MimeUtility folds its output into
//! words of 75 characters. Either the whole value is encoded or no part of it: words beside other text are refused. The value is decoded
//! once; the result is parsed as a Signature, even if it looks like a word.
//!
//! Libraries for mail are too lenient: they keep text that they cannot decode, guess charsets and accept words within other
//! text. Two readers could then read two signatures in one value. This decoder supports two charsets and two encodings,
//! exactly.
//!
//! The decoder is more lenient than RFC 2047 in two points: a word may be longer than 75 characters, because clients put a whole Signature
//! into one word, and a character may be split over two words, because clients split bytes. The decoded words together must be valid UTF-8.

use super::trim;
use crate::base64_fault::Base64Fault;
use base64::{Engine, engine::general_purpose::STANDARD};
use portvakt_base::hex;
use std::borrow::Cow;

/// The longest value that is decoded: the default limit of a whole head (HTTP-9).
pub const MAX_LENGTH: usize = 16 * 1024;

/// The reason why a value that starts as an encoded word cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodedFault {
    /// More than [`MAX_LENGTH`] bytes.
    #[error("the encoded words have more than {MAX_LENGTH} bytes")]
    TooLong,
    /// Text beside the words.
    #[error(
        "the header begins as an RFC 2047 encoded word, so all of it must be such words, =?utf-8?B?…?=, with white space between them; at byte {0} stands something else"
    )]
    Beside(usize),
    /// A word without its end, or with other parts than charset, encoding and text.
    #[error(
        "an encoded word is =?charset?encoding?text?=; the one that begins at byte {0} does not have these parts"
    )]
    Form(usize),
    /// Another charset.
    #[error("the charset of the encoded word at byte {0} must be utf-8 or iso-8859-1")]
    Charset(usize),
    /// An encoding other than B and Q.
    #[error("the encoding of the encoded word at byte {0} must be B or Q")]
    Encoding(usize),
    /// The text of a word with B is not base64.
    #[error("the text of the encoded word at byte {0} cannot be read as B: {1}")]
    NotB(usize, Base64Fault),
    /// The text of a word with Q has something that Q does not have.
    #[error(
        "the text of the encoded word at byte {0} cannot be read as Q, in which =XX stands for a byte and _ for a blank"
    )]
    NotQ(usize),
    /// The decoded words are not UTF-8.
    #[error("the encoded words name utf-8, and what they hold is not")]
    NotUtf8,
}

/// Decodes a value of encoded words to UTF-8; returns a value that does not start as an encoded word unchanged, trimmed.
///
/// # Errors
/// A value that starts as an encoded word and is not, as a whole, encoded words (SIG-10).
pub fn decode(value: &[u8]) -> Result<Cow<'_, [u8]>, EncodedFault> {
    let value = trim(value);
    if !value.starts_with(b"=?") {
        return Ok(Cow::Borrowed(value));
    }
    if value.len() > MAX_LENGTH {
        return Err(EncodedFault::TooLong);
    }
    let mut decoded = Vec::with_capacity(value.len());
    let words = value.split(|byte| matches!(byte, b' ' | b'\t'));
    let mut next = 0_usize;
    for word in words {
        let at = next;
        next = at.saturating_add(word.len()).saturating_add(1);
        if !word.is_empty() {
            append(word, at, &mut decoded)?;
        }
    }
    match std::str::from_utf8(&decoded) {
        Ok(_) => Ok(Cow::Owned(decoded)),
        Err(_) => Err(EncodedFault::NotUtf8),
    }
}

/// Decodes one word, which begins at this byte, and appends it in UTF-8.
fn append(word: &[u8], at: usize, decoded: &mut Vec<u8>) -> Result<(), EncodedFault> {
    let begun = word.strip_prefix(b"=?").ok_or(EncodedFault::Beside(at))?;
    let inner = begun.strip_suffix(b"?=").ok_or(EncodedFault::Form(at))?;
    let mut parts = inner.split(|byte| *byte == b'?');
    let (Some(charset), Some(encoding), Some(text), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(EncodedFault::Form(at));
    };
    let is_latin1 = charset.eq_ignore_ascii_case(b"iso-8859-1");
    if !is_latin1 && !charset.eq_ignore_ascii_case(b"utf-8") {
        return Err(EncodedFault::Charset(at));
    }
    let bytes = match encoding {
        b"B" | b"b" => STANDARD.decode(text).map_err(|_| not_b(at, text))?,
        b"Q" | b"q" => from_q(text).ok_or(EncodedFault::NotQ(at))?,
        _ => return Err(EncodedFault::Encoding(at)),
    };
    if is_latin1 {
        // The first 256 characters of Unicode are those of ISO 8859-1.
        let text: String = bytes.into_iter().map(char::from).collect();
        decoded.extend(text.bytes());
    } else {
        decoded.extend(bytes);
    }
    Ok(())
}

fn not_b(at: usize, text: &[u8]) -> EncodedFault {
    // What cannot be decoded has a fault.
    let why = Base64Fault::judge(text).err();
    EncodedFault::NotB(at, why.unwrap_or(Base64Fault::Length(text.len())))
}

/// RFC 2047, section 4.2: `_` is a space, `=XX` a byte, and every other visible character itself. Lower-case hexadecimal digits are
/// accepted: the section only recommends capitals.
fn from_q(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'_' => b' ',
            b'=' => hex::byte(*rest.next()?, *rest.next()?)?,
            _ if byte.is_ascii_graphic() => *byte,
            _ => return None,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Result<String, EncodedFault> {
        decode(value.as_bytes()).map(|decoded| String::from_utf8(decoded.into_owned()).unwrap())
    }

    //= SIG-10 accepted
    #[test]
    fn words() {
        let table = [
            ("=?utf-8?B?YWJj?=", "abc"),
            ("=?UTF-8?b?YWJj?=", "abc"),
            ("  =?utf-8?B?YWJj?=\t", "abc"),
            ("=?utf-8?Q?a=62_c=3F=3f?=", "ab c??"),
            ("=?Utf-8?q?a,\"b\"?=", "a,\"b\""),
            ("=?utf-8?B?cMOl?=", "p\u{e5}"),
            ("=?iso-8859-1?B?cOU=?=", "p\u{e5}"),
            ("=?ISO-8859-1?Q?p=E5?=", "p\u{e5}"),
            ("=?utf-8?B?YQ==?= =?utf-8?B?Yg==?=", "ab"),
            (
                "=?utf-8?B?YQ==?=  \t =?iso-8859-1?Q?=E5?= =?utf-8?Q?b?=",
                "a\u{e5}b",
            ),
            // A character that is split over two words.
            ("=?utf-8?Q?=C3?= =?utf-8?Q?=A5?=", "\u{e5}"),
            ("=?utf-8?B??=", ""),
            // Decoded once.
            ("=?utf-8?B?PT91dGYtOD9CP1lXSmo/PQ==?=", "=?utf-8?B?YWJj?="),
        ];
        for (value, expected) in table {
            assert_eq!(text(value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn what_is_not_encoded_is_borrowed() {
        let plain = br#"keyId="SN=1,CA=x",algorithm="rsa-sha256""#;
        for value in [&plain[..], b"=x", b"", b"a =?utf-8?B?YWJj?="] {
            assert!(matches!(decode(value), Ok(Cow::Borrowed(same)) if same == value));
        }
    }

    //= SIG-10 refused
    #[test]
    fn what_is_no_word() {
        use EncodedFault::*;
        let not_base64 = |text: &str| NotB(0, Base64Fault::judge(text.as_bytes()).unwrap_err());
        let table = [
            ("=?", Form(0)),
            ("=?=", Form(0)),
            ("=??=", Form(0)),
            ("=?utf-8?B?=", Form(0)),
            ("=?utf-8?B?YWJj", Form(0)),
            ("=?utf-8?B?YWJj?", Form(0)),
            ("=?utf-8?B?YWJj?==?utf-8?B?YWJj?=", Form(0)),
            ("=?utf-8?B?YWJj?=,=?utf-8?B?YWJj?=", Form(0)),
            ("=?utf-8?B?YWJj?= abc", Beside(17)),
            ("=?utf-8?B?YWJj?=abc", Form(0)),
            ("=?utf-8?Q?a b?=", Form(0)),
            ("=?utf-8?Q?a?b?=", Form(0)),
            ("=?us-ascii?B?YWJj?=", Charset(0)),
            ("=?utf-16?B?YWJj?=", Charset(0)),
            ("=?iso-8859-15?B?YWJj?=", Charset(0)),
            ("=?utf-8*en?B?YWJj?=", Charset(0)),
            ("=??B?YWJj?=", Charset(0)),
            ("=?utf-8?X?YWJj?=", Encoding(0)),
            ("=?utf-8??YWJj?=", Encoding(0)),
            ("=?utf-8?B?YW-j?=", not_base64("YW-j")),
            ("=?utf-8?B?YWI?=", not_base64("YWI")),
            ("=?utf-8?B?YWJ=?=", not_base64("YWJ=")),
            ("=?utf-8?Q?a=?=", NotQ(0)),
            ("=?utf-8?Q?a=6?=", NotQ(0)),
            ("=?utf-8?Q?a=zz?=", NotQ(0)),
            ("=?utf-8?Q?\u{e5}?=", NotQ(0)),
            ("=?utf-8?Q?=E5?=", NotUtf8),
            ("=?utf-8?Q?=C3?=", NotUtf8),
        ];
        for (value, fault) in table {
            assert_eq!(text(value), Err(fault), "{value}");
        }
        let long = format!("=?utf-8?Q?{}?=", "a".repeat(MAX_LENGTH));
        assert_eq!(text(&long), Err(TooLong));
    }

    #[test]
    fn long_nonsense_ends_quickly() {
        for filler in ["=?", "?=", " ", "=?utf-8?B?YQ==?= ", "="] {
            let _ = decode(format!("=?utf-8?Q?{}", filler.repeat(900)).as_bytes());
        }
    }

    #[test]
    fn the_length_is_bounded() {
        let word = |length: usize| format!("=?utf-8?Q?{}?=", "a".repeat(length - 12)).into_bytes();
        assert_eq!(MAX_LENGTH, 16_384);
        assert!(decode(&word(MAX_LENGTH)).is_ok());
        assert_eq!(decode(&word(MAX_LENGTH + 1)), Err(EncodedFault::TooLong));
    }
}
