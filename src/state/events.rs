//! Events for the bank's services (CTL-3): one stream in the state, for all its gateways.
//!
//! Invariants: an event is written in the transaction of its change; the stream is read in the order in which the transactions committed; no
//! event has a PSU-ID, an account, an agreement or the key of a customer.

use super::{
    EventSettings, OpenFault, StateStore, Unavailable, engine::Engine, hash_key, moves::WrittenAs,
    outbox::Outbox, rules::Observed,
};
use aws_lc_rs::hmac;
use portvakt_base::{clock::Timestamp, values};
use portvakt_interface::TppId;
use std::fmt;

values! {
    /// The kind of an event.
    pub enum EventKind {
        /// The PSU gave a consent, or a new one in place of another.
        ConsentGiven = "consent-given",
        /// Fewer accounts are left of a consent.
        ConsentNarrowed = "consent-narrowed",
        /// The bank or the TPP ended a consent.
        ConsentWithdrawn = "consent-withdrawn",
        /// The time of a consent has passed.
        ConsentExpired = "consent-expired",
        /// A gateway saw a TPP for the first time in this state.
        TppSeen = "tpp-seen",
        /// The bank blocked a TPP, or changed a block.
        TppBlocked = "tpp-blocked",
        /// The bank took a block back.
        TppUnblocked = "tpp-unblocked",
        /// A TPP lost a role in the registers, and has another one.
        RoleLost = "role-lost",
        /// A TPP lost its last role in the registers.
        RegistrationLost = "registration-lost",
        /// A certificate of a TPP ends soon.
        CertificateEnds = "certificate-ends",
    }
}

impl EventKind {
    /// Whether it is an event of a PSU's consent.
    pub const fn is_of_consent(self) -> bool {
        match self {
            Self::ConsentGiven
            | Self::ConsentNarrowed
            | Self::ConsentWithdrawn
            | Self::ConsentExpired => true,
            Self::TppSeen
            | Self::TppBlocked
            | Self::TppUnblocked
            | Self::RoleLost
            | Self::RegistrationLost
            | Self::CertificateEnds => false,
        }
    }
}

/// An event of the stream. A member that its kind does not have is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number: later events have larger ones.
    pub sequence: u64,
    /// The time by the state's clock, or that of the observation.
    pub at: Timestamp,
    /// The kind.
    pub kind: EventKind,
    /// The TPP's organizationIdentifier. Of a block it is in the spelling of the call; of a consent it is the identity that the TPP has when
    /// the stream is read (CTL-4).
    pub tpp: String,
    /// The customer whose consent it is, if the bank named one and a key is configured.
    pub customer: Option<CustomerPseudonym>,
    /// Whether the consent is for a corporate agreement; false if the event is of no consent.
    pub corporate: bool,
    /// The number of accounts of the consent as it is now; `None` also if it is for all accounts.
    pub accounts: Option<u64>,
    /// The end: the last second of a certificate, or the first second in which a block no longer applies.
    pub until: Option<Timestamp>,
    /// The scope of a block, the lost roles, or the serial number of the certificate.
    pub detail: Option<String>,
}

/// An observation that a gateway makes, and that is one event of the state however many gateways make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewEvent {
    /// A TPP is seen for the first time.
    TppSeen {
        /// The TPP.
        tpp: TppId,
    },
    /// A TPP lost roles, and has another one.
    RoleLost {
        /// The TPP.
        tpp: TppId,
        /// The names of the lost roles.
        roles: String,
    },
    /// A TPP lost its last roles.
    RegistrationLost {
        /// The TPP.
        tpp: TppId,
        /// The names of the lost roles.
        roles: String,
    },
    /// A certificate ends soon.
    CertificateEnds {
        /// The TPP that it identifies.
        tpp: TppId,
        /// Its serial number.
        serial: String,
        /// The last second in which it is valid.
        end: Timestamp,
    },
}

impl NewEvent {
    /// The kind of its event.
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::TppSeen { .. } => EventKind::TppSeen,
            Self::RoleLost { .. } => EventKind::RoleLost,
            Self::RegistrationLost { .. } => EventKind::RegistrationLost,
            Self::CertificateEnds { .. } => EventKind::CertificateEnds,
        }
    }
}

/// A position in the stream of one state. Its text is opaque to consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub(super) stream: u64,
    pub(super) sequence: u64,
}

impl Cursor {
    /// The cursor of a text; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, sequence) = text.split_once('-')?;
        let stream = u64::from_str_radix(stream, 16).ok()?;
        let sequence = sequence.parse().ok()?;
        let cursor = Self { stream, sequence };
        // Each cursor has one text.
        (cursor.to_string() == text).then_some(cursor)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}-{}", self.stream, self.sequence)
    }
}

/// What the stream has after a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsAnswer {
    /// Events, perhaps none.
    Events {
        /// The events, in their order.
        events: Vec<Event>,
        /// The cursor after the last of them.
        next: Cursor,
        /// Whether the stream has more of them now.
        is_behind: bool,
    },
    /// Events after the cursor are no longer kept.
    TooOld {
        /// The cursor before the oldest event that is kept.
        oldest: Cursor,
    },
    /// The cursor is of another state, or of a later moment than this one.
    Unknown,
}

/// The customer of an event: HMAC-SHA-256 of the bank's key for its customer, under a key of the bank. Its text is in hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CustomerPseudonym([u8; 32]);

impl CustomerPseudonym {
    pub(super) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(super) const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for CustomerPseudonym {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for CustomerPseudonym {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CustomerPseudonym(***)")
    }
}

/// The bank's key for the customers in events: 32 bytes, never shown.
pub(super) struct EventKey([u8; 32]);

impl EventKey {
    /// Reads the key of the settings; `None` if they name none.
    ///
    /// # Errors
    /// There is no such file, others may read it, or it is no key.
    pub(super) fn read(settings: &EventSettings) -> Result<Option<Self>, OpenFault> {
        let Some(path) = &settings.customer_key else {
            return Ok(None);
        };
        let missing = || {
            let text = "there is no such file, and the gateway never makes it";
            OpenFault::File(path.clone(), std::io::Error::other(text))
        };
        hash_key::read(path)?
            .ok_or_else(missing)
            .map(|key| Some(Self(key)))
    }

    pub(super) fn pseudonym(&self, customer: &[u8]) -> CustomerPseudonym {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let tag = hmac::sign(&key, customer);
        let mut bytes = [0; 32];
        for (to, from) in bytes.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        CustomerPseudonym(bytes)
    }
}

impl EventSettings {
    /// Checks the key, if the settings name one.
    ///
    /// # Errors
    /// There is no such file, others may read it, or it is no key.
    pub fn check(&self) -> Result<(), OpenFault> {
        EventKey::read(self).map(drop)
    }
}

/// The most events of one answer.
const MOST: usize = 1_000;

/// The most events that are kept, about 0.2 KiB each.
pub(super) const MOST_KEPT: u64 = 1_000_000;

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
