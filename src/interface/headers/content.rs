//! `Content-Type` and `Content-Encoding` (HTTP-4): bodies are JSON in UTF-8, without a content coding.
//!
//! Readers of Content-Type differ: some obey `charset*` (RFC 2231), some take the first or the last of two, and some search the whole
//! value for `charset=`. So a value passes only where all of them find the same type, and no charset but UTF-8.

use crate::token::{is_token, is_token_byte};

/// The only parameter with a meaning for JSON, and only as UTF-8.
const CHARSET: &str = "charset";

/// The characters beside those of a token that a quoted value may have. Without `;`, `,`, `\` and `"`, a reader that does not know quotes
/// ends the value in the same place.
const QUOTED: &[u8] = b" /:=@#";

/// Checks that a Content-Type is JSON in UTF-8: `application/json` or `application/*+json`, with no charset but UTF-8.
///
/// # Errors
/// The cause, as a sentence that says what would pass.
pub fn utf8_json(content_type: &[u8]) -> Result<(), &'static str> {
    const PLAIN: &str = "write it in ASCII, as application/json";
    // What almost every TPP sends.
    if content_type == b"application/json" {
        return Ok(());
    }
    let text = std::str::from_utf8(content_type).map_err(|_| PLAIN)?;
    if !text.is_ascii() {
        return Err(PLAIN);
    }
    let mut parts = text.split(';').map(|part| part.trim_matches([' ', '\t']));
    let media = parts.next().unwrap_or_default();
    if !is_json(media) || resembles_charset(media) {
        return Err(match media.get(..16) {
            Some(begin) if begin.eq_ignore_ascii_case("application/json") && media.len() > 16 => {
                "send application/json, or application/*+json: something stands behind the type without a semicolon"
            }
            _ => "send application/json, or application/*+json",
        });
    }
    let mut names: Vec<&str> = Vec::new();
    for parameter in parts.filter(|part| !part.is_empty()) {
        let name = judge_parameter(parameter)?;
        if names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err("send each parameter once");
        }
        names.push(name);
    }
    Ok(())
}

/// Whether a media type without parameters is JSON (RFC 8259, RFC 6839).
pub fn is_json(media: &str) -> bool {
    let Some((kind, subtype)) = media.trim().split_once('/') else {
        return false;
    };
    let suffix = subtype
        .len()
        .checked_sub(5)
        .and_then(|at| subtype.get(at..));
    kind.eq_ignore_ascii_case("application")
        && is_token(subtype)
        && (subtype.eq_ignore_ascii_case("json")
            || subtype.len() > 5
                && suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("+json")))
}

/// Whether a Content-Encoding is `identity`.
pub fn is_identity(content_encoding: &[u8]) -> bool {
    content_encoding.eq_ignore_ascii_case(b"identity")
}

/// `name=value` without whitespace (RFC 9110, section 5.6.6). Returns the name.
fn judge_parameter(parameter: &str) -> Result<&str, &'static str> {
    const NO_EQUALS: &str = "write a parameter as name=value: one has no equals sign";
    const NAME: &str = "write a parameter as name=value: the name of one is no token, such as with white space before the equals sign";
    const VALUE: &str = "write a parameter as name=value: the value of one is no token and no plain quoted text, which have no white space at their ends, no commas and no backslashes";
    const LIKE: &str = "leave out every parameter that resembles charset, such as charset*";
    let (name, value) = parameter.split_once('=').ok_or(NO_EQUALS)?;
    let is_charset = name.eq_ignore_ascii_case(CHARSET);
    if !is_token(name) {
        return Err(NAME);
    }
    if name.contains('*') || resembles_charset(name) != is_charset {
        return Err(LIKE);
    }
    let value = unquoted(value).ok_or(VALUE)?;
    if resembles_charset(value) {
        return Err(LIKE);
    }
    let is_utf8 = value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8");
    if is_charset && !is_utf8 {
        return Err("send no charset but utf-8");
    }
    Ok(name)
}

