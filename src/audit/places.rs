//! The places of records that wait for the disk: each share of the records has its own, so that none takes those of another (FWD-8).
//!
//! Invariant: a request that goes to the core has places for its record and for its outcome, or it does not go there. Neither refusals nor
//! calls of the control listener take them, so no record of a forwarded request is left out while the process runs.

use super::event::AuditKind;
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
    pub(super) fn take(&self, kind: AuditKind) -> bool {
        let number = match kind {
            AuditKind::Outcome => 0,
            AuditKind::Forwarding => 2,
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
    pub(super) fn give_back(&self, kind: AuditKind) {
        let less = |taken: usize| Some(taken.saturating_sub(1));
        let (taken, _) = self.share(kind);
        // It never fails: `less` always has a value.
        let _ = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// The places of a kind, and how many there are.
    const fn share(&self, kind: AuditKind) -> (&AtomicUsize, usize) {
        match kind {
            AuditKind::Forwarding | AuditKind::Outcome => (&self.forwarded, FORWARDED),
            AuditKind::Refused | AuditKind::Failed | AuditKind::LeftOut | AuditKind::Call => {
                (&self.refusals, REFUSALS)
            }
            AuditKind::ScaCompleted
            | AuditKind::ScaFailed
            | AuditKind::Bound
            | AuditKind::Learned
            | AuditKind::Withdrawn
            | AuditKind::Unbound
            | AuditKind::CustomerForgotten
            | AuditKind::Erased
            | AuditKind::ImportBegun
            | AuditKind::Imported
            | AuditKind::Started
            | AuditKind::Stopped
            | AuditKind::Reloaded
            | AuditKind::ReloadRefused
            | AuditKind::TppBlocked
            | AuditKind::TppUnblocked
            | AuditKind::TppMoved
            | AuditKind::EndpointDrained
            | AuditKind::EndpointRestored
            | AuditKind::TppFirstSeen
            | AuditKind::RegistrationLost
            | AuditKind::Retired
            | AuditKind::Resumed => (&self.changes, CHANGES),
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
        assert_eq!(taken(AuditKind::Refused), REFUSALS);
        assert!(places.is_crowded());
        assert_eq!((taken(AuditKind::Failed), taken(AuditKind::Call)), (0, 0));
        assert_eq!(taken(AuditKind::Bound), CHANGES);
        assert_eq!(taken(AuditKind::Forwarding), FORWARDED / 2);
        // Each has an outcome, whatever waits.
        assert_eq!(taken(AuditKind::Outcome), 100_000);
        for _ in 0..2 {
            assert!(!places.take(AuditKind::Forwarding));
            places.give_back(AuditKind::Forwarding);
            places.give_back(AuditKind::Outcome);
            assert!(places.take(AuditKind::Forwarding));
        }
        places.give_back(AuditKind::Call);
        assert!(places.take(AuditKind::Refused) && !places.take(AuditKind::Refused));
    }
}
