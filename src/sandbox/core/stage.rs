//! The steps of a PSU on the bank's pages, and what the bank remembers between them.

use uuid::Uuid;

/// The page that a form stands on, with the answers of earlier pages.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// The number.
    Identify,
    /// The bank's app was asked to confirm.
    App {
        /// The number.
        identity: String,
        /// When, in seconds of Unix time.
        since: u64,
    },
    /// The context.
    Context {
        /// The number.
        identity: String,
    },
    /// The approval.
    Approve {
        /// The number.
        identity: String,
        /// The chosen context, by its value.
        context: String,
    },
}

impl Stage {
    /// The number, once it is known.
    pub(super) fn identity(&self) -> Option<&str> {
        match self {
            Self::Identify => None,
            Self::App { identity, .. }
            | Self::Context { identity }
            | Self::Approve { identity, .. } => Some(identity),
        }
    }
}

/// The same of the page of accesses (SBX-16).
#[derive(Clone, Debug)]
pub(super) enum AccessStage {
    /// The number.
    Identify,
    /// The list of accesses.
    Listed {
        /// The number.
        identity: String,
        /// The accesses, in the order of the page: a form names one by its place.
        accesses: Vec<AccessKey>,
    },
}

/// The access that a PSU gave to a TPP in one context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AccessKey {
    /// The TPP.
    pub(super) tpp: String,
    /// The PSU-ID for this TPP.
    pub(super) psu: Uuid,
    /// The agreement; `None` for the private context.
    pub(super) agreement: Option<Uuid>,
}
