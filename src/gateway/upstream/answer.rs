//! Reads the head of the core's answer: its limits, and the answers that are accepted (FWD-3, FWD-7).

use crate::{
    clock::Stopwatch,
    gateway::failure::{self, ANSWER_REFUSED},
    upstreams::{CoreConnection, Endpoint, MAX_HEAD},
};
use bytes::Bytes;
use http::{HeaderValue, Version, header, response::Parts};
use pingora::{
    Error, ErrorType, Result,
    http::ResponseHeader,
    protocols::{IO, http::v1::client::HttpSession},
};
use std::{sync::Arc, time::Duration};

/// FWD-7: the most fields of an answer's head.
const MAX_FIELDS: usize = 100;

/// The most informational answers before the final one. HTTP has two that a core may send unrequested: 102 and 103.
const MAX_INTERIM: usize = 8;

/// httparse's error text for too many fields.
const TOO_MANY_FIELDS: &str = "too many headers";

/// Reads the head of the final answer to a request.
///
/// # Errors
/// The core sends no answer, or one that is rejected: [`ANSWER_REFUSED`].
pub(super) async fn read_head(core: &mut HttpSession) -> Result<ResponseHeader> {
    let mut length: usize = 0;
    for _ in 0..=MAX_INTERIM {
        let head = match core.read_resp_header_parts().await {
            Ok(head) => head,
            Err(error) => return Err(explained(core, error)),
        };
        let own = core.get_headers_raw_bytes().len();
        length = length.saturating_add(own);
        // No request asks for an upgrade, and the bytes after this head would not be HTTP.
        if head.status == http::StatusCode::SWITCHING_PROTOCOLS {
            return Error::e_explain(ANSWER_REFUSED, "it switches protocols");
        }
        if head.status.is_informational() {
            continue;
        }
        // RFC 9110, section 15: there is no other class.
        if head.status.as_u16() >= 600 {
            return Error::e_explain(
                ErrorType::InvalidHTTPHeader,
                "its status is not one of HTTP",
            );
        }
        if head.headers.len() > MAX_FIELDS || own > MAX_HEAD {
            return Error::e_explain(ANSWER_REFUSED, "its head is too large");
        }
        if !is_coding_understood(&head) {
            return Error::e_explain(ANSWER_REFUSED, "its body has a transfer coding");
        }
        if let Some(connection) = connection(core) {
            let is_chunked = head.headers.contains_key(header::TRANSFER_ENCODING);
            connection.end_heads(length, is_chunked);
        }
        return Ok(*head);
    }
    Error::e_explain(ANSWER_REFUSED, "informational answers without end")
}

/// Turns a read error that a limit caused into a rejected answer.
fn explained(core: &HttpSession, error: Box<Error>) -> Box<Error> {
    let too_long = connection(core).is_some_and(CoreConnection::is_head_too_long);
    let cause = error.cause.as_ref().map(ToString::to_string);
    if too_long || cause.as_deref() == Some(TOO_MANY_FIELDS) {
        return Error::explain(ANSWER_REFUSED, "its head is too large");
    }
    error
}

/// Whether the transfer coding is absent or chunked; no other coding is decoded here. With `identity`, the HTTP library would ignore
/// Content-Length, and a body that was cut would look complete (RFC 9112, section 7, no longer has that coding). HTTP/1.0 has no coding
/// (RFC 9112, section 6.1).
fn is_coding_understood(head: &ResponseHeader) -> bool {
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    let Some(first) = codings.next().map(HeaderValue::as_bytes) else {
        return true;
    };
    let is_known = first.eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
    is_known && head.version == Version::HTTP_11
}

/// Whether a byte of an answer has arrived: then the core has the request, and it is not sent again (FWD-3).
pub(super) fn has_begun(core: &HttpSession) -> bool {
    connection(core).is_none_or(CoreConnection::has_read)
}

/// The connection to the core.
pub(super) fn connection(core: &HttpSession) -> Option<&CoreConnection> {
    let stream: &dyn IO = &**core.stream();
    stream.as_any().downcast_ref()
}

/// The core's answer with its head; its body is still to be read.
pub(in crate::gateway) struct CoreAnswer {
    /// The final head, as the core sent it.
    pub(in crate::gateway) head: Parts,
    /// The body, with its connection.
    pub(in crate::gateway) body: CoreBody,
    /// The time from the search for a connection to the end of the head.
    pub(in crate::gateway) took: Duration,
    /// Whether an endpoint before this one did not answer in time.
    pub(in crate::gateway) timed_out: bool,
    /// The end of the head.
    pub(in crate::gateway) since: Stopwatch,
}

impl CoreAnswer {
    /// An answer whose head ended at this time; the tries before it are not known yet.
    pub(super) fn new(head: ResponseHeader, body: CoreBody, since: Stopwatch) -> Self {
        Self {
            head: Parts::from(head),
            body,
            took: Duration::ZERO,
            timed_out: false,
            since,
        }
    }
}

/// The body of an answer, with its connection.
pub(in crate::gateway) struct CoreBody {
    pub(super) core: HttpSession,
    /// The endpoint of the connection.
    pub(super) endpoint: Arc<Endpoint>,
    /// The whole body, if it was read before it is relayed.
    pub(super) held: Option<Bytes>,
}

/// A part of the body.
pub(in crate::gateway) struct BodyPart {
    /// The bytes; `None` at the end, or without a body.
    pub(in crate::gateway) bytes: Option<Bytes>,
    /// Whether it is the first part.
    pub(in crate::gateway) is_first: bool,
    /// Whether it is the last part.
    pub(in crate::gateway) is_last: bool,
}

impl CoreBody {
    /// The body that is still to be read.
    pub(super) const fn new(core: HttpSession, endpoint: Arc<Endpoint>) -> Self {
        Self {
            core,
            endpoint,
            held: None,
        }
    }

    /// Gives back a body that was read to its end: the next part is all of it.
    pub(in crate::gateway) fn hold(&mut self, whole: Bytes) {
        self.held = Some(whole);
    }

    /// The endpoint that answers.
    pub(in crate::gateway) fn endpoint(&self) -> Arc<Endpoint> {
        Arc::clone(&self.endpoint)
    }

    /// Reads the next part.
    ///
    /// # Errors
    /// The core breaks off, times out, or sends chunks that are not exact.
    pub(in crate::gateway) async fn next(&mut self) -> Result<BodyPart> {
        if let Some(whole) = self.held.take() {
            return Ok(BodyPart {
                bytes: Some(whole),
                is_first: true,
                is_last: true,
            });
        }
        let core = &mut self.core;
        if core.is_body_done() {
            return Ok(BodyPart {
                bytes: None,
                is_first: false,
                is_last: true,
            });
        }
        let bytes = core.read_body_bytes().await.map_err(Error::into_up)?;
        let is_last = bytes.is_none() || core.is_body_done();
        if !connection(core).is_some_and(|connection| connection.is_body_exact(is_last)) {
            return Err(failure::malformed_body());
        }
        let length = bytes.as_ref().map(Bytes::len);
        Ok(BodyPart {
            is_first: length == Some(core.body_bytes_received()),
            is_last,
            bytes,
        })
    }
}
