//! The TPP that a PSU is bound to, by the statement of the bank or the core, and withdrawals by the bank (SCA-3, SCA-13, SCA-18, SCA-19,
//! SCA-21, SCA-22).

use super::{
    owner::{Owner, bind_to},
    removal::{self, Mark, Removal},
};
use crate::{
    Accounts, Bind, Bound, Changes, Consent, ConsentAccounts, ConsentChange, Context,
    ContextOrigin, CorporateHash, Ended, Keys, Known, Learned, Psu, PsuHash, PsuRef, Unavailable,
    Withdraw, Withdrawn,
    change::Change,
    customer::NamedCustomer,
    moves::{Moves, WrittenAs},
    rows::{BoundPsu, RowKey, Rows},
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::headers::CorporateId;

/// A binding that the bank imports, or that the core's answer states.
pub(crate) struct NewBinding {
    owner: Owner,
    /// The context that the statement is about; `None` if it is about the PSU alone (SCA-22).
    context: Option<NewContext>,
    last_sca: Option<Timestamp>,
    /// CTL-1.
    customer: Option<NamedCustomer>,
    /// Who states it. A binding that only the core states is a learned one (SCA-19).
    origin: ContextOrigin,
    /// Of the core's statement: the last removal before its request went out. After another one the statement is of no use.
    since: Option<Removal>,
}

/// The context of a statement.
struct NewContext {
    corporate: Option<CorporateHash>,
    consent: Option<Consent>,
}

/// A consent, a session or a binding that the bank withdraws (SCA-13).
pub(crate) struct Withdrawal {
    owner: Owner,
    part: Part,
    mark: Mark,
}

/// The part that is withdrawn, with the agreement hashed.
enum Part {
    Consent(Option<CorporateHash>),
    Consents,
    Session,
    Binding,
}

impl NewBinding {
    pub(crate) fn by_bank(keys: &Keys, moves: &Moves, bind: &Bind<'_>) -> Self {
        Self {
            owner: Owner::new(keys, moves, bind.who),
            context: Some(NewContext::new(keys, bind.corporate, bind.consent)),
            last_sca: Some(bind.last_sca),
            customer: bind.customer.map(|key| keys.named_customer(key)),
            origin: if bind.imported {
                ContextOrigin::Import
            } else {
                ContextOrigin::Bank
            },
            since: None,
        }
    }

    pub(crate) fn learned(
        keys: &Keys,
        moves: &Moves,
        learned: &Learned<'_>,
        since: Removal,
    ) -> Self {
        Self {
            owner: Owner::new(keys, moves, learned.who),
            context: learned
                .context
                .map(|context| NewContext::new(keys, context.corporate, context.consent)),
            last_sca: learned.last_sca,
            customer: None,
            origin: ContextOrigin::Core,
            since: Some(since),
        }
    }

    /// Whether the PSU has a newer consent for other accounts. The statement may be late, or mean to narrow the consent: nobody can tell.
    fn is_outdated(&self, psu: &Psu) -> bool {
        let Some(new) = &self.context else {
            return false;
        };
        let stored = consent_of(psu.context(new.corporate));
        let pair = stored.zip(new.consent.as_ref());
        pair.is_some_and(|(stored, new)| {
            stored.given > new.given && !stored.accounts.are_those_of(&new.accounts)
        })
    }

    /// The PSU with everything that is stated. Times only move forward: a consent that is older than the stored one changes nothing.
    fn update(&self, bound: BoundPsu, customer_key: Option<&str>) -> BoundPsu {
        let Some(new) = &self.context else {
            return bound;
        };
        bound.with(|psu| {
            psu.set_customer(self.customer, customer_key);
            psu.update_context(new.corporate, self.origin, |context| {
                context.last_sca = context.last_sca.max(self.last_sca);
                let before = context.consent.as_ref().map(|consent| consent.given);
                if let Some(consent) = &new.consent
                    && before <= Some(consent.given)
                {
                    context.consent = Some(consent.clone());
                }
            });
        })
    }

    /// What differs between the PSU before and after.
    fn changes(&self, before: &Psu, after: &Psu) -> Changes {
        let of_psu = Changes {
            binding: before.learned != after.learned,
            last_sca: before.last_sca != after.last_sca,
            customer: (before.customer, before.pseudonym) != (after.customer, after.pseudonym),
            ..Changes::default()
        };
        let Some(new) = &self.context else {
            return of_psu;
        };
        let [old, new] = [before, after].map(|psu| psu.context(new.corporate));
        let last_sca = |context: Option<&Context>| context.and_then(|context| context.last_sca);
        let origin = |context: Option<&Context>| context.map(|context| context.origin);
        let (old_consent, new_consent) = (consent_of(old), consent_of(new));
        let given = |consent: Option<&Consent>| consent.map(|consent| consent.given);
        Changes {
            context: origin(old) != origin(new),
            last_sca: of_psu.last_sca || last_sca(old) != last_sca(new),
            consent: (old_consent != new_consent).then(|| {
                if given(old_consent) == given(new_consent) {
                    ConsentChange::OtherAccounts
                } else {
                    ConsentChange::Given
                }
            }),
            ..of_psu
        }
    }

    /// The PSU with its new binding.
    ///
    /// # Errors
    /// The binding exists already, or the PSU is bound to another TPP: nothing changes.
    fn bound(&self, rows: &Rows) -> Result<BoundPsu, Bound> {
        if self.origin != ContextOrigin::Core {
            return bind_to(rows, &self.owner, self.last_sca).ok_or(Bound::Elsewhere);
        }
        match rows.psus.get(self.owner.psu) {
            _ if self.owner.is_former(rows) => Err(Bound::Elsewhere),
            None => Ok(self.owner.bound(self.last_sca, true)),
            Some(bound) if self.owner.owns(rows, bound) && self.adds_agreement(&bound.psu) => {
                Ok(bound.with(|psu| psu.last_sca = psu.last_sca.max(self.last_sca)))
            }
            Some(bound) if self.owner.owns(rows, bound) => Err(Bound::Unchanged),
            Some(_) => Err(Bound::Elsewhere),
        }
    }

    /// SCA-22: whether the core's statement is about an agreement that is new of a PSU that was learned. The agreements of a PSU that the
    /// bank bound come from the bank alone.
    fn adds_agreement(&self, psu: &Psu) -> bool {
        let agreement = self.context.as_ref().and_then(|new| new.corporate);
        psu.learned && agreement.is_some_and(|id| psu.context(Some(id)).is_none())
    }
}

impl NewContext {
    fn new(
        keys: &Keys,
        corporate: Option<Known<CorporateId>>,
        consent: Option<(Timestamp, &ConsentAccounts)>,
    ) -> Self {
        Self {
            corporate: corporate.map(|id| keys.corporate(id)),
            consent: consent.map(|(given, accounts)| Consent {
                given,
                accounts: Accounts::hashed(keys, accounts),
            }),
        }
    }
}

impl Change for NewBinding {
    type Outcome = Bound;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        self.owner.keys(keys);
        keys.extend(
            self.since
                .map(|_| RowKey::Token(removal::key(self.owner.psu))),
        );
    }

    /// The core's statement does not change a context that is already known, and nothing at all once the bank took something back, so that a
    /// withdrawal in between remains effective.
    fn decide(&self, rows: &mut Rows) -> Bound {
        let is_late = |since| since != Removal::of(rows, self.owner.psu);
        if self.since.is_some_and(is_late) {
            return Bound::Unchanged;
        }
        let bound = match self.bound(rows) {
            Ok(bound) => bound,
            Err(unchanged) => return unchanged,
        };
        if self.is_outdated(&bound.psu) {
            return Bound::ConsentOutdated;
        }
        let bound = self.update(bound, rows.customer_key.as_deref());
        let outcome = match rows.psus.get(self.owner.psu) {
            None => Bound::New,
            Some(before) if !self.owner.owns(rows, before) => Bound::TakenOver,
            Some(before) => match self.changes(&before.psu, &bound.psu) {
                changes if changes == Changes::default() => return Bound::Unchanged,
                changes => Bound::Changed(changes),
            },
        };
        rows.psus.put(self.owner.psu, bound);
        outcome
    }
}

