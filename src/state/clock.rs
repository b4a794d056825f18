//! The latest time that was seen: a clock that steps back is known by it (REP-1).
//!
//! A clock that stepped back by more than 24 hours is not believed: ids may have been forgotten whose Dates hold again.
//! From then on no request id is claimed, whatever the clock shows later, until an operator says that it is right.
//! Deliberately not here: keeping it, which is the engine's.

use super::{Unavailable, replay};
use crate::clock::Timestamp;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of the clock.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The latest time that a caller gave.
    latest: AtomicU64,
    /// Whether it stepped back too far, and nobody said yet that it is right.
    stepped_back: AtomicBool,
    /// Whether requests with ids were refused for it when it was last looked at: for the metric.
    refusing: AtomicBool,
}

impl Clock {
    /// As it was kept, or as an operator says that it is.
    pub(super) fn begin(&self, latest: u64, stepped_back: bool) {
        self.latest.store(latest, Ordering::Release);
        self.stepped_back.store(stepped_back, Ordering::Release);
    }

    /// Sees what time it is.
    ///
    /// # Errors
    /// The clock stepped back too far, now or before.
    pub(super) fn see(&self, now: Timestamp) -> Result<(), Unavailable> {
        let latest = self.latest.load(Ordering::Relaxed);
        if now.unix() > latest {
            self.latest.fetch_max(now.unix(), Ordering::Relaxed);
        } else if !self.stepped_back()
            // Read again: an operator's word may have come in between.
            && replay::is_too_far_back(self.latest(), now)
            && !self.stepped_back.swap(true, Ordering::AcqRel)
        {
            tracing::error!(%now, latest = %self.latest(), "the clock stepped back by more than 24 hours");
        }
        if self.stepped_back() {
            return Err(self.fault());
        }
        Ok(())
    }

    /// The latest time.
    pub(super) fn latest(&self) -> Timestamp {
        Timestamp::from_unix(self.latest.load(Ordering::Relaxed))
    }

    /// What another process saw.
    pub(super) fn merge(&self, latest: u64, stepped_back: bool) {
        self.latest.fetch_max(latest, Ordering::Relaxed);
        if stepped_back {
            self.stepped_back.store(true, Ordering::Release);
        }
    }

    /// Whether it stepped back too far.
    pub(super) fn stepped_back(&self) -> bool {
        self.stepped_back.load(Ordering::Acquire)
    }

    /// Whether requests are refused for it, now that it was looked at.
    pub(super) fn note_refusing(&self, refusing: bool) {
        self.refusing.store(refusing, Ordering::Relaxed);
    }

    /// See [`Self::note_refusing`].
    pub(super) fn is_refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed) || self.stepped_back()
    }

    fn fault(&self) -> Unavailable {
        let latest = self.latest();
        Unavailable(format!(
            "the clock stepped back by more than 24 hours from {latest}: a request could be taken twice, so none with a \
             request id is taken; set the clock right, then say so with `portvakt state accept-clock`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_000_000;

    fn see(clock: &Clock, seconds: u64) -> bool {
        clock.see(Timestamp::from_unix(seconds)).is_ok()
    }

    #[test]
    fn a_clock_that_stepped_back_too_far_is_not_believed_until_somebody_says_so() {
        let clock = Clock::default();
        assert!(see(&clock, NOW) && see(&clock, NOW - replay::DAY));
        assert!(!clock.is_refusing());
        assert!(!see(&clock, NOW - replay::DAY - 1));
        assert!(!see(&clock, NOW) && !see(&clock, NOW + 5));
        assert!(clock.is_refusing());
        assert_eq!(clock.latest().unix(), NOW + 5);
        clock.begin(NOW - replay::DAY, false);
        assert!(see(&clock, NOW - replay::DAY) && see(&clock, NOW));
    }

    #[test]
    fn another_process_may_have_seen_it() {
        let clock = Clock::default();
        clock.merge(NOW, false);
        assert!(!see(&clock, NOW - 2 * replay::DAY));
        let clock = Clock::default();
        clock.merge(NOW, true);
        assert!(!see(&clock, NOW));
    }
}
