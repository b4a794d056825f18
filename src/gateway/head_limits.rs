//! Checks of a head that HTTP itself asks for, before any of the interface: its size and its expectation.

use crate::{
    config::ListenerLimits,
    interface::{Fault, Reason, Refusal, headers::TPP_SIGNATURE_CERTIFICATE},
    trust::MAX_PRESENTED,
};
use http::{HeaderMap, HeaderName, HeaderValue, Version, header, request::Parts};
use pingora::{http::RequestHeader, protocols::http::ServerSession as Session};

/// HTTP-9, for both protocols: HTTP/2 names and values are counted in their HTTP/1.1 form.
pub(super) fn judge_size(head: &Parts, limits: &ListenerLimits) -> Result<(), Refusal> {
    let fields = &head.headers;
    let is_small = fields.len() <= limits.head_fields && {
        // ": " and the line ending.
        let of = |(name, value): (&HeaderName, &HeaderValue)| {
            name.as_str()
                .len()
                .saturating_add(value.len())
                .saturating_add(4)
        };
        let size = fields.iter().map(of).sum::<usize>();
        size <= limits.head_size && (size <= MAX_PRESENTED || has_small_certificates(fields))
    };
    match is_small {
        true => Ok(()),
        false => Err(too_large(fields, limits)),
    }
}

/// The limit that a head exceeds (ERR-10); the reason says it of the head as a whole.
fn too_large(fields: &HeaderMap, limits: &ListenerLimits) -> Refusal {
    let reason = Reason::HeadersTooLarge;
    if fields.len() > limits.head_fields {
        let text = format!(
            "the head has more than {} header fields",
            limits.head_fields
        );
        Fault::request(reason, text).into()
    } else if has_small_certificates(fields) {
        Refusal::new(reason)
    } else {
        let header = TPP_SIGNATURE_CERTIFICATE.written;
        Fault::header(reason, header, "it is longer than 16 KiB").into()
    }
}

/// Whether no certificate in TPP-Signature-Certificate is too large. The check of the certificate comes after others (HTTP-9).
fn has_small_certificates(fields: &HeaderMap) -> bool {
    let mut certificates = fields.get_all(&TPP_SIGNATURE_CERTIFICATE.name).iter();
    certificates.all(|value| value.as_bytes().trim_ascii().len() <= MAX_PRESENTED)
}

/// RFC 9110, section 10.1.1: no other expectation can be met. HTTP/1.0 has none.
pub(super) fn judge_expectation(head: &Parts) -> Result<(), Refusal> {
    let mut values = head.headers.get_all(header::EXPECT).iter();
    let is_met = values.all(|value| {
        let mut members = value.as_bytes().split(|byte| *byte == b',');
        members.all(|member| member.trim_ascii().eq_ignore_ascii_case(b"100-continue"))
    });
    if is_met || head.version == Version::HTTP_10 {
        return Ok(());
    }
    let text = "the only expectation that is met is 100-continue";
    let fault = Fault::header(Reason::ExpectationFailed, "Expect", text);
    Err(Refusal::from(fault))
}

/// Frees the fields of a head that is too large: over HTTP/2, its answer may wait for the client for a while.
pub(super) fn forget_fields(session: &mut Session) {
    if session.as_http1().is_none()
        && let Ok(empty) = RequestHeader::build(session.req_header().method.clone(), b"/", None)
    {
        *session.req_header_mut() = empty;
    }
}
