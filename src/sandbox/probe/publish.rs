//! Public keys on a listener of the probe, as the control listener of a gateway publishes them.

use axum::Router;
use axum::http::header;
use axum::routing::get;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Where the control listener publishes keys.
pub(super) const PATH: &str = "/.well-known/jwks.json";

/// Keys that are published until this value is dropped.
#[derive(Debug)]
pub(super) struct Published {
    /// The address of the listener.
    pub(super) address: SocketAddr,
    _runtime: Runtime,
}

/// Publishes a JWK set.
pub(super) fn publish(address: SocketAddr, keys: String) -> io::Result<Published> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let listener = runtime.block_on(TcpListener::bind(address))?;
    let address = listener.local_addr()?;
    let kind = [(header::CONTENT_TYPE, "application/jwk-set+json")];
    let router = Router::new().route(PATH, get(move || async move { (kind, keys) }));
    runtime.spawn(async move { axum::serve(listener, router).await });
    Ok(Published {
        address,
        _runtime: runtime,
    })
}
