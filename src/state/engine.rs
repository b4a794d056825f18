//! The seam between the rules and a database.
//!
//! An engine loads rows by their keys, keeps them and commits them; it decides nothing. A second one is a folder beside
//! `sqlite`, a variant of [`AnyEngine`](super::any_engine::AnyEngine), and a line in the conformance suite
//! (`tests/it/state/conformance.rs`), which states all that an engine has to do.

use super::{Counters, PsuHash, Unavailable, change::Change, rows::BoundPsu};
use crate::clock::Timestamp;

/// The duties of an engine.
///
/// It is opened with the [`Process`](super::process::Process) whose memory it keeps current: a PSU or a used-up quota that changed, here or in
/// another process, is dropped from it. A change that one process commits, the others heed within a
/// tenth of a second.
pub(super) trait Engine: Send + Sync {
    /// A PSU as it is kept, whichever TPP it is bound to; memory is brought up to date.
    ///
    /// # Errors
    /// It cannot be read.
    fn psu(
        &self,
        psu: PsuHash,
    ) -> impl Future<Output = Result<Option<BoundPsu>, Unavailable>> + Send;

    /// Decides a change, in one transaction with others that wait, and answers when it is durable.
    ///
    /// Two changes that look at one row are decided one after the other, in whichever processes.
    ///
    /// # Errors
    /// It cannot be written, or not in time: nothing changed, or it is not known whether it did.
    fn commit<C: Change>(
        &self,
        change: C,
    ) -> impl Future<Output = Result<C::Outcome, Unavailable>> + Send;

    /// Removes every row that is due by `now` (`Table::removed_through`), in small steps between changes. How many rows were
    /// removed.
    ///
    /// # Errors
    /// It cannot be written.
    fn tidy(&self, now: Timestamp) -> impl Future<Output = Result<u64, Unavailable>> + Send;

    /// Whether it can be written, as of the last attempt. An engine that failed tries again every second by itself.
    ///
    /// # Errors
    /// Why not: for the operator.
    fn health(&self) -> Result<(), Unavailable>;

    /// Its activity since it was opened, without the clock.
    fn counters(&self) -> Counters;
}
