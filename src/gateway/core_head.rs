//! The head of the core's answer before it is sent to the caller (FWD-7): headers removed, and new framing.
//!
//! Invariant: a caller sees only headers of the allow-list ([`answer`]), and those that the configuration adds. The framing of the
//! answer is that of the parsed body. Deliberately not here: addresses in an answer ([`super::inner_address`]), its body, and the
//! headers that the gateway adds ([`super::answer_head`]).

use crate::interface::headers::{answer, content};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header, response::Parts};

/// The headers that are invalid once the body is changed.
const BODY_HEADERS: [&str; 6] = [
    "content-encoding",
    "transfer-encoding",
    "etag",
    "content-md5",
    "content-digest",
    "repr-digest",
];

/// RFC 9110, section 6.4.1.
pub(super) fn is_bodiless(head: &Parts, method: &Method) -> bool {
    *method == Method::HEAD || matches!(head.status.as_u16(), 204 | 304)
}

/// Removes the headers that must not reach the caller: all but those of the allow-list, and `also`.
pub(super) fn clean(headers: &mut HeaderMap, also: &[HeaderName]) {
    if headers.contains_key(header::CONNECTION) {
        remove_nominated(headers);
    }
    let ends_here = |name: &&HeaderName| !answer::passes(name.as_str()) && !also.contains(name);
    while let Some(name) = headers.keys().find(ends_here).cloned() {
        headers.remove(name);
    }
}

/// RFC 9110, section 7.6.1.
fn remove_nominated(headers: &mut HeaderMap) {
    let nominations = headers.get_all(header::CONNECTION).iter();
    let tokens = nominations.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let names = tokens.filter_map(|token| HeaderName::from_bytes(token.trim_ascii()).ok());
    for name in names.collect::<Vec<_>>() {
        headers.remove(name);
    }
}

/// Writes the framing of the body as it was parsed: Content-Length, or chunked. An HTTP/1.0 answer is sent as HTTP/1.1.
pub(super) fn frame(head: &mut Parts, bodiless: bool) {
    head.version = Version::HTTP_11;
    let headers = &mut head.headers;
    headers.remove(header::TRANSFER_ENCODING);
    if head.status == http::StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    }
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let (first, another) = (lengths.next(), lengths.next());
    let Some(length) = first else {
        if !bodiless {
            let chunked = HeaderValue::from_static("chunked");
            headers.insert(header::TRANSFER_ENCODING, chunked);
        }
        return;
    };
    // The same length may occur more than once (RFC 9110, section 8.6).
    if another.is_some() || length.as_bytes().contains(&b',') {
        let once = length.as_bytes().split(|byte| *byte == b',').next();
        if let Ok(once) = HeaderValue::from_bytes(once.unwrap_or_default().trim_ascii()) {
            headers.insert(header::CONTENT_LENGTH, once);
        }
    }
}

/// Frames an answer for HTTP/1.0, which has no chunks: without a length, the body ends with the connection. Returns whether it does.
pub(super) fn frame_for_1_0(headers: &mut HeaderMap) -> bool {
    headers.remove(header::TRANSFER_ENCODING).is_some()
}

/// Frames an answer whose body the gateway has changed to `length` bytes without a content coding. Headers that describe the core's own
/// bytes are removed.
pub(super) fn frame_changed_body(headers: &mut HeaderMap, length: usize) {
    for name in BODY_HEADERS {
        headers.remove(name);
    }
    headers.insert(header::CONTENT_LENGTH, length.into());
}

/// Whether an answer has exactly one content type and it is JSON (ERR-6): of two types, readers may choose either.
pub(super) fn is_json(head: &Parts) -> bool {
    let mut kinds = head.headers.get_all(header::CONTENT_TYPE).iter();
    let (first, another) = (kinds.next(), kinds.next());
    let kind = first.and_then(|kind| kind.to_str().ok());
    another.is_none()
        && kind.is_some_and(|kind| content::is_json(kind.split(';').next().unwrap_or_default()))
}

/// The length of the body, if the head contains one.
pub(super) fn content_length(head: &Parts) -> Option<usize> {
    let length = head.headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16, headers: &[(&'static str, &'static str)]) -> Parts {
        let (mut head, ()) = http::Response::new(()).into_parts();
        head.status = http::StatusCode::from_u16(status).unwrap();
        for (name, value) in headers {
            let name = HeaderName::from_static(name);
            head.headers.append(name, HeaderValue::from_static(value));
        }
        head
    }

    /// The remaining headers, in order.
    fn left(head: &Parts) -> Vec<(&str, &str)> {
        let pairs = head.headers.iter();
        let pairs = pairs.map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
        pairs.collect()
    }

    #[test]
    fn an_answer_is_framed_by_one_length_or_in_chunks() {
        const LENGTH: &str = "content-length";
        const CODING: &str = "transfer-encoding";
        let table: [(u16, &[_], &[_]); 6] = [
            (200, &[(LENGTH, "11")], &[(LENGTH, "11")]),
            (200, &[(LENGTH, "11, 11")], &[(LENGTH, "11")]),
            (200, &[(LENGTH, "11"), (LENGTH, "11")], &[(LENGTH, "11")]),
            (200, &[(CODING, "chunked")], &[(CODING, "chunked")]),
            (204, &[(LENGTH, "11"), (CODING, "chunked")], &[]),
            (304, &[(LENGTH, "11")], &[(LENGTH, "11")]),
        ];
        for (status, came, goes) in table {
            let mut head = head(status, came);
            let bodiless = is_bodiless(&head, &Method::GET);
            frame(&mut head, bodiless);
            assert_eq!(left(&head), goes, "{status} {came:?}");
        }
    }

    #[test]
    fn what_leads_a_caller_elsewhere_ends_here() {
        let mut head = head(
            200,
            &[
                ("refresh", "0;url=http://10.0.0.5/"),
                ("alt-svc", "h2=\"core.bank.internal:443\""),
                ("gateway_sca", "session"),
                ("gateway-sca", "session"),
                ("x-forwarded-for", "10.0.0.9"),
                ("x-backend-server", "core-7"),
                ("x-bank-notice", "1"),
                ("etag", "3"),
            ],
        );
        let also = [HeaderName::from_static("x-bank-notice")];
        clean(&mut head.headers, &also);
        let mut left = left(&head);
        left.sort_unstable();
        assert_eq!(left, [("etag", "3"), ("x-bank-notice", "1")]);
    }

    #[test]
    fn what_a_connection_header_nominates_ends_with_it() {
        let mut head = head(
            200,
            &[
                ("connection", "close, X-Inner"),
                ("connection", "etag,  ,x y"),
                ("x-inner", "1"),
                ("x-inner", "2"),
                ("etag", "3"),
                ("vary", "4"),
            ],
        );
        let also = [HeaderName::from_static("x-inner")];
        clean(&mut head.headers, &also);
        assert_eq!(left(&head), [("vary", "4")]);
    }
}
