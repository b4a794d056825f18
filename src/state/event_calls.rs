//! The store's functions for events (CTL-3): one stream in the state, for all its gateways.
//!
//! Invariants: an event is written in the transaction of its change; the stream is read in the order in which the transactions committed.

use super::{
    Cursor, Event, EventKind, EventsAnswer, NewEvent, StateStore, Unavailable,
    engine::Engine,
    moves::{Moves, WrittenAs},
    outbox::Outbox,
    rules::Observed,
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::{ForbiddenTpp, TppId};

/// The most events of one answer.
const MOST: usize = 1_000;

impl StateStore {
    /// What the operator has to do, if the bank changed the key for customers while this process ran: no customer is named in events
    /// meanwhile (CTL-3).
    pub fn customer_key_fault(&self) -> Option<&'static str> {
        self.process.customer_key.fault()
    }

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
        // One more tells whether there are more, and the event of the cursor tells whether it is still the same.
        let most = u32::try_from(limit.saturating_add(2)).unwrap_or(u32::MAX);
        let after_sequence = after.map_or(0, |cursor| cursor.sequence.saturating_sub(1));
        let standing = self.blocks_now().await?;
        let mut outbox: Outbox = self.engine.events(after_sequence, most).await?;
        for event in &mut outbox.events {
            if let Some(owner) = owner_now(event, standing.moves()) {
                event.tpp = owner;
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

/// The identity now of the TPP of an event of a consent or a block (CTL-4); `None` if it is the one of the event.
fn owner_now(event: &Event, moves: &Moves) -> Option<String> {
    match event.kind {
        EventKind::ConsentGiven
        | EventKind::ConsentNarrowed
        | EventKind::ConsentWithdrawn
        | EventKind::ConsentExpired => {
            let written = TppId::parse(&event.tpp).map(WrittenAs::new)?;
            Some(moves.owner(&written).as_str().to_owned())
        }
        // A block names each spelling; where these belong to several TPPs now, it keeps its own.
        EventKind::TppBlocked | EventKind::TppUnblocked => {
            let owners = moves.owners_of(&ForbiddenTpp::stored(&event.tpp)?);
            match owners.as_slice() {
                [owner] => Some(owner.as_str().to_owned()),
                _ => None,
            }
        }
        // What a gateway observed stays that of the certificate.
        EventKind::TppSeen
        | EventKind::RoleLost
        | EventKind::RegistrationLost
        | EventKind::CertificateEnds => None,
    }
}