impl Withdrawal {
    pub(crate) fn new(
        keys: &Keys,
        moves: &Moves,
        who: PsuRef<'_>,
        what: Withdraw,
        latest: Timestamp,
    ) -> Result<Self, Unavailable> {
        let owner = Owner::new(keys, moves, who);
        Ok(Self {
            mark: Mark::new(owner.psu, latest)?,
            owner,
            part: match what {
                Withdraw::Consent(corporate) => {
                    Part::Consent(corporate.map(|id| keys.corporate(id)))
                }
                Withdraw::Consents => Part::Consents,
                Withdraw::Session => Part::Session,
                Withdraw::Binding => Part::Binding,
            },
        })
    }
}

impl Change for Withdrawal {
    type Outcome = Withdrawn;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        self.owner.keys(keys);
        keys.push(self.mark.key());
    }

    /// The quota is never withdrawn.
    fn decide(&self, rows: &mut Rows) -> Withdrawn {
        // Also where nothing is there yet: an answer may be under way.
        if !matches!(self.part, Part::Session) {
            self.mark.put(rows);
        }
        let bound = rows.psus.get(self.owner.psu);
        let Some(bound) = bound.filter(|bound| self.owner.owns(rows, bound)) else {
            return Withdrawn::Unknown;
        };
        let ends = |context: &Context| match self.part {
            Part::Consent(corporate) => context.corporate == corporate,
            Part::Consents | Part::Binding => true,
            Part::Session => false,
        };
        let ends_session = matches!(self.part, Part::Session | Part::Binding);
        let all = consents(&bound.psu, |_| true);
        let ended = Ended {
            sessions: usize::from(ends_session && bound.psu.session.is_some()),
            consents: consents(&bound.psu, ends),
        };
        let left = all.saturating_sub(ended.consents);
        if matches!(self.part, Part::Binding) {
            rows.psus.remove(self.owner.psu);
            return Withdrawn::Done { ended, left };
        }
        if ended == Ended::default() {
            return self.nothing(&bound.psu, left);
        }
        let changed = bound.with(|psu| {
            if ends_session {
                psu.session = None;
            }
            for context in psu.contexts.iter_mut().filter(|context| ends(context)) {
                context.consent = None;
            }
        });
        rows.psus.put(self.owner.psu, changed);
        Withdrawn::Done { ended, left }
    }
}

