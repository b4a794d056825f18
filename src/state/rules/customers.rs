//! One customer of the bank over all TPPs (CTL-1): withdrawals, the customer's key, the day of the last use.

use super::removal::Mark;
use crate::{
    AccessesOf, AccountHash, Accounts, CorporateHash, CustomerHash, Ended, Keys, PsuHash,
    Unavailable,
    change::Change,
    moves::WrittenAs,
    rows::{BoundPsu, RowKey, Rows},
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::ForbiddenTpp;

/// Consents of a customer that end, or are left for fewer accounts.
pub(crate) struct NarrowedAccess {
    customer: CustomerHash,
    /// PSUs that were the customer's when they were read, each with the mark of its removal.
    psus: Vec<(PsuHash, Mark)>,
    /// The TPP and its former identities; `None` is every TPP.
    tpps: Option<Vec<ForbiddenTpp>>,
    agreement: Option<CorporateHash>,
    /// The accounts that remain.
    remaining: Option<Vec<AccountHash>>,
}

/// What a withdrawal changed of a PSU.
pub(crate) struct Narrowed {
    pub(crate) written: WrittenAs,
    pub(crate) psu: PsuHash,
    pub(crate) ended: Ended,
    /// The number of consents that are left for fewer accounts.
    pub(crate) narrowed: usize,
}

impl NarrowedAccess {
    pub(crate) fn new(
        keys: &Keys,
        of: AccessesOf<'_>,
        tpps: Option<Vec<ForbiddenTpp>>,
        psus: Vec<PsuHash>,
        latest: Timestamp,
    ) -> Result<Self, Unavailable> {
        let psus = psus.into_iter();
        let psus = psus.map(|psu| Ok((psu, Mark::new(psu, latest)?)));
        let hashed = |accounts: &[String]| accounts.iter().map(|id| keys.account(id)).collect();
        Ok(Self {
            customer: keys.customer(of.customer),
            psus: psus.collect::<Result<_, Unavailable>>()?,
            tpps,
            agreement: of.agreement.map(|id| keys.corporate(id)),
            remaining: of.remaining.map(hashed),
        })
    }

    /// Whether it concerns a PSU.
    fn concerns(&self, bound: &BoundPsu) -> bool {
        let mut tpps = self.tpps.iter().flatten();
        let is_named = self.tpps.is_none() || tpps.any(|tpp| tpp.names(bound.written.as_stored()));
        bound.psu.customer == Some(self.customer) && is_named
    }

    /// The accounts that remain of those of a consent; `None` if there is none.
    fn remaining_of(&self, accounts: &Accounts) -> Option<Accounts> {
        let remaining = self.remaining.as_ref()?;
        let mut left = remaining.clone();
        left.retain(|account| accounts.include(*account));
        left.sort_unstable();
        left.dedup();
        (!left.is_empty()).then_some(Accounts::Named(left))
    }

    /// The PSU after the withdrawal, and what changed.
    fn narrow(&self, psu: PsuHash, bound: &BoundPsu) -> (BoundPsu, Narrowed) {
        let mut change = Narrowed {
            written: bound.written.clone(),
            psu,
            ended: Ended::default(),
            narrowed: 0,
        };
        let narrowed = bound.with(|psu| {
            if self.agreement.is_none() && self.remaining.is_none() {
                change.ended.sessions = usize::from(psu.session.take().is_some());
            }
            let contexts = psu.contexts.iter_mut();
            let concerned = contexts.filter(|context| {
                self.agreement
                    .is_none_or(|agreement| context.corporate == Some(agreement))
            });
            for context in concerned {
                let Some(consent) = &mut context.consent else {
                    continue;
                };
                match self.remaining_of(&consent.accounts) {
                    Some(left) if left.are_those_of(&consent.accounts) => {}
                    Some(left) => {
                        consent.accounts = left;
                        change.narrowed += 1;
                    }
                    None => {
                        context.consent = None;
                        change.ended.consents += 1;
                    }
                }
            }
        });
        (narrowed, change)
    }
}

impl Change for NarrowedAccess {
    type Outcome = Vec<Narrowed>;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        for (psu, mark) in &self.psus {
            keys.extend([RowKey::Psu(*psu), mark.key()]);
        }
    }

    /// A PSU that is no longer the customer's is not concerned. The quota is never withdrawn.
    fn decide(&self, rows: &mut Rows) -> Vec<Narrowed> {
        let mut changes = Vec::new();
        for (psu, mark) in &self.psus {
            let Some(bound) = rows.psus.get(*psu).filter(|bound| self.concerns(bound)) else {
                continue;
            };
            let (narrowed, change) = self.narrow(*psu, bound);
            // An answer of the core that is under way teaches nothing, as after every withdrawal.
            mark.put(rows);
            rows.psus.put(*psu, narrowed);
            changes.push(change);
        }
        changes
    }
}

/// A customer's key that is taken off PSUs.
pub(crate) struct Forgotten {
    pub(crate) customer: CustomerHash,
    /// PSUs that had the key when they were read.
    pub(crate) psus: Vec<PsuHash>,
}

