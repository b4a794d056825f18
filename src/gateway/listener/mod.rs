//! The public listener, below HTTP: connections and their limits, TLS, and the bytes between TLS and the HTTP layer.
//!
//! pingora and the `h2` library leave some checks out. They are done here, on the stream that both read from, without changing a
//! dependency. Deliberately not here: requests as such.

// Accepting connections: places and handshakes.
mod accept;
mod limit;

// The client's address, also behind a proxy.
mod origin;
mod proxy_header;

// The TCP connection, the stream that the HTTP layer reads and writes, and the facts of its connection.
mod client;
mod socket;
mod stream;

// HTTP/1.1: one request after the other, incoming heads, and the bytes after them.
mod head;
mod http1;
// HTTP/1.1: saved bytes in place of a connection.
mod saved;

// HTTP/2: frames, the header blocks in them, answers that are not written yet, and the library's limits.
mod frames;
mod header_block;
mod http2;
mod unsent;

// Deadlines, and reports of refusals.
mod deadline;
mod report;

pub(super) use accept::{PublicListener, PublicSocket};
pub(super) use client::{ClientConnection, HeadFault};
pub(super) use http2::http2_options;
pub(super) use limit::MAX_EXCESS;
pub(super) use saved::saved_session;
pub(super) use unsent::Delivery;

use super::{overload::Overload, tls};
use crate::{clock::Clock, config::Listener, in_use::Current, telemetry::Telemetry};
use pingora::apps::HttpServerApp;
use report::Reports;
use std::sync::Arc;
use stream::Shared;

/// Creates the public listener of these settings on `socket`, with `app` behind it.
///
/// # Errors
/// The TLS configuration is unusable.
pub(super) fn public<A: HttpServerApp + Send + Sync + 'static>(
    socket: PublicSocket,
    app: A,
    settings: &Listener,
    current: Arc<Current>,
    clock: Clock,
    overload: Arc<Overload>,
    telemetry: Arc<Telemetry>,
) -> Result<PublicListener<A>, rustls::Error> {
    let acceptor = tls::acceptor(Arc::clone(&current), settings.client_auth, clock.clone())?;
    let limits = settings.limits.clone();
    let reports = Reports::new(Arc::clone(&telemetry), Arc::clone(&current), clock);
    let shared = Shared {
        limits,
        keepalive: settings.keepalive,
        overload,
        telemetry,
        reports,
    };
    let proxies = Arc::new(settings.proxies.clone());
    Ok(PublicListener::new(
        socket, acceptor, app, shared, proxies, current,
    ))
}
