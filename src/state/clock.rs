//! The latest known time, which shows when a clock stepped back (REP-1).
//!
//! A clock that stepped back by more than 24 hours is not trusted: ids may have been removed whose Dates are valid again. From then on no
//! request id is claimed, whatever time the clock shows, until an operator accepts the clock. Deliberately not here: storing a
//! [`ClockRow`], which the engine does.

use super::{Unavailable, rules};
use portvakt_base::clock::Timestamp;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The time, in seconds, that a thread may have been paused since it read the clock: an older time is a step back.
const JITTER: u64 = 2;

/// The stored state of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ClockRow {
    /// The latest known time, in seconds since the epoch.
    pub(super) latest: u64,
    /// Whether the clock has stepped back too far since.
    pub(super) stepped_back: bool,
    /// The number of times that an operator accepted the clock.
    pub(super) accepted: u64,
}

/// The effect of an operator's acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptedClock {
    /// The clock had not stepped back: nothing changed.
    Nothing,
    /// The clock is trusted from now on.
    Now {
        /// The latest time that was known before.
        latest: Timestamp,
        /// The number of rows with a time ahead of the clock, which were set to the clock.
        moved: u64,
    },
}

/// The state of the clock in this process.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The latest time of a caller.
    latest: AtomicU64,
    /// Whether the clock stepped back too far and no operator has accepted it since.
    stepped_back: AtomicBool,
    /// The number of steps back, and whether the clock has not caught up with the last of them; for the metric.
    steps: AtomicU64,
    behind: AtomicBool,
    /// Whether the last check refused requests with ids because of the clock; for the metric.
    refusing: AtomicBool,
}

impl Clock {
    /// Starts from the stored state, or from an operator's acceptance.
    pub(super) fn begin(&self, stored: ClockRow) {
        self.latest.store(stored.latest, Ordering::Release);
        self.stepped_back
            .store(stored.stepped_back, Ordering::Release);
        self.behind.store(false, Ordering::Relaxed);
    }

    /// Records a time.
    ///
    /// # Errors
    /// The clock stepped back too far, now or earlier.
    pub(super) fn see(&self, now: Timestamp) -> Result<(), Unavailable> {
        let latest = self.latest.load(Ordering::Relaxed);
        if now.unix() > latest {
            self.latest.fetch_max(now.unix(), Ordering::Relaxed);
            self.behind.store(false, Ordering::Relaxed);
        } else if !self.stepped_back()
            // Read again, because an operator may have accepted the clock in between.
            && rules::is_too_far_back(self.latest(), now)
            && !self.stepped_back.swap(true, Ordering::AcqRel)
        {
            tracing::error!(%now, latest = %self.latest(), "the clock stepped back by more than 24 hours");
        }
        if now.unix().saturating_add(JITTER) < latest && !self.behind.swap(true, Ordering::Relaxed)
        {
            self.steps.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%now, latest = %self.latest(), "the clock stepped back");
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

    /// The number of times that the clock went back by more than [`JITTER`].
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Merges the clock of other processes. Returns the row to store.
    pub(super) fn merge(&self, stored: ClockRow) -> ClockRow {
        self.latest.fetch_max(stored.latest, Ordering::Relaxed);
        if stored.stepped_back {
            self.stepped_back.store(true, Ordering::Release);
        }
        ClockRow {
            latest: self.latest().unix(),
            stepped_back: self.stepped_back(),
            accepted: stored.accepted,
        }
    }

    /// Whether the clock stepped back too far.
    pub(super) fn stepped_back(&self) -> bool {
        self.stepped_back.load(Ordering::Acquire)
    }

    /// Records whether requests are refused because of the clock.
    pub(super) fn note_refusing(&self, refusing: bool) {
        self.refusing.store(refusing, Ordering::Relaxed);
    }

    /// See [`Self::note_refusing`].
    pub(super) fn is_refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed) || self.stepped_back()
    }

    /// The fault if the clock stepped back so far that the ids of safe methods may have been removed.
    pub(super) fn behind(&self) -> Unavailable {
        self.note_refusing(true);
        let latest = self.latest();
        Unavailable(format!(
            "the clock stepped back from {latest}: requests that change nothing could be taken twice, so they are refused \
             until it is there again, or until you say that it is right with `portvakt state accept-clock`"
        ))
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
        assert!(see(&clock, NOW) && see(&clock, NOW - rules::DAY));
        assert!(!clock.is_refusing());
        assert!(!see(&clock, NOW - rules::DAY - 1));
        assert!(!see(&clock, NOW) && !see(&clock, NOW + 5));
        assert!(clock.is_refusing());
        assert_eq!(clock.latest().unix(), NOW + 5);
        clock.begin(ClockRow {
            latest: NOW - rules::DAY,
            ..ClockRow::default()
        });
        assert!(see(&clock, NOW - rules::DAY) && see(&clock, NOW));
    }

    #[test]
    fn another_process_may_have_seen_it() {
        let seen = |stepped_back| ClockRow {
            latest: NOW,
            stepped_back,
            accepted: 0,
        };
        let clock = Clock::default();
        assert_eq!(clock.merge(seen(false)), seen(false));
        assert!(!see(&clock, NOW - 2 * rules::DAY));
        assert_eq!(clock.merge(seen(false)), seen(true));
        let clock = Clock::default();
        assert_eq!(clock.merge(seen(true)), seen(true));
        assert!(!see(&clock, NOW));
    }
}
