//! Random sequences of all store operations, compared with the rules over simple lists in memory.
//!
//! `STATE_STEPS` is the number of steps; use 100 000 for a long run. `STATE_SEED` repeats a run.

use super::{BEGIN, DAY, Data, HOUR, OTHER, RETENTIONS, TPP, at, dated, env, hash, learn_now};
use crate::harness::Dice;
use portvakt::interface::{
    TppId,
    headers::{CorporateId, PsuId, SessionId},
};
use portvakt::state::{
    Accounts, Beside, Bind, Bound, ClaimRequest, Completion, ConsentAccounts, ContextOrigin,
    Decision, Ended, Finish, Finished, Hash, Known, Learned, LearnedContext, Page, PsuRef,
    QuotaClaim, RequestIdClaim, Retention, StateStore, Taken, Withdraw, Withdrawn,
};
use std::{collections::BTreeMap, sync::LazyLock};

/// One context: last SCA, the consent's time and accounts, and the origin.
type Context = (u64, Option<(u64, ConsentAccounts)>, ContextOrigin);

/// A context before anything is stated of it.
const NEW: Context = (0, None, ContextOrigin::Unknown);

/// The origin after a statement of the bank: its own earlier word stays.
fn by_bank(before: ContextOrigin, now: ContextOrigin) -> ContextOrigin {
    match before {
        ContextOrigin::Bank | ContextOrigin::Import => before,
        ContextOrigin::Unknown | ContextOrigin::Core => now,
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Psu {
    tpp: usize,
    learned: bool,
    last_sca: u64,
    session: Option<(SessionId, u64)>,
    contexts: BTreeMap<Option<Known<CorporateId>>, Context>,
}

impl Psu {
    /// Whether the PSU-ID belongs to this TPP by the bank's word; a learned binding gives way (SCA-19).
    fn is_bound_by_the_bank_to(&mut self, tpp: usize) -> bool {
        if self.tpp != tpp && self.learned {
            *self = Self {
                tpp,
                ..Self::default()
            };
        }
        self.learned &= self.tpp != tpp;
        self.tpp == tpp
    }
}

/// A claim in the model.
struct Held {
    taken: Taken,
    asked: ClaimRequest,
    /// Whether a call was counted, and the one that it replaced.
    counted: bool,
    replaced: Option<u64>,
    /// The list that the call began.
    begun: Option<(u64, u32)>,
    /// The end of the list before this page.
    before: Option<u32>,
}

#[derive(Default)]
struct Model {
    now: u64,
    /// The latest time so far.
    latest: u64,
    /// The last four calls of a key that were not given back, nor replaced by another one.
    calls: BTreeMap<u64, Vec<u64>>,
    /// The call of a list, and the first offset that continues it.
    lists: BTreeMap<u64, (u64, u32)>,
    /// The last second of a durable id, and of one in memory.
    durable: BTreeMap<u64, u64>,
    memory: BTreeMap<u64, u64>,
    tokens: BTreeMap<u64, u64>,
    psus: BTreeMap<Known<PsuId>, Psu>,
}

on_every_engine!(
    the_store_is_the_model,
    the_same_bytes_are_held_once_whatever_the_clock_does,
);

static TPPS: [&LazyLock<TppId>; 2] = [&TPP, &OTHER];

async fn the_store_is_the_model<D: Data>() {
    let steps = env("STATE_STEPS", 3_000);
    let seed = env("STATE_SEED", 1);
    let data = D::new();
    let mut store = Some(data.open());
    let mut dice = Dice(seed);
    let mut model = Model {
        now: BEGIN,
        latest: BEGIN,
        ..Model::default()
    };
    let mut open: Vec<Held> = Vec::new();
    for step in 0..steps {
        let kept = store.as_ref().unwrap();
        let what = format!("seed {seed}, step {step}");
        match dice.below(100) {
            0..45 => model.commit(kept, &mut dice, &mut open, &what).await,
            45..60 => model.give_back(kept, &mut dice, &mut open).await,
            60..72 => model.finish(kept, &mut dice, &what).await,
            72..77 => model.bind(kept, &mut dice, &what).await,
            77..83 => model.withdraw(kept, &mut dice, &what).await,
            83..86 => model.learn(kept, &mut dice, &what).await,
            86..93 => {}
            93..96 => drop(kept.tidy(at(model.now)).await.unwrap()),
            96 if step % 7 == 0 => {
                drop(store.take());
                store = Some(data.open());
                model.memory.clear();
                // Entries in memory are lost, and giving them back has no effect.
            }
            _ => model.move_clock(&mut dice),
        }
        model.look(store.as_ref().unwrap(), &mut dice, &what).await;
    }
}

impl Model {
    /// Mostly a small step, sometimes to the end of a window, and back by less than the allowed minute.
    fn move_clock(&mut self, dice: &mut Dice) {
        self.latest = self.latest.max(self.now);
        match dice.below(12) {
            0..5 => self.now += dice.below(3),
            5..7 => self.now += dice.below(130),
            7..9 => self.now += dice.below(1_000),
            9 => self.now += HOUR,
            10 => self.now += dice.below(DAY / 3),
            _ => self.now = (self.now - dice.below(30)).max(self.latest - 50),
        }
    }

    async fn commit(
        &mut self,
        store: &StateStore,
        dice: &mut Dice,
        open: &mut Vec<Held>,
        what: &str,
    ) {
        let key = dice.below(3);
        let quota = (!dice.one_in(3)).then(|| {
            let offset = u32::try_from(dice.below(8) * 50).unwrap();
            let limit = u32::try_from(dice.below(3) * 50 + 1).unwrap();
            let list = 1_000 + key;
            let page = dice.one_in(2).then_some((list, offset, limit));
            (key, page)
        });
        let request = dice
            .one_in(2)
            .then(|| (2_000 + dice.below(4), retention(dice)));
        let asked = ClaimRequest {
            request: request.map(|(id, retention)| RequestIdClaim {
                id: hash(id),
                date: at(self.now),
                retention,
            }),
            quota: quota.map(|(key, page)| QuotaClaim {
                key: hash(key),
                beside: Beside::default(),
                page: page.map(|(list, offset, limit)| Page {
                    list: hash(list),
                    offset,
                    limit,
                }),
            }),
            now: at(self.now),
        };
        let decision = store.commit(asked).await.unwrap();
        if let Some((id, retention)) = request {
            let (durable, in_memory) =
                (retention != Retention::Memory, retention != Retention::Date);
            // Setting the clock back does not restore entries that expired in memory.
            let now = self.now;
            self.memory
                .retain(|used, until| *used != id || !in_memory || now <= *until);
            let used = |ids: &BTreeMap<u64, u64>| ids.get(&id).is_some_and(|until| now <= *until);
            if in_memory && used(&self.memory) || durable && used(&self.durable) {
                assert!(
                    matches!(decision, Decision::Replayed),
                    "{what}: {decision:?}"
                );
                return;
            }
        }
        let mut counted = false;
        let (mut before, mut begun, mut replaced) = (None, None, None);
        if let Some((key, page)) = quota {
            let calls = self.calls.entry(key).or_default();
            let live = |calls: &[u64]| {
                let mut live: Vec<u64> = calls
                    .iter()
                    .copied()
                    .filter(|call| call + DAY > self.now)
                    .collect();
                live.sort_unstable();
                live
            };
            let continued = page.and_then(|(list, offset, limit)| {
                let (call, end) = *self.lists.get(&list)?;
                (offset >= end && self.now.saturating_sub(call) < 900).then_some((
                    list,
                    offset + limit,
                    call,
                    end,
                ))
            });
            if let Some((list, next, call, end)) = continued {
                self.lists.insert(list, (call, next));
                before = Some(end);
            } else {
                let live = live(calls);
                if live.len() >= 4 {
                    match decision {
                        Decision::NextAt(next) => {
                            assert_eq!(next.unix(), live[live.len() - 4] + DAY, "{what}")
                        }
                        other => panic!("{what}: {other:?}"),
                    }
                    return;
                }
                if calls.len() >= 4 {
                    calls.sort_unstable();
                    replaced = Some(calls.remove(0));
                }
                calls.push(self.now);
                counted = true;
                if let Some((list, offset, limit)) = page {
                    // The list of each call has its own time.
                    let next = self.lists.get(&list).map_or(0, |(call, _)| call + 1);
                    let next = if next <= self.now + 60 { next } else { 0 };
                    begun = Some((self.now.max(next), offset + limit));
                    self.lists.extend(begun.map(|begun| (list, begun)));
                }
            }
            let live = live(&self.calls[&key]);
            let Decision::Held(taken) = &decision else {
                panic!("{what}: {decision:?}")
            };
            let left = taken.left().unwrap();
            assert_eq!(usize::from(left.calls), 4 - live.len(), "{what}");
            assert_eq!(
                left.next.unix(),
                live.first().map_or(self.now, |call| call + DAY),
                "{what}"
            );
        }
        if let Some((id, retention)) = request {
            let ids = self.ids(retention);
            ids.insert(id, until(retention, asked.now.unix()));
            if retention == Retention::Day {
                self.memory.insert(id, asked.now.unix() + 61);
            }
        }
        let Decision::Held(taken) = decision else {
            panic!("{what}: {decision:?}")
        };
        open.push(Held {
            taken,
            asked,
            counted,
            replaced,
            begun,
            before,
        });
    }

    fn ids(&mut self, retention: Retention) -> &mut BTreeMap<u64, u64> {
        match retention {
            Retention::Memory => &mut self.memory,
            Retention::Date | Retention::Day => &mut self.durable,
        }
    }

    async fn give_back(&mut self, store: &StateStore, dice: &mut Dice, open: &mut Vec<Held>) {
        if open.is_empty() {
            return;
        }
        let index = usize::try_from(dice.below(open.len() as u64)).unwrap();
        let held = open.swap_remove(index);
        if dice.one_in(3) {
            return; // It was answered well.
        }
        let latest = self.latest.max(self.now);
        if held.begun.is_some_and(|(call, _)| latest >= call + 900) {
            return; // Housekeeping may have taken its list, and then it stays counted.
        }
        let connected = dice.one_in(2);
        store.give_back(&held.taken, connected).await.unwrap();
        let made = held.asked.now.unix();
        if let Some(quota) = held.asked.quota {
            let key = (0..3).find(|key| hash(*key) == quota.key).unwrap();
            let list = 1_000 + key;
            if held.counted {
                // Not if a page was counted with the request id.
                if held.begun.is_none() || self.lists.get(&list) == held.begun.as_ref() {
                    let calls = self.calls.get_mut(&key).unwrap();
                    if let Some(index) = calls.iter().position(|call| *call == made) {
                        calls.splice(index..=index, held.replaced);
                    }
                    if held.begun.is_some() {
                        self.lists.remove(&list);
                    }
                }
            } else if let (Some(before), Some(page)) = (held.before, quota.page)
                && let Some((_, end)) = self.lists.get_mut(&list)
                && *end == page.offset + page.limit
            {
                *end = before;
            }
        }
        if let Some(request) = held.asked.request.filter(|_| !connected) {
            let id = (2_000..2_004).find(|id| hash(*id) == request.id).unwrap();
            let ids = self.ids(request.retention);
            if ids.get(&id) == Some(&until(request.retention, made)) {
                ids.remove(&id);
            }
            if request.retention == Retention::Day && self.memory.get(&id) == Some(&(made + 61)) {
                self.memory.remove(&id);
            }
        }
    }

    async fn finish(&mut self, store: &StateStore, dice: &mut Dice, what: &str) {
        // Sometimes a used token that is certainly still remembered.
        let old = self
            .tokens
            .keys()
            .copied()
            .filter(|_| dice.one_in(2))
            .last();
        let token = match old {
            Some(token) if dice.one_in(3) => token,
            _ => 10_000 + dice.below(1 << 40),
        };
        let said = dice.below(2);
        let psu = Known::by_bank(PsuId::from_bits(dice.below(6).into()));
        let tpp = usize::try_from(dice.below(8) / 7).unwrap();
        let corporate = dice
            .one_in(3)
            .then(|| Known::by_bank(CorporateId::from_bits(dice.below(2).into())));
        let session = super::session_id(&dice.below(4).to_string());
        let accounts = accounts(dice);
        let consent = dice.one_in(2).then_some(accounts);
        let succeeds = !dice.one_in(4);
        let completion = succeeds.then(|| Completion {
            who: PsuRef {
                tpp: TPPS[tpp],
                psu,
            },
            corporate,
            session: session.clone(),
            consent: consent.as_ref(),
            customer: None,
        });
        let finish = Finish {
            token: hash(token),
            expires: at(self.now + 1_000 * DAY),
            said: hash(said),
            completion,
            now: at(self.now),
        };
        let finished = store.finish(finish).await.unwrap();
        if let Some(before) = self.tokens.get(&token) {
            let expected = if *before == said {
                Finished::Again
            } else {
                Finished::Otherwise
            };
            assert_eq!(finished, expected, "{what}");
            return;
        }
        if succeeds {
            let known = self.psus.entry(psu).or_insert_with(|| Psu {
                tpp,
                ..Psu::default()
            });
            if !known.is_bound_by_the_bank_to(tpp) {
                assert_eq!(finished, Finished::BoundElsewhere, "{what}");
                return;
            }
            known.last_sca = known.last_sca.max(self.now);
            known.session = Some((session, self.now));
            let context = known.contexts.entry(corporate).or_insert(NEW);
            context.0 = context.0.max(self.now);
            context.2 = by_bank(context.2, ContextOrigin::Bank);
            if let Some(accounts) = consent {
                context.1 = Some((self.now, accounts));
            }
        }
        assert_eq!(finished, Finished::Done, "{what}");
        self.tokens.insert(token, said);
    }

    async fn bind(&mut self, store: &StateStore, dice: &mut Dice, what: &str) {
        let psu = Known::by_bank(PsuId::from_bits(dice.below(8).into()));
        let tpp = usize::try_from(dice.below(8) / 7).unwrap();
        let corporate = dice
            .one_in(3)
            .then(|| Known::by_bank(CorporateId::from_bits(dice.below(2).into())));
        let last_sca = self.now - dice.below(200);
        let accounts = accounts(dice);
        let given = dice.one_in(2).then(|| self.now - dice.below(200));
        let imported = dice.one_in(2);
        let origin = [ContextOrigin::Bank, ContextOrigin::Import][usize::from(imported)];
        let bind = Bind {
            imported,
            who: PsuRef {
                tpp: TPPS[tpp],
                psu,
            },
            corporate,
            last_sca: at(last_sca),
            consent: given.map(|given| (at(given), &accounts)),
            customer: None,
        };
        let would = store.would_bind(&bind).await.unwrap();
        let bound = store.bind(bind).await.unwrap();
        assert_eq!(would, bound, "{what}");
        let before = self.psus.get(&psu).cloned();
        let known = self.psus.entry(psu).or_insert_with(|| Psu {
            tpp,
            ..Psu::default()
        });
        if !known.is_bound_by_the_bank_to(tpp) {
            assert_eq!(bound, Bound::Elsewhere, "{what}");
            return;
        }
        let stored = known.contexts.get(&corporate).and_then(|it| it.1.clone());
        let is_outdated = |given| {
            let newer = stored.as_ref().filter(|(before, _)| *before > given);
            newer.is_some_and(|(_, before)| *before != accounts)
        };
        if given.is_some_and(is_outdated) {
            assert_eq!(bound, Bound::ConsentOutdated, "{what}");
            *known = before.unwrap();
            return;
        }
        let context = known.contexts.entry(corporate).or_insert(NEW);
        known.last_sca = known.last_sca.max(last_sca);
        context.0 = context.0.max(last_sca);
        context.2 = by_bank(context.2, origin);
        if let Some(given) = given
            && context
                .1
                .as_ref()
                .is_none_or(|(before, _)| *before <= given)
        {
            context.1 = Some((given, accounts));
        }
        let as_expected = match (&before, bound) {
            (None, Bound::New) => true,
            (Some(before), Bound::TakenOver) => before.tpp != tpp,
            (Some(before), Bound::Unchanged) => *before == *known,
            (Some(before), Bound::Changed(changes)) => {
                let [old, new] = [before, known].map(|psu| psu.contexts.get(&corporate));
                let [had, has] = [old, new].map(|context| context.and_then(|it| it.1.as_ref()));
                before.tpp == tpp
                    && changes.binding == before.learned
                    && changes.context == old.is_none_or(|old| old.2 == ContextOrigin::Core)
                    && changes.consent.is_some() == (had != has)
                    && *before != *known
            }
            _ => false,
        };
        assert!(as_expected, "{what}: {bound:?} {before:?} {known:?}");
    }

    /// Learned data is kept for an unbound PSU-ID, and a new agreement of one that was learned; it changes nothing else (SCA-19, SCA-22).
    async fn learn(&mut self, store: &StateStore, dice: &mut Dice, what: &str) {
        let psu = Known::by_bank(PsuId::from_bits(dice.below(8).into()));
        let tpp = usize::try_from(dice.below(2)).unwrap();
        let corporate = dice
            .one_in(3)
            .then(|| Known::by_bank(CorporateId::from_bits(dice.below(2).into())));
        let last_sca = dice.one_in(2).then(|| self.now - dice.below(200));
        let accounts = accounts(dice);
        let given = dice.one_in(2).then(|| self.now - dice.below(200));
        let is_confirmed = !dice.one_in(4);
        let learned = Learned {
            who: PsuRef {
                tpp: TPPS[tpp],
                psu,
            },
            context: is_confirmed.then(|| LearnedContext {
                corporate,
                consent: given.map(|given| (at(given), &accounts)),
            }),
            last_sca: last_sca.map(at),
        };
        let bound = learn_now(store, learned).await;
        let last_sca = last_sca.unwrap_or_default();
        let context = (
            last_sca,
            given.map(|given| (given, accounts)),
            ContextOrigin::Core,
        );
        if let Some(known) = self.psus.get_mut(&psu) {
            let here = if known.tpp == tpp {
                Bound::Unchanged
            } else {
                Bound::Elsewhere
            };
            assert_eq!(bound, here, "{what}");
            let is_new = corporate.is_some() && !known.contexts.contains_key(&corporate);
            if known.tpp == tpp && known.learned && is_confirmed && is_new {
                known.last_sca = known.last_sca.max(last_sca);
                known.contexts.insert(corporate, context);
            }
            return;
        }
        assert_eq!(bound, Bound::New, "{what}");
        let contexts = is_confirmed.then_some((corporate, context));
        let known = Psu {
            tpp,
            learned: true,
            last_sca,
            session: None,
            contexts: contexts.into_iter().collect(),
        };
        self.psus.insert(psu, known);
    }

    async fn withdraw(&mut self, store: &StateStore, dice: &mut Dice, what: &str) {
        let psu = Known::by_bank(PsuId::from_bits(dice.below(8).into()));
        let tpp = usize::try_from(dice.below(8) / 7).unwrap();
        let corporate = dice
            .one_in(2)
            .then(|| Known::by_bank(CorporateId::from_bits(dice.below(2).into())));
        let withdrawal = match dice.below(4) {
            0 => Withdraw::Consent(corporate),
            1 => Withdraw::Consents,
            2 => Withdraw::Binding,
            _ => Withdraw::Session,
        };
        let withdrawn = store
            .withdraw(
                PsuRef {
                    tpp: TPPS[tpp],
                    psu,
                },
                withdrawal,
            )
            .await
            .unwrap();
        let Some(known) = self.psus.get_mut(&psu).filter(|known| known.tpp == tpp) else {
            assert_eq!(withdrawn, Withdrawn::Unknown, "{what}");
            return;
        };
        let of = |known: &Psu| {
            let contexts = known.contexts.values();
            let consents = contexts.filter(|context| context.1.is_some()).count();
            (usize::from(known.session.is_some()), consents)
        };
        let (before, is_there) = (of(known), |corporate| {
            known.contexts.contains_key(corporate)
        });
        let nothing = match withdrawal {
            Withdraw::Consent(corporate) if !is_there(&corporate) => match corporate {
                Some(_) => Withdrawn::UnknownAgreement,
                None if before.1 > 0 => Withdrawn::OnlyAgreements,
                None => Withdrawn::Already { left: before.1 },
            },
            _ => Withdrawn::Already { left: before.1 },
        };
        match withdrawal {
            Withdraw::Consent(corporate) => {
                known
                    .contexts
                    .entry(corporate)
                    .and_modify(|context| context.1 = None);
            }
            Withdraw::Consents => known
                .contexts
                .values_mut()
                .for_each(|context| context.1 = None),
            Withdraw::Session => known.session = None,
            Withdraw::Binding => {}
        }
        let after = match withdrawal {
            Withdraw::Binding => {
                self.psus.remove(&psu);
                (0, 0)
            }
            _ => of(known),
        };
        let ended = Ended {
            sessions: before.0 - after.0,
            consents: before.1 - after.1,
        };
        let expected = match withdrawal {
            Withdraw::Binding => Withdrawn::Done { ended, left: 0 },
            _ if before == after => nothing,
            _ => Withdrawn::Done {
                ended,
                left: after.1,
            },
        };
        assert_eq!(withdrawn, expected, "{what}");
    }

    /// Asserts that the store has the same PSU as the model, from memory and from the file.
    async fn look(&self, store: &StateStore, dice: &mut Dice, what: &str) {
        let psu = Known::by_bank(PsuId::from_bits(dice.below(8).into()));
        let tpp = usize::try_from(dice.below(2)).unwrap();
        let who = PsuRef {
            tpp: TPPS[tpp],
            psu,
        };
        let found = if dice.one_in(3) {
            store.psu_now(who).await
        } else {
            store.psu(who).await
        };
        let found = found.unwrap().map(|found| {
            let session = found
                .session
                .map(|session| (session.id, session.completed.unix()));
            let mut contexts: Vec<_> = found
                .contexts
                .iter()
                .map(|context| {
                    let consent = context.consent.as_ref().map(|consent| {
                        let accounts = match &consent.accounts {
                            Accounts::All => None,
                            Accounts::Named(accounts) => Some(accounts.clone()),
                        };
                        (consent.given.unix(), accounts)
                    });
                    (
                        context.corporate,
                        context.last_sca.map_or(0, |at| at.unix()),
                        consent,
                        context.origin,
                    )
                })
                .collect();
            contexts.sort();
            let last_sca = found.last_sca.map_or(0, |at| at.unix());
            (found.learned, last_sca, session, contexts)
        });
        let keys = store.keys();
        let expected = self
            .psus
            .get(&psu)
            .filter(|known| known.tpp == tpp)
            .map(|known| {
                let session = known.session.as_ref();
                let session =
                    session.map(|(id, completed)| (keys.session(TPPS[tpp], id), *completed));
                let mut contexts: Vec<_> = known
                    .contexts
                    .iter()
                    .map(|(corporate, (last_sca, consent, origin))| {
                        let consent = consent.as_ref().map(|(given, accounts)| {
                            let hash = |account: &String| keys.account(account);
                            let accounts = match accounts {
                                ConsentAccounts::All => None,
                                ConsentAccounts::Named(ids) => {
                                    Some(ids.iter().map(hash).collect::<Vec<_>>())
                                }
                            };
                            (*given, accounts)
                        });
                        let corporate = corporate.map(|id| keys.corporate(id));
                        (corporate, *last_sca, consent, *origin)
                    })
                    .collect();
                contexts.sort();
                (known.learned, known.last_sca, session, contexts)
            });
        assert_eq!(found, expected, "{what}");
    }
}

fn retention(dice: &mut Dice) -> Retention {
    RETENTIONS[usize::try_from(dice.below(3)).unwrap()]
}

/// The last second of an id, claimed by a request that was signed at the same time.
fn until(retention: Retention, claimed: u64) -> u64 {
    match retention {
        Retention::Memory | Retention::Date => claimed + 61,
        Retention::Day => claimed + DAY,
    }
}

/// The purpose of REP-1: unless the clock steps back by more than a day, the same bytes are claimed once, as long as the claim
/// is not given back.
async fn the_same_bytes_are_held_once_whatever_the_clock_does<D: Data>() {
    let steps = env("STATE_STEPS", 3_000);
    let seed = env("STATE_SEED", 1);
    let data = D::new();
    let mut store = Some(data.open());
    let mut dice = Dice(seed);
    let (mut now, mut latest) = (BEGIN, BEGIN);
    // By id, Date and retention.
    let mut sent: Vec<(u64, u64, Retention)> = Vec::new();
    let mut taken: BTreeMap<u64, Option<Taken>> = BTreeMap::new();
    let mut restarted = 0;
    for step in 0..steps {
        let what = format!("seed {seed}, step {step}");
        match dice.below(20) {
            0..6 => now += dice.below(40),
            6 => now += dice.below(1_000),
            7 => now += dice.below(30 * HOUR),
            8 => now -= dice.below(70),
            9 | 10 => now = (now - dice.below(2 * HOUR)).max(latest - DAY),
            11 => now = latest - dice.below(DAY + 1),
            // Moves the clock to a time at which a sent request is valid again.
            14..17 if !sent.is_empty() => {
                let back = usize::try_from(dice.below(sent.len().min(200) as u64)).unwrap();
                now = sent[sent.len() - 1 - back].1 + dice.below(121) - 60;
            }
            12 => drop(store.as_ref().unwrap().tidy(at(now)).await.unwrap()),
            13 if step % 5 == 0 => {
                drop(store.take());
                store = Some(data.open());
                restarted = latest;
                // Entries in memory are lost, and nothing is given back any more.
                sent.retain(|(_, _, retention)| *retention != Retention::Memory);
                taken.values_mut().for_each(|taken| *taken = None);
            }
            _ => {}
        }
        now = now.max(latest - DAY);
        latest = latest.max(now);
        let store = store.as_ref().unwrap();
        // A new request, or one whose Date is valid again.
        let holds: Vec<usize> = (0..sent.len())
            .filter(|index| sent[*index].1.abs_diff(now) <= 60)
            .collect();
        let index = if holds.is_empty() || dice.one_in(2) {
            let date = now + dice.below(121) - 60;
            sent.push((step, date, retention(&mut dice)));
            sent.len() - 1
        } else {
            holds[usize::try_from(dice.below(holds.len() as u64)).unwrap()]
        };
        let (id, date, retention) = sent[index];
        let mut asked = dated(id, retention, date, now);
        // All ids in one shard of the memory, which rotates as often as possible.
        if let Some(request) = &mut asked.request {
            let mut bytes = *request.id.stored_bytes();
            bytes[0] = 0;
            request.id = Hash::from_bytes(bytes);
        }
        match store.commit(asked).await {
            Ok(Decision::Held(held)) => {
                let before = taken.insert(id, Some(held));
                assert!(before.is_none(), "{what}: held twice");
            }
            Ok(_) => assert!(taken.contains_key(&id), "{what}: a new id"),
            Err(fault) => {
                assert!(
                    retention != Retention::Day && (latest > now || now <= restarted + 120),
                    "{what}: {fault}"
                );
            }
        }
        if dice.one_in(6)
            && let Some(held) = taken.get_mut(&id).and_then(Option::take)
        {
            store.give_back(&held, false).await.unwrap();
            taken.remove(&id);
        }
    }
}

/// All of them, or up to three.
fn accounts(dice: &mut Dice) -> ConsentAccounts {
    if dice.one_in(3) {
        return ConsentAccounts::All;
    }
    let ids = (0..dice.below(4)).map(|account| format!("account {account}"));
    ConsentAccounts::Named(ids.collect())
}
