//! Whether the database was heard within the last second, so that cached rows may be used.
//!
//! Heard means: a commit that began less than a second ago succeeded. A former primary without its standby cannot do that, so a gateway
//! that is cut off with it does not answer from memory for longer than a second.

use crate::clock::Stopwatch;
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// The time for which cached rows may be used.
const LIMIT: Duration = Duration::from_secs(1);

/// The last successful commit.
pub(in crate::state) struct Freshness {
    since: Stopwatch,
    /// Milliseconds from `since` to the start of the last successful commit, plus one; 0 before the first.
    heard: AtomicU64,
    /// Whether cached rows may be used in any case.
    is_ignored: AtomicBool,
}

impl Freshness {
    pub(super) fn new(is_ignored: bool) -> Self {
        Self {
            since: Stopwatch::start(),
            heard: AtomicU64::new(0),
            is_ignored: AtomicBool::new(is_ignored),
        }
    }

    /// The present, for [`Self::heard`].
    pub(super) fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// Records a commit that succeeded, by the time at which it began.
    pub(super) fn heard(&self, began: Duration) {
        let millis = u64::try_from(began.as_millis()).unwrap_or(u64::MAX);
        self.heard
            .fetch_max(millis.saturating_add(1), Ordering::Release);
    }

    /// Ends the use of cached rows: they are of another state.
    pub(super) fn end(&self) {
        self.is_ignored.store(false, Ordering::Relaxed);
        self.heard.store(0, Ordering::Release);
    }

    /// Whether the last successful commit began within the last second.
    pub(super) fn is_fresh(&self) -> bool {
        match self.heard.load(Ordering::Acquire) {
            0 => false,
            heard => self.now() <= Duration::from_millis(heard) + LIMIT,
        }
    }

    /// Whether a commit that began at this time or later succeeded.
    pub(super) fn was_heard_since(&self, began: Duration) -> bool {
        Duration::from_millis(self.heard.load(Ordering::Acquire)) > began
    }

    /// Whether cached rows may be used.
    pub(in crate::state) fn permits_memory(&self) -> bool {
        self.is_ignored.load(Ordering::Relaxed) || self.is_fresh()
    }
}
