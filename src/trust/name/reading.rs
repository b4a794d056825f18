//! The spellings between a name and a header: what a client may have done to the text after it had written the name (SIG-4).
//!
//! Invariant: a fixed, small number of readings, each linear in the text and no longer than it is (in letters), so that comparing stays bounded.
//! Not here: guessing inside a name. Each reading is of the whole text, and it must spell the whole name.

use std::borrow::Cow;

/// The text of bytes: UTF-8, or Latin-1 where they are not UTF-8. `Owned` tells that it was Latin-1.
pub(super) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    }
}

/// What else the bytes may stand for, besides themselves, the likeliest first; at most three.
pub(super) fn respelled(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let without_escapes = unquoted(bytes);
    let both = without_escapes.as_deref().and_then(percent_decoded);
    [without_escapes, percent_decoded(bytes), both]
        .into_iter()
        .flatten()
}

/// UTF-8 that someone read as Latin-1 and wrote as UTF-8 again; `None` where that cannot have happened.
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

/// One level of HTTP quoted-string escaping taken off (RFC 9110, section 5.6.4), `None` if there is none.
///
/// Only `\"` and `\\` are undone: those are the two that a client must write. To undo `\,` as well would turn a comma inside a value
/// into one between RDNs.
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

/// Percent-decoded once, `None` if there is no `%XX`. A `+` stays a `+`, and a `%` before anything else stays a `%`.
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
