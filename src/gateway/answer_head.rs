//! Headers that the gateway adds to an answer, its own or the core's: Cache-Control and X-Request-ID (ERR-5, ERR-7), those of a
//! deprecated operation (FWD-5), and what is left of the quota (QUO-11).
//!
//! Deliberately not here: Date, which pingora writes (DAT-2), and the signature ([`super::answer_signature`]).

use super::deprecation;
use crate::interface::{
    QuotaLeft,
    headers::RequestId,
    operations::{Catalogue, Operation},
};
use http::{HeaderMap, HeaderName, HeaderValue, header, response::Parts};
use pingora::{ErrorType, OrErr, Result};

/// X-Request-ID, which goes back as it came (ERR-5).
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The facts of a request that its answer is written from.
pub(super) struct AnswerContext<'a> {
    /// The operation, where the request named one.
    pub(super) operation: Option<&'a Operation>,
    /// The request's X-Request-ID.
    pub(super) request_id: Option<&'a RequestId>,
    /// Where the successor of a deprecated operation is found (FWD-5).
    pub(super) catalogue: &'a Catalogue,
}

/// Writes the headers that every answer carries, the core's too (ERR-5, ERR-7). pingora writes the gateway's own Date over that of
/// the core (DAT-2).
///
/// # Errors
/// A value that is no header value: a fault of the gateway.
pub(super) fn write_common_headers(head: &mut Parts, context: &AnswerContext<'_>) -> Result<()> {
    let headers = &mut head.headers;
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
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

/// QUO-11, as the IETF's draft of these fields has them: four calls in a window of 24 hours, and how many are left.
///
/// # Errors
/// A value that is no header value: a fault of the gateway.
pub(super) fn write_quota_headers(headers: &mut HeaderMap, left: QuotaLeft) -> Result<()> {
    let policy = HeaderValue::from_static("\"psu-absent\";q=4;w=86400");
    headers.insert(RATE_LIMIT_POLICY, policy);
    let left = format!("\"psu-absent\";r={};t={}", left.calls, left.seconds);
    let left = HeaderValue::try_from(left).or_err(ErrorType::InternalError, "a header value")?;
    headers.insert(RATE_LIMIT, left);
    Ok(())
}
