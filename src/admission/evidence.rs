//! The result of a check: evidence, a refusal that was waived, or the reason why the check did not judge.

use super::enforcement::Waiver;
use crate::interface::{Reason, Refusal, operations::Environment};

/// The result of a check.
#[must_use]
#[derive(Debug)]
pub enum Judged<T> {
    /// The check passed, with its evidence.
    Held(T),
    /// The check failed, and the configuration waives the refusal (FWD-6).
    Waived(Waiver),
    /// The check was not made.
    NotJudged(NotJudged),
}

/// The reason why a check was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotJudged {
    /// An earlier check was waived, and this check needs its evidence.
    NoEvidence,
    /// The configuration switches the check off, which only the sandbox permits.
    SwitchedOff,
}

impl<T> Judged<T> {
    /// A stage whose input is missing.
    pub(super) const fn without_evidence() -> Self {
        Self::NotJudged(NotJudged::NoEvidence)
    }

    /// A stage that the configuration switched off.
    ///
    /// # Errors
    /// In production every check is required: a snapshot that lacks one admits nothing.
    pub(super) fn switched_off(environment: Environment) -> Result<Self, Refusal> {
        match environment {
            Environment::Sandbox => Ok(Self::NotJudged(NotJudged::SwitchedOff)),
            Environment::Production => Err(Refusal::new(Reason::Internal)
                .for_operator("production was started without registers or revocation")),
        }
    }

    /// The evidence, if the check passed.
    pub const fn held(&self) -> Option<&T> {
        match self {
            Self::Held(evidence) => Some(evidence),
            Self::Waived(_) | Self::NotJudged(_) => None,
        }
    }

    /// Whether the check failed.
    pub(super) const fn is_waived(&self) -> bool {
        matches!(self, Self::Waived(_))
    }
}
