//! The events of changes (CTL-3): what differs between rows before and after each decision, so that no change can be without its event.

use crate::{
    Accounts, Block, Consent, Event, EventKind, Keys, NewEvent, Psu, PsuHash, TokenHash,
    change::Change,
    hash::Hash,
    rows::{BoundPsu, RowKey, Rows, TokenRow},
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::TppId;

/// SCA-7, SCA-18, QUO-9: the time for which an SCA permits account access, and after which a consent has ended, in seconds.
pub const SCA_LASTS: u64 = 180 * 86_400;

/// The time within which the same roles of a TPP are observed once: gateways read the registers at different times.
const SAME_LOSS: u64 = 86_400;

/// The most PSUs whose ended consents are noted in one pass.
pub(crate) const EXPIRED_AT_ONCE: u32 = 100;

/// The last SCA after which consents have ended by `now`; `None` before 1970.
pub(crate) fn ended_through(now: Timestamp) -> Option<Timestamp> {
    let through = now.unix().checked_sub(SCA_LASTS + 1)?;
    Some(Timestamp::from_unix(through))
}

/// The events of a batch, in the order of its decisions, without their numbers.
pub(crate) fn events(rows: &Rows, at: Timestamp) -> Vec<Event> {
    let mut events = Vec::new();
    for replaced in rows.psus.replaced() {
        of_psu(
            replaced.before.as_ref(),
            replaced.after.as_ref(),
            at,
            &mut events,
        );
    }
    for replaced in rows.blocks.replaced() {
        events.extend(of_block(
            replaced.before.as_ref(),
            replaced.after.as_ref(),
            at,
        ));
    }
    events.extend(rows.observed.iter().cloned());
    events
}

fn event(kind: EventKind, tpp: &str, at: Timestamp) -> Event {
    Event {
        sequence: 0,
        at,
        kind,
        tpp: tpp.to_owned(),
        customer: None,
        corporate: false,
        accounts: None,
        until: None,
        detail: None,
    }
}

/// The events of the consents of a PSU. A PSU that another TPP takes over loses the consents of the first one.
fn of_psu(
    before: Option<&BoundPsu>,
    after: Option<&BoundPsu>,
    at: Timestamp,
    events: &mut Vec<Event>,
) {
    if let (Some(old), Some(new)) = (before, after)
        && old.written != new.written
    {
        of_psu(before, None, at, events);
        of_psu(None, after, at, events);
        return;
    }
    // The consents ended before the SCA that renews them, and nobody noted it yet.
    if let (Some(old), Some(new)) = (before, after)
        && ended_between(&old.psu, &new.psu)
    {
        let ended = old.with(|psu| psu.consents_ended = psu.last_sca);
        of_psu(before, Some(&ended), at, events);
        of_psu(Some(&ended), after, at, events);
        return;
    }
    let Some(bound) = after.or(before) else {
        return;
    };
    let psus = [before, after].map(|bound| bound.map(|bound| &*bound.psu));
    let contexts = |psu: Option<&'_ Psu>| {
        let contexts = psu.map(|psu| psu.contexts.iter().map(|context| context.corporate));
        contexts.into_iter().flatten().collect::<Vec<_>>()
    };
    let [mut agreements, others] = psus.map(contexts);
    agreements.extend(others);
    agreements.sort_unstable();
    agreements.dedup();
    for agreement in agreements {
        let consents = psus.map(|psu| {
            let context = psu.and_then(|psu| psu.context(agreement));
            context.and_then(|context| context.consent.as_ref())
        });
        let [lives_before, lives_after] = psus.map(|psu| psu.is_some_and(|psu| !has_ended(psu)));
        let [old, new] = consents;
        let kind = match (old.filter(|_| lives_before), new.filter(|_| lives_after)) {
            (None, None) => match (old, new) {
                // The next SCA would have given it again: that is the bank's decision too.
                (Some(_), None) => EventKind::ConsentWithdrawn,
                (Some(old), Some(new)) if is_narrowed(old, new) => EventKind::ConsentNarrowed,
                _ => continue,
            },
            (None, Some(_)) => EventKind::ConsentGiven,
            (Some(_), None) if new.is_some() => EventKind::ConsentExpired,
            (Some(_), None) => EventKind::ConsentWithdrawn,
            (Some(old), Some(new)) => match kind_of_difference(old, new) {
                Some(kind) => kind,
                None => continue,
            },
        };
        let accounts = new.and_then(|consent| count(&consent.accounts));
        events.push(Event {
            customer: bound.psu.pseudonym,
            corporate: agreement.is_some(),
            accounts,
            ..event(kind, bound.written.as_stored().as_str(), at)
        });
    }
}

