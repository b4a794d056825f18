//! The head of the core's answer: how much of it is read, and what of it goes on to the caller (FWD-7).
//!
//! Invariant: a caller sees no header that is about the connection to the core, about the core's software, or that only the
//! gateway says; and the answer is framed anew, by what was understood of it. Deliberately not here: addresses in an answer
//! ([`super::inner_address`]) and its body.

use super::connection::{CoreConnection, MAX_HEAD};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header, response::Parts};
use pingora::{
    Error, ErrorType, Result,
    http::ResponseHeader,
    protocols::{IO, http::v1::client::HttpSession},
};

/// FWD-7: the fields of an answer's head.
const MAX_FIELDS: usize = 100;

/// Informational answers before the final one. HTTP knows two that a core may send without being asked: 102 and 103.
const MAX_INTERIM: usize = 8;

/// An answer that breaks a limit, or answers another question. To the caller it is 502 (FWD-7).
pub(super) const REFUSED: ErrorType = ErrorType::Custom("AnswerRefused");

/// What httparse says of more fields than it has room for.
const TOO_MANY_FIELDS: &str = "too many headers";

/// Reads the head of the final answer.
///
/// # Errors
/// The core sends none, or one that is not taken: [`REFUSED`].
pub(super) async fn read_head(core: &mut HttpSession) -> Result<ResponseHeader> {
    for _ in 0..=MAX_INTERIM {
        let head = match core.read_resp_header_parts().await {
            Ok(head) => head,
            Err(error) => return Err(judged(core, error)),
        };
        // No request asks for an upgrade: behind this head there is no HTTP.
        if head.status == http::StatusCode::SWITCHING_PROTOCOLS {
            return Error::e_explain(REFUSED, "it switches protocols");
        }
        if head.status.is_informational() {
            continue;
        }
        if head.headers.len() > MAX_FIELDS || core.get_headers_raw_bytes().len() > MAX_HEAD {
            return Error::e_explain(REFUSED, "its head is too large");
        }
        if !is_coding_understood(&head.headers) {
            return Error::e_explain(REFUSED, "its body has a transfer coding");
        }
        if let Some(connection) = connection(core) {
            connection.end_head();
        }
        return Ok(*head);
    }
    Error::e_explain(REFUSED, "informational answers without end")
}

/// A head that cannot be read because of a limit is one that breaks it.
fn judged(core: &HttpSession, error: Box<Error>) -> Box<Error> {
    let too_long = connection(core).is_some_and(CoreConnection::is_head_too_long);
    let cause = error.cause.as_ref().map(ToString::to_string);
    if too_long || cause.as_deref() == Some(TOO_MANY_FIELDS) {
        return Error::explain(REFUSED, "its head is too large");
    }
    error
}

/// A body is read as it comes or in chunks: what else was done to it, nobody here undoes.
fn is_coding_understood(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let first = codings.next().map(HeaderValue::as_bytes);
    let is_known = first.is_none_or(|coding| {
        coding.eq_ignore_ascii_case(b"chunked") || coding.eq_ignore_ascii_case(b"identity")
    });
    is_known && codings.next().is_none()
}

/// Whether a byte of an answer has come: then the core has the request, and it is not sent again (FWD-3).
pub(super) fn has_begun(core: &HttpSession) -> bool {
    connection(core).is_none_or(CoreConnection::has_read)
}

fn connection(core: &HttpSession) -> Option<&CoreConnection> {
    let stream: &dyn IO = &**core.stream();
    stream.as_any().downcast_ref()
}

/// RFC 9110, section 6.4.1.
pub(super) fn is_bodiless(head: &Parts, method: &Method) -> bool {
    *method == Method::HEAD || matches!(head.status.as_u16(), 204 | 304)
}

/// Takes away what ends at the gateway.
pub(super) fn clean(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        remove_nominated(headers);
    }
    while let Some(name) = headers.keys().find(|name| ends_here(name)).cloned() {
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

/// What is about the connection to the core, what tells what runs there, and what only the gateway says: a TPP would take the
/// core's Signature for that of the bank's gateway.
fn ends_here(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authentication-info"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "set-cookie"
            | "set-cookie2"
            | "server"
            | "alt-svc"
            | "refresh"
            | "via"
            | "x-powered-by"
            | "digest"
            | "signature"
            | "tpp-signature-certificate"
    ) || name.as_str().starts_with("gateway-")
        || name.as_str().starts_with("gateway_")
}

/// Says to the caller where the body ends, by what was understood of it: its length, or in chunks. An answer of HTTP/1.0 goes on as
/// one of HTTP/1.1.
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
    // The same length may stand there more than once (RFC 9110, section 8.6).
    if another.is_some() || length.as_bytes().contains(&b',') {
        let once = length.as_bytes().split(|byte| *byte == b',').next();
        if let Ok(once) = HeaderValue::from_bytes(once.unwrap_or_default().trim_ascii()) {
            headers.insert(header::CONTENT_LENGTH, once);
        }
    }
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

    /// What is left, in order.
    fn left(head: &Parts) -> Vec<(&str, &str)> {
        let pairs = head.headers.iter();
        let pairs = pairs.map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
        pairs.collect()
    }

    #[test]
    fn an_answer_is_framed_by_one_length_or_in_chunks() {
        const LENGTH: &str = "content-length";
        const CODING: &str = "transfer-encoding";
        let table: [(u16, &[_], &[_]); 7] = [
            (200, &[(LENGTH, "11")], &[(LENGTH, "11")]),
            (200, &[(LENGTH, "11, 11")], &[(LENGTH, "11")]),
            (200, &[(LENGTH, "11"), (LENGTH, "11")], &[(LENGTH, "11")]),
            (200, &[(CODING, "chunked")], &[(CODING, "chunked")]),
            (200, &[(CODING, "identity")], &[(CODING, "chunked")]),
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
                ("etag", "3"),
            ],
        );
        clean(&mut head.headers);
        assert_eq!(left(&head), [("etag", "3")]);
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
                ("x-other", "4"),
            ],
        );
        clean(&mut head.headers);
        assert_eq!(left(&head), [("x-other", "4")]);
    }
}
