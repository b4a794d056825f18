//! Request ids in memory (REP-1). For safe requests the memory of this process is sufficient. The ids of unsafe requests, which the store
//! also keeps, are in memory too, so that an id passes once, whatever the method.
//!
//! Each of 64 shards has two generations of a map, with exact times. A new generation starts every three minutes, and a generation is
//! dropped when it is at least three minutes old, so that no map is searched for expired ids. Invariants: an id is never dropped before its
//! time; if memory is full, new ids are refused instead; an id that was dropped is never treated as unused, whatever time the clock shows
//! later. The ids of an earlier process are not known.

use super::{
    RequestHash,
    hash::{HashMapByBits, OfRequest},
    lock::lock,
    rules,
};
use portvakt_base::clock::Timestamp;
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

/// The time during which a generation grows, in seconds: longer than the lifetime of an id, which is 121 s if its Date is a minute ahead.
const GENERATION: u64 = 180;

const SHARDS: usize = 64;

/// The maximum difference by which the clock may be behind the latest known time without counting as stepped back, in seconds. A Date may
/// be ahead by the same difference (DAT-2).
const BEHIND: u64 = 60;

type Ids = HashMapByBits<OfRequest, u64>;

/// The request ids that this process has received.
pub(super) struct RequestIds {
    shards: Vec<Mutex<Shard>>,
    /// The maximum number of ids of one generation of one shard.
    most: usize,
    /// The latest time that was known at creation.
    known: u64,
    /// Whether no caller has given a time yet.
    is_new: AtomicBool,
}

#[derive(Default)]
struct Shard {
    begun: u64,
    young: Generation,
    old: Generation,
    /// The latest end of a dropped id. An id that would end by then may have been used.
    forgotten: u64,
}

#[derive(Default)]
struct Generation {
    /// The last second in which each id counts as used.
    ids: Ids,
    /// The latest of these seconds.
    last: u64,
}

/// The outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdClaim {
    /// The id is used for the first time.
    First,
    /// The id was used before, and is known.
    Used,
    /// The id may have been used and dropped, because the clock stepped back.
    Forgotten,
    /// There is no memory for the id.
    Full,
}

impl RequestIds {
    /// Memory for about this many ids; `known` is the latest time of an earlier process.
    pub(super) fn new(most: usize, known: Timestamp) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            most: (most / SHARDS / 2).max(1),
            known: known.unix(),
            is_new: AtomicBool::new(true),
        }
    }

    /// Claims an id, which counts as used until this time.
    pub(super) fn claim(&self, id: RequestHash, until: Timestamp, now: Timestamp) -> IdClaim {
        self.open_at(now);
        let (until, now) = (until.unix(), now.unix());
        self.with_shard(id, |shard| {
            shard.turn(now);
            let used = [&shard.young, &shard.old]
                .into_iter()
                .any(|generation| generation.ids.get(&id).is_some_and(|until| now <= *until));
            if used {
                return IdClaim::Used;
            }
            if until <= shard.forgotten {
                return IdClaim::Forgotten;
            }
            if shard.young.ids.len() >= self.most {
                return IdClaim::Full;
            }
            shard.old.ids.remove(&id);
            shard.young.put(id, until);
            IdClaim::First
        })
    }

    /// Records the time. The first time limits the ids that earlier processes may have received: those that ended by then and, if the clock
    /// stepped back since, all that they can have claimed.
    pub(super) fn open_at(&self, now: Timestamp) {
        if self.is_new.load(Ordering::Acquire) {
            self.open(now.unix());
        }
    }

    #[cold]
    fn open(&self, now: u64) {
        let is_behind = now.saturating_add(BEHIND) < self.known;
        let ended = match self.known {
            // There was no earlier process.
            0 => 0,
            // The ids of an earlier process with Dates ahead of its clock.
            known if is_behind => {
                rules::date_ends(Timestamp::from_unix(known.saturating_add(BEHIND))).unix()
            }
            _ => now,
        };
        for shard in &self.shards {
            let mut shard = lock(shard);
            shard.forgotten = shard.forgotten.max(ended);
        }
        self.is_new.store(false, Ordering::Release);
    }

    /// Undoes a claim with this end.
    pub(super) fn forget(&self, id: RequestHash, until: Timestamp) {
        let until = until.unix();
        self.with_shard(id, |shard| {
            for generation in [&mut shard.young, &mut shard.old] {
                if generation.ids.get(&id) == Some(&until) {
                    generation.ids.remove(&id);
                }
            }
        });
    }

    /// The latest end of a dropped id.
    pub(super) fn forgotten(&self) -> Timestamp {
        let forgotten = self.shards.iter().map(|shard| lock(shard).forgotten);
        Timestamp::from_unix(forgotten.max().unwrap_or(0))
    }

    /// An operator accepted the clock: the dropped ids no longer matter.
    pub(super) fn trust_clock(&self) {
        self.is_new.store(false, Ordering::Release);
        for shard in &self.shards {
            lock(shard).forgotten = 0;
        }
    }

    fn with_shard<T>(&self, id: RequestHash, act: impl FnOnce(&mut Shard) -> T) -> T {
        let [first, ..] = *id.as_bytes();
        let index = usize::from(first) % SHARDS;
        match self.shards.get(index) {
            Some(shard) => act(&mut lock(shard)),
            // Unreachable: the index is below SHARDS.
            None => act(&mut Shard::default()),
        }
    }
}

