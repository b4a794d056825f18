//! The store's functions for events (CTL-3): one stream in the state, for all its gateways.
//!
//! Invariants: an event is written in the transaction of its change; the stream is read in the order in which the transactions committed.

use super::{
    Cursor, EventsAnswer, NewEvent, StateStore, Unavailable, engine::Engine, moves::WrittenAs,
    outbox::Outbox, rules::Observed,
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::TppId;

/// The most events of one answer.
const MOST: usize = 1_000;

impl StateStore {
    /// The events after a cursor, or the oldest ones; at most `limit`, and at most 1 000. Never from the cache.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn events(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<EventsAnswer, Unavailable> {
        let limit = limit.min(MOST);
        // One more tells whether there are more.
        let most = u32::try_from(limit.saturating_add(1)).unwrap_or(u32::MAX);
        let after_sequence = after.map_or(0, |cursor| cursor.sequence);
        let standing = self.blocks_now().await?;
        let mut outbox: Outbox = self.engine.events(after_sequence, most).await?;
        for event in &mut outbox.events {
            if event.kind.is_of_consent()
                && let Some(written) = TppId::parse(&event.tpp).map(WrittenAs::new)
            {
                let owner = standing.moves().owner(&written);
                owner.as_str().clone_into(&mut event.tpp);
            }
        }
        Ok(outbox.answer(after, limit))
    }

    /// Adds an event that a gateway observed, unless one of the state's gateways added it before. Returns whether it was added.
    ///
    /// A TPP is seen first once in a state. The same loss of roles is one event within a day.
    ///
    /// # Errors
    /// The store is unavailable: nothing is added, or it is unknown whether something is.
    pub async fn note_event(&self, event: NewEvent, now: Timestamp) -> Result<bool, Unavailable> {
        self.process.note(now);
        self.engine
            .commit(Observed::new(&self.keys, event, now))
            .await
    }

    /// Changes when the stream may have more events: those of this process at once, and those of others as its other changes are heard of.
    pub fn events_changed(&self) -> tokio::sync::watch::Receiver<u64> {
        self.process.events.subscribe()
    }
}
