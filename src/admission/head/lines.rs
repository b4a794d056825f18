//! The fault of an HTTP/1.1 head whose lines are refused (HTTP-7, HTTP-10): one cause, with its byte or its line (ERR-10).
//!
//! These functions only see a head that was refused.

use crate::interface::character::OddCharacter;

/// The reason why a request line is refused whose target the HTTP layer changes. Bytes count in the target, from 0.
pub(super) fn request_line_fault(raw: &[u8]) -> String {
    let line = raw.trim_ascii_start();
    let line = line.split(|byte| matches!(byte, b'\r' | b'\n')).next();
    let line = line.unwrap_or_default();
    let begin = memchr::memchr(b' ', line).map_or(0, |at| at.saturating_add(1));
    let end = memchr::memrchr(b' ', line).unwrap_or(line.len());
    let target = line.get(begin..end).unwrap_or_default();
    let stands = |odd: OddCharacter| {
        format!(
            "at byte {} of the request target stands {}",
            odd.byte(),
            odd.name()
        )
    };
    if let Some(odd) = OddCharacter::outside_ascii(target) {
        return format!("{}, which must be percent-encoded", stands(odd));
    }
    match memchr::memchr(b'#', target) {
        Some(at) => format!(
            "{}: a request target has no fragment",
            stands(OddCharacter::at(target, at))
        ),
        None => "the request target is not one that a server takes as it is".to_owned(),
    }
}

/// The reason why a head is refused whose lines do not end in CRLF. Lines count from 1, the request line.
pub(super) fn line_fault(raw: &[u8]) -> String {
    let mut number = 1_usize;
    let mut rest = raw;
    while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
        let after = rest.get(at..).unwrap_or_default();
        let Some(next) = after.strip_prefix(b"\r\n") else {
            let ends = match after.first() {
                Some(b'\n') => "an LF without a CR before it",
                _ => "a CR without an LF behind it",
            };
            return format!("line {number} of the head has {ends}");
        };
        number = number.saturating_add(1);
        if matches!(next.first(), Some(b' ' | b'\t')) {
            return format!(
                "line {number} of the head begins with white space: folded headers are not read"
            );
        }
        rest = next;
    }
    "a line of the head does not end in CRLF".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    //= ERR-10 refused
    #[test]
    fn each_cause_has_its_sentence() {
        for (head, expected) in [
            (
                "GET /v1/a b HTTP/1.1\r\n\r\n",
                "at byte 5 of the request target stands a blank",
            ),
            (
                "GET /v1/\u{e6} HTTP/1.1\r\n\r\n",
                "at byte 4 of the request target stands U+00E6",
            ),
            (
                "GET /v1/a#b HTTP/1.1\r\n\r\n",
                "at byte 5 of the request target stands '#': a",
            ),
            (
                "GET  /v1/a HTTP/1.1\r\n\r\n",
                "at byte 0 of the request target stands a blank",
            ),
        ] {
            let said = request_line_fault(head.as_bytes());
            assert!(said.starts_with(expected), "{head}: {said}");
        }
        for (head, expected) in [
            (
                "GET / HTTP/1.1\nHost: a\r\n\r\n",
                "line 1 of the head has an LF without",
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
                "line 2 of the head has a CR without",
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
                "line 3 of the head begins with white",
            ),
        ] {
            let said = line_fault(head.as_bytes());
            assert!(said.starts_with(expected), "{head:?}: {said}");
        }
    }
}
