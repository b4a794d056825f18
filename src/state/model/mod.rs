//! A model of several gateways on one store, whose every interleaving `stateright` explores: the decisions are those of the rules, the
//! memory and the clock of the gateways are theirs, and only what lies between them, messages, crashes and time, is written here.
//!
//! Each model states what must always hold, and situations that must be reached, so that a model that explores nothing fails. Each has
//! faults of its own, which are planted in what lies between the rules: every one must be found. Faults of the rules are patches
//! (tests/model/faults.sh). Deliberately not here: SQL, the network, and the time that a fact may be old, which admission judges.

// How a model is explored.
pub(super) mod tests;

// The rows of a store, and transactions over them.
pub(super) mod store;

// Calls of a quota, ids of payments, and what is known of a PSU. Servers of which one is a former primary: postgres/model.rs.
mod ids;
mod psu;
mod quota;

use portvakt_base::clock::Timestamp;
use std::{cell::RefCell, collections::BTreeSet};

/// 24 hours, in seconds.
const DAY: u64 = 86_400;

/// The first second of every model.
pub(super) const BEGIN: u64 = 1_790_000_000;

pub(super) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_unix(seconds)
}

thread_local! {
    /// What steps have shown since it was last asked for. It is no part of a state: there would be as many states for each.
    static SEEN: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// Notes that a step has shown something that must be reached.
fn see(what: &'static str) {
    SEEN.with_borrow_mut(|seen| seen.insert(what));
}

/// Whether a step has shown it.
fn was_seen(what: &'static str) -> bool {
    SEEN.with_borrow_mut(|seen| seen.remove(what))
}