impl Shard {
    /// Starts a new generation when it is due. After the clock stepped back, the current generation lasts longer.
    fn turn(&mut self, now: u64) {
        self.begun = self.begun.min(now);
        if now.saturating_sub(self.begun) < GENERATION {
            return;
        }
        // The new map is as large as the last one became, because growing a map delays the next request.
        let young = Generation::with_room(self.young.ids.len());
        let old = std::mem::replace(&mut self.young, young);
        let dropped = std::mem::replace(&mut self.old, old);
        self.begun = now;
        if dropped.last < now {
            self.forgotten = self.forgotten.max(dropped.last);
            return;
        }
        // Only after the clock was ahead: an id that has not ended is kept.
        for (id, until) in dropped.ids {
            if until < now {
                self.forgotten = self.forgotten.max(until);
            } else if !self.old.ids.contains_key(&id) {
                self.old.put(id, until);
            }
        }
    }
}

impl Generation {
    fn with_room(ids: usize) -> Self {
        Self {
            ids: Ids::with_capacity_and_hasher(ids, Default::default()),
            last: 0,
        }
    }

    fn put(&mut self, id: RequestHash, until: u64) {
        self.ids.insert(id, until);
        self.last = self.last.max(until);
    }
}

/// The ids of one shard, for models that make [`RequestIds`] of what they keep.
#[cfg(test)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeptIds {
    known: u64,
    is_new: bool,
    begun: u64,
    forgotten: u64,
    /// Of the young and the old generation: the ids and the latest end.
    generations: [(std::collections::BTreeMap<RequestHash, u64>, u64); 2],
}

#[cfg(test)]
impl RequestIds {
    /// The shard of an id. The others are never claimed.
    pub(super) fn kept(&self, id: RequestHash) -> KeptIds {
        self.with_shard(id, |shard| KeptIds {
            known: self.known,
            is_new: self.is_new.load(Ordering::Relaxed),
            begun: shard.begun,
            forgotten: shard.forgotten,
            generations: [&shard.young, &shard.old].map(|generation| {
                let ids = generation.ids.iter();
                (
                    ids.map(|(id, until)| (*id, *until)).collect(),
                    generation.last,
                )
            }),
        })
    }

