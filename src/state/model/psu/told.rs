//! What must follow from the words of the PSU, the bank and the core, in the order in which they are committed: written anew, beside the
//! rules.

use super::words::{Op, Tpp, session};
use crate::{Bound, Finished, Withdrawn, model::store::PsuRow};

/// What is known of the PSU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Expected {
    /// The TPP, and whether only the core says so.
    pub(super) owner: Option<(Tpp, bool)>,
    pub(super) session: Option<u8>,
    pub(super) has_consent: bool,
    /// The reports that spent the tokens.
    spent: [Option<u8>; 2],
    /// The number of times that the bank took something back.
    pub(super) removals: u8,
}

/// An outcome, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Told {
    Done,
    Nothing,
    Again,
    Otherwise,
    Elsewhere,
}

impl From<Finished> for Told {
    fn from(finished: Finished) -> Self {
        match finished {
            Finished::Done => Self::Done,
            Finished::Again => Self::Again,
            Finished::Otherwise => Self::Otherwise,
            Finished::BoundElsewhere => Self::Elsewhere,
        }
    }
}

impl From<Bound> for Told {
    fn from(bound: Bound) -> Self {
        match bound {
            Bound::New | Bound::TakenOver | Bound::Changed(_) => Self::Done,
            Bound::Unchanged | Bound::ConsentOutdated => Self::Nothing,
            Bound::Elsewhere => Self::Elsewhere,
        }
    }
}

impl From<Withdrawn> for Told {
    fn from(withdrawn: Withdrawn) -> Self {
        match withdrawn {
            Withdrawn::Done { .. } => Self::Done,
            _ => Self::Nothing,
        }
    }
}

impl Expected {
    /// Applies one word. `removals` is the number of removals that the core's word follows, if it is the core's.
    pub(super) fn hear(&mut self, op: Op, removals: u8) -> Told {
        match op {
            Op::Complete { tpp, token, said } => self.complete(tpp, token, said),
            Op::Learn(tpp) => self.learn(tpp, removals),
            Op::Bind(tpp) => self.bind(tpp),
            Op::WithdrawConsents(tpp) => {
                self.removals += 1;
                let ended = self.is_of(tpp) && self.has_consent;
                self.has_consent &= !ended;
                Self::done(ended)
            }
            Op::EndSession(tpp) => {
                let ended = self.is_of(tpp) && self.session.is_some();
                self.session = self.session.filter(|_| !ended);
                Self::done(ended)
            }
            Op::Unbind(tpp) => {
                self.removals += 1;
                let ended = self.is_of(tpp);
                if ended {
                    self.forget();
                }
                Self::done(ended)
            }
            Op::Erase => {
                self.removals += 1;
                let ended = self.owner.is_some();
                self.forget();
                Self::done(ended)
            }
        }
    }

    fn complete(&mut self, tpp: Tpp, token: usize, said: u8) -> Told {
        if let Some(before) = self.spent[token] {
            return if before == said {
                Told::Again
            } else {
                Told::Otherwise
            };
        }
        if matches!(self.owner, Some((owner, false)) if owner != tpp) {
            return Told::Elsewhere;
        }
        self.spent[token] = Some(said);
        self.owner = Some((tpp, false));
        self.session = Some(said);
        self.has_consent = true;
        Told::Done
    }

    fn learn(&mut self, tpp: Tpp, removals: u8) -> Told {
        if removals != self.removals {
            return Told::Nothing;
        }
        match self.owner {
            Some((owner, _)) if owner == tpp => Told::Nothing,
            Some(_) => Told::Elsewhere,
            None => {
                self.owner = Some((tpp, true));
                self.has_consent = true;
                Told::Done
            }
        }
    }

    fn bind(&mut self, tpp: Tpp) -> Told {
        match self.owner {
            Some((owner, false)) if owner != tpp => Told::Elsewhere,
            Some((owner, true)) if owner != tpp => {
                self.forget();
                self.owner = Some((tpp, false));
                Told::Done
            }
            _ => {
                // The bank's word about the context makes it the bank's.
                let before = self.owner.replace((tpp, false));
                Self::done(before.is_none_or(|(_, learned)| learned))
            }
        }
    }

    fn is_of(&self, tpp: Tpp) -> bool {
        self.owner.is_some_and(|(owner, _)| owner == tpp)
    }

    fn forget(&mut self) {
        self.owner = None;
        self.session = None;
        self.has_consent = false;
    }

    const fn done(is_done: bool) -> Told {
        if is_done { Told::Done } else { Told::Nothing }
    }

    /// Whether a row says the same.
    pub(super) fn is(&self, row: Option<&PsuRow>) -> bool {
        let Some(PsuRow(bound)) = row else {
            return self.owner.is_none();
        };
        let tpp = Tpp::of(bound.written.as_stored());
        let psu = &bound.psu;
        let stored = psu.session.map(|session| session.id);
        self.owner == Some((tpp, psu.learned))
            && stored == self.session.map(|said| session(tpp, said))
            && psu.contexts.iter().any(|it| it.consent.is_some()) == self.has_consent
    }
}
