//! The internal listener: /livez, /readyz and /metrics, on loopback.
//!
//! It runs beside the gateway in the same process, and stops answering "ready" the moment the gateway is told to stop.

use crate::{admission::Unbuilt, telemetry::Telemetry};
use async_trait::async_trait;
use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use pingora::{server::ShutdownWatch, services::background::BackgroundService};
use serde_json::json;
use std::{net::SocketAddr, sync::Arc};
use tokio::{net::TcpListener, signal::unix};

/// The listener, before it listens.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    telemetry: Arc<Telemetry>,
}

impl Listener {
    /// A listener on a loopback address.
    pub const fn new(address: SocketAddr, telemetry: Arc<Telemetry>) -> Self {
        Self { address, telemetry }
    }
}

#[async_trait]
impl BackgroundService for Listener {
    async fn start(&self, shutdown: ShutdownWatch) {
        let routes = Router::new()
            .route("/livez", get(|| async { Json(json!({ "live": true })) }))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .with_state((shutdown.clone(), Arc::clone(&self.telemetry)));
        let listener = match TcpListener::bind(self.address).await {
            Ok(listener) => listener,
            Err(error) => {
                return tracing::error!(address = %self.address, %error, "the control listener cannot listen");
            }
        };
        let stopped = async {
            tokio::select! {
                () = stopped(shutdown) => {}
                () = ignore_hangup() => {}
            }
        };
        if let Err(error) = axum::serve(listener, routes)
            .with_graceful_shutdown(stopped)
            .await
        {
            tracing::error!(%error, "the control listener failed");
        }
    }
}

type Shared = (ShutdownWatch, Arc<Telemetry>);

/// Ready: the snapshot is in use and the gateway is not stopping.
async fn ready(State((shutdown, _)): State<Shared>) -> impl IntoResponse {
    let ready = !*shutdown.borrow();
    let unbuilt: Vec<_> = Unbuilt::ALL.iter().map(|stage| stage.name()).collect();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (
        status,
        Json(json!({ "ready": ready, "notJudged": unbuilt })),
    )
}

async fn metrics(State((_, telemetry)): State<Shared>) -> impl IntoResponse {
    (
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        telemetry.metrics(),
    )
}

async fn stopped(mut shutdown: ShutdownWatch) {
    let _ = shutdown.wait_for(|stop| *stop).await;
}

/// SIGHUP would end the process; here it does nothing yet, since nothing is reloaded yet.
async fn ignore_hangup() {
    match unix::signal(unix::SignalKind::hangup()) {
        Ok(mut hangups) => {
            while hangups.recv().await.is_some() {
                tracing::warn!(
                    "SIGHUP: nothing is reloaded in this version; restart to change the configuration"
                );
            }
        }
        Err(error) => tracing::error!(%error, "SIGHUP cannot be caught"),
    }
    std::future::pending::<()>().await;
}
