//! What the bank and its core said of PSUs and TPPs, as a gateway may know it (SCA-17, SCA-19, SCA-22, CTL-2).
//!
//! Deliberately not here: anything that a TPP said.

use std::{collections::HashMap, time::Duration};

/// The longest that a gateway may go by an earlier word of another gateway (docs/scaling.md).
const BOUND: Duration = Duration::from_secs(1);

/// The private context, or the number of an agreement.
pub(super) type Agreement = Option<usize>;

/// A fact that somebody states. TPPs, PSUs and agreements are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fact {
    Bound {
        psu: usize,
        tpp: usize,
    },
    Context {
        psu: usize,
        tpp: usize,
        of: Agreement,
    },
    Consent {
        psu: usize,
        tpp: usize,
        of: Agreement,
    },
    Blocked {
        tpp: usize,
        what: Blocked,
    },
}

/// The scope of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Blocked {
    All,
    Payments,
    Psu(usize),
}

/// The moment at which a word was answered, the gateway that answered it, and whether the fact holds since.
#[derive(Clone, Copy)]
struct Word {
    at: Duration,
    gateway: usize,
    holds: bool,
}

/// Where and when something happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) gateway: usize,
    pub(super) at: Duration,
}

/// A statement about a PSU in one context.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement {
    pub(super) psu: usize,
    pub(super) tpp: usize,
    /// `None` where the statement is of the PSU alone.
    pub(super) context: Option<Agreement>,
    pub(super) with_consent: bool,
}

#[derive(Default)]
pub(super) struct Model {
    /// The TPP of each bound PSU, and whether only the core said so.
    owners: HashMap<usize, (usize, bool)>,
    words: HashMap<Fact, Vec<Word>>,
}

impl Model {
    /// Whether a fact holds by the last word.
    pub(super) fn holds(&self, fact: Fact) -> bool {
        let last = self.words.get(&fact).and_then(|words| words.last());
        last.is_some_and(|word| word.holds)
    }

    /// Whether a request that began there may be judged as if the fact held, or did not: by the last word, or by an earlier one that was
    /// superseded at another gateway less than the bound before.
    pub(super) fn may_be(&self, fact: Fact, holds: bool, place: Place) -> bool {
        let words = self.words.get(&fact).map_or(&[][..], Vec::as_slice);
        let is_late = |next: &Word| next.gateway != place.gateway && place.at < next.at + BOUND;
        let mut before = false;
        let earlier = words.iter().any(|next| {
            let was = std::mem::replace(&mut before, next.holds);
            was == holds && is_late(next)
        });
        earlier || before == holds
    }

    pub(super) fn set(&mut self, fact: Fact, holds: bool, place: Place) {
        if self.holds(fact) != holds {
            let Place { gateway, at } = place;
            let words = self.words.entry(fact).or_default();
            words.push(Word { at, gateway, holds });
        }
    }

    pub(super) fn owner(&self, psu: usize) -> Option<(usize, bool)> {
        self.owners.get(&psu).copied()
    }

    /// The agreements that hold of a PSU, and the number of consents.
    pub(super) fn contexts(&self, psu: usize, tpp: usize) -> (Vec<Agreement>, usize) {
        let all = [None, Some(0), Some(1)];
        let of = all.into_iter();
        let known = of.filter(|of| self.holds(Fact::Context { psu, tpp, of: *of }));
        let consents = all.into_iter();
        let consents = consents.filter(|of| self.holds(Fact::Consent { psu, tpp, of: *of }));
        (known.collect(), consents.count())
    }

    /// The bank's word, by a call or a completed SCA. False if it bound the PSU to another TPP: nothing changes.
    pub(super) fn bank_says(&mut self, said: Statement, place: Place) -> bool {
        match self.owner(said.psu) {
            Some((other, learned)) if other != said.tpp => {
                if !learned {
                    return false;
                }
                self.unbind(said.psu, other, place);
            }
            _ => {}
        }
        self.owners.insert(said.psu, (said.tpp, false));
        self.state(said, place);
        true
    }

    /// The core's word while PSUs are learned: of a PSU that nobody has, or of an agreement that is new of a learned one.
    pub(super) fn core_says(&mut self, said: Statement, place: Place) {
        match self.owner(said.psu) {
            None => {
                self.owners.insert(said.psu, (said.tpp, true));
            }
            Some((tpp, true)) if tpp == said.tpp => {
                let Some(of @ Some(_)) = said.context else {
                    return;
                };
                let Statement { psu, tpp, .. } = said;
                if self.holds(Fact::Context { psu, tpp, of }) {
                    return;
                }
            }
            Some(_) => return,
        }
        self.state(said, place);
    }

    fn state(&mut self, said: Statement, place: Place) {
        let Statement { psu, tpp, .. } = said;
        self.set(Fact::Bound { psu, tpp }, true, place);
        let Some(of) = said.context else { return };
        self.set(Fact::Context { psu, tpp, of }, true, place);
        if said.with_consent {
            self.set(Fact::Consent { psu, tpp, of }, true, place);
        }
    }

    /// The end of a binding, with everything that belongs to it.
    pub(super) fn unbind(&mut self, psu: usize, tpp: usize, place: Place) {
        self.owners.remove(&psu);
        self.set(Fact::Bound { psu, tpp }, false, place);
        for of in [None, Some(0), Some(1)] {
            self.set(Fact::Context { psu, tpp, of }, false, place);
            self.set(Fact::Consent { psu, tpp, of }, false, place);
        }
    }
}
