//! A request's head, borrowed from its source.

// The fault of a head whose lines are refused (ERR-10).
mod lines;

use crate::{
    interface::{
        Fault, Reason,
        headers::{self, Fields, trace::TraceContext},
    },
    trust::{CertificateSlot, ClientChain},
};
use http::{HeaderMap, HeaderValue, Method, header};
use std::net::SocketAddr;

/// The parts of a request before its body.
#[derive(Clone, Debug)]
pub struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// Path and query exactly as received.
    pub target: &'a [u8],
    /// The headers.
    pub fields: Fields<'a>,
    /// `:authority`, over HTTP/2.
    pub authority: Option<&'a str>,
    /// The framing of the request.
    pub framing: Framing<'a>,
    /// The address of the client.
    pub peer: Option<SocketAddr>,
    /// The slot for the certificate of the last verified request on the same connection.
    pub slot: Option<&'a CertificateSlot>,
    /// The client certificate of the TLS connection (TLS-3).
    pub client: Option<&'a ClientChain>,
    /// The place in a trace.
    pub trace: Option<TraceContext>,
}

/// The framing of a request.
#[derive(Clone, Copy, Debug)]
pub enum Framing<'a> {
    /// Text lines (HTTP/1.1).
    Lines {
        /// The head as it was received, from the request line to the empty line.
        raw: &'a [u8],
        /// The HTTP layer percent-encoded bytes of the target, so that the target differs from the received bytes (HTTP-10).
        target_rewritten: bool,
    },
    /// Frames (HTTP/2), which exclude most cases of HTTP-7.
    Frames {
        /// `:scheme` is not https, the scheme of the connection.
        other_scheme: bool,
    },
}

impl<'a> Head<'a> {
    /// A head without a connection, such as the head of a saved request: only its bytes are known.
    pub fn unconnected(
        method: &'a Method,
        target: &'a [u8],
        headers: &'a HeaderMap,
        framing: Framing<'a>,
    ) -> Self {
        Self {
            method,
            target,
            fields: Fields::of(headers),
            authority: None,
            framing,
            peer: None,
            slot: None,
            client: None,
            trace: None,
        }
    }
}

impl Head<'_> {
    /// Whether the request names its host, as a header or as `:authority`.
    pub fn host(&self) -> Option<&[u8]> {
        let header = || {
            headers::HOST
                .get(&self.fields)
                .map(|value| headers::trim(value.as_bytes()))
        };
        self.authority
            .map(str::as_bytes)
            .or_else(header)
            .filter(|host| !host.is_empty())
    }

    /// The first part that two servers could interpret differently (HTTP-7).
    pub(super) fn ambiguity(&self) -> Option<Fault> {
        let ambiguous = |text: &str| Some(Fault::request(Reason::MalformedRequest, text));
        if self.host().is_none() || headers::HOST.count(&self.fields) > 1 {
            return ambiguous(match headers::HOST.count(&self.fields) {
                0 => "the header Host is missing",
                1 => "the header Host is empty",
                _ => "the header Host stands more than once",
            });
        }
        let mut lengths = self.fields.map().get_all(header::CONTENT_LENGTH).iter();
        let is_number = |length: &HeaderValue| {
            let digits = headers::trim(length.as_bytes());
            !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
        };
        if lengths.next().is_some_and(|length| !is_number(length)) {
            return ambiguous("the value of Content-Length is no number");
        }
        if lengths.next().is_some() {
            return ambiguous("the header Content-Length stands more than once");
        }
        let mut codings = self.fields.map().get_all(header::TRANSFER_ENCODING).iter();
        let coding = codings.next();
        if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
            return ambiguous("the value of Transfer-Encoding is not chunked alone");
        }
        if codings.next().is_some() {
            return ambiguous("the header Transfer-Encoding stands more than once");
        }
        match self.framing {
            Framing::Lines {
                target_rewritten: true,
                raw,
            } => ambiguous(&lines::request_line_fault(raw)),
            Framing::Lines { raw, .. } if !starts_with_target(raw, self.target) => {
                ambiguous(&lines::request_line_fault(raw))
            }
            Framing::Lines { raw, .. } if !ends_lines_properly(raw) => {
                ambiguous(&lines::line_fault(raw))
            }
            Framing::Lines { raw, .. } if coding.is_some() && names_content_length(raw) => {
                ambiguous("Content-Length and Transfer-Encoding exclude each other")
            }
            Framing::Frames { other_scheme: true } => ambiguous(":scheme must be https"),
            Framing::Lines { .. } | Framing::Frames { .. } => None,
        }
    }
}

/// Whether the request line holds this target: the HTTP layer drops a fragment, and may change other parts.
fn starts_with_target(raw: &[u8], target: &[u8]) -> bool {
    let after_method = memchr::memchr(b' ', raw).and_then(|at| raw.get(at.checked_add(1)?..));
    let after_target = after_method.and_then(|rest| rest.strip_prefix(target));
    after_target.is_some_and(|rest| rest.starts_with(b" "))
}

/// Whether every LF follows a CR, every CR precedes an LF, and no line starts with white space.
fn ends_lines_properly(raw: &[u8]) -> bool {
    let mut rest = raw;
    while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
        let end = rest.get(at..).and_then(|end| end.strip_prefix(b"\r\n"));
        let Some(next) = end.filter(|next| !matches!(next.first(), Some(b' ' | b'\t'))) else {
            return false;
        };
        rest = next;
    }
    true
}

/// Whether the received head has Content-Length. The HTTP layer removes Content-Length beside Transfer-Encoding.
fn names_content_length(raw: &[u8]) -> bool {
    raw.split(|byte| *byte == b'\n').any(|line| {
        line.get(..14)
            .is_some_and(|name| name.eq_ignore_ascii_case(b"content-length"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_lines() {
        assert!(starts_with_target(b"GET /v1/a?b HTTP/1.1\r\n", b"/v1/a?b"));
        for bad in [
            &b"GET /v1/a?b#c HTTP/1.1\r\n"[..],
            b"GET  /v1/a?b HTTP/1.1\r\n",
            b"",
            b"GET /v1/a?b",
        ] {
            assert!(!starts_with_target(bad, b"/v1/a?b"));
        }
    }

    #[test]
    fn lines() {
        assert!(ends_lines_properly(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        for bad in [
            &b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r",
            b"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n",
        ] {
            assert!(!ends_lines_properly(bad));
        }
        assert!(names_content_length(
            b"POST / HTTP/1.1\r\ncontent-Length: 5\r\n\r\n"
        ));
        assert!(!names_content_length(
            b"POST / HTTP/1.1\r\nX-Content-Length: 5\r\n\r\n"
        ));
    }
}