impl Change for Forgotten {
    type Outcome = Vec<(WrittenAs, PsuHash)>;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.extend(self.psus.iter().copied().map(RowKey::Psu));
    }

    fn decide(&self, rows: &mut Rows) -> Self::Outcome {
        let mut forgotten = Vec::new();
        for psu in &self.psus {
            let bound = rows.psus.get(*psu);
            let Some(bound) = bound.filter(|bound| bound.psu.customer == Some(self.customer))
            else {
                continue;
            };
            forgotten.push((bound.written.clone(), *psu));
            let without = bound.with(|psu| {
                psu.customer = None;
                psu.pseudonym = None;
            });
            rows.psus.put(*psu, without);
        }
        forgotten
    }
}

/// A day on which a TPP used a context.
pub(crate) struct Used {
    pub(crate) psu: PsuHash,
    pub(crate) corporate: Option<CorporateHash>,
    /// The first second of the day (UTC).
    pub(crate) day: Timestamp,
}

impl Change for Used {
    type Outcome = ();

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.push(RowKey::Psu(self.psu));
    }

    /// A PSU or a context that is gone meanwhile stays gone.
    fn decide(&self, rows: &mut Rows) {
        let Some(bound) = rows.psus.get(self.psu) else {
            return;
        };
        let context = bound.psu.context(self.corporate);
        if context.is_none_or(|context| context.used >= Some(self.day)) {
            return;
        }
        let used = bound.with(|psu| {
            let mut contexts = psu.contexts.iter_mut();
            if let Some(context) = contexts.find(|context| context.corporate == self.corporate) {
                context.used = Some(self.day);
            }
        });
        rows.psus.put(self.psu, used);
    }

    /// A day of use that is lost with a server is written by the next use.
    fn may_be_lost(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Consent, Context, ContextOrigin, CustomerKey, Psu, hash::Hash};
    use portvakt_interface::TppId;
    use std::sync::Arc;

    const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);
    const PSU: PsuHash = Hash::from_bytes([1; 16]);

    fn keys() -> Keys {
        Keys::new(&[7; 32])
    }

    /// A PSU of a customer, with a consent for these accounts.
    fn stored(customer: &CustomerKey, accounts: &[&str]) -> BoundPsu {
        let accounts = accounts.iter().map(|account| keys().account(account));
        BoundPsu {
            written: WrittenAs::new(TppId::parse("PSDNO-FSA-1").unwrap()),
            psu: Arc::new(Psu {
                learned: false,
                last_sca: Some(NOW),
                session: None,
                contexts: vec![Context {
                    corporate: None,
                    origin: ContextOrigin::Bank,
                    last_sca: Some(NOW),
                    consent: Some(Consent {
                        given: NOW,
                        accounts: Accounts::Named(accounts.collect()),
                    }),
                    used: None,
                }],
                customer: Some(keys().customer(customer)),
                pseudonym: None,
                consents_ended: None,
            }),
        }
    }

    //= CTL-1 accepted
    //= CTL-1 refused
    #[test]
    fn a_withdrawal_leaves_no_account_that_the_consent_lacked_and_no_other_customer_is_concerned() {
        let [one, other] = ["1", "2"].map(|key| CustomerKey::parse(key).unwrap());
        for (customer, remaining, left) in [
            (&one, &["b", "c"][..], Some(&["b"][..])),
            (&one, &["a", "b", "c"], Some(&["a", "b"])),
            (&one, &["c"], None),
            (&other, &["c"], Some(&["a", "b"])),
        ] {
            let remaining: Vec<String> = remaining.iter().map(|id| (*id).into()).collect();
            let of = AccessesOf {
                customer,
                tpp: None,
                agreement: None,
                remaining: Some(&remaining),
            };
            let change = NarrowedAccess::new(&keys(), of, None, vec![PSU], NOW).unwrap();
            let mut rows = Rows::default();
            rows.psus.load(PSU, Some(stored(&one, &["a", "b"])));
            let (_, mark) = change.psus[0];
            let RowKey::Token(mark) = mark.key() else {
                panic!("a mark is among the tokens");
            };
            rows.tokens.load(mark, None);
            let changed = change.decide(&mut rows).len();
            assert!(rows.is_complete());
            assert_eq!(changed, usize::from(customer == &one));
            let context = rows
                .psus
                .get(PSU)
                .unwrap()
                .psu
                .context(None)
                .unwrap()
                .clone();
            let accounts = context.consent.map(|consent| consent.accounts);
            let wanted = |left: &[&str]| {
                let left = left.iter().map(|account| keys().account(account));
                Accounts::Named(left.collect())
            };
            let (accounts, left) = (accounts, left.map(wanted));
            assert_eq!(accounts.is_some(), left.is_some());
            if let (Some(accounts), Some(left)) = (accounts, left) {
                assert!(accounts.are_those_of(&left));
            }
        }
    }
}
