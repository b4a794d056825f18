//! Reading the head of the next request, until the listener closes.

use super::{closing::Closing, door::Connection};
use http::Method;
use pingora::{ErrorType, Result, prelude::timeout, protocols::http::ServerSession as Session};
use std::{pin::pin, time::Duration};

/// How long a connection is listened to once more when the listener closes: what its caller sent until then counts.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// How long a head may take that has begun to arrive when the listener closes.
const LAST_HEAD: Duration = Duration::from_secs(3);

/// Reads the head of the next request. False where there is none, or where HTTP itself refuses it (HTTP-7).
pub(super) async fn read_head(session: &mut Session, closing: &Closing) -> bool {
    let Some(read) = pin!(read_while_open(session, closing)).await else {
        session.shutdown().await;
        return false;
    };
    let refused = match read {
        Ok(true) if session.req_header().method != Method::CONNECT => return true,
        Ok(true) => Some(405),
        Ok(false) => return false,
        Err(error) => matches!(error.etype(), ErrorType::InvalidHTTPHeader).then_some(400),
    };
    if let Some(status) = refused {
        // A caller that is gone needs no answer.
        let _ = session.respond_error(status).await;
    }
    session.shutdown().await;
    false
}

/// Reads a head. None where the listener is closed and no head is on its way: an idle connection ends with the listener. Over
/// HTTP/2 heads are whole when they come, and the connection itself says which is the last.
async fn read_while_open(session: &mut Session, closing: &Closing) -> Option<Result<bool>> {
    let digest = session
        .digest()
        .and_then(|digest| digest.ssl_digest.clone());
    let mut reading = pin!(session.read_request());
    tokio::select! {
        biased;
        read = &mut reading => return Some(read),
        () = closing.closed() => {}
    }
    if let Ok(read) = timeout(LAST_LOOK, &mut reading).await {
        return Some(read);
    }
    let connection: &Connection = digest.as_deref()?.extension.get()?;
    if !connection.is_arriving() {
        return None;
    }
    timeout(LAST_HEAD, reading).await.ok()
}
