//! The places of records that wait for the disk: each share of the records has its own, so that none takes those of another (FWD-8).
//!
//! Invariant: a request that goes to the core has places for its record and for its outcome, or it does not go there. Neither refusals nor
//! calls of the control listener take them, so no record of a forwarded request is left out while the process runs.

use super::event::Kind;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most records that wait of requests that were forwarded: of 8 192 requests, each with its outcome.
pub(super) const FORWARDED: usize = 16 * 1024;

/// The most records that wait of changes by the bank's services, and of the gateway itself.
pub(super) const CHANGES: usize = 8 * 1024;

/// The most records that wait of refusals and of refused calls. It is never reached: at most [`CROWD`] of them wait before each subject has
/// its share only once more, and all shares of a second are 6 720 records (`telemetry/audited.rs`), of the second in which the crowd
/// begins and once more.
pub(super) const REFUSALS: usize = 16 * 1024;

/// From so many on, those that wait are a crowd: the disk does not keep up.
const CROWD: usize = 1_024;

/// The places that are taken.
#[derive(Debug, Default)]
pub(super) struct Places {
    forwarded: AtomicUsize,
    changes: AtomicUsize,
    refusals: AtomicUsize,
}

impl Places {
    /// Takes the place of a record: with the place of a record before forwarding also that of its outcome, which therefore always has one.
    /// False if there is none.
    pub(super) fn take(&self, kind: Kind) -> bool {
        let number = match kind {
            Kind::Outcome => 0,
            Kind::Forwarding => 2,
            _ => 1,
        };
        let (taken, most) = self.share(kind);
        let more = |taken: usize| {
            let sum = taken.saturating_add(number);
            (sum <= most).then_some(sum)
        };
        number == 0
            || taken
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
                .is_ok()
    }

    /// Whether so many refusals wait that the disk does not keep up.
    pub(super) fn is_crowded(&self) -> bool {
        self.refusals.load(Ordering::Relaxed) >= CROWD
    }

    /// Gives back the place of a record that is written, or that nobody waits for any more.
    pub(super) fn give_back(&self, kind: Kind) {
        let less = |taken: usize| Some(taken.saturating_sub(1));
        let (taken, _) = self.share(kind);
        // It never fails: `less` always has a value.
        let _ = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// The places of a kind, and how many there are.
    const fn share(&self, kind: Kind) -> (&AtomicUsize, usize) {
        match kind {
            Kind::Forwarding | Kind::Outcome => (&self.forwarded, FORWARDED),
            Kind::Refused | Kind::Failed | Kind::LeftOut | Kind::Call => (&self.refusals, REFUSALS),
            Kind::ScaCompleted
            | Kind::ScaFailed
            | Kind::Bound
            | Kind::Learned
            | Kind::Withdrawn
            | Kind::Unbound
            | Kind::Erased
            | Kind::ImportBegun
            | Kind::Imported
            | Kind::Started
            | Kind::Stopped
            | Kind::Reloaded
            | Kind::ReloadRefused
            | Kind::TppBlocked
            | Kind::TppUnblocked
            | Kind::Retired
            | Kind::Resumed => (&self.changes, CHANGES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_share_takes_the_places_of_another() {
        let places = Places::default();
        let taken = |kind| (0..100_000).take_while(|_| places.take(kind)).count();
        assert!(!places.is_crowded());
        assert_eq!(taken(Kind::Refused), REFUSALS);
        assert!(places.is_crowded());
        assert_eq!((taken(Kind::Failed), taken(Kind::Call)), (0, 0));
        assert_eq!(taken(Kind::Bound), CHANGES);
        assert_eq!(taken(Kind::Forwarding), FORWARDED / 2);
        // Each has an outcome, whatever waits.
        assert_eq!(taken(Kind::Outcome), 100_000);
        for _ in 0..2 {
            assert!(!places.take(Kind::Forwarding));
            places.give_back(Kind::Forwarding);
            places.give_back(Kind::Outcome);
            assert!(places.take(Kind::Forwarding));
        }
        places.give_back(Kind::Call);
        assert!(places.take(Kind::Refused) && !places.take(Kind::Refused));
    }
}
