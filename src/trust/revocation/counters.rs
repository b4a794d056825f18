//! What telemetry reads of revocation: plain numbers, counted where things happen.

use super::SourceFault;
use crate::clock::Timestamp;
use arc_swap::ArcSwap;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Counts since the start, and ages.
#[derive(Debug, Default)]
pub struct Counters {
    fetches: [AtomicU64; Counters::RESULTS.len()],
    let_pass: AtomicU64,
    sources: AtomicU64,
    oldest: AtomicU64,
    lists: ArcSwap<Lists>,
}

/// When each list is to be replaced: by the name of its issuer, and where it is from.
pub(super) type Lists = BTreeMap<(String, String), Timestamp>;

impl Counters {
    /// How a fetch can end, in the order of [`Counters::fetches`].
    pub const RESULTS: [&'static str; 7] = [
        "ok",
        "address-refused",
        "unreachable",
        "slow",
        "status",
        "too-large",
        "invalid",
    ];

    /// As many lists are shown.
    pub const MOST_LISTS: usize = 200;

    /// When the lists in use are to be replaced.
    pub fn lists(&self) -> Arc<BTreeMap<(String, String), Timestamp>> {
        self.lists.load_full()
    }

    /// Fetches by how they ended.
    pub fn fetches(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counted = self
            .fetches
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        Self::RESULTS.into_iter().zip(counted)
    }

    /// Requests that were let pass though nobody could say whether their certificate is revoked.
    pub fn let_pass(&self) -> u64 {
        self.let_pass.load(Ordering::Relaxed)
    }

    /// Responders and lists in use.
    pub fn sources(&self) -> u64 {
        self.sources.load(Ordering::Relaxed)
    }

    /// By how many seconds the most overdue source in use is past its nextUpdate; 0 where none is.
    pub fn overdue(&self) -> u64 {
        self.oldest.load(Ordering::Relaxed)
    }

    pub(super) fn fetched(&self, result: &Result<(), SourceFault>) {
        let index = match result {
            Ok(()) => 0,
            Err(SourceFault::Forbidden) => 1,
            Err(SourceFault::Unreachable) => 2,
            Err(SourceFault::Slow) => 3,
            Err(SourceFault::Status(_)) => 4,
            Err(SourceFault::TooLarge) => 5,
            Err(SourceFault::Invalid(_)) => 6,
        };
        if let Some(count) = self.fetches.get(index) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn passed(&self) {
        self.let_pass.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn look(&self, sources: u64, overdue: u64, lists: Lists) {
        self.lists.store(Arc::new(lists));
        self.sources.store(sources, Ordering::Relaxed);
        self.oldest.store(overdue, Ordering::Relaxed);
    }
}
