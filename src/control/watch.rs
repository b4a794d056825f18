//! The status of the gateway (/livez, /readyz, /metrics) and the documents that it publishes: /openapi.json, and the keys by which
//! its assertions are checked.

use super::{context::ControlContext, doors::StopSignal, fault};
use crate::in_use::InUse;
use axum::{
    Extension,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::json;
use std::sync::{Arc, atomic::Ordering};

type Status = (StopSignal, Arc<ControlContext>);

/// The process runs.
pub(super) async fn live() -> Response {
    fault::json(200, &json!({ "live": true }))
}

/// Ready: the snapshot is in use, the public listener accepts, the gateway is not stopping, state can be kept and SCA be
/// started. What is not well is said.
pub(super) async fn ready(
    State((shutdown, context)): State<Status>,
    Extension(in_use): Extension<Arc<InUse>>,
) -> Response {
    let stopping = shutdown
        .borrow()
        .then(|| "the gateway is stopping".to_owned());
    let accepting = context.accepting.load(Ordering::Acquire);
    let closed = (!accepting && stopping.is_none())
        .then(|| "the public listener does not accept connections yet".to_owned());
    let state = context.kept.health(context.clock.now()).err();
    let state = state.map(|fault| format!("state: {fault}"));
    let links = in_use.links.health().err();
    let links = links.map(|fault| format!("sca: {fault}"));
    let not_well: Vec<_> = [stopping, closed, state, links]
        .into_iter()
        .flatten()
        .collect();
    let ready = not_well.is_empty();
    let status = if ready { 200 } else { 503 };
    fault::json(status, &json!({ "ready": ready, "notWell": not_well }))
}

pub(super) async fn metrics(
    State((_, context)): State<Status>,
    Extension(in_use): Extension<Arc<InUse>>,
) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    // The clock is looked at, so that its metric is right where nobody asks for readiness.
    let _ = context.kept.health(context.clock.now());
    let counters = context.kept.counters();
    let text = context.telemetry.metrics(&counters, &in_use.facts());
    ([(header::CONTENT_TYPE, kind)], text)
}

/// The interface by the catalogue in use, as `portvakt openapi` writes it.
pub(super) async fn openapi(Extension(in_use): Extension<Arc<InUse>>) -> Response {
    fault::json(200, &in_use.openapi)
}

/// The keys that assertions are checked by (FWD-1, RFC 7517): none where there are no assertions.
pub(super) async fn keys(State((_, context)): State<Status>) -> impl IntoResponse {
    let keys = context
        .asserter
        .as_ref()
        .map(|asserter| asserter.published());
    let keys = keys.unwrap_or(r#"{"keys":[]}"#).to_owned();
    ([(header::CONTENT_TYPE, "application/jwk-set+json")], keys)
}
