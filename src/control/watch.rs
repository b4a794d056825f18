//! How the gateway is: /livez, /readyz, /metrics; and what it publishes: /openapi.json, and the keys that its assertions
//! are checked by.

use super::{Desk, doors::StopSignal, fault};
use crate::telemetry;
use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::json;
use std::sync::{Arc, atomic::Ordering};

type Watched = (StopSignal, Arc<Desk>);

/// The process runs.
pub(super) async fn live() -> Response {
    fault::json(200, &json!({ "live": true }))
}

/// Ready: the snapshot is in use, the public listener accepts, the gateway is not stopping, state can be kept and SCA be
/// started. What is not well is said.
pub(super) async fn ready(State((shutdown, desk)): State<Watched>) -> Response {
    let stopping = shutdown
        .borrow()
        .then(|| "the gateway is stopping".to_owned());
    let accepting = desk.accepting.load(Ordering::Acquire);
    let closed = (!accepting && stopping.is_none())
        .then(|| "the public listener does not accept connections yet".to_owned());
    let state = desk.kept.health(desk.clock.now()).err();
    let state = state.map(|fault| format!("state: {fault}"));
    let links = desk.links.load().health().err();
    let links = links.map(|fault| format!("sca: {fault}"));
    let not_well: Vec<_> = [stopping, closed, state, links]
        .into_iter()
        .flatten()
        .collect();
    let ready = not_well.is_empty();
    let status = if ready { 200 } else { 503 };
    fault::json(status, &json!({ "ready": ready, "notWell": not_well }))
}

pub(super) async fn metrics(State((_, desk)): State<Watched>) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    // The clock is looked at, so that its metric is right where nobody asks for readiness.
    let _ = desk.kept.health(desk.clock.now());
    let text = desk.telemetry.metrics(&desk.kept.counters())
        + &telemetry::token_seals(desk.links.load().sealed());
    ([(header::CONTENT_TYPE, kind)], text)
}

/// The interface by the catalogue in use, as `portvakt openapi` writes it.
pub(super) async fn openapi(State((_, desk)): State<Watched>) -> Response {
    fault::json(200, &desk.current.load().openapi)
}

/// The keys that assertions are checked by (FWD-1, RFC 7517): none where there are no assertions.
pub(super) async fn keys(State((_, desk)): State<Watched>) -> impl IntoResponse {
    let keys = desk.asserter.as_ref().map(|asserter| asserter.published());
    let keys = keys.unwrap_or(r#"{"keys":[]}"#).to_owned();
    ([(header::CONTENT_TYPE, "application/jwk-set+json")], keys)
}
