//! The result of a check: evidence, a refusal that was waived, or the reason why the check did not judge.

use crate::interface::Refusal;

/// What a stage found.
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

/// The permission to let a refusal pass. Only the configuration mints one (FWD-6).
#[derive(Debug)]
pub struct Waiver {
    _minted: (),
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
    pub(super) const fn switched_off() -> Self {
        Self::NotJudged(NotJudged::SwitchedOff)
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

impl Waiver {
    /// Minted by a policy that observes the refusal's reason, and by nothing else.
    pub(super) const fn mint() -> Self {
        Self { _minted: () }
    }
}