/// Whether the end of the PSU's consents was noted, and no SCA was completed since.
fn has_ended(psu: &Psu) -> bool {
    psu.consents_ended.is_some() && psu.consents_ended == psu.last_sca
}

/// Whether the consents had ended without a note of it when the next SCA was completed.
fn ended_between(old: &Psu, new: &Psu) -> bool {
    let end = old.last_sca.map(|at| at.unix().saturating_add(SCA_LASTS));
    !has_ended(old) && end.is_some_and(|end| new.last_sca.is_some_and(|next| next.unix() > end))
}

/// `None` if the consents are the same.
fn kind_of_difference(old: &Consent, new: &Consent) -> Option<EventKind> {
    if is_narrowed(old, new) {
        return Some(EventKind::ConsentNarrowed);
    }
    let is_new = new.given > old.given || !old.accounts.are_those_of(&new.accounts);
    is_new.then_some(EventKind::ConsentGiven)
}

/// Whether the same consent has fewer accounts.
fn is_narrowed(old: &Consent, new: &Consent) -> bool {
    let is_within = match &new.accounts {
        Accounts::All => false,
        Accounts::Named(left) => left.iter().all(|account| old.accounts.include(*account)),
    };
    new.given <= old.given && is_within && !old.accounts.are_those_of(&new.accounts)
}

fn count(accounts: &Accounts) -> Option<u64> {
    match accounts {
        Accounts::All => None,
        Accounts::Named(accounts) => u64::try_from(accounts.len()).ok(),
    }
}

fn of_block(before: Option<&Block>, after: Option<&Block>, at: Timestamp) -> Option<Event> {
    let (kind, block) = match (before, after) {
        (Some(before), Some(after)) if before == after => return None,
        (_, Some(block)) => (EventKind::TppBlocked, block),
        (Some(block), None) => (EventKind::TppUnblocked, block),
        (None, None) => return None,
    };
    Some(Event {
        until: block.until,
        detail: Some(block.scope.name().to_owned()),
        ..event(kind, block.tpp.as_str(), at)
    })
}

/// An observation of a gateway. A spent token marks what was observed last: the same is no event again.
pub(crate) struct Observed {
    mark: TokenHash,
    marked: TokenRow,
    at: Timestamp,
    event: Option<Event>,
}

impl Observed {
    pub(crate) fn new(keys: &Keys, observed: NewEvent, now: Timestamp) -> Self {
        let kind = observed.kind();
        let of = |tpp: &TppId| event(kind, tpp.as_str(), now);
        let nothing = keys.no_report();
        let (mark, said, expires, event) = match observed {
            // Seen first once in a state.
            NewEvent::TppSeen { tpp } => {
                let always = Timestamp::from_unix(u64::from(u32::MAX));
                (
                    keys.observed(kind, &tpp, ""),
                    nothing,
                    always,
                    Some(of(&tpp)),
                )
            }
            // Gateways that read the registers at different times observe the same roles.
            NewEvent::RolesChanged { tpp, lost, left } => {
                let said = keys.observed(EventKind::RoleLost, &tpp, &left);
                let event = lost.map(|roles| Event {
                    detail: Some(roles),
                    ..of(&tpp)
                });
                (
                    keys.observed(EventKind::RegistrationLost, &tpp, ""),
                    Hash::from_bytes(*said.as_bytes()),
                    Timestamp::from_unix(now.unix().saturating_add(SAME_LOSS)),
                    event,
                )
            }
            NewEvent::CertificateEnds { tpp, serial, end } => {
                let mark = keys.observed(kind, &tpp, &serial);
                let event = Event {
                    until: Some(end),
                    detail: Some(serial),
                    ..of(&tpp)
                };
                (mark, nothing, end, Some(event))
            }
        };
        Self {
            mark,
            marked: TokenRow { said, expires },
            at: now,
            event,
        }
    }
}

impl Change for Observed {
    type Outcome = bool;

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.push(RowKey::Token(self.mark));
    }

    fn decide(&self, rows: &mut Rows) -> bool {
        let marked = rows.tokens.get(self.mark);
        if marked.is_some_and(|marked| marked.expires >= self.at && marked.said == self.marked.said)
        {
            return false;
        }
        rows.tokens.put(self.mark, self.marked);
        rows.observed.extend(self.event.clone());
        self.event.is_some()
    }
}

