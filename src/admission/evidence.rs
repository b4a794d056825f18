//! What a judgement gives: evidence, a waiver, or an honest "not judged".
//!
//! A check that is not built yet never passes silently: it yields [`NotJudged`], the upstream is told, and a
//! production environment does not start while one is left ([`Unbuilt::ALL`]; none is).

use crate::interface::Refusal;

/// What a stage found.
#[must_use]
#[derive(Debug)]
pub enum Judged<T> {
    /// It holds, and here is the evidence.
    Held(T),
    /// It does not hold, and the configuration says to let it pass (FWD-6).
    Waived(Box<Refusal>, Waiver),
    /// Nobody looked.
    NotJudged(NotJudged),
}

/// The permission to let a refusal pass. Only the configuration mints one (FWD-6).
#[derive(Debug)]
pub struct Waiver {
    _minted: (),
}

/// Why a stage did not judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJudged {
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The stage is not built.
    Unbuilt(Unbuilt),
    /// What it would have judged by was itself waived or not judged.
    NoEvidence,
    /// The configuration says not to, which it may in the sandbox only.
    SwitchedOff,
}

macro_rules! unbuilt {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// A system of the interface that is not built yet. Building it removes its line here, and then the compiler
        /// names every place that said so.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Unbuilt { $($(#[$doc])* $variant),* }

        impl Unbuilt {
            /// Everything that is left to build. A production environment starts when this is empty.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// All of them as the core reads them in Gateway-Not-Judged.
            pub const HEADER: &'static str = unbuilt!(@join $($name),*);

            /// The name in Gateway-Not-Judged, in /readyz and in the README's table.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
    (@join) => { "" };
    (@join $first:literal $(, $rest:literal)*) => { concat!($first $(, ", ", $rest)*) };
}

unbuilt! {}

impl<T> Judged<T> {
    /// A stage that is not built.
    pub const fn unbuilt(stage: Unbuilt) -> Self {
        Self::NotJudged(NotJudged {
            why: Why::Unbuilt(stage),
        })
    }

    /// A stage whose input is missing.
    pub(super) const fn without_evidence() -> Self {
        Self::NotJudged(NotJudged {
            why: Why::NoEvidence,
        })
    }

    /// A stage that the configuration switched off.
    pub(super) const fn switched_off() -> Self {
        Self::NotJudged(NotJudged {
            why: Why::SwitchedOff,
        })
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

impl NotJudged {
    /// The system that is missing; none where the input was.
    pub const fn unbuilt(self) -> Option<Unbuilt> {
        match self.why {
            Why::Unbuilt(stage) => Some(stage),
            Why::NoEvidence | Why::SwitchedOff => None,
        }
    }
}

impl Waiver {
    /// Minted by a policy that observes the refusal's reason, and by nothing else.
    pub(super) const fn mint() -> Self {
        Self { _minted: () }
    }
}