    pub(super) fn of_kept(id: RequestHash, kept: &KeptIds) -> Self {
        let ids = Self::new(1_000_000, Timestamp::from_unix(kept.known));
        ids.is_new.store(kept.is_new, Ordering::Relaxed);
        let [young, old] = kept.generations.clone().map(|(ids, last)| Generation {
            ids: ids.into_iter().collect(),
            last,
        });
        ids.with_shard(id, |shard| {
            *shard = Shard {
                begun: kept.begun,
                young,
                old,
                forgotten: kept.forgotten,
            };
        });
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> RequestHash {
        RequestHash::from_bytes(number.to_be_bytes())
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix(seconds)
    }

    /// Claims an id of a request that was signed at the time of sending.
    fn claim(ids: &RequestIds, number: u128, now: u64) -> IdClaim {
        ids.claim(id(number), at(now + 61), at(now))
    }

    #[test]
    fn an_id_is_remembered_to_the_second() {
        for claimed in [1_000, 1_001, 1_100, 1_179, 1_180, 1_259] {
            let ids = RequestIds::new(100_000, at(0));
            assert_eq!(claim(&ids, 9, 1_000), IdClaim::First);
            assert_eq!(claim(&ids, 1, claimed), IdClaim::First);
            for later in [0, 1, 60, 61] {
                assert_eq!(claim(&ids, 1, claimed + later), IdClaim::Used);
            }
            assert_eq!(claim(&ids, 1, claimed + 62), IdClaim::First);
            assert_eq!(claim(&ids, 1, claimed + 123), IdClaim::Used);
        }
    }

    #[test]
    fn the_date_says_how_long() {
        for ahead in [-60, -1, 0, 60] {
            let ids = RequestIds::new(1_000, at(0));
            let until = 1_000_u64.saturating_add_signed(ahead + 61);
            assert_eq!(ids.claim(id(1), at(until), at(1_000)), IdClaim::First);
            assert_eq!(ids.claim(id(1), at(until), at(until)), IdClaim::Used);
            assert_eq!(claim(&ids, 1, until + 1), IdClaim::First);
        }
    }

    #[test]
    fn a_claim_can_be_taken_back_by_its_owner_only() {
        let ids = RequestIds::new(1_000, at(0));
        claim(&ids, 1, 1_000);
        ids.forget(id(1), at(1_060));
        assert_eq!(claim(&ids, 1, 1_001), IdClaim::Used);
        ids.forget(id(1), at(1_061));
        assert_eq!(claim(&ids, 1, 1_001), IdClaim::First);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_is_forgotten() {
        let ids = RequestIds::new(128, at(0));
        assert_eq!(claim(&ids, 1, 1_000), IdClaim::First);
        assert_eq!(claim(&ids, 2, 1_000), IdClaim::Full);
        assert_eq!(claim(&ids, 1, 1_061), IdClaim::Used);
        assert_eq!(claim(&ids, 2, 1_180), IdClaim::First);
        assert_eq!(claim(&ids, 3, 1_000_000), IdClaim::First);
    }

    /// Generations change, the clock steps back, and the same bytes are sent again.
    #[test]
    fn a_clock_that_steps_back_opens_nothing() {
        for ahead in [180, 400, 4_000, 90_000] {
            let ids = RequestIds::new(1_000_000, at(0));
            assert_eq!(claim(&ids, 1, 10_000), IdClaim::First);
            for (number, now) in [
                (2, 10_000 + ahead),
                (3, 10_200 + ahead),
                (4, 10_400 + ahead),
            ] {
                assert_eq!(claim(&ids, number, now), IdClaim::First);
            }
            for back in [10_000, 10_060, 9_950] {
                let again = ids.claim(id(1), at(10_061), at(back));
                assert_ne!(
                    again,
                    IdClaim::First,
                    "{ahead} s ahead, then back to {back}"
                );
            }
            // Ids with an end after the last dropped one are accepted as before.
            assert_eq!(claim(&ids, 5, ids.forgotten().unix()), IdClaim::First);
        }
    }

    #[test]
    fn a_clock_that_steps_back_a_minute_refuses_nothing() {
        let ids = RequestIds::new(1_000_000, at(0));
        for second in 0..2_000_u64 {
            let now = 100_000 + second - if second % 7 == 0 { 60 } else { 0 };
            assert_eq!(claim(&ids, u128::from(second), now), IdClaim::First);
        }
        assert!(ids.forgotten() > at(101_000));
    }

    #[test]
    fn a_clock_that_was_years_ahead_does_not_block_for_years() {
        let ids = RequestIds::new(128, at(0));
        assert_eq!(claim(&ids, 1, 4_000_000_000), IdClaim::First);
        assert_eq!(claim(&ids, 2, 1_000), IdClaim::Full);
        for (number, now) in [(2, 1_180), (3, 1_360), (4, 1_540), (5, 1_720)] {
            assert_eq!(claim(&ids, number, now), IdClaim::First);
        }
        assert_eq!(claim(&ids, 1, 4_000_000_001), IdClaim::Used);
    }

    /// A restarted process has no id that was claimed before.
    #[test]
    fn what_an_earlier_process_saw_is_forgotten() {
        for (known, now, last) in [
            (9_000, 10_000, 10_000),
            (10_000, 10_000, 10_000),
            (10_000, 9_940, 9_940),
            (10_000, 9_939, 10_121),
            (10_000, 1_000, 10_121),
        ] {
            let ids = RequestIds::new(1_000, at(known));
            ids.open_at(at(now));
            ids.open_at(at(now + 5_000));
            assert_eq!(ids.forgotten(), at(last), "{known} {now}");
            assert_eq!(ids.claim(id(1), at(last), at(now)), IdClaim::Forgotten);
            assert_eq!(ids.claim(id(1), at(last + 1), at(now)), IdClaim::First);
        }
    }

    #[test]
    fn an_operator_can_say_that_the_clock_is_right() {
        let ids = RequestIds::new(1_000, at(0));
        for now in [50_000, 50_200, 50_400, 50_600] {
            claim(&ids, u128::from(now), now);
        }
        assert_eq!(claim(&ids, 1, 1_000), IdClaim::Forgotten);
        ids.trust_clock();
        assert_eq!(claim(&ids, 1, 1_000), IdClaim::First);
        assert_eq!(claim(&ids, 1, 1_001), IdClaim::Used);
    }
}
