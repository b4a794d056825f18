//! The request ids of safe requests, in memory (REP-1): for those this process's own memory is enough.
//!
//! Two generations of a map in each of 64 shards, with exact times: a generation is begun every three minutes and
//! forgotten when it is at least three minutes old, so that nothing has to be searched for what expired. Invariant: an id
//! is never forgotten before its time; where memory is full, new ones are refused instead.

use super::{Hash, keys::ByItself};
use crate::clock::Timestamp;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// How long a request id is remembered, in seconds: its Date could pass for 60 s before and 60 s after it was judged
/// (DAT-1), and the last of these seconds counts.
pub(super) const REMEMBERED: u64 = 120;

/// How long a generation grows, in seconds: a minute more than an id lives, for a clock that is set back a little.
const GENERATION: u64 = REMEMBERED + 60;

/// A clock that was set back by more than this many seconds starts the generations anew.
const SET_BACK: u64 = 3_600;

const SHARDS: usize = 64;

/// The ids.
pub(super) struct Seen {
    shards: Vec<Mutex<Shard>>,
    /// The most ids of one generation of one shard.
    most: usize,
}

#[derive(Default)]
struct Shard {
    begun: u64,
    young: HashMap<Hash, u64, ByItself>,
    old: HashMap<Hash, u64, ByItself>,
}

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is the first use.
    First,
    /// It was used before, and is remembered.
    Used,
    /// There is no room to remember it.
    Full,
}

impl Seen {
    /// Room for about that many ids.
    pub(super) fn new(most: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            most: (most / SHARDS / 2).max(1),
        }
    }

    /// Claims an id.
    pub(super) fn claim(&self, id: Hash, now: Timestamp) -> Claim {
        let now = now.unix();
        self.with_shard(id, |shard| {
            shard.turn(now);
            let used = [&shard.young, &shard.old]
                .into_iter()
                .any(|ids| ids.get(&id).is_some_and(|until| now <= *until));
            if used {
                return Claim::Used;
            }
            if shard.young.len() >= self.most {
                return Claim::Full;
            }
            shard.old.remove(&id);
            shard.young.insert(id, now.saturating_add(REMEMBERED));
            Claim::First
        })
    }

    /// Takes back a claim that was made at that time.
    pub(super) fn forget(&self, id: Hash, claimed: Timestamp) {
        let until = claimed.unix().saturating_add(REMEMBERED);
        self.with_shard(id, |shard| {
            for ids in [&mut shard.young, &mut shard.old] {
                if ids.get(&id) == Some(&until) {
                    ids.remove(&id);
                }
            }
        });
    }

    fn with_shard<T>(&self, id: Hash, act: impl FnOnce(&mut Shard) -> T) -> T {
        let [first, ..] = *id.as_bytes();
        let index = usize::from(first) % SHARDS;
        match self.shards.get(index) {
            Some(shard) => act(&mut shard.lock().unwrap_or_else(PoisonError::into_inner)),
            // Not to be seen: there are 64 shards.
            None => act(&mut Shard::default()),
        }
    }
}

impl Shard {
    /// Begins a new generation when it is time.
    fn turn(&mut self, now: u64) {
        if now.saturating_add(SET_BACK) < self.begun {
            self.begun = now;
        }
        if now.saturating_sub(self.begun) >= GENERATION {
            // As large as the last one became: a map that grows keeps whoever is next waiting.
            let young = HashMap::with_capacity_and_hasher(self.young.len(), ByItself::default());
            self.old = std::mem::replace(&mut self.young, young);
            self.begun = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Hash {
        Hash::from_bytes(number.to_be_bytes())
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix(seconds)
    }

    #[test]
    fn an_id_is_remembered_to_the_second() {
        for claimed in [1_000, 1_001, 1_100, 1_179, 1_180, 1_259] {
            let seen = Seen::new(100_000);
            assert_eq!(seen.claim(id(9), at(1_000)), Claim::First);
            assert_eq!(seen.claim(id(1), at(claimed)), Claim::First);
            for later in [0, 1, 60, 119, 120] {
                assert_eq!(seen.claim(id(1), at(claimed + later)), Claim::Used);
            }
            assert_eq!(seen.claim(id(1), at(claimed + 121)), Claim::First);
            assert_eq!(seen.claim(id(1), at(claimed + 241)), Claim::Used);
        }
    }

    #[test]
    fn a_claim_can_be_taken_back_by_its_owner_only() {
        let seen = Seen::new(1_000);
        seen.claim(id(1), at(1_000));
        seen.forget(id(1), at(999));
        assert_eq!(seen.claim(id(1), at(1_001)), Claim::Used);
        seen.forget(id(1), at(1_000));
        assert_eq!(seen.claim(id(1), at(1_001)), Claim::First);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_is_forgotten() {
        let seen = Seen::new(128);
        assert_eq!(seen.claim(id(1), at(1_000)), Claim::First);
        assert_eq!(seen.claim(id(2), at(1_000)), Claim::Full);
        assert_eq!(seen.claim(id(1), at(1_120)), Claim::Used);
        assert_eq!(seen.claim(id(2), at(1_180)), Claim::First);
        assert_eq!(seen.claim(id(3), at(1_000_000)), Claim::First);
    }

    #[test]
    fn a_clock_that_was_years_ahead_does_not_block_for_years() {
        let seen = Seen::new(128);
        assert_eq!(seen.claim(id(1), at(4_000_000_000)), Claim::First);
        assert_eq!(seen.claim(id(2), at(1_000)), Claim::Full);
        assert_eq!(seen.claim(id(2), at(1_180)), Claim::First);
    }
}