/// Consents whose time has passed, each noted once in a state.
pub(crate) struct Expiry {
    /// PSUs whose consents had ended when they were read.
    pub(crate) psus: Vec<PsuHash>,
    /// See [`ended_through`].
    pub(crate) through: Timestamp,
}

impl Change for Expiry {
    type Outcome = ();

    fn keys(&self, keys: &mut Vec<RowKey>) {
        keys.extend(self.psus.iter().copied().map(RowKey::Psu));
    }

    fn decide(&self, rows: &mut Rows) {
        for psu in &self.psus {
            let Some(bound) = rows.psus.get(*psu) else {
                continue;
            };
            let last_sca = bound.psu.last_sca;
            if last_sca.is_none_or(|at| at > self.through) || has_ended(&bound.psu) {
                continue;
            }
            let ended = bound.with(|psu| psu.consents_ended = last_sca);
            rows.psus.put(*psu, ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockScope, Context, ContextOrigin, CustomerPseudonym, moves::WrittenAs};
    use portvakt_interface::ForbiddenTpp;
    use std::sync::Arc;

    const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);
    const KEY: PsuHash = Hash::from_bytes([1; 16]);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix(NOW.unix() + seconds)
    }

    /// A PSU with a consent of this time for these accounts.
    fn bound(tpp: &str, consent: Option<(u64, Option<&[u8]>)>) -> BoundPsu {
        let accounts = |named: Option<&[u8]>| match named {
            None => Accounts::All,
            Some(named) => {
                Accounts::Named(named.iter().map(|of| Hash::from_bytes([*of; 16])).collect())
            }
        };
        BoundPsu {
            written: WrittenAs::new(TppId::parse(tpp).unwrap()),
            psu: Arc::new(Psu {
                learned: false,
                last_sca: Some(NOW),
                session: None,
                contexts: vec![Context {
                    corporate: None,
                    origin: ContextOrigin::Bank,
                    last_sca: Some(NOW),
                    consent: consent.map(|(given, named)| Consent {
                        given: at(given),
                        accounts: accounts(named),
                    }),
                    used: None,
                }],
                customer: None,
                pseudonym: Some(CustomerPseudonym::from_bytes([7; 32])),
                consents_ended: None,
            }),
        }
    }

