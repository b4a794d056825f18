//! Headers that the gateway adds to every answer, its own or the core's: Cache-Control and X-Request-ID (ERR-5, ERR-7),
//! Strict-Transport-Security, those of a deprecated operation (FWD-5), and the remaining quota (QUO-11).
//!
//! Deliberately not here: Date, which pingora writes (DAT-2), and the signature ([`super::answer_signature`]).

use super::{
    answer_signature::{AnswerSignatures, SignedAnswer},
    deprecation,
};
use crate::{
    admission::Record,
    interface::{
        QuotaLeft,
        headers::RequestId,
        operations::{Catalogue, Operation},
    },
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, response::Parts};
use pingora::{ErrorType, OrErr, Result};

/// The request's X-Request-ID, returned unchanged (ERR-5).
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The facts of a request that its answer needs.
pub(super) struct AnswerContext<'a> {
    /// The operation, if the request names one.
    pub(super) operation: Option<&'a Operation>,
    /// The request's X-Request-ID.
    pub(super) request_id: Option<&'a RequestId>,
    /// The value of Strict-Transport-Security (RFC 6797); `None` if it is off.
    pub(super) hsts: Option<&'a HeaderValue>,
    /// The catalogue, which contains the successor of a deprecated operation (FWD-5).
    pub(super) catalogue: &'a Catalogue,
    /// What is recorded of the request.
    pub(super) record: &'a Record,
    /// Signs answers; `None` if that is off.
    pub(super) signatures: Option<AnswerSignatures<'a>>,
}

impl<'a> AnswerContext<'a> {
    /// The answer with this status, if it is signed (SIG-12).
    pub(super) fn signed(&self, status: StatusCode) -> Option<SignedAnswer<'a>> {
        self.signatures?.of(self.record, status)
    }
}

/// Writes the headers of every answer, including the core's (ERR-5, ERR-7). pingora replaces the core's Date with the gateway's
/// own (DAT-2).
///
/// # Errors
/// A value is not a valid header value: a fault of the gateway.
pub(super) fn write_common_headers(head: &mut Parts, context: &AnswerContext<'_>) -> Result<()> {
    let headers = &mut head.headers;
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(hsts) = context.hsts {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, hsts.clone());
    }
    if let Some(id) = context.request_id {
        headers.insert(X_REQUEST_ID, id.value().clone());
    }
    let operation = context.operation;
    match operation.and_then(|operation| operation.deprecated.as_ref()) {
        Some(deprecated) => deprecation::write_headers(headers, deprecated, context.catalogue)
            .or_err(ErrorType::InternalError, "a header value"),
        None => Ok(()),
    }
}

/// QUO-11, with the fields of the IETF draft: four calls in a window of 24 hours, and the number of remaining calls.
///
/// # Errors
/// A value is not a valid header value: a fault of the gateway.
pub(super) fn write_quota_headers(headers: &mut HeaderMap, left: QuotaLeft) -> Result<()> {
    let policy = HeaderValue::from_static("\"psu-absent\";q=4;w=86400");
    headers.insert(RATE_LIMIT_POLICY, policy);
    let left = format!("\"psu-absent\";r={};t={}", left.calls, left.seconds);
    let left = HeaderValue::try_from(left).or_err(ErrorType::InternalError, "a header value")?;
    headers.insert(RATE_LIMIT, left);
    Ok(())
}
