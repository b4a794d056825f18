//! How long a request id counts as used (REP-1), and how far a clock may step back.
//!
//! An id has to be remembered while a request with the same bytes could pass, that is as long as its Date holds. A clock
//! that steps back makes a Date hold again. Ids of unsafe methods are therefore kept for 24 hours, and their rows for
//! [`STAYS`] longer: a row is removed only when no clock that stepped back by 24 hours or less lets its Date pass.
//! Deliberately not here: where ids are remembered.

use crate::{
    clock::Timestamp,
    state::{RequestIdClaim, Retention},
};

/// DAT-2: a Date holds for 60 s after the second that it names, and the last of these seconds counts. In seconds.
const DATE_ENDS: u64 = 61;

/// How long ids of unsafe methods are remembered, and how far the clock may step back, in seconds.
pub(in crate::state) const DAY: u64 = 24 * 60 * 60;

/// How long housekeeping leaves an id beyond its end, in seconds: an id that is claimed by a Date of a minute ahead can
/// pass for two minutes.
pub(in crate::state) const STAYS: u64 = 3 * 60;

impl RequestIdClaim {
    /// The last second in which the id counts as used, if it is claimed now.
    pub(in crate::state) const fn until(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_unix(match self.retention {
            Retention::Memory | Retention::Date => date_ends(self.date).unix(),
            Retention::Day => now.unix().saturating_add(DAY),
        })
    }

    /// The last second in which this process's memory counts the id as used, whatever the method; none where the store
    /// remembers safe and unsafe methods alike.
    pub(in crate::state) const fn in_memory_until(&self) -> Option<Timestamp> {
        match self.retention {
            Retention::Memory | Retention::Day => Some(date_ends(self.date)),
            Retention::Date => None,
        }
    }

    /// Whether an id of the same Date may have been removed from the store, so that nobody can say whether this one was
    /// used. Ids that are kept for a day are not, as long as [`is_too_far_back`] does not hold.
    pub(in crate::state) const fn may_be_removed(&self, latest: Timestamp) -> bool {
        match self.retention {
            // Memory knows by itself which ids it forgot.
            Retention::Memory | Retention::Day => false,
            Retention::Date => may_be_removed(date_ends(self.date), latest),
        }
    }
}

/// The last second in which an id of a safe method counts as used.
pub(in crate::state) const fn date_ends(date: Timestamp) -> Timestamp {
    Timestamp::from_unix(date.unix().saturating_add(DATE_ENDS))
}

/// Whether housekeeping may have removed a row with that end.
pub(in crate::state) const fn may_be_removed(until: Timestamp, latest: Timestamp) -> bool {
    until.unix().saturating_add(STAYS) < latest.unix()
}

/// Whether the clock stepped back so far that ids may have been forgotten whose Dates hold again.
pub(in crate::state) const fn is_too_far_back(latest: Timestamp, now: Timestamp) -> bool {
    now.unix().saturating_add(DAY) < latest.unix()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Hash;

    fn claim(retention: Retention, date: u64) -> RequestIdClaim {
        RequestIdClaim {
            id: Hash::from_bytes([0; 16]),
            date: at(date),
            retention,
        }
    }

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix(seconds)
    }

    #[test]
    fn an_id_lasts_by_its_date_or_for_a_day() {
        for (retention, until) in [
            (Retention::Memory, 1_061),
            (Retention::Date, 1_061),
            (Retention::Day, 990 + DAY),
        ] {
            assert_eq!(claim(retention, 1_000).until(at(990)), at(until));
        }
    }

    /// Whatever a row's Date was, and whenever it was claimed: when it is removed, no clock that is not too far back
    /// lets that Date hold.
    #[test]
    fn what_is_removed_cannot_pass_again() {
        let claimed = 10 * DAY;
        for date in claimed - 60..=claimed + 60 {
            let kept = claim(Retention::Day, date).until(at(claimed)).unix();
            let removed = kept + STAYS + 1;
            for now in removed - DAY - 10..removed - DAY + 10 {
                let passes = at(now).distance(at(date)) <= 60;
                assert!(!passes || is_too_far_back(at(removed), at(now)));
            }
            let claim = claim(Retention::Date, date);
            let removed = claim.until(at(claimed)).unix() + STAYS + 1;
            assert!(claim.may_be_removed(at(removed)));
            assert!(!claim.may_be_removed(at(removed - 1)));
        }
    }

    #[test]
    fn a_day_back_is_not_too_far() {
        assert!(!is_too_far_back(at(5 * DAY), at(4 * DAY)));
        assert!(is_too_far_back(at(5 * DAY), at(4 * DAY - 1)));
        assert!(!is_too_far_back(at(0), at(0)));
    }
}
