//! The status of the gateway (/livez, /readyz, /metrics) and its published documents: /openapi.json, and the public keys of
//! assertions.

use super::{
    context::ControlContext,
    fault::{self, ApiFault},
    listen::StopSignal,
};
use crate::{
    hsm,
    in_use::InUse,
    telemetry::{Degradation, ReadinessCondition, Scrape},
};
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use std::sync::{Arc, atomic::Ordering};
use tokio::sync::Semaphore;

type Status = (StopSignal, Arc<ControlContext>);

/// The query that asks about this replica alone.
const LOCAL: &str = "local=1";

/// `GET /livez`: the process runs.
pub(super) async fn live() -> Response {
    fault::json(200, &json!({ "live": true }))
}

/// `GET /readyz`: the public listener accepts, the gateway is not stopping, the store can write, SCA can be started, keys in an HSM can be
/// used, and each needed group of the core has a healthy endpoint. The answer lists the failed conditions, those of this replica apart from those of what all
/// replicas share, the state of each endpoint, logs that cannot be written, and the checks that are only observed (FWD-6).
///
/// With `?local=1` the status is that of the replica's own conditions: a balancer that removed every replica for a fault of what they share
/// would close connections that get a proper 503 otherwise.
pub(super) async fn ready(
    State((shutdown, context)): State<Status>,
    Extension(in_use): Extension<Arc<InUse>>,
    RawQuery(query): RawQuery,
) -> Response {
    let is_local = match query.as_deref() {
        None => false,
        Some(LOCAL) => true,
        Some(_) => return ApiFault::OtherQuery.answer(&context),
    };
    let conditions = conditions(&shutdown, &context, &in_use);
    let failed = |shared: bool| {
        let failed = conditions.iter().filter(|one| one.is_shared == shared);
        failed
            .filter_map(|one| one.fault.clone())
            .collect::<Vec<_>>()
    };
    let (local, shared) = (failed(false), failed(true));
    let counted = match is_local {
        true => local.clone(),
        false => conditions
            .iter()
            .filter_map(|one| one.fault.clone())
            .collect(),
    };
    let ready = counted.is_empty();
    let status = if ready { 200 } else { 503 };
    let mut answer = json!({
        "ready": ready, "notWell": counted,
        "local": { "ready": local.is_empty(), "notWell": local },
        "shared": { "ready": shared.is_empty(), "notWell": shared },
        "endpoints": endpoints(&in_use),
    });
    let degraded = degradations(&context);
    let degraded: Vec<_> = degraded
        .into_iter()
        .filter_map(|(_, fault)| fault)
        .collect();
    let observed = in_use.snapshot.policy.enforcement.observed();
    let observed: Vec<_> = observed.iter().map(|check| check.name()).collect();
    let remarks = [
        ("degraded", json!(degraded)),
        ("onlyObserved", json!(observed)),
    ];
    for (name, remark) in remarks {
        if remark != json!([])
            && let Some(members) = answer.as_object_mut()
        {
            members.insert(name.to_owned(), remark);
        }
    }
    fault::json(status, &answer)
}

/// Faults with which requests are served nevertheless: logs, and an audit that is not required, that cannot be written; and a former key for
/// customers.
fn degradations(context: &ControlContext) -> [(Degradation, Option<String>); 4] {
    let [access, events] = context.telemetry.log_faults();
    let customer_key = context.store.customer_key_fault();
    [
        (
            Degradation::AccessLog,
            access.map(|fault| format!("access log: {fault}")),
        ),
        (
            Degradation::EventLog,
            events.map(|fault| format!("event log: {fault}")),
        ),
        (Degradation::Audit, audit_fault(context, false)),
        (
            Degradation::CustomerKey,
            customer_key.map(|fault| format!("customer key: the state has another one: {fault}")),
        ),
    ]
}

/// Why the audit cannot be written, if it is required, or if it is not.
fn audit_fault(context: &ControlContext, required: bool) -> Option<String> {
    let fault = context.telemetry.audit().fault();
    let fault = fault.filter(|(is_required, _)| *is_required == required);
    fault.map(|(_, fault)| format!("audit: {fault}"))
}

/// The conditions of readiness, for those who wait for it.
#[derive(Clone, Debug)]
pub struct Readiness {
    stopping: StopSignal,
    context: Arc<ControlContext>,
}

impl Readiness {
    pub(super) const fn new(stopping: StopSignal, context: Arc<ControlContext>) -> Self {
        Self { stopping, context }
    }

    /// Whether the state, and an audit that is required, have been written once.
    pub fn is_proven(&self) -> bool {
        self.context.store.has_written() && self.context.telemetry.audit().is_proven()
    }

