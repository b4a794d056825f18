//! Reads the head of a connection's next request, until the listener closes.

use super::{
    closing::Closing,
    listener::{ClientConnection, HeadFault},
    parse_fault,
};
use crate::interface::{
    Reason, Refusal,
    headers::{self, RequestId},
};
use http::Method;
use pingora::{ErrorType, Result, protocols::http::ServerSession as Session};
use std::{pin::pin, time::Duration};
// Not pingora's, whose timers may come before what has arrived (upstreams/connection.rs).
use tokio::time::timeout;

/// How long an idle HTTP/1.1 connection is still read when the listener closes. A request that is sent while the gateway closes its
/// connection is lost, and a client that calls often sends its next one earlier; the answer says that the connection ends.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// The time-out of a head that has begun to arrive when the listener closes.
const LAST_HEAD: Duration = Duration::from_secs(3);

/// The next request of a connection.
pub(super) enum NextHead {
    /// Its head was read.
    Read,
    /// The HTTP layer refuses it (HTTP-7, HTTP-9).
    Refused(Box<RefusedHead>),
    /// There is no further request.
    Absent,
}

/// A head that the HTTP layer refuses.
pub(super) struct RefusedHead {
    pub(super) refusal: Refusal,
    /// Its X-Request-ID, if it can be read without doubt (ERR-5).
    pub(super) request_id: Option<RequestId>,
}

/// Reads the head of the next request. If none is read, the caller must shut the connection down.
pub(super) async fn read_head(session: &mut Session, closing: &Closing) -> NextHead {
    let Some(read) = pin!(read_while_open(session, closing)).await else {
        return NextHead::Absent;
    };
    let fault = session.digest().and_then(ClientConnection::of);
    let fault = fault.and_then(ClientConnection::head_fault);
    match (read, fault) {
        // The target of CONNECT is not a path (RFC 9112, section 3.2.3).
        (Ok(true), _) if session.req_header().method == Method::CONNECT => {
            let id = session.get_header(&headers::X_REQUEST_ID.name);
            refused_as(parse_fault::connect(), id.and_then(RequestId::parse))
        }
        (Ok(true), _) => NextHead::Read,
        // For pingora, a fault in the first part of a head is the end of an idle connection.
        (_, Some(HeadFault::TooLarge)) => refused(Reason::HeadersTooLarge),
        (_, Some(HeadFault::TooSlow)) => refused(Reason::RequestTimeout),
        (Ok(false), None) => NextHead::Absent,
        (Err(error), None) => match error.etype() {
            ErrorType::InvalidHTTPHeader => {
                let id = parsed_id(session).or_else(|| parse_fault::request_id(&error));
                refused_as(parse_fault::refusal(&error), id)
            }
            // The caller has disconnected, so no answer is sent.
            _ => NextHead::Absent,
        },
    }
}

fn refused(reason: Reason) -> NextHead {
    refused_as(Refusal::new(reason), None)
}

fn refused_as(refusal: Refusal, request_id: Option<RequestId>) -> NextHead {
    NextHead::Refused(Box::new(RefusedHead {
        refusal,
        request_id,
    }))
}

/// The id of a head that was parsed before it was refused. `Session::get_header` panics where no head was parsed; that of HTTP/1.1 does not.
fn parsed_id(session: &Session) -> Option<RequestId> {
    let id = session.as_http1()?.get_header(&headers::X_REQUEST_ID.name);
    id.and_then(RequestId::parse)
}

/// Reads a head; `None` if the listener is closed and no head is arriving, because an idle connection ends with the listener.
/// Over HTTP/2, heads arrive complete, and GOAWAY names the last request.
async fn read_while_open(session: &mut Session, closing: &Closing) -> Option<Result<bool>> {
    let digest = session
        .digest()
        .and_then(|digest| digest.proxy_digest.clone());
    let mut reading = pin!(session.read_request());
    tokio::select! {
        biased;
        read = &mut reading => return Some(read),
        () = closing.closed() => {}
    }
    if let Ok(read) = timeout(LAST_LOOK, &mut reading).await {
        return Some(read);
    }
    let connection = ClientConnection::in_digest(digest.as_deref()?)?;
    if !connection.is_arriving() {
        return None;
    }
    timeout(LAST_HEAD, reading).await.ok()
}
