//! A TPP that changed its organizationIdentifier (CTL-4).
//!
//! Invariants: a TPP that the bank's own list blocks leaves the list by no call; a repeated call changes nothing, so that the end of a move is
//! asked for by a word of its own: the reverse move by mistake would give one TPP what another has.

use super::{
    context::Call,
    fault::ApiFault,
    members::{self, Members},
};
use crate::{
    audit::AuditKind,
    interface::{ForbiddenTpp, TppId},
    state::{Move, MoveEnded, Moved},
};
use serde_json::{Value, json};

/// Nothing can be bound to a TPP that has another identity.
pub(super) const FORMER: ApiFault = ApiFault::NotMoved {
    reason: "tpp-moved",
    text: "This TPP has another identity now; nothing changed. GET /tpp/moves names it.",
};

const ELSEWHERE: ApiFault = ApiFault::NotMoved {
    reason: "tpp-moved-elsewhere",
    text: "This TPP has been moved to another identity; nothing changed. GET /tpp/moves names it; undo that move first.",
};

const TARGET_MOVED: ApiFault = ApiFault::NotMoved {
    reason: "target-moved",
    text: "The identity in to has been moved to another one itself; nothing changed. GET /tpp/moves names it.",
};

const REVERSE: ApiFault = ApiFault::NotMoved {
    reason: "move-reverse",
    text: "The TPP in to has been moved to the one in from; nothing changed. To undo that, add undo: true.",
};

const TOO_MANY: ApiFault = ApiFault::NotMoved {
    reason: "moves-too-many",
    text: "A TPP has at most 3 former identities, and this one would have more; nothing changed. Bind its PSUs to the new one instead.",
};

const BLOCKED_BY_LIST: ApiFault = ApiFault::NotMoved {
    reason: "blocked-by-list",
    text: "The bank's own list (block in registers.local) blocks the TPP in from, and not that in to; nothing changed. Add the new identity to the list first.",
};

/// `POST /tpp/move`: bindings, consents, quota and blocks belong to another identity of the TPP from now on; the same call the other way with
/// `undo` undoes it.
pub(super) async fn change(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let from = members.required("from", members::TPP, members::permitted_tpp);
    let to = members.required("to", members::TPP, members::permitted_tpp);
    let undo = members.optional("undo", "true or false", Value::as_bool);
    if from.is_some() && from == to {
        members.fault("to", "it is the same identity as from");
    }
    members.finish()?;
    let (Some(from), Some(to)) = (from, to) else {
        return Err(ApiFault::NotJson("The body has faulty members."));
    };
    let (from, to) = (from.into_exact(), to.into_exact());
    let (word, changed) = match undo {
        Some(true) => {
            let ended = call.context.store.end_move(&to, &from).await?;
            ("undone", ended == MoveEnded::Done)
        }
        Some(false) | None => ("moved", begin(call, &from, &to).await?),
    };
    // Also of a repeated call: the record of the first may be missing.
    let event = call.event(AuditKind::TppMoved, &from, None);
    let event = event.with("to", to.as_str()).with("move", word);
    call.record(event.with("changed", changed)).await?;
    tracing::warn!(
        tpp = from.as_str(),
        to = to.as_str(),
        change = word,
        "a TPP has another identity, by the bank"
    );
    Ok(json!({ "move": word, "changed": changed }))
}

/// Moves a TPP. Returns whether something changed.
async fn begin(call: Call<'_>, from: &TppId, to: &TppId) -> Result<bool, ApiFault> {
    if is_listed(call, from) && !is_listed(call, to) {
        return Err(BLOCKED_BY_LIST);
    }
    let moved = Move {
        from: from.clone(),
        to: to.clone(),
        since: call.context.clock.now(),
    };
    match call.context.store.move_tpp(moved).await? {
        Moved::Done => Ok(true),
        Moved::Before => Ok(false),
        Moved::Elsewhere => Err(ELSEWHERE),
        Moved::TargetMoved => Err(TARGET_MOVED),
        Moved::Reverse => Err(REVERSE),
        Moved::TooMany => Err(TOO_MANY),
    }
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

/// Every fault above, each with its row in docs/sca.md.
#[cfg(test)]
pub(super) const FAULTS: [ApiFault; 6] = [
    FORMER,
    ELSEWHERE,
    TARGET_MOVED,
    REVERSE,
    TOO_MANY,
    BLOCKED_BY_LIST,
];