    /// Why `/readyz` does not answer 200, but for a listener that accepts nobody yet.
    pub fn faults(&self) -> Vec<String> {
        let in_use = self.context.current.load();
        let conditions = conditions(&self.stopping, &self.context, &in_use);
        let others = conditions
            .into_iter()
            .filter(|one| one.cause != ReadinessCondition::Listener);
        others.filter_map(|one| one.fault).collect()
    }
}

/// The state of each endpoint of the core.
fn endpoints(in_use: &InUse) -> Vec<Value> {
    let groups = in_use.upstreams.groups().iter();
    let states = groups.flat_map(|group| {
        let states = group.states().into_iter();
        states.map(|state| {
            json!({
                "upstream": group.settings().name, "endpoint": state.of.endpoint, "addresses": state.addresses,
                "up": state.up, "ejected": state.ejected, "drained": state.drained,
            })
        })
    });
    states.collect()
}

/// The first write is under way, or the disk does not answer.
const NOT_WRITTEN: &str = "nothing has been written since the start";

/// A condition of readiness.
struct Condition {
    cause: ReadinessCondition,
    /// Why it fails.
    fault: Option<String>,
    /// Whether it is about what all replicas use, so that it fails for all of them at once.
    is_shared: bool,
}

/// Each condition of readiness.
fn conditions(shutdown: &StopSignal, context: &ControlContext, in_use: &InUse) -> [Condition; 7] {
    let stopping = shutdown
        .borrow()
        .then(|| "the gateway is stopping".to_owned());
    let accepting = context.accepting.load(Ordering::Acquire);
    let closed = (!accepting && stopping.is_none())
        .then(|| "the public listener does not accept connections yet".to_owned());
    // This checks the clock too, so that its metric is current even if nobody calls /readyz.
    let (store, now) = (&context.store, context.clock.now());
    let state = store.health(now).err().map(|fault| fault.to_string());
    let has_written = store.has_written();
    let state = state.or_else(|| (!has_written).then(|| NOT_WRITTEN.to_owned()));
    let state = state.map(|fault| format!("state: {fault}"));
    let links = in_use.links.health().err();
    let links = links.map(|fault| format!("sca: {fault}"));
    let unhealthy = in_use.upstreams.unhealthy();
    let upstreams = (!unhealthy.is_empty())
        .then(|| format!("upstreams: no healthy endpoint in {}", unhealthy.join(", ")));
    let audit = context.telemetry.audit();
    let unproven = || (!audit.is_proven()).then(|| format!("audit: {NOT_WRITTEN}"));
    let audit = audit_fault(context, true).or_else(unproven);
    let keys = hsm::unavailable();
    let keys = (!keys.is_empty()).then(|| format!("the HSM is unavailable: {}", keys.join("; ")));
    [
        (ReadinessCondition::Stopping, stopping, false),
        (ReadinessCondition::Listener, closed, false),
        (ReadinessCondition::State, state, store.shares_fault(now)),
        (ReadinessCondition::Sca, links, false),
        (ReadinessCondition::Upstreams, upstreams, true),
        (ReadinessCondition::Audit, audit, false),
        (ReadinessCondition::Hsm, keys, false),
    ]
    .map(|(cause, fault, is_shared)| Condition {
        cause,
        fault,
        is_shared,
    })
}

/// Renders metrics for one call at a time: many calls at once must not take the listener's time from /readyz.
static RENDERING: Semaphore = Semaphore::const_new(1);

/// `GET /metrics`.
pub(super) async fn metrics(
    State((shutdown, context)): State<Status>,
    Extension(in_use): Extension<Arc<InUse>>,
) -> Response {
    let turn = RENDERING.acquire().await;
    let rendered = tokio::task::spawn_blocking(move || {
        let conditions = conditions(&shutdown, &context, &in_use);
        context.telemetry.metrics(&Scrape {
            now: context.clock.now(),
            state: context.store.counters(),
            not_ready: conditions
                .map(|one| (one.cause, one.fault.is_some()))
                .to_vec(),
            degraded: degradations(&context)
                .map(|(degradation, fault)| (degradation, fault.is_some()))
                .to_vec(),
            configuration: in_use.facts(context.clock.now()),
        })
    });
    let rendered = rendered.await;
    drop(turn);
    match rendered {
        Ok(text) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The OpenAPI description of the current configuration, as `portvakt openapi` prints it.
pub(super) async fn openapi(Extension(in_use): Extension<Arc<InUse>>) -> Response {
    fault::json(200, &in_use.openapi)
}

/// The public keys of assertions (FWD-1, RFC 7517); empty without assertions.
pub(super) async fn keys(Extension(in_use): Extension<Arc<InUse>>) -> impl IntoResponse {
    let signer = in_use.assertion_signer.as_ref();
    let keys = signer.map(|signer| signer.published());
    let keys = keys.unwrap_or(r#"{"keys":[]}"#).to_owned();
    ([(header::CONTENT_TYPE, "application/jwk-set+json")], keys)
}
