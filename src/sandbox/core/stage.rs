//! The steps of a PSU on the bank's page, and what the bank remembers between them.

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