impl Withdrawal {
    /// The reason why nothing ended. A context that is there says that this withdrawal may be a repeated one.
    fn nothing(&self, psu: &Psu, left: usize) -> Withdrawn {
        match self.part {
            Part::Consent(corporate) if psu.context(corporate).is_none() => match corporate {
                Some(_) => Withdrawn::UnknownAgreement,
                None if left > 0 => Withdrawn::OnlyAgreements,
                None => Withdrawn::Already { left },
            },
            _ => Withdrawn::Already { left },
        }
    }
}

/// The removal of a PSU's binding, whichever TPP has it.
pub(crate) struct Erasure {
    psu: PsuHash,
    mark: Mark,
}

impl Erasure {
    pub(crate) fn new(psu: PsuHash, latest: Timestamp) -> Result<Self, Unavailable> {
        let mark = Mark::new(psu, latest)?;
        Ok(Self { psu, mark })
    }
}

impl Change for Erasure {
    /// The identity under which the PSU was bound, and what ended.
    type Outcome = Option<(WrittenAs, Ended)>;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.extend([RowKey::Psu(self.psu), self.mark.key()]);
    }

    fn decide(&self, rows: &mut Rows) -> Option<(WrittenAs, Ended)> {
        self.mark.put(rows);
        let erased = rows.psus.get(self.psu).map(|bound| {
            let ended = Ended {
                sessions: usize::from(bound.psu.session.is_some()),
                consents: consents(&bound.psu, |_| true),
            };
            (bound.written.clone(), ended)
        });
        rows.psus.remove(self.psu);
        erased
    }
}

/// The number of consents in some contexts.
fn consents(psu: &Psu, of: impl Fn(&Context) -> bool) -> usize {
    let contexts = psu.contexts.iter().filter(|context| of(context));
    contexts.filter(|context| context.consent.is_some()).count()
}

