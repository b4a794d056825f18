//! Rows that are cached in memory, because they may be slightly stale: PSUs that were looked up, and quotas that are used up.
//!
//! Invariants: both caches are bounded; after a change of a PSU in this process, its earlier row is never returned; a row that another
//! process changes is dropped as soon as the change log is read. Deliberately not here: unknown PSUs, which are never cached.

use super::{
    PsuHash, QuotaHash, StateSettings,
    hash::{ByOwnBits, Hash, HashKind},
    lock::lock,
    rows::{BoundPsu, UsedUp},
};
use moka::sync::Cache;
use portvakt_base::clock::Timestamp;
use std::sync::Mutex;

/// The number of generation counters. A change invalidates the pending lookups of all PSUs that share its counter.
const STRIPES: usize = 64;

/// The cached rows of a store.
pub(super) struct RowCache {
    psus: Cache<PsuHash, BoundPsu, ByOwnBits>,
    /// The number of changes of the PSUs of each stripe: a row that was read before a change is not cached after it.
    generations: Vec<Mutex<u64>>,
    used_up: Cache<QuotaHash, Timestamp, ByOwnBits>,
}

/// The generation at the start of a lookup: see [`RowCache::reading`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading(pub(super) u64);

fn cache<K, V>(most: u64) -> Cache<Hash<K>, V, ByOwnBits>
where
    K: HashKind,
    V: Clone + Send + Sync + 'static,
{
    let builder = Cache::builder().max_capacity(most);
    builder.build_with_hasher(ByOwnBits::default())
}

impl RowCache {
    /// A cache of the size in the settings.
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

    /// Starts a lookup. Call this before the row is read.
    pub(super) fn reading(&self, psu: PsuHash) -> Reading {
        Reading(self.with_generation(psu, |generation| *generation))
    }

    /// Caches a row that was read, unless it changed since; removes a PSU that does not exist.
    pub(super) fn put(&self, psu: PsuHash, read: Reading, bound: Option<&BoundPsu>) {
        self.with_generation(psu, |generation| match bound {
            Some(bound) if *generation == read.0 => self.psus.insert(psu, bound.clone()),
            Some(_) => {}
            None => self.psus.invalidate(&psu),
        });
    }

    /// Drops a PSU that changed.
    pub(super) fn psu_changed(&self, psu: PsuHash) {
        self.with_generation(psu, |generation| {
            *generation = generation.wrapping_add(1);
            self.psus.invalidate(&psu);
        });
    }

    /// The time until which a quota is known to be used up.
    pub(super) fn used_up(&self, key: QuotaHash, now: Timestamp) -> Option<Timestamp> {
        self.used_up.get(&key).filter(|until| now < *until)
    }

    /// Applies a decision on a quota before its commit. Until the commit, no other change of that quota is decided, so the cache applies
    /// decisions in the order of their commits.
    pub(super) fn heed(&self, decided: UsedUp) {
        match decided {
            UsedUp::Until(key, until) => self.used_up.insert(key, until),
            UsedUp::NoLonger(key) => self.quota_changed(key),
        }
    }

    /// Drops a quota that may no longer be used up.
    pub(super) fn quota_changed(&self, key: QuotaHash) {
        self.used_up.invalidate(&key);
    }

    /// Drops everything, if the changed rows are unknown.
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

#[cfg(test)]
impl RowCache {
    /// What is cached of a PSU, and the number of its changes, for models that make a cache of what they keep.
    pub(super) fn kept(&self, psu: PsuHash) -> (Option<BoundPsu>, u64) {
        (self.psu(psu), self.reading(psu).0)
    }

    pub(super) fn keep(&self, psu: PsuHash, bound: Option<&BoundPsu>, changes: u64) {
        self.with_generation(psu, |generation| *generation = changes);
        self.put(psu, Reading(changes), bound);
    }
}
