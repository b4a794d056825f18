//! What is held in memory because it is good when it is a little stale: PSUs that were looked up, and quotas that are used
//! up.
//!
//! Invariants: both are bounded; a PSU that changed in this process is never answered as it was before; what another
//! process changes is dropped as soon as the change log is read. Deliberately not here: that a PSU is unknown, which is
//! never remembered.

use super::{Hash, Psu, StateSettings, keys::ByItself, seen::Seen};
use crate::clock::Timestamp;
use moka::sync::Cache;
use std::sync::{Arc, Mutex, PoisonError};

/// Changes of one generation counter drop look-ups under way of every 64th PSU.
const STRIPES: usize = 64;

/// The memory of a store.
pub(super) struct Memory {
    psus: Cache<Hash, Known, ByItself>,
    /// How often a PSU of each stripe changed: what was read before a change is not put in after it.
    generations: Vec<Mutex<u64>>,
    used_up: Cache<Hash, Timestamp, ByItself>,
    /// The request ids, those of unsafe methods besides the store.
    pub(super) seen: Seen,
}

/// A PSU, and the TPP that it is bound to.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) tpp: Arc<str>,
    pub(super) psu: Arc<Psu>,
}

/// That a PSU is being read: see [`Memory::reading`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading(u64);

fn cache<V: Clone + Send + Sync + 'static>(most: u64) -> Cache<Hash, V, ByItself> {
    let builder = Cache::builder().max_capacity(most);
    builder.build_with_hasher(ByItself::default())
}

impl Memory {
    /// `latest` is the latest time that the file knows of.
    pub(super) fn new(settings: &StateSettings, latest: Timestamp) -> Self {
        Self {
            psus: cache(settings.psus_in_memory),
            generations: (0..STRIPES).map(|_| Mutex::new(0)).collect(),
            used_up: cache(settings.refusals_in_memory),
            seen: Seen::new(settings.request_ids_in_memory, latest),
        }
    }

    pub(super) fn psu(&self, psu: Hash) -> Option<Known> {
        self.psus.get(&psu)
    }

    /// To be called before a PSU is read that shall be put in.
    pub(super) fn reading(&self, psu: Hash) -> Reading {
        Reading(self.with_generation(psu, |generation| *generation))
    }

    /// Puts in what was read, unless it changed since; a PSU that is not there is taken out.
    pub(super) fn put(&self, psu: Hash, read: Reading, known: Option<&Known>) {
        self.with_generation(psu, |generation| match known {
            Some(known) if *generation == read.0 => self.psus.insert(psu, known.clone()),
            Some(_) => {}
            None => self.psus.invalidate(&psu),
        });
    }

    /// A PSU changed.
    pub(super) fn psu_changed(&self, psu: Hash) {
        self.with_generation(psu, |generation| {
            *generation = generation.wrapping_add(1);
            self.psus.invalidate(&psu);
        });
    }

    /// Until when a quota is known to be used up.
    pub(super) fn used_up(&self, key: Hash, now: Timestamp) -> Option<Timestamp> {
        self.used_up.get(&key).filter(|until| now < *until)
    }

    pub(super) fn put_used_up(&self, key: Hash, until: Timestamp) {
        self.used_up.insert(key, until);
    }

    /// A quota may not be used up any longer.
    pub(super) fn quota_changed(&self, key: Hash) {
        self.used_up.invalidate(&key);
    }

    /// Nobody knows what changed.
    pub(super) fn forget(&self) {
        for generation in &self.generations {
            let mut generation = generation.lock().unwrap_or_else(PoisonError::into_inner);
            *generation = generation.wrapping_add(1);
        }
        self.psus.invalidate_all();
        self.used_up.invalidate_all();
    }

    fn with_generation<T>(&self, psu: Hash, act: impl FnOnce(&mut u64) -> T) -> T {
        let [first, ..] = *psu.as_bytes();
        match self.generations.get(usize::from(first) % STRIPES) {
            Some(generation) => act(&mut generation.lock().unwrap_or_else(PoisonError::into_inner)),
            // Not to be seen: there are 64 stripes.
            None => act(&mut 0),
        }
    }
}
