//! `Content-Type` and `Content-Encoding` (HTTP-4): bodies are JSON in UTF-8, without a content coding.

/// Whether a Content-Type is JSON in UTF-8: `application/json` or `application/*+json`, with no charset but UTF-8.
pub fn is_utf8_json(content_type: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(content_type) else {
        return false;
    };
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    is_json(media)
        && parts
            .filter(|part| !part.is_empty())
            .all(is_harmless_parameter)
}

/// Whether a media type without parameters is JSON (RFC 8259, RFC 6839).
pub fn is_json(media: &str) -> bool {
    let media = media.trim();
    let Some((kind, subtype)) = media.split_once('/') else {
        return false;
    };
    let suffix = subtype
        .len()
        .checked_sub(5)
        .and_then(|at| subtype.get(at..));
    kind.eq_ignore_ascii_case("application")
        && (subtype.eq_ignore_ascii_case("json")
            || subtype.len() > 5
                && suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("+json")))
}

/// Whether a Content-Encoding is `identity`.
pub fn is_identity(content_encoding: &[u8]) -> bool {
    content_encoding.eq_ignore_ascii_case(b"identity")
}

/// `charset` must be UTF-8; other parameters have no meaning for JSON.
fn is_harmless_parameter(parameter: &str) -> bool {
    match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let value = value.trim().trim_matches('"');
            value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8")
        }
        Some(_) => true,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        let table = [
            ("application/json", true),
            ("Application/JSON; charset=UTF-8", true),
            ("application/json;charset=\"utf-8\"", true),
            ("application/vnd.bank+json", true),
            ("application/json; charset=iso-8859-1", false),
            ("application/json; charset", false),
            ("application/xml", false),
            ("application/+json", false),
            ("text/json", false),
            ("application/jsonx", false),
            ("", false),
            ("application/json, application/xml", false),
        ];
        for (value, expected) in table {
            assert_eq!(is_utf8_json(value.as_bytes()), expected, "{value}");
        }
        assert!(is_identity(b"Identity") && !is_identity(b"gzip"));
    }
}
