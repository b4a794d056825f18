//! The record of the audit before a request with an unsafe method goes to the core.
//!
//! Invariant: where the audit is required, the record is durable before a connection to the core is used. Deliberately not here: the record
//! of the outcome, which telemetry makes.

use super::exchange::Exchange;
use crate::{
    admission::{Admitted, Grant},
    audit::{Audit, AuditKind, AuditUnavailable},
    interface::headers::RequestId,
    state::StateStore,
};

/// Records that an admitted request will be forwarded, if its method is unsafe.
///
/// # Errors
/// The audit is required and cannot be written, or has no place for the record (FWD-8): the request must not be forwarded.
pub(super) async fn record_forwarding(
    admitted: &Admitted,
    exchange: &mut Exchange<'_>,
    store: &StateStore,
    audit: &Audit,
) -> Result<(), AuditUnavailable> {
    if admitted.method().is_safe() || !audit.is_on() {
        return Ok(());
    }
    let tpp = admitted.tpp().map(|tpp| tpp.certificate().tpp_id());
    let trace = exchange.trace().trace_id().to_string();
    let event = audit
        .event(AuditKind::Forwarding)
        .with_some("tpp", tpp.map(|tpp| tpp.as_str()))
        .with("operation", admitted.operation().name.as_str())
        .with_some("request_id", exchange.request_id().map(RequestId::as_str))
        .with("trace_id", trace);
    let psu = admitted.grant().and_then(Grant::psu);
    let event = match psu {
        Some(psu) => event.about(store.keys().psu(psu)),
        None => event,
    };
    // Before the record is enqueued: one that is too late for this request may be written later, and must have its outcome too.
    let begun = || exchange.set_audited();
    audit.record_forwarding(event, begun).await
}
