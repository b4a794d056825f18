//! Failures of forwarding, and the refusal that the caller gets for each (ERR-4).
//!
//! Invariant: a failure of the caller's own connection has no refusal, because no answer can reach the caller.

use crate::{
    interface::{Reason, Refusal},
    sca::SealFault,
    telemetry::Telemetry,
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

/// The error type if no SCA can be started.
const NO_LINK: &str = "no SCA can be started";

/// The error of a request that needs an SCA link which cannot be created.
pub(super) fn no_link(fault: SealFault) -> Box<Error> {
    Error::because(ErrorType::Custom(NO_LINK), "", fault)
}

/// The kind of an error answer that is not JSON (ERR-6), for the metric.
pub(super) const NOT_JSON: &str = "garbage";

/// The kind of a failure of the core, for the metric; `None` if the core did not fail. `has_begun`: a byte of an answer had arrived.
pub(super) fn kind(error: &Error, has_begun: bool) -> Option<&'static str> {
    if *error.esource() == Downstream {
        return None;
    }
    match error.etype() {
        ErrorType::ConnectRefused => Some("refused"),
        ErrorType::ConnectTimedout | ErrorType::ReadTimedout | ErrorType::WriteTimedout => {
            Some("timeout")
        }
        ErrorType::ConnectNoRoute | ErrorType::ConnectError => Some("unreachable"),
        ErrorType::InvalidHTTPHeader => Some("garbage"),
        kind if *kind == ANSWER_REFUSED => Some("garbage"),
        _ if *error.esource() != Upstream => None,
        _ if has_begun => Some("truncated"),
        _ => Some("reset"),
    }
}

/// Counts an answer over HTTP/2 whose window stayed closed (HTTP-9). Over HTTP/1.1, the connection's own write is blocked and counted.
pub(super) fn count_blocked(telemetry: &Telemetry, session: &Session, error: &Error) {
    if session.as_http1().is_none() && *error.etype() == ErrorType::WriteTimedout {
        telemetry.cut("blocked_write");
    }
}

/// ERR-4: the refusal for a failure of the gateway or the core; `None` if the caller has disconnected.
pub(super) fn refusal(error: &Error) -> Option<Refusal> {
    let reason = match (error.esource(), error.etype()) {
        (Downstream, _) => return None,
        (_, ErrorType::Custom(NO_LINK)) => Reason::StateUnavailable,
        (_, ErrorType::ReadTimedout | ErrorType::WriteTimedout) => Reason::UpstreamTimeout,
        (_, kind) if *kind == ANSWER_REFUSED => Reason::UpstreamError,
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
    Some(Refusal::new(reason).for_operator(error.etype().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_failures() {
        let of = |error: Box<Error>, has_begun| kind(&error.into_up(), has_begun);
        for (error, expected) in [
            (ErrorType::ConnectRefused, "refused"),
            (ErrorType::ConnectNoRoute, "unreachable"),
            (ErrorType::ConnectError, "unreachable"),
            (ErrorType::ConnectTimedout, "timeout"),
            (ErrorType::ReadTimedout, "timeout"),
            (ErrorType::InvalidHTTPHeader, "garbage"),
            (ANSWER_REFUSED, "garbage"),
            (ErrorType::ConnectionClosed, "reset"),
        ] {
            assert_eq!(of(Error::new(error), false), Some(expected));
        }
        assert_eq!(
            of(Error::new(ErrorType::ReadError), true),
            Some("truncated")
        );
        // The caller, and the gateway itself.
        assert_eq!(
            kind(&Error::new(ErrorType::ReadError).into_down(), true),
            None
        );
        assert_eq!(kind(&Error::new(ErrorType::InternalError), false), None);
    }
}
