//! The end of an answer: whether all of it was written, and who ended it if not (ERR-8).
//!
//! An answer is written when the kernel has all of it; nobody knows what the caller received. Over HTTP/1.1, the HTTP layer says so
//! itself. Deliberately not here: refusals, whose lines do not depend on that.

use super::{
    exchange::Exchange,
    listener::{ClientConnection, Delivery},
};
use crate::{
    telemetry::{CutCause, Telemetry},
    upstreams::Endpoint,
};
use pingora::{Error, ErrorSource, ErrorType, protocols::http::ServerSession as Session};
use std::{future::poll_fn, time::Duration};
use tokio::time::timeout;

/// Waits, over HTTP/2, until an answer is written to its end, and notes it if that does not come. `is_whole`: the HTTP layer has
/// taken all of it. The connection gives up a blocked write within `write_timeout`.
pub(super) async fn await_written(
    session: &mut Session,
    exchange: &mut Exchange<'_>,
    is_whole: bool,
    write_timeout: Duration,
    telemetry: &Telemetry,
) {
    let Session::H2(http2) = session else {
        return;
    };
    // A failure shows when the session ends, as it does over HTTP/1.1.
    let is_whole = is_whole && http2.finish().is_ok();
    let Some(writer) = http2.take_response_body_writer() else {
        return;
    };
    let stream = u32::from(writer.stream_id());
    let Some(connection) = http2.digest().and_then(ClientConnection::of) else {
        return;
    };
    if !is_whole {
        exchange.set_written(connection.written(stream));
        return;
    }
    if !exchange.is_answered() {
        return;
    }
    let written = poll_fn(|context| connection.poll_delivery(stream, context));
    match timeout(write_timeout.saturating_mul(2), written).await {
        Ok(Delivery::Written) => {}
        Ok(Delivery::Lost(bytes)) => {
            exchange.set_undelivered(connection.cut());
            exchange.set_written(Some(bytes));
        }
        Err(_) => {
            telemetry.cut(CutCause::BlockedWrite);
            exchange.set_undelivered(Some(CutCause::BlockedWrite));
            exchange.set_written(connection.written(stream));
        }
    }
}

/// The cause for which the gateway ended an answer whose sending failed; `None` if the caller left.
pub(super) fn cut_of(session: &Session, error: &Error) -> Option<CutCause> {
    if *error.etype() == ErrorType::WriteTimedout {
        return Some(CutCause::BlockedWrite);
    }
    let connection = session.digest().and_then(ClientConnection::of);
    connection.and_then(ClientConnection::cut)
}

/// Notes that the caller left while the core owed the answer, or a part of it, for this time, if this error is that. No endpoint is ejected for
/// it, because callers decide when they leave.
pub(super) fn note_left(
    session: &Session,
    exchange: &mut Exchange<'_>,
    error: &Error,
    owed: Duration,
    endpoint: &Endpoint,
) {
    let has_left = *error.esource() == ErrorSource::Downstream && cut_of(session, error).is_none();
    if has_left && exchange.set_left_at_core(owed) {
        endpoint.count_failure();
    }
}

/// Marks the answer as finished: the connection waits for its next request.
pub(super) fn end_request(session: &Session) {
    if let Some(connection) = session.digest().and_then(ClientConnection::of) {
        connection.end_request();
    }
}
