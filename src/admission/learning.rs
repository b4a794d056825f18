//! PSUs and agreements that the core may confirm (SCA-19, SCA-22).
//!
//! Invariant: nothing is learned without the core's word for it, and an agreement not without the word for its PSU. Deliberately not here:
//! the facts of consent and SCA, which the gateway reads from the answer.

use super::Grant;
use crate::{
    interface::{
        TppId,
        headers::{CorporateId, PsuId},
    },
    state::{CoreWord, Known, Named, PsuRef},
};
use http::HeaderMap;

/// The ids of a forwarded request of which one at least is only claimed.
#[derive(Clone, Copy, Debug)]
pub struct Learning<'a> {
    tpp: &'a TppId,
    psu: Named<PsuId>,
    corporate: Option<Named<CorporateId>>,
}

/// What the core's answer confirms.
#[derive(Clone, Copy, Debug)]
pub struct CoreWords {
    psu: Option<CoreWord<PsuId>>,
    corporate: Option<CoreWord<CorporateId>>,
}

/// The claim that the core's answer does not confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unconfirmed {
    /// PSU-ID.
    Psu,
    /// PSU-Corporate-ID.
    Agreement,
}

/// The context that the core's answer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmedContext {
    /// The request names no agreement.
    Private,
    /// The request names this agreement, and the core confirms it.
    Agreement(Known<CorporateId>),
    /// The request names an agreement that the core does not confirm: facts of the answer belong to no context.
    Unconfirmed,
}

impl CoreWords {
    /// Reads the head of the core's answer.
    pub fn read(answer: &HeaderMap) -> Self {
        Self {
            psu: CoreWord::read(answer),
            corporate: CoreWord::read(answer),
        }
    }
}

impl<'a> Learning<'a> {
    /// The ids of a request, unless all of them are known.
    pub(super) fn of(tpp: &'a TppId, grant: &Grant) -> Option<Self> {
        let (psu, corporate) = (grant.named_psu()?, grant.named_corporate());
        let is_known = psu.known().is_some() && corporate.is_none_or(|id| id.known().is_some());
        (!is_known).then_some(Self {
            tpp,
            psu,
            corporate,
        })
    }

    /// The PSU that the request names.
    pub const fn psu(&self) -> Named<PsuId> {
        self.psu
    }

    /// The first claim that the core's answer does not confirm.
    pub fn unconfirmed(&self, words: CoreWords) -> Option<Unconfirmed> {
        let claims_agreement = self.corporate.is_some_and(|id| id.claimed().is_some());
        if self.psu.claimed().is_some() && words.psu.is_none() {
            Some(Unconfirmed::Psu)
        } else if claims_agreement && (words.psu.is_none() || words.corporate.is_none()) {
            Some(Unconfirmed::Agreement)
        } else {
            None
        }
    }

    /// What is to be learned from the core's answer; `None` if it confirms nothing that is not known.
    pub fn confirmed(&self, words: CoreWords) -> Option<(PsuRef<'a>, ConfirmedContext)> {
        let word = words.psu?;
        let psu = match self.psu {
            Named::Known(known) => known,
            Named::Claimed(claimed) => claimed.confirmed(word),
        };
        let context = match (self.corporate, words.corporate) {
            (None, _) => ConfirmedContext::Private,
            (Some(Named::Known(known)), _) => ConfirmedContext::Agreement(known),
            (Some(Named::Claimed(claimed)), Some(word)) => {
                ConfirmedContext::Agreement(claimed.confirmed(word))
            }
            (Some(Named::Claimed(_)), None) => ConfirmedContext::Unconfirmed,
        };
        if self.psu.known().is_some() && context == ConfirmedContext::Unconfirmed {
            return None;
        }
        let who = PsuRef { tpp: self.tpp, psu };
        Some((who, context))
    }
}
