//! The public listener, up to HTTP: connections and their limits, TLS, and the bytes between TLS and the HTTP layer.
//!
//! pingora and the `h2` library leave some things to nobody. They are done here, in front of them, on the stream that both
//! read from: no dependency is changed. Deliberately not here: anything about a request as such.

// Connections are accepted, have a place, and shake hands.
mod accept;
mod limit;

// The stream that the HTTP layer reads and writes, and what is known of its connection.
mod client;
mod stream;

// HTTP/1.1: heads as they come in.
mod head;

// HTTP/2: the frames as they pass, and the header blocks in them.
mod frames;
mod header_block;

// What must happen in time; what may be said of it.
mod deadline;
mod notice;

pub(super) use accept::PublicListener;
pub(super) use client::{ClientConnection, HeadFault};
pub(super) use limit::TOLD;

use super::tls;
use crate::{config::Listener, in_use::Current, telemetry::Telemetry};
use pingora::apps::ServerApp;
use std::sync::{Arc, atomic::AtomicBool};
use stream::Shared;

/// The public listener of these settings, with `app` behind it.
///
/// # Errors
/// TLS cannot be set up so.
pub(super) fn public<A: ServerApp + Send + Sync + 'static>(
    app: A,
    settings: &Listener,
    current: Arc<Current>,
    telemetry: Arc<Telemetry>,
    accepting: Arc<AtomicBool>,
) -> Result<PublicListener<A>, rustls::Error> {
    let acceptor = tls::acceptor(Arc::clone(&current), settings.client_auth)?;
    let limits = settings.limits.clone();
    let shared = Shared { limits, telemetry };
    let address = settings.address;
    Ok(PublicListener::new(
        address, acceptor, app, shared, current, accepting,
    ))
}
