//! The counters of the revocation check, for telemetry.

use super::SourceFault;
use arc_swap::{ArcSwap, ArcSwapOption};
use portvakt_base::{clock::Timestamp, values};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

values! {
    /// The result of a fetch.
    pub enum FetchResult {
        /// An answer that can be used.
        Ok = "ok",
        /// [`SourceFault::Forbidden`]
        AddressRefused = "address-refused",
        /// [`SourceFault::Unreachable`]
        Unreachable = "unreachable",
        /// [`SourceFault::Slow`]
        Slow = "slow",
        /// [`SourceFault::Status`]
        Status = "status",
        /// [`SourceFault::TooLarge`]
        TooLarge = "too-large",
        /// [`SourceFault::Invalid`]
        Invalid = "invalid",
    }
}

/// The time, in seconds, for which a refused request counts as one of now: longer than the interval of Prometheus.
const REFUSED_LATELY: u64 = 300;

/// Counts since the start, and ages in seconds.
#[derive(Debug, Default)]
pub struct Counters {
    fetches: [AtomicU64; FetchResult::ALL.len()],
    let_pass: AtomicU64,
    sources: AtomicU64,
    oldest: AtomicU64,
    lists: ArcSwap<Lists>,
    late: ArcSwapOption<(u64, Timestamp)>,
    /// When a request was refused last because of an unknown status, in Unix seconds; 0 for never.
    refused: AtomicU64,
}

/// The address of a CRL that stands in a file.
pub(super) const FROM_FILE: &str = "file";

/// The nextUpdate of each CRL, by the name of its issuer and its address.
pub(super) type Lists = BTreeMap<(String, String), Timestamp>;

impl Counters {
    /// The maximum number of CRLs in the metrics.
    pub const MOST_LISTS: usize = 50;

    /// The nextUpdate of each CRL in use, by the name of its issuer and its address.
    pub fn lists(&self) -> Arc<BTreeMap<(String, String), Timestamp>> {
        self.lists.load_full()
    }

    /// The number of fetches by result.
    pub fn fetches(&self) -> impl Iterator<Item = (FetchResult, u64)> + '_ {
        let counted = self
            .fetches
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        FetchResult::ALL.iter().copied().zip(counted)
    }

    /// Requests that passed with unknown revocation status.
    pub fn let_pass(&self) -> u64 {
        self.let_pass.load(Ordering::Relaxed)
    }

    /// OCSP responders and CRLs in use.
    pub fn sources(&self) -> u64 {
        self.sources.load(Ordering::Relaxed)
    }

    /// The time since the earliest nextUpdate of the sources in use, in seconds; 0 if none is overdue.
    pub fn overdue(&self) -> u64 {
        self.oldest.load(Ordering::Relaxed)
    }

    pub(super) fn fetched(&self, result: &Result<(), SourceFault>) {
        let result = match result {
            Ok(()) => FetchResult::Ok,
            Err(SourceFault::Forbidden) => FetchResult::AddressRefused,
            Err(SourceFault::Unreachable) => FetchResult::Unreachable,
            Err(SourceFault::Slow) => FetchResult::Slow,
            Err(SourceFault::Status(_)) => FetchResult::Status,
            Err(SourceFault::TooLarge) => FetchResult::TooLarge,
            Err(SourceFault::Invalid(_)) => FetchResult::Invalid,
        };
        if let Some(count) = self.fetches.get(result.index()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers in use that were due for a refresh long ago: how many, and when the first of them ends.
    pub(super) fn late(&self) -> Option<(u64, Timestamp)> {
        self.late.load().as_deref().copied()
    }

    pub(super) fn refused(&self, now: Timestamp) {
        self.refused.store(now.unix(), Ordering::Relaxed);
    }

    pub(super) fn refuses(&self, now: Timestamp) -> bool {
        let last = self.refused.load(Ordering::Relaxed);
        last != 0 && now.unix() < last.saturating_add(REFUSED_LATELY)
    }

    pub(super) fn passed(&self) {
        self.let_pass.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn look(
        &self,
        sources: u64,
        overdue: u64,
        lists: Lists,
        late: Option<(u64, Timestamp)>,
    ) {
        self.late.store(late.map(Arc::new));
        self.lists.store(Arc::new(lists));
        self.sources.store(sources, Ordering::Relaxed);
        self.oldest.store(overdue, Ordering::Relaxed);
    }
}
