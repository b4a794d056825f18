//! Events for the bank's services (CTL-3), and what is answered of their stream.
//!
//! Invariant: no event has a PSU-ID, an account, an agreement or the key of a customer.

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
    /// The TPP's organizationIdentifier. Of a consent or a block it is the identity that the TPP has when the stream is read (CTL-4); of a
    /// block without the spaces and dashes of its id.
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
    /// A TPP has other roles by the registers. It is an event if it lost one.
    RolesChanged {
        /// The TPP.
        tpp: TppId,
        /// The names of the lost roles; `None` if it lost none.
        lost: Option<String>,
        /// The names of the roles that it has now.
        left: String,
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
    pub fn kind(&self) -> EventKind {
        match self {
            Self::TppSeen { .. } => EventKind::TppSeen,
            Self::RolesChanged { left, .. } if left.is_empty() => EventKind::RegistrationLost,
            Self::RolesChanged { .. } => EventKind::RoleLost,
            Self::CertificateEnds { .. } => EventKind::CertificateEnds,
        }
    }
}

/// A position in the stream of one state. Its text is opaque to consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub(super) stream: u64,
    pub(super) sequence: u64,
    /// The time of the event with this number, by which it is told from another one with the same number after a restored backup; `None` if
    /// the cursor is after no event that is kept.
    pub(super) at: Option<Timestamp>,
}

impl Cursor {
    /// The cursor of a text; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, place) = text.split_once('-')?;
        let (sequence, at) = match place.split_once('-') {
            Some((sequence, at)) => (sequence, Some(Timestamp::from_unix(at.parse().ok()?))),
            None => (place, None),
        };
        let cursor = Self {
            stream: u64::from_str_radix(stream, 16).ok()?,
            sequence: sequence.parse().ok()?,
            at,
        };
        // Each cursor has one text.
        (cursor.to_string() == text).then_some(cursor)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}-{}", self.stream, self.sequence)?;
        match self.at {
            Some(at) => write!(formatter, "-{}", at.unix()),
            None => Ok(()),
        }
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
    /// The state is that of a moment before the cursor, as after a restored backup: later events have numbers that others had.
    Restored {
        /// The cursor before the oldest event that is kept.
        oldest: Cursor,
    },
    /// The cursor is of another state.
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

/// The most events that are kept, about 0.2 KiB each.
pub(super) const MOST_KEPT: u64 = 1_000_000;
