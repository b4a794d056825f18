//! Failures of forwarding, and the refusal that the caller gets for each (ERR-4).
//!
//! Invariant: a failure of the caller's own connection has no refusal, because no answer can reach the caller.

use crate::{
    interface::{Reason, Refusal},
    sca::SealFault,
    telemetry::{CutCause, FailureKind, Telemetry},
    upstreams::Full,
};
use pingora::{
    Error,
    ErrorSource::{Downstream, Upstream},
    ErrorType,
    protocols::http::ServerSession as Session,
};

/// The core's answer exceeds a limit, or does not belong to the request. The caller gets 502 (FWD-7).
pub(super) const ANSWER_REFUSED: ErrorType = ErrorType::Custom("AnswerRefused");

/// The error if the body of the core's answer exceeds its limit (FWD-7). What the caller has received of it ends without its end.
pub(super) fn large_answer() -> Box<Error> {
    Error::explain(ANSWER_REFUSED, "its body is too large").into_up()
}

/// The operator's text about an answer that took too long.
pub(super) const SLOW_ANSWER: &str = "the whole answer took longer than listener.answer_timeout";

/// The error if the whole answer took too long (HTTP-9): the fault of the side that was waited for. The caller's copy ends there.
pub(super) fn slow_answer(awaits_core: bool) -> Box<Error> {
    match awaits_core {
        true => Error::explain(ErrorType::ReadTimedout, SLOW_ANSWER).into_up(),
        false => Error::explain(ErrorType::WriteTimedout, SLOW_ANSWER).into_down(),
    }
}

/// The error type if an answer cannot be signed (SIG-12).
const UNSIGNED: ErrorType = ErrorType::Custom("AnswerNotSigned");

/// The error of an answer that cannot be signed, before anything of it was written.
pub(super) fn unsigned() -> Box<Error> {
    Error::explain(UNSIGNED, "the answer cannot be signed")
}

/// Whether an answer could not be signed.
pub(super) fn is_unsigned(error: &Error) -> bool {
    *error.etype() == UNSIGNED
}

/// The refusal in place of an answer that cannot be signed: 503 is never signed (SIG-12).
pub(super) fn not_signed() -> Refusal {
    Refusal::new(Reason::StateUnavailable).for_operator("the answer cannot be signed")
}

/// The error type if no SCA can be started.
const NO_LINK: &str = "no SCA can be started";

/// The error of a request that needs an SCA link which cannot be created.
pub(super) fn no_link(fault: SealFault) -> Box<Error> {
    Error::because(ErrorType::Custom(NO_LINK), "", fault)
}

/// The type of pingora's error for a chunk that is not well-formed.
const INVALID_CHUNK: ErrorType = ErrorType::Custom("InvalidChunk");

/// The types of errors for a chunked body that is not well-formed.
const MALFORMED_BODY: [ErrorType; 2] = [INVALID_CHUNK, ErrorType::Custom("InvalidTrailerEnd")];

/// The error if the chunks of the core's answer are not exact (RFC 9112, section 7.1), where pingora takes them.
pub(super) fn malformed_body() -> Box<Error> {
    Error::new(INVALID_CHUNK).into_up()
}

/// A request that is not safe has no usable answer: the core may have executed the request (FWD-4).
const OUTCOME_UNKNOWN: ErrorType = ErrorType::Custom("OutcomeUnknown");

/// The error of a request whose group has no healthy endpoint.
pub(super) fn no_endpoint() -> Box<Error> {
    Error::explain(ErrorType::ConnectNoRoute, "no endpoint is healthy").into_up()
}

/// The error of a request after its last try. `connected`: the core may have the request. It may have executed it also where it sent an
/// answer that cannot be used.
pub(super) fn unanswered(error: Box<Error>, safe: bool, connected: bool) -> Box<Error> {
    if safe || !connected || *error.esource() != Upstream {
        return error;
    }
    let context = operator_text(&error);
    Error::because(OUTCOME_UNKNOWN, context, error).into_up()
}

/// The reason why a request gets no answer from the core.
pub(super) enum ForwardFailure {
    /// The core does not confirm the PSU that the gateway wants to learn: the gateway refuses the request (SCA-19).
    PsuUnknown(Box<Refusal>),
    /// What is known of the PSU no longer permits the request, or is not known any more (SCA-6, SCA-13).
    NoLongerPermitted(Box<Refusal>),
    /// The limit of pending requests at the core is reached, in total or for this TPP (ERR-4).
    TooManyInFlight(Full),
    /// The audit is required and cannot be written.
    NotAudited,
    /// The core's error is not JSON and is replaced; its status stays (ERR-6).
    ErrorReplaced(u16),
    /// The client, the core or the gateway failed.
    Error(Box<Error>),
}

impl ForwardFailure {
    /// The kind of the failure, if the core broke its answer off.
    pub(super) fn of_core(&self) -> Option<FailureKind> {
        match self {
            Self::Error(error) => kind(error, true),
            _ => None,
        }
    }
}

impl From<Box<Error>> for ForwardFailure {
    fn from(error: Box<Error>) -> Self {
        Self::Error(error)
    }
}

/// The refusal while the audit is required and cannot be written.
pub(super) fn not_audited() -> Refusal {
    Refusal::new(Reason::StateUnavailable).for_operator("the audit cannot be written")
}

/// The kind of an error answer that is not JSON (ERR-6), for the metric.
pub(super) const NOT_JSON: FailureKind = FailureKind::Garbage;