    fn kinds(stored: Option<BoundPsu>, decided: &[Option<BoundPsu>]) -> Vec<&'static str> {
        let mut rows = Rows::default();
        rows.psus.load(KEY, stored);
        for row in decided {
            match row {
                Some(row) => rows.psus.put(KEY, row.clone()),
                None => rows.psus.remove(KEY),
            }
        }
        let events = events(&rows, NOW);
        events.iter().map(|event| event.kind.name()).collect()
    }

    //= CTL-3 accepted
    #[test]
    fn each_difference_of_a_consent_is_an_event() {
        let psu = |consent| Some(bound("PSDNO-FSA-1", consent));
        let given = psu(Some((0, Some(&[1, 2]))));
        for (before, after, expected) in [
            (None, given.clone(), &["consent-given"][..]),
            (psu(None), psu(Some((0, None))), &["consent-given"]),
            (
                given.clone(),
                psu(Some((1, Some(&[1])))),
                &["consent-given"],
            ),
            (
                given.clone(),
                psu(Some((0, Some(&[1])))),
                &["consent-narrowed"],
            ),
            (psu(Some((0, None))), given.clone(), &["consent-narrowed"]),
            (
                given.clone(),
                psu(Some((0, Some(&[1, 3])))),
                &["consent-given"],
            ),
            (given.clone(), psu(Some((0, Some(&[2, 1])))), &[]),
            (given.clone(), psu(None), &["consent-withdrawn"]),
            (given.clone(), None, &["consent-withdrawn"]),
            (psu(None), None, &[]),
            (
                given.clone(),
                Some(bound("PSDNO-FSA-2", Some((0, None)))),
                &["consent-withdrawn", "consent-given"],
            ),
        ] {
            assert_eq!(kinds(before, &[after]), expected);
        }
        // Two decisions of one batch are two events, also where nothing differs in the end.
        let twice = kinds(None, &[given, None]);
        assert_eq!(twice, ["consent-given", "consent-withdrawn"]);
    }

    //= CTL-3 accepted
    #[test]
    fn what_was_observed_before_is_no_event() {
        let (keys, tpp) = (Keys::new(&[7; 32]), TppId::parse("PSDNO-FSA-1").unwrap());
        let mut rows = Rows::default();
        let mut observe = |event: NewEvent, seconds: u64| {
            let observed = Observed::new(&keys, event, at(seconds));
            if !rows.tokens.has(observed.mark) {
                rows.tokens.load(observed.mark, None);
            }
            observed.decide(&mut rows)
        };
        let seen = || NewEvent::TppSeen { tpp: tpp.clone() };
        let lost = |left: &str| NewEvent::RolesChanged {
            tpp: tpp.clone(),
            lost: Some("PIS".into()),
            left: left.into(),
        };
        assert!(observe(seen(), 0));
        assert!(!observe(seen(), 1_000_000));
        assert!(observe(lost("AIS"), 0));
        assert!(!observe(lost("AIS"), SAME_LOSS));
        assert!(observe(lost(""), SAME_LOSS));
        assert!(observe(lost(""), 2 * SAME_LOSS + 1));
    }

    //= CTL-3 accepted
    #[test]
    fn a_consent_expires_once_and_is_given_again_by_an_sca() {
        let stored = bound("PSDNO-FSA-1", Some((0, None)));
        let mut rows = Rows::default();
        rows.psus.load(KEY, Some(stored));
        let expire = |rows: &mut Rows, now: u64| {
            let through = ended_through(at(now)).unwrap();
            Expiry {
                psus: vec![KEY],
                through,
            }
            .decide(rows);
        };
        expire(&mut rows, SCA_LASTS);
        assert_eq!(events(&rows, NOW), []);
        expire(&mut rows, SCA_LASTS + 1);
        expire(&mut rows, SCA_LASTS + 2);
        let ended = rows.psus.get(KEY).unwrap().clone();
        let again = ended.with(|psu| psu.last_sca = Some(at(SCA_LASTS + 9)));
        rows.psus.put(KEY, again);
        let events = events(&rows, NOW);
        let kinds: Vec<_> = events.iter().map(|event| event.kind.name()).collect();
        assert_eq!(kinds, ["consent-expired", "consent-given"]);
        assert!(events.iter().all(|event| event.customer.is_some()));
        // The same where nobody noted the end before the SCA, and an SCA within the time is no event.
        for (renewed, expected) in [
            (SCA_LASTS + 1, &["consent-expired", "consent-given"][..]),
            (SCA_LASTS, &[]),
        ] {
            let stored = bound("PSDNO-FSA-1", Some((0, None)));
            let renewed = stored.with(|psu| psu.last_sca = Some(at(renewed)));
            assert_eq!(
                super::tests::kinds(Some(stored), &[Some(renewed)]),
                expected
            );
        }
        // The bank takes back what has ended: the next SCA does not give it again.
        let left = |consent| {
            let left = bound("PSDNO-FSA-1", consent);
            Some(left.with(|psu| psu.consents_ended = psu.last_sca))
        };
        for (decided, expected) in [
            (None, &["consent-withdrawn"][..]),
            (left(None), &["consent-withdrawn"]),
            (left(Some((0, Some(&[1])))), &["consent-narrowed"]),
            (left(Some((0, None))), &[]),
            (left(Some((1, None))), &[]),
        ] {
            let ended = left(Some((0, None)));
            assert_eq!(super::tests::kinds(ended, &[decided]), expected);
        }
    }

    //= CTL-3 accepted
    #[test]
    fn a_block_and_its_end_are_events() {
        let block = |reason: &str| Block {
            tpp: ForbiddenTpp::parse("PSDNO-FSA-1").unwrap(),
            scope: BlockScope::Payments,
            reason: reason.to_owned(),
            since: NOW,
            until: Some(at(9)),
        };
        let key = Hash::from_bytes([2; 16]);
        let mut rows = Rows::default();
        rows.blocks.load(key, None);
        rows.blocks.put(key, block("fraud"));
        rows.blocks.put(key, block("fraud"));
        rows.blocks.remove(key);
        let events = events(&rows, NOW);
        let [blocked, unblocked] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!(blocked.kind, EventKind::TppBlocked);
        assert_eq!(
            (blocked.until, blocked.detail.as_deref()),
            (Some(at(9)), Some("payments"))
        );
        assert_eq!(unblocked.kind, EventKind::TppUnblocked);
    }
}
