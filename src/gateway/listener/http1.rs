//! Serves an HTTP/1.1 connection, one request after the other.
//!
//! pingora's loop creates the session of a request before anything of it has arrived, with its buffer and with all that answering it takes.
//! Most connections wait for a request. Invariant: a connection that waits has only its stream, and the stream has no buffer. Deliberately
//! not here: the requests.

use super::stream::ClientStream;
use pingora::{apps::HttpServerApp, protocols::http::ServerSession, server::ShutdownWatch};
use std::{future::poll_fn, sync::Arc};
use tokio::io::AsyncWriteExt;

/// Serves a connection until it ends.
pub(super) async fn serve<A: HttpServerApp>(
    app: &Arc<A>,
    mut stream: Box<ClientStream>,
    shutdown: &mut ShutdownWatch,
) {
    while has_request(&mut stream, shutdown).await {
        let reused = app.process_new_http(session_on(stream), shutdown).await;
        let reused = reused.map(|reused| reused.consume().0.into_any().downcast());
        let Some(Ok(reused)) = reused else {
            return;
        };
        stream = reused;
    }
    let _ = stream.shutdown().await;
}

/// A session without a time-out until its head is read: the stream has those of a head.
fn session_on(stream: Box<ClientStream>) -> ServerSession {
    let mut session = ServerSession::new_http1(stream);
    session.set_keepalive(Some(0));
    session
}

/// Waits for the next request. Where the gateway stops, the connection is left to the application: it is read for a moment more.
async fn has_request(stream: &mut ClientStream, shutdown: &mut ShutdownWatch) -> bool {
    tokio::select! {
        biased;
        has_begun = poll_fn(|context| stream.poll_request(context)) => has_begun,
        _ = shutdown.wait_for(|is_stopping| *is_stopping) => true,
    }
}
