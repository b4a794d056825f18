//! The status of the gateway (/livez, /readyz, /metrics) and its published documents: /openapi.json, and the public keys of
//! assertions.

use super::{context::ControlContext, fault, listen::StopSignal};
use crate::{in_use::InUse, telemetry::Scrape};
use axum::{
    Extension,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::json;
use std::sync::{Arc, atomic::Ordering};

type Status = (StopSignal, Arc<ControlContext>);

/// `GET /livez`: the process runs.
pub(super) async fn live() -> Response {
    fault::json(200, &json!({ "live": true }))
}

/// `GET /readyz`: the public listener accepts, the gateway is not stopping, the store can write, and SCA can be started. The
/// answer lists the failed conditions.
pub(super) async fn ready(
    State((shutdown, context)): State<Status>,
    Extension(in_use): Extension<Arc<InUse>>,
) -> Response {
    let conditions = conditions(&shutdown, &context, &in_use);
    let not_well: Vec<_> = conditions
        .into_iter()
        .filter_map(|(_, fails)| fails)
        .collect();
    let ready = not_well.is_empty();
    let status = if ready { 200 } else { 503 };
    fault::json(status, &json!({ "ready": ready, "notWell": not_well }))
}

/// Each condition of readiness, and why it fails.
fn conditions(
    shutdown: &StopSignal,
    context: &ControlContext,
    in_use: &InUse,
) -> [(&'static str, Option<String>); 4] {
    let stopping = shutdown
        .borrow()
        .then(|| "the gateway is stopping".to_owned());
    let accepting = context.accepting.load(Ordering::Acquire);
    let closed = (!accepting && stopping.is_none())
        .then(|| "the public listener does not accept connections yet".to_owned());
    // This checks the clock too, so that its metric is current even if nobody calls /readyz.
    let state = context.store.health(context.clock.now()).err();
    let state = state.map(|fault| format!("state: {fault}"));
    let links = in_use.links.health().err();
    let links = links.map(|fault| format!("sca: {fault}"));
    [
        ("stopping", stopping),
        ("listener", closed),
        ("state", state),
        ("sca", links),
    ]
}

/// `GET /metrics`.
pub(super) async fn metrics(
    State((shutdown, context)): State<Status>,
    Extension(in_use): Extension<Arc<InUse>>,
) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let conditions = conditions(&shutdown, &context, &in_use);
    let text = context.telemetry.metrics(&Scrape {
        now: context.clock.now(),
        state: context.store.counters(),
        not_ready: conditions.map(|(cause, fails)| (cause, fails.is_some())),
        configuration: in_use.facts(),
    });
    ([(header::CONTENT_TYPE, kind)], text)
}

/// The OpenAPI description of the current configuration, as `portvakt openapi` prints it.
pub(super) async fn openapi(Extension(in_use): Extension<Arc<InUse>>) -> Response {
    fault::json(200, &in_use.openapi)
}

/// The public keys of assertions (FWD-1, RFC 7517); empty without assertions.
pub(super) async fn keys(State((_, context)): State<Status>) -> impl IntoResponse {
    let keys = context
        .assertion_signer
        .as_ref()
        .map(|assertion_signer| assertion_signer.published());
    let keys = keys.unwrap_or(r#"{"keys":[]}"#).to_owned();
    ([(header::CONTENT_TYPE, "application/jwk-set+json")], keys)
}