/// The value of a parameter, if every reader finds the same.
fn unquoted(value: &str) -> Option<&str> {
    let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    match inner {
        Some(inner) => inner
            .bytes()
            .all(|byte| is_token_byte(byte) || QUOTED.contains(&byte))
            .then_some(inner),
        None => is_token(value).then_some(value),
    }
}

/// Whether the letters of a text contain `charset`.
fn resembles_charset(text: &str) -> bool {
    let letters = text.bytes().filter(u8::is_ascii_alphabetic);
    let letters: Vec<u8> = letters.map(|byte| byte.to_ascii_lowercase()).collect();
    letters
        .windows(CHARSET.len())
        .any(|part| part == CHARSET.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_and_no_charset_but_utf8() {
        for good in [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
            "application/json ;\tcharset=utf8",
            "application/json;",
            "application/json; version=1; profile=\"https://bank.example/x\"",
            "application/vnd.bank+json",
        ] {
            assert_eq!(utf8_json(good.as_bytes()), Ok(()), "{good}");
        }
    }

    #[test]
    fn each_cause_has_its_sentence() {
        const TYPE: &str = "send application/json, or application/*+json";
        const FORM: &str = "write a parameter as name=value";
        const LIKE: &str = "leave out every parameter that resembles charset";
        const OTHER: &str = "send no charset but utf-8";
        const TWICE: &str = "send each parameter once";
        let table = [
            ("", TYPE),
            ("application/xml", TYPE),
            ("text/json", TYPE),
            ("application/+json", TYPE),
            ("application/jsonx", TYPE),
            ("application/a b+json", TYPE),
            ("application/(x)+json", TYPE),
            ("application/charset+json", TYPE),
            ("application/json, application/xml", TYPE),
            ("application/json (charset=utf-7)", TYPE),
            ("application/json charset=utf-8", TYPE),
            ("application/json; charset=iso-8859-1", OTHER),
            ("application/json; charset=\"utf-7\"", OTHER),
            ("application/json; charset=\"\"", OTHER),
            ("application/json; charset=\" utf-8\"", OTHER),
            ("application/json; charset*=utf-8''utf-7", LIKE),
            ("application/json; charset*0=utf-7", LIKE),
            ("application/json; charset*0*=utf-7", LIKE),
            ("application/json; title*=utf-8''x", LIKE),
            ("application/json; xcharset=utf-7", LIKE),
            ("application/json; char-set=utf-7", LIKE),
            ("application/json; charset_=utf-8", LIKE),
            ("application/json; \tcharset*=utf-8", LIKE),
            ("application/json; x=\"a charset=utf-7\"", LIKE),
            ("application/json; charset=utf-8; charset=utf-8", TWICE),
            ("application/json; charset=utf-8; CHARSET=utf8", TWICE),
            ("application/json; v=1; v=2", TWICE),
            ("application/json; charset", FORM),
            ("application/json; charset =utf-8", FORM),
            ("application/json; charset= utf-8", FORM),
            ("application/json; charset=", FORM),
            ("application/json; charset='utf-8' x", FORM),
            ("application/json; charset=\"utf-8", FORM),
            ("application/json; charset=\"utf\\-8\"", FORM),
            ("application/json; x=\"a;charset=utf-7\"", FORM),
            ("application/json; =utf-7", FORM),
            ("application/json; charset=utf-8, text/html", FORM),
            ("application/json; charset=utf-8\u{b}", FORM),
        ];
        for (value, cause) in table {
            let fault = utf8_json(value.as_bytes()).unwrap_err();
            assert!(fault.starts_with(cause), "{value}: {fault}");
        }
        let odd = utf8_json("application/json; charſet=utf-7".as_bytes());
        assert!(odd.is_err() && utf8_json(b"application/json\xff").is_err());
    }

    #[test]
    fn identity() {
        assert!(is_identity(b"Identity") && !is_identity(b"gzip"));
    }
}
