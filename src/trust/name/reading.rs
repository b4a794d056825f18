//! The readings of a keyId's text: the encodings that a client may have applied to the name (SIG-4).
//!
//! Invariant: the number of readings is small and fixed, and each reading is linear in the text and not longer (in letters), so that the
//! comparison is bounded. Deliberately not here: guesses about parts of a name. Each reading is of the whole text, and must spell the whole
//! name.

use std::borrow::Cow;

/// The bytes as text: UTF-8, or Latin-1 if they are not valid UTF-8. `Owned` means Latin-1.
pub(super) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    }
}

/// The other readings of the bytes, the most likely first; at most three.
pub(super) fn respelled(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let without_escapes = unquoted(bytes);
    let both = without_escapes.as_deref().and_then(percent_decoded);
    [without_escapes, percent_decoded(bytes), both]
        .into_iter()
        .flatten()
}

/// Reverts UTF-8 that was read as Latin-1 and encoded as UTF-8 again; `None` if that is impossible.
pub(super) fn unmojibaked(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let bytes: Vec<u8> = text
        .chars()
        .map(u8::try_from)
        .collect::<Result<_, _>>()
        .ok()?;
    String::from_utf8(bytes).ok()
}

/// Removes one level of HTTP quoted-string escaping (RFC 9110, section 5.6.4); `None` if there is none.
///
/// Only `\"` and `\\` are unescaped, because a client must escape these two. Unescaping `\,` would turn a comma in a value into a boundary
/// between RDNs.
fn unquoted(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(octet) = rest.next() {
        let escaped = match octet {
            b'\\' => rest.next_if(|&next| matches!(next, b'"' | b'\\')),
            _ => None,
        };
        plain.push(escaped.unwrap_or(octet));
    }
    (plain.len() < bytes.len()).then_some(plain)
}

/// Percent-decodes once; `None` if there is no `%XX`. A `+` is not a space, and a `%` without two hex digits is kept.
fn percent_decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    match Cow::from(percent_encoding::percent_decode(bytes)) {
        Cow::Borrowed(_) => None,
        Cow::Owned(plain) => Some(plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quotes_and_backslashes_are_unquoted() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(
                unquoted(text.as_bytes()).as_deref(),
                expect.map(str::as_bytes)
            );
        };
        check(r#"O=\"a, b\""#, Some(r#"O="a, b""#));
        check(r"O=a\\, b", Some(r"O=a\, b"));
        check(r"O=a\, b", None);
        check(r"O=\\\\", Some(r"O=\\"));
        check(r"O=\", None);
    }

    #[test]
    fn percent_is_decoded_once() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(
                percent_decoded(text.as_bytes()).as_deref(),
                expect.map(str::as_bytes)
            );
        };
        check("a%20b+c", Some("a b+c"));
        check("%2541", Some("%41"));
        check("100% %zz", None);
    }

    #[test]
    fn mojibake_is_undone_where_it_can_have_happened() {
        assert_eq!(unmojibaked("PrvnÃ\u{ad}").as_deref(), Some("První"));
        assert_eq!(unmojibaked("První"), None);
        assert_eq!(unmojibaked("autoritač"), None);
        assert_eq!(unmojibaked("ascii"), None);
    }
}
