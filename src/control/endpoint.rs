//! Takes an endpoint of the core out and back, for its operators: its machine can be maintained without a failed request.
//!
//! Invariant: a group keeps a healthy endpoint. Deliberately not here: other replicas, each of which is told by itself.

use super::{
    context::Call,
    fault::ApiFault,
    members::{self, Members},
};
use crate::{
    audit::AuditKind,
    upstreams::{DrainFault, Group},
};
use serde_json::{Value, json};

/// The form of a name, for faults.
const NAME: &str = "a name as in /readyz";

/// The most characters of a name.
const MOST: usize = 256;

/// `POST /endpoint/drain`: the endpoint gets no new request from now on; those that it has are completed.
pub(super) async fn drain(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let changed = change(call, members, AuditKind::EndpointDrained, Group::drain).await?;
    Ok(json!({ "drained": true, "changed": changed }))
}

/// `POST /endpoint/restore`: the endpoint gets requests again, if it is healthy.
pub(super) async fn restore(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let changed = change(call, members, AuditKind::EndpointRestored, Group::restore).await?;
    Ok(json!({ "drained": false, "changed": changed }))
}

async fn change(
    call: Call<'_>,
    members: &mut Members,
    kind: AuditKind,
    change: fn(&Group, &str) -> Result<bool, DrainFault>,
) -> Result<bool, ApiFault> {
    let mut name = |name| members.required(name, NAME, |value| members::text(value, MOST));
    let (upstream, endpoint) = (name("upstream"), name("endpoint"));
    members.finish()?;
    let (Some(upstream), Some(endpoint)) = (upstream, endpoint) else {
        return Err(ApiFault::NotJson("The body has faulty members."));
    };
    let current = call.context.current.load_full();
    let mut groups = current.upstreams.groups().iter();
    let group = groups.find(|group| group.settings().name == upstream);
    let changed = change(group.ok_or(DrainFault::Unknown)?, &endpoint)?;
    let event = call.context.telemetry.audit().event(kind);
    let event = event.with("upstream", upstream.as_str());
    call.record(event.with("endpoint", endpoint.as_str()))
        .await?;
    tracing::warn!(
        upstream,
        endpoint,
        change = kind.name(),
        "an operator takes an endpoint out or back"
    );
    Ok(changed)
}