fn consent_of(context: Option<&Context>) -> Option<&Consent> {
    context.and_then(|context| context.consent.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LearnedContext, Move};
    use portvakt_interface::{TppId, headers::PsuId};

    const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);

    fn keys() -> Keys {
        Keys::new(&[7; 32])
    }

    fn tpp(number: u8) -> TppId {
        TppId::parse(&format!("PSDNO-FSA-{number}")).unwrap()
    }

    fn psu(tpp: &TppId) -> PsuRef<'_> {
        let psu = Known::by_bank(PsuId::from_bits(1));
        PsuRef { tpp, psu }
    }

    /// Decides a change of rows of which only these are stored.
    fn decide(change: &NewBinding, stored: Option<&BoundPsu>, moves: &[Move]) -> (Bound, Rows) {
        let (mut rows, mut wanted) = (Rows::default(), Vec::new());
        for moved in moves {
            rows.moves
                .load(keys().moved(&moved.from), Some(moved.clone()));
        }
        change.keys(&mut wanted);
        for key in wanted {
            match key {
                RowKey::Psu(key) => rows.psus.load(key, stored.cloned()),
                RowKey::Token(key) => rows.tokens.load(key, None),
                RowKey::Move(key) if !rows.moves.has(key) => rows.moves.load(key, None),
                _ => {}
            }
        }
        let outcome = change.decide(&mut rows);
        assert!(rows.is_complete());
        (outcome, rows)
    }

    fn by_bank(tpp: &TppId) -> NewBinding {
        consented(tpp, None)
    }

    /// The bank's word, with a consent of this time for all accounts.
    fn consented(tpp: &TppId, given: Option<Timestamp>) -> NewBinding {
        let bind = Bind {
            who: psu(tpp),
            corporate: None,
            imported: false,
            last_sca: NOW,
            consent: given.map(|given| (given, &ConsentAccounts::All)),
            customer: None,
        };
        NewBinding::by_bank(&keys(), &Moves::default(), &bind)
    }

    fn by_core(tpp: &TppId, agreement: Option<u128>) -> NewBinding {
        let corporate = agreement.map(|id| Known::by_bank(CorporateId::from_bits(id)));
        let learned = Learned {
            who: psu(tpp),
            context: Some(LearnedContext {
                corporate,
                consent: None,
            }),
            last_sca: Some(NOW),
        };
        let nothing_removed = Removal::of(&Rows::default(), keys().psu(psu(tpp).psu));
        NewBinding::learned(&keys(), &Moves::default(), &learned, nothing_removed)
    }

    fn row(rows: &Rows) -> BoundPsu {
        let stored = rows.psus.get(keys().psu(psu(&tpp(1)).psu));
        stored.unwrap().clone()
    }

    //= SCA-22 accepted
    //= SCA-22 refused
    #[test]
    fn the_core_adds_agreements_to_a_psu_that_it_named_and_to_no_other() {
        let (outcome, rows) = decide(&by_core(&tpp(1), None), None, &[]);
        assert_eq!(outcome, Bound::New);
        let (outcome, _) = decide(&by_core(&tpp(1), Some(1)), Some(&row(&rows)), &[]);
        assert!(matches!(outcome, Bound::Changed(changes) if changes.context));
        let (_, rows) = decide(&by_bank(&tpp(1)), None, &[]);
        let (outcome, _) = decide(&by_core(&tpp(1), Some(1)), Some(&row(&rows)), &[]);
        assert_eq!(outcome, Bound::Unchanged);
    }

    #[test]
    fn a_consent_only_becomes_newer() {
        let given = |seconds: u64| Timestamp::from_unix(NOW.unix() + seconds);
        let consented = |seconds| consented(&tpp(1), Some(given(seconds)));
        let (_, rows) = decide(&consented(5), None, &[]);
        for (next, newest) in [(4, 5), (6, 6)] {
            let (_, rows) = decide(&consented(next), Some(&row(&rows)), &[]);
            let stored = row(&rows);
            let consent = consent_of(stored.psu.context(None));
            assert_eq!(consent.unwrap().given, given(newest));
        }
    }

    //= CTL-4 refused
    #[test]
    fn nothing_is_bound_to_an_identity_that_a_tpp_had_before() {
        let moved = Move {
            from: tpp(1),
            to: tpp(2),
            since: NOW,
        };
        for change in [by_bank(&tpp(1)), by_core(&tpp(1), None)] {
            let (outcome, rows) = decide(&change, None, std::slice::from_ref(&moved));
            assert_eq!(outcome, Bound::Elsewhere);
            assert_eq!(rows.psus.changed().count(), 0);
        }
    }
}