/// ERR-6: the refusal in place of an error answer that is not JSON, with its status.
pub(super) fn not_json(status: u16) -> Refusal {
    Refusal::new(Reason::UpstreamError)
        .with_status(status)
        .for_operator("NotJson: the body of the core's error")
}

/// The kind of a failure of the core, for the metric; `None` if the core did not fail. `has_begun`: a byte of an answer had arrived.
pub(super) fn kind(error: &Error, has_begun: bool) -> Option<FailureKind> {
    if *error.esource() == Downstream {
        return None;
    }
    match error.root_etype() {
        ErrorType::ConnectRefused => Some(FailureKind::Refused),
        ErrorType::ConnectTimedout | ErrorType::ReadTimedout | ErrorType::WriteTimedout => {
            Some(FailureKind::Timeout)
        }
        ErrorType::ConnectNoRoute | ErrorType::ConnectError => Some(FailureKind::Unreachable),
        ErrorType::TLSHandshakeFailure => Some(FailureKind::Tls),
        kind if *kind == ANSWER_REFUSED || is_malformed(kind) => Some(FailureKind::Garbage),
        _ if *error.esource() != Upstream => None,
        _ if has_begun => Some(FailureKind::Truncated),
        _ => Some(FailureKind::Reset),
    }
}

/// Whether an error of the core's connection means that the core answered, but not in HTTP.
fn is_malformed(kind: &ErrorType) -> bool {
    *kind == ErrorType::InvalidHTTPHeader || MALFORMED_BODY.contains(kind)
}

/// Counts an answer over HTTP/2 whose window stayed closed (HTTP-9). Over HTTP/1.1, the connection's own write is blocked and counted, and
/// no other has a time-out.
pub(super) fn count_blocked(telemetry: &Telemetry, session: &Session, error: &Error) {
    if session.as_http1().is_none() && *error.etype() == ErrorType::WriteTimedout {
        telemetry.cut(CutCause::BlockedWrite);
    }
}

/// ERR-4: the refusal for a failure of the gateway or the core; `None` if the caller has disconnected.
pub(super) fn refusal(error: &Error) -> Option<Refusal> {
    let reason = match (error.esource(), error.etype()) {
        (Downstream, _) => return None,
        (_, kind) if *kind == OUTCOME_UNKNOWN => Reason::OutcomeUnknown,
        (_, ErrorType::Custom(NO_LINK)) => Reason::StateUnavailable,
        (_, ErrorType::ReadTimedout | ErrorType::WriteTimedout) => Reason::UpstreamTimeout,
        (_, kind) if *kind == ANSWER_REFUSED => Reason::UpstreamError,
        (Upstream, kind) if is_malformed(kind) => Reason::UpstreamError,
        (Upstream, _) => Reason::UpstreamUnreachable,
        (
            _,
            ErrorType::ConnectTimedout
            | ErrorType::ConnectRefused
            | ErrorType::ConnectNoRoute
            | ErrorType::ConnectError,
        ) => Reason::UpstreamUnreachable,
        _ => Reason::Internal,
    };
    Some(Refusal::new(reason).for_operator(operator_text(error)))
}

fn operator_text(error: &Error) -> String {
    let kind = error.etype().as_str();
    match &error.context {
        // The context of a malformed answer is the core's bytes, which can hold personal data.
        Some(context) if !is_malformed(error.etype()) => format!("{kind}: {}", context.as_str()),
        _ => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ERR-4, FWD-7: a core that answers, but not in HTTP, was reached.
    #[test]
    fn an_answer_that_is_not_http() {
        let reason = |kind: ErrorType| {
            let refusal = refusal(&Error::new(kind).into_up());
            refusal.map(|refusal| refusal.reason())
        };
        for kind in [
            ErrorType::InvalidHTTPHeader,
            ErrorType::Custom("InvalidChunk"),
        ] {
            assert_eq!(reason(kind), Some(Reason::UpstreamError));
        }
        for kind in [ErrorType::ConnectionClosed, ErrorType::ReadError] {
            assert_eq!(reason(kind), Some(Reason::UpstreamUnreachable));
        }
        // A head that the gateway itself could not write.
        let own = refusal(&Error::new(ErrorType::InvalidHTTPHeader));
        assert_eq!(own.map(|own| own.reason()), Some(Reason::Internal));
    }

    #[test]
    fn kinds_of_failures() {
        let of = |error: Box<Error>, has_begun| kind(&error.into_up(), has_begun);
        for (error, expected) in [
            (ErrorType::ConnectRefused, FailureKind::Refused),
            (ErrorType::ConnectNoRoute, FailureKind::Unreachable),
            (ErrorType::ConnectError, FailureKind::Unreachable),
            (ErrorType::ConnectTimedout, FailureKind::Timeout),
            (ErrorType::ReadTimedout, FailureKind::Timeout),
            (ErrorType::TLSHandshakeFailure, FailureKind::Tls),
            (ErrorType::InvalidHTTPHeader, FailureKind::Garbage),
            (ANSWER_REFUSED, FailureKind::Garbage),
            (ErrorType::ConnectionClosed, FailureKind::Reset),
        ] {
            assert_eq!(of(Error::new(error), false), Some(expected));
        }
        assert_eq!(
            of(Error::new(ErrorType::ReadError), true),
            Some(FailureKind::Truncated)
        );
        // The caller, and the gateway itself.
        assert_eq!(
            kind(&Error::new(ErrorType::ReadError).into_down(), true),
            None
        );
        assert_eq!(kind(&Error::new(ErrorType::InternalError), false), None);
    }
}
