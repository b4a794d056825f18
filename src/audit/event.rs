//! The records of the audit: their kinds and members (docs/audit.md).
//!
//! Invariant: a record names a PSU by the state's keyed hash only, which the writer replaces by a pseudonym; no other member is taken
//! from a header, a path or a body, except X-Request-ID.

use crate::{clock::LogTime, state::PsuHash};
use serde_json::Value;

/// The records that share files and a time for which they are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Payments and other changes that were forwarded, and their outcome.
    Payments,
    /// Consents, completions, withdrawals, bindings and erasures.
    Psus,
    /// Refused and failed requests.
    Refusals,
    /// Calls of the control listener, reloads, starts and stops.
    Control,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 4] = [Self::Payments, Self::Psus, Self::Refusals, Self::Control];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Payments => "payments",
            Self::Psus => "psus",
            Self::Refusals => "refusals",
            Self::Control => "control",
        }
    }
}

macro_rules! kinds {
    ($($variant:ident = $class:ident $name:literal;)+) => {
        /// The kind of a record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "docs/audit.md describes each by its name")]
        pub enum AuditKind { $($variant),+ }

        impl AuditKind {
            /// The class of its records.
            pub const fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class),+ }
            }

            /// The name in records.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
        }
    };
}

kinds! {
    Forwarding = Payments "forwarding";
    Outcome = Payments "outcome";
    ScaCompleted = Psus "sca-completed";
    ScaFailed = Psus "sca-failed";
    Bound = Psus "bound";
    Learned = Psus "learned";
    Withdrawn = Psus "withdrawn";
    Unbound = Psus "unbound";
    CustomerForgotten = Psus "customer-forgotten";
    Erased = Psus "erased";
    ImportBegun = Psus "import-begun";
    Imported = Psus "imported";
    Refused = Refusals "refused";
    Failed = Refusals "failed";
    LeftOut = Refusals "left-out";
    Started = Control "started";
    Stopped = Control "stopped";
    Reloaded = Control "reloaded";
    ReloadRefused = Control "reload-refused";
    Call = Control "call";
    TppBlocked = Control "tpp-blocked";
    TppUnblocked = Control "tpp-unblocked";
    TppMoved = Control "tpp-moved";
    EndpointDrained = Control "endpoint-drained";
    EndpointRestored = Control "endpoint-restored";
    TppFirstSeen = Control "tpp-first-seen";
    RegistrationLost = Control "registration-lost";
    Retired = Control "retired";
    Resumed = Control "resumed";
}

/// Members of a JSON object as their text, with a comma before each: they stand in a line after those of the chain.
#[derive(Clone, Debug, Default)]
pub(super) struct Members(Vec<u8>);

impl Members {
    /// Adds a member, whose name needs no escape.
    pub(super) fn add(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.extend_from_slice(b",\"");
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
        // Writing to a Vec cannot fail, and a `Value` has no other failure.
        let _ = serde_json::to_writer(&mut self.0, &value.into());
    }

    /// Adds the members of another.
    pub(super) fn extend(&mut self, others: &Self) {
        self.0.extend_from_slice(&others.0);
    }

    /// Their text, which begins with a comma if there are any.
    pub(super) fn text(&self) -> &[u8] {
        &self.0
    }
}

/// A record, before it has its place in a chain.
#[derive(Clone, Debug)]
pub struct AuditEvent {
    pub(super) at: LogTime,
    pub(super) kind: AuditKind,
    pub(super) psu: Option<PsuHash>,
    pub(super) members: Members,
}

impl AuditEvent {
    /// A record of this kind, of something that happened at this time.
    pub fn new(kind: AuditKind, at: LogTime) -> Self {
        Self {
            at,
            kind,
            psu: None,
            members: Members::default(),
        }
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.members.add(name, value);
        self
    }

    /// Adds a member if it has a value.
    #[must_use]
    pub fn with_some(self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Names the PSU by the state's keyed hash.
    #[must_use]
    pub const fn about(mut self, psu: PsuHash) -> Self {
        self.psu = Some(psu);
        self
    }
}
