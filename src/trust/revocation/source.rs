//! One revocation source and its last answer: an OCSP responder for one certificate, or one CRL.
//!
//! All certificates with the same source share one [`Source`]. An answer is replaced atomically, so a request reads it without a lock; an
//! older answer never replaces a newer one.

// Asking it.
pub(super) mod ask;

use super::{
    answer::SourceAnswer,
    backoff::{AddressState, Backoff},
    fetch::SourceUrl,
    question::{Key, Question},
};
use arc_swap::ArcSwapOption;
use portvakt_base::clock::Timestamp;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// An OCSP responder for one certificate, or a CRL.
#[derive(Debug)]
pub(super) struct Source {
    key: Key,
    address_state: Arc<AddressState>,
    answer: ArcSwapOption<SourceAnswer>,
    /// The time, in Unix seconds, when a request last used the source.
    used: AtomicU64,
    refresh_at: AtomicU64,
    backoff: Backoff,
    under_way: AtomicBool,
    /// Whether an attempt has failed since the start. Used only until the first answer.
    failed: AtomicBool,
    /// Whether the copy on disk was looked up.
    looked_up: AtomicBool,
}

/// The state of a source that has never answered (CRT-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The first attempt is running.
    Awaited,
    /// An attempt failed, or the source cannot be asked now.
    Failed,
    /// No attempt was made.
    Unasked,
}

impl Source {
    /// A source that was not asked yet, without an answer.
    pub(super) fn new(key: Key, address_state: Arc<AddressState>) -> Self {
        Self {
            key,
            address_state,
            answer: ArcSwapOption::empty(),
            used: AtomicU64::new(0),
            refresh_at: AtomicU64::new(0),
            backoff: Backoff::default(),
            under_way: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            looked_up: AtomicBool::new(false),
        }
    }

    /// A source with a fixed answer, from a file of the configuration.
    pub(super) fn of_file(key: Key, answer: SourceAnswer) -> Self {
        let source = Self::new(key, Arc::default());
        source.answer.store(Some(Arc::new(answer)));
        source
    }

    /// The last answer.
    pub(super) fn answer(&self) -> arc_swap::Guard<Option<Arc<SourceAnswer>>> {
        self.answer.load()
    }

    /// The sources to be asked before the last answer counts: those of its signer.
    pub(super) fn to_be_known(&self, now: Timestamp) -> Vec<Arc<Self>> {
        let answer = self.answer();
        let signer = answer.as_ref().and_then(|answer| answer.signer());
        signer.map_or_else(Vec::new, |own| own.to_be_asked(now, Duration::ZERO))
    }

    /// The reason why there is no answer. `under_way` is read first: an attempt stores its answer or its failure before it ends.
    pub(super) fn no_answer(&self) -> NoAnswer {
        let is_under_way = self.under_way.load(Ordering::Acquire);
        let is_silent = self.answer.load().is_none();
        match (self.failed.load(Ordering::Acquire), is_under_way) {
            // An answer came after the caller looked: the source counts as awaited.
            _ if !is_silent => NoAnswer::Awaited,
            (true, _) => NoAnswer::Failed,
            (false, true) => NoAnswer::Awaited,
            (false, false) => NoAnswer::Unasked,
        }
    }

    /// Whether the source is a CRL.
    pub(super) const fn is_list(&self) -> bool {
        matches!(self.key.1, Question::Crl { .. })
    }

    /// Records that a request uses the source.
    pub(super) fn touch(&self, now: Timestamp) {
        // A load is cheaper than a store that takes the cache line away from other cores.
        if self.used.load(Ordering::Relaxed) != now.unix() {
            self.used.store(now.unix(), Ordering::Relaxed);
        }
    }

    /// The time, in Unix seconds, when a request last used the source.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether the source is being asked and has not failed before. The policy decides about sources that have only failed.
    pub(super) fn is_worth_waiting_for(&self) -> bool {
        self.under_way.load(Ordering::Acquire) && self.no_answer() != NoAnswer::Failed
    }

    /// Acquires the right to ask the source, if its backoff has ended; [`Source::ask`] gives it back.
    pub(super) fn take(&self, now: Timestamp) -> bool {
        if !self.backoff.is_over(now) || !self.address_state.backoff.is_over(now) {
            // A failure of the address for another source counts as a failure of this source.
            self.failed.store(true, Ordering::Release);
            return false;
        }
        self.key.0.is_some() && !self.under_way.swap(true, Ordering::AcqRel)
    }

    /// Whether the answer is due for a refresh.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        now.unix() >= self.refresh_at.load(Ordering::Relaxed)
    }

    /// The address, for the log; `None` for a file.
    pub(super) fn address(&self) -> Option<&SourceUrl> {
        self.key.0.as_ref()
    }
}
