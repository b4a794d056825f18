//! The interface between the rules and a database.
//!
//! An engine loads rows by their keys, stores them and commits them; it makes no decisions. ARCHITECTURE.md lists the places of another
//! engine; the conformance suite (`tests/it/state/conformance.rs`) specifies all duties of one.

use super::{
    Counters, CustomerHash, Dated, PsuHash, Unavailable, blocks::Standing, change::Change,
    outbox::Outbox, rows::BoundPsu, rules::Table, sweep::Step,
};
use portvakt_base::clock::Timestamp;

/// The duties of an engine.
///
/// An engine is opened with the [`Process`](super::process::Process) whose cache it keeps current: it drops a PSU or a used-up quota that
/// changed, in this process or in another. Every process applies the committed changes of the others within a tenth of a second, or within a
/// quarter of a second where a database's notification is lost.
pub(super) trait Engine: Send + Sync {
    /// A stored PSU, independent of the TPP that it is bound to, as of the moment at which the engine began to read; updates the cache. The
    /// time in which the question waited for its turn is no age of the answer: otherwise a busy engine would only give answers that are too
    /// old.
    ///
    /// # Errors
    /// The PSU cannot be read.
    fn psu(
        &self,
        psu: PsuHash,
    ) -> impl Future<Output = Result<Dated<Option<BoundPsu>>, Unavailable>> + Send;

    /// Stored PSUs of a customer of the bank (CTL-1), in the order of their hashes, after one of them. The cache is neither asked nor changed.
    ///
    /// # Errors
    /// They cannot be read.
    fn psus_of(
        &self,
        customer: CustomerHash,
        after: Option<PsuHash>,
        most: u32,
    ) -> impl Future<Output = Result<Vec<(PsuHash, BoundPsu)>, Unavailable>> + Send;

    /// Every block and every move of a TPP (CTL-2, CTL-4), as they are stored; as of the moment, as for a PSU.
    ///
    /// The engine also keeps [`Process::blocks`](super::process::Process::blocks) current: it loads them when it is opened, applies those
    /// that it commits before it answers, and loads them again when another process changed one.
    ///
    /// # Errors
    /// They cannot be read.
    fn standing(&self) -> impl Future<Output = Result<Dated<Standing>, Unavailable>> + Send;

    /// The stream with at most `most` events after a number (CTL-3), as of one moment, and only what is committed.
    ///
    /// The engine writes the events of each transaction (`rules::events`) in it, and numbers them so that a reader never sees one before
    /// another with a smaller number. It wakes readers ([`Process::wake_events`](super::process::Process::wake_events)), and every second
    /// notes consents that have ended and removes old events, some of each.
    ///
    /// # Errors
    /// They cannot be read.
    fn events(
        &self,
        after: u64,
        most: u32,
    ) -> impl Future<Output = Result<Outbox, Unavailable>> + Send;

    /// Decides a change in one transaction with other queued changes, and answers when the change is durable.
    ///
    /// Two changes that read the same row are decided one after the other, also in different processes.
    ///
    /// # Errors
    /// The change cannot be written, or not in time: nothing changed, or it is unknown whether something changed.
    fn commit<C: Change>(
        &self,
        change: C,
    ) -> impl Future<Output = Result<C::Outcome, Unavailable>> + Send;

    /// Removes the rows of one table that are due by `now` ([`Table::removed_through`]), in a small step between changes. The first step
    /// begins at the beginning of the table, the others where the last one ended.
    ///
    /// # Errors
    /// Rows cannot be removed.
    fn sweep(
        &self,
        table: Table,
        now: Timestamp,
        is_first: bool,
    ) -> impl Future<Output = Result<Step, Unavailable>> + Send;

    /// Removes every row that is due by `now`. Returns the number of removed rows.
    ///
    /// # Errors
    /// Rows cannot be removed.
    fn tidy(&self, now: Timestamp) -> impl Future<Output = Result<u64, Unavailable>> + Send {
        async move {
            let mut removed: u64 = 0;
            for table in Table::ALL {
                let mut is_first = true;
                loop {
                    let step = self.sweep(table, now, is_first).await?;
                    removed = removed.saturating_add(step.removed);
                    is_first = false;
                    if step.around {
                        break;
                    }
                }
            }
            Ok(removed)
        }
    }

    /// Whether the engine can write, by its last attempt. A failed engine tries again every second.
    ///
    /// # Errors
    /// The reason, for the operator.
    fn health(&self) -> Result<(), Unavailable>;

    /// Whether a write has been durable since the engine was opened.
    fn has_written(&self) -> bool;

    /// The engine's activity since it was opened, without the clock.
    fn counters(&self) -> Counters;
}
