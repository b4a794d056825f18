//! The result of a check: evidence, a refusal that was waived, or the reason why the check did not judge.

use super::enforcement::Waiver;
use crate::interface::{Reason, Refusal, operations::Environment};

/// The result of a check.
#[must_use]
#[derive(Debug)]
pub enum Judged<T> {
    /// It holds, and here is the evidence.
    Held(T),
    /// It does not hold, and the configuration says to let it pass (FWD-6).
    Waived(Box<Refusal>, Waiver),
    /// The check was not made.
    NotJudged(NotJudged),
}

/// Why a check was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotJudged {
    /// An earlier check, whose evidence it needs, was waived.
    NoEvidence,
    /// The configuration switches it off, which only the sandbox permits.
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
    /// Production has every check: a world that lacks one admits nothing.
    pub(super) fn switched_off(environment: Environment) -> Result<Self, Refusal> {
        match environment {
            Environment::Sandbox => Ok(Self::NotJudged(NotJudged::SwitchedOff)),
            Environment::Production => Err(Refusal::new(Reason::Internal)
                .for_operator("production was started without registers or revocation")),
        }
    }

    /// The evidence, where it holds.
    pub const fn held(&self) -> Option<&T> {
        match self {
            Self::Held(evidence) => Some(evidence),
            Self::Waived(..) | Self::NotJudged(_) => None,
        }
    }

    /// The refusal that was let pass.
    pub const fn waived(&self) -> Option<&Refusal> {
        match self {
            Self::Waived(refusal, _) => Some(&**refusal),
            Self::Held(_) | Self::NotJudged(_) => None,
        }
    }
}
