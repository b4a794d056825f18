//! The decisions on quota, pages, request ids, tokens and bindings: pure functions over rows.
//!
//! Each change names the rows that it depends on and decides on them alone. An engine loads these rows, lets the changes
//! of a batch decide in their order, and writes the rows that differ, all in one transaction. Invariant: nothing here does
//! I/O, reads a clock or depends on an engine. Deliberately not here: whether a session, consent or binding permits a request, which
//! admission decides.

// The calls of a quota, and the pages that belong to one call.
mod calls;
mod pages;

// The time for which request ids count as used, and the maximum step of the clock.
mod replay;

// The changes: claiming, giving back, the end of an SCA, bindings and what is taken back, blocks.
mod bindings;
mod blocks;
mod claim;
mod customers;
mod events;
mod moves;
mod owner;
mod removal;
mod sca;

// The times at which housekeeping removes rows.
mod expiry;

pub(super) use bindings::{Erasure, NewBinding, Withdrawal};
pub(super) use blocks::{LiftedBlock, NewBlock};
pub(super) use calls::Calls;
pub(super) use claim::GiveBack;
pub(super) use customers::{Forgotten, NarrowedAccess, Used};
pub use events::SCA_LASTS;
pub(super) use events::{EXPIRED_AT_ONCE, Expiry, Observed, ended_through, events};
pub(super) use expiry::Table;
pub(super) use moves::{EndedMove, NewMove};
pub use removal::Removal;
pub(super) use removal::{LastRemoval, Mark};
pub(super) use replay::{WAITS, date_ends, is_too_far_back, may_be_removed};
pub(super) use sca::ScaEnd;

#[cfg(test)]
pub(super) use replay::DAY;

#[cfg(test)]
mod exhaustive;
