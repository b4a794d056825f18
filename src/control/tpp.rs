//! Calls on TPPs: block, unblock, and the list of blocks (CTL-2).
//!
//! Invariant: no call weakens the bank's own list in a file, which stands beside these blocks.

use super::{
    context::Call,
    fault::ApiFault,
    members::{self, Members},
};
use crate::{
    audit::AuditKind,
    clock::Timestamp,
    interface::{ForbiddenTpp, headers::PsuId},
    state::{Block, BlockScope, Blocked, Keys, Known, Lifted},
};
use serde_json::{Value, json};

/// The most characters of a reason.
const MAX_REASON: usize = 256;

/// The form of an end, for faults.
const UNTIL: &str =
    "a moment in the future, such as 2027-01-31T12:00:00Z; for a block without an end leave it out";

/// The TPP of a call, and what is blocked of it.
struct Target {
    /// In every spelling (FWD-6).
    tpp: ForbiddenTpp,
    psu: Option<Known<PsuId>>,
    scope: BlockScope,
}

/// `POST /tpp/block`: refuses the requests of a TPP from now on, or changes a block.
pub(super) async fn block(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let now = call.context.clock.now();
    let store = call.context.store.as_ref();
    let target = target(members, store.keys());
    let expected = "text of 1 to 256 characters, for the bank's operators";
    let reason = members.required("reason", expected, |value| members::text(value, MAX_REASON));
    let until = members.optional("until", UNTIL, |value| members::future(value, now));
    members.finish()?;
    let (Some(target), Some(reason)) = (target, reason) else {
        return Err(ApiFault::NotJson("The body has faulty members."));
    };
    let blocked = store
        .block(Block {
            tpp: target.tpp.clone(),
            scope: target.scope,
            reason,
            since: now,
            until,
        })
        .await?;
    note(call, AuditKind::TppBlocked, &target, until).await?;
    Ok(json!({ "blocked": true, "changed": blocked != Blocked::Before }))
}

/// `POST /tpp/unblock`: takes a block back. The answer says whether another one is left.
pub(super) async fn unblock(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let store = call.context.store.as_ref();
    let target = target(members, store.keys());
    members.finish()?;
    let target = target.ok_or(ApiFault::NotJson("The body has faulty members."))?;
    if store.unblock(&target.tpp, target.scope).await? == Lifted::Unknown {
        return Err(ApiFault::BlockUnknown);
    }
    note(call, AuditKind::TppUnblocked, &target, None).await?;
    let now = call.context.clock.now();
    let formers = store.formers_of(&target.tpp).await?;
    let is_own = |tpp: &ForbiddenTpp| *tpp == target.tpp || formers.contains(tpp);
    let left = store.list_blocks().await?.into_iter();
    let mut left = left.filter(|block| is_own(&block.tpp) && block.holds(now));
    let current = call.context.current.load();
    let registers = current.snapshot.registers.as_ref();
    Ok(json!({
        "unblocked": true,
        "other_blocks": left.any(|_| true),
        "blocked_by_list": registers.is_some_and(|listed| listed.blocks(&target.tpp)),
    }))
}

/// `GET /tpp/blocks`: the blocks in force, the oldest first. PSUs are kept as keyed hashes: they are not listed.
pub(super) async fn list(call: Call<'_>) -> Result<Value, ApiFault> {
    let now = call.context.clock.now();
    let mut blocks = call.context.store.list_blocks().await?;
    blocks.retain(|block| block.holds(now));
    blocks.sort_by(|one, other| (one.since, &one.tpp).cmp(&(other.since, &other.tpp)));
    let blocks = blocks.iter().map(|block| {
        json!({
            "tpp": block.tpp.as_str(),
            "what": block.scope.name(),
            "reason": block.reason,
            "since": members::shown(block.since),
            "until": block.until.and_then(members::shown),
        })
    });
    Ok(json!({ "blocks": blocks.collect::<Vec<_>>() }))
}

/// Logs the change, and keeps a record of it.
async fn note(
    call: Call<'_>,
    kind: AuditKind,
    target: &Target,
    until: Option<Timestamp>,
) -> Result<(), ApiFault> {
    let (tpp, what) = (&target.tpp, target.scope.name());
    let event = call.event_against(kind, tpp, target.psu).with("what", what);
    let event = event.with_some("until", until.and_then(members::shown));
    call.record(event).await?;
    tracing::warn!(
        tpp = tpp.as_str(),
        what,
        change = kind.name(),
        "a block by the bank"
    );
    Ok(())
}

fn target(members: &mut Members, keys: &Keys) -> Option<Target> {
    let tpp = members.required("tpp", members::TPP, members::forbidden_tpp);
    let has_psu = members.has("psu_id");
    let psu = members.optional("psu_id", members::UUID, members::psu);
    let names = |value: &Value| {
        let name = value.as_str()?;
        ["all", "payments", "psu"]
            .into_iter()
            .find(|it| *it == name)
    };
    let what = members.optional("what", "all, payments or psu", names);
    let scope = match (what, psu) {
        (Some("all") | None, None) if !has_psu => BlockScope::All,
        (Some("payments"), None) if !has_psu => BlockScope::Payments,
        (Some("psu") | None, Some(psu)) => BlockScope::Psu(keys.psu(psu)),
        (Some("psu"), None) => {
            members.fault("psu_id", "it is missing; it names the PSU of the block");
            return None;
        }
        _ => {
            let text = "a block of one PSU has no other scope; use psu, or leave psu_id out";
            members.fault("what", text);
            return None;
        }
    };
    Some(Target {
        tpp: tpp?,
        psu,
        scope,
    })
}
