//! Rows that are held in memory, since they may be a little stale: PSUs that were looked up, and quotas that are used up.
//!
//! Invariants: both are bounded; a PSU that changed in this process is never answered as it was before; a row that
//! another process changes is dropped as soon as the change log is read. Deliberately not here: that a PSU is unknown, which is
//! never remembered.

use super::{
    PsuHash, QuotaHash, StateSettings,
    hash::{ByOwnBits, Hash, Kind},
    lock::lock,
    rows::{BoundPsu, UsedUp},
};
use crate::clock::Timestamp;
use moka::sync::Cache;
use std::sync::Mutex;

/// How many generation counters there are. A change drops the look-ups under way of the PSUs that share its counter.
const STRIPES: usize = 64;

/// The rows of a store that are held in memory.
pub(super) struct RowCache {
    psus: Cache<PsuHash, BoundPsu, ByOwnBits>,
    /// How often a PSU of each stripe changed: a row that was read before a change is not put in after it.
    generations: Vec<Mutex<u64>>,
    used_up: Cache<QuotaHash, Timestamp, ByOwnBits>,
}

/// That a PSU is being read: see [`RowCache::reading`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading(u64);

fn cache<K, V>(most: u64) -> Cache<Hash<K>, V, ByOwnBits>
where
    K: Kind,
    V: Clone + Send + Sync + 'static,
{
    let builder = Cache::builder().max_capacity(most);
    builder.build_with_hasher(ByOwnBits::default())
}

impl RowCache {
    /// As large as the settings say.
    pub(super) fn new(settings: &StateSettings) -> Self {
        Self {
            psus: cache(settings.psus_in_memory),
            generations: (0..STRIPES).map(|_| Mutex::new(0)).collect(),
            used_up: cache(settings.refusals_in_memory),
        }
    }

    pub(super) fn psu(&self, psu: PsuHash) -> Option<BoundPsu> {
        self.psus.get(&psu)
    }

    /// To be called before a PSU is read that shall be put in.
    pub(super) fn reading(&self, psu: PsuHash) -> Reading {
        Reading(self.with_generation(psu, |generation| *generation))
    }

    /// Puts in a row as it was read, unless it changed since; a PSU that is not there is taken out.
    pub(super) fn put(&self, psu: PsuHash, read: Reading, bound: Option<&BoundPsu>) {
        self.with_generation(psu, |generation| match bound {
            Some(bound) if *generation == read.0 => self.psus.insert(psu, bound.clone()),
            Some(_) => {}
            None => self.psus.invalidate(&psu),
        });
    }

    /// A PSU changed.
    pub(super) fn psu_changed(&self, psu: PsuHash) {
        self.with_generation(psu, |generation| {
            *generation = generation.wrapping_add(1);
            self.psus.invalidate(&psu);
        });
    }

    /// Until when a quota is known to be used up.
    pub(super) fn used_up(&self, key: QuotaHash, now: Timestamp) -> Option<Timestamp> {
        self.used_up.get(&key).filter(|until| now < *until)
    }

    /// Heeds a decision on a quota, before it is committed: until then no other change of that quota is decided, so that what
    /// is committed later is heeded later.
    pub(super) fn heed(&self, decided: UsedUp) {
        match decided {
            UsedUp::Until(key, until) => self.used_up.insert(key, until),
            UsedUp::NoLonger(key) => self.quota_changed(key),
        }
    }

    /// A quota may no longer be used up.
    pub(super) fn quota_changed(&self, key: QuotaHash) {
        self.used_up.invalidate(&key);
    }

    /// Drops everything, where it is not known which rows changed.
    pub(super) fn clear(&self) {
        for generation in &self.generations {
            let mut generation = lock(generation);
            *generation = generation.wrapping_add(1);
        }
        self.psus.invalidate_all();
        self.used_up.invalidate_all();
    }

    fn with_generation<T>(&self, psu: PsuHash, act: impl FnOnce(&mut u64) -> T) -> T {
        let [first, ..] = *psu.as_bytes();
        match self.generations.get(usize::from(first) % STRIPES) {
            Some(generation) => act(&mut lock(generation)),
            // Unreachable: the index is below STRIPES.
            None => act(&mut 0),
        }
    }
}
