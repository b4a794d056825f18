//! Waiting for room at the core, before a request's checks (ERR-4).

use super::{arrival::Arrival, exchange::Exchange};
use crate::{
    interface::{Refusal, operations::Lookup, path::Target},
    upstreams::RequestRoom,
};
use pingora::http::RequestHeader;
use std::sync::Arc;

/// Waits for a moment while the core has as many requests as it may, in total or of the TPP (ERR-4). The TPP is told by the certificate
/// that the request shows, if a signature on this connection has verified last by it; on a connection that TPPs share, the others'
/// requests do not wait. Returns the request's room, if it needs one.
///
/// # Errors
/// There is no room in time.
pub(super) async fn await_room(
    exchange: &mut Exchange<'_>,
    head: &RequestHeader,
    arrival: &Arrival<'_>,
) -> Result<Option<RequestRoom>, Refusal> {
    let in_use = exchange.in_use();
    let groups = in_use.upstreams.groups();
    if groups.iter().all(|group| group.in_flight().is_free()) {
        return Ok(None);
    }
    // Requests of strangers and requests that name no operation are refused by their checks.
    let Some(known) = arrival.known(&head.headers) else {
        return Ok(None);
    };
    let Ok(target) = Target::parse(head.raw_path()) else {
        return Ok(None);
    };
    let Lookup::Found(operation) = in_use.snapshot.catalogue.find(&head.method, &target) else {
        return Ok(None);
    };
    let Some(group) = in_use.upstreams.of(operation) else {
        return Ok(None);
    };
    let (operation, group) = (Arc::clone(operation), Arc::clone(group));
    let room = group.in_flight().await_room(known.tpp_id()).await;
    room.map(Some).map_err(|full| {
        exchange.note_unjudged(&operation, known);
        Refusal::new(full.reason())
    })
}
