//! A TPP that changed its organizationIdentifier (CTL-4).
//!
//! Invariant: a TPP that the bank's own list blocks leaves the list by no call.

use super::{
    context::Call,
    fault::ApiFault,
    members::{self, Members},
};
use crate::{
    audit::AuditKind,
    interface::{ForbiddenTpp, TppId},
    state::{Move, Moved},
};
use serde_json::{Value, json};

/// `POST /tpp/move`: bindings, consents, quota and blocks belong to another identity of the TPP from now on; the same call the other way
/// undoes it.
pub(super) async fn change(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let from = members.required("from", members::TPP, members::permitted_tpp);
    let to = members.required("to", members::TPP, members::permitted_tpp);
    if from.is_some() && from == to {
        members.fault("to", "it is the same identity as from");
    }
    members.finish()?;
    let (Some(from), Some(to)) = (from, to) else {
        return Err(ApiFault::NotJson("The body has faulty members."));
    };
    let (from, to) = (from.into_exact(), to.into_exact());
    if is_listed(call, &from) && !is_listed(call, &to) {
        return Err(ApiFault::BlockedByList);
    }
    let moved = Move {
        from: from.clone(),
        to: to.clone(),
        since: call.context.clock.now(),
    };
    let (word, changed) = match call.context.store.move_tpp(moved).await? {
        Moved::Done => ("moved", true),
        Moved::Undone => ("undone", true),
        Moved::Before => ("moved", false),
        Moved::Elsewhere => return Err(ApiFault::MovedElsewhere),
        Moved::TargetMoved => return Err(ApiFault::TargetMoved),
    };
    // Also of a repeated call: the record of the first may be missing.
    let event = call.event(AuditKind::TppMoved, &from, None);
    let event = event.with("to", to.as_str()).with("move", word);
    call.record(event).await?;
    tracing::warn!(
        tpp = from.as_str(),
        to = to.as_str(),
        change = word,
        "a TPP has another identity, by the bank"
    );
    Ok(json!({ "move": word, "changed": changed }))
}

/// `GET /tpp/moves`: the TPPs that have another identity now, the oldest first.
pub(super) async fn list(call: Call<'_>) -> Result<Value, ApiFault> {
    let mut moves = call.context.store.list_moves().await?;
    moves.sort_by(|one, other| (one.since, &one.from).cmp(&(other.since, &other.from)));
    let moves = moves.iter().map(|moved| {
        json!({
            "from": moved.from.as_str(),
            "to": moved.to.as_str(),
            "since": members::shown(moved.since),
        })
    });
    Ok(json!({ "moves": moves.collect::<Vec<_>>() }))
}

/// Whether the bank's own list in a file blocks a TPP.
fn is_listed(call: Call<'_>, tpp: &TppId) -> bool {
    let current = call.context.current.load();
    let registers = current.snapshot.registers.as_ref();
    registers.is_some_and(|listed| listed.blocks(&ForbiddenTpp::of(tpp)))
}
