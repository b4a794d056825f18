//! The time for which a request id counts as used (REP-1), and the maximum step of the clock.
//!
//! An id must be kept while a request with the same bytes could pass, which is while its Date is valid. A clock that steps back makes a
//! Date valid again. So ids of unsafe methods are kept for 24 hours, and their rows for [`STAYS`] longer: a row is removed only when no
//! clock that stepped back by 24 hours or less makes its Date valid. Deliberately not here: the storage of ids.

use crate::{RequestIdClaim, Retention};
use portvakt_base::clock::Timestamp;

/// DAT-2: a Date is valid for 60 s after its second, including the last of these seconds. In seconds.
const DATE_ENDS: u64 = 61;

/// The time for which ids of unsafe methods are kept, and the maximum step of the clock, in seconds.
pub(crate) const DAY: u64 = 24 * 60 * 60;

/// The time that housekeeping leaves an id after its end, in seconds: an id with a Date one minute ahead can pass for two minutes, and its
/// claim may wait for [`WAITS`].
pub(crate) const STAYS: u64 = 3 * 60 + WAITS;

impl RequestIdClaim {
    /// The last second in which the id counts as used, if it is claimed now.
    pub(crate) const fn until(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_unix(match self.retention {
            Retention::Memory | Retention::Date => date_ends(self.date).unix(),
            Retention::Day => now.unix().saturating_add(DAY),
        })
    }

    /// The last second in which the memory of this process counts the id as used, whatever the method; `None` if the store keeps the ids of
    /// safe and unsafe methods alike.
    pub(crate) const fn in_memory_until(&self) -> Option<Timestamp> {
        match self.retention {
            Retention::Memory | Retention::Day => Some(date_ends(self.date)),
            Retention::Date => None,
        }
    }

    /// Whether an id with the same Date may have been removed from the store, so that an earlier use is unknown. Ids that are kept for a
    /// day are not removed unless [`is_too_far_back`] is true.
    pub(crate) const fn may_be_removed(&self, latest: Timestamp) -> bool {
        match self.retention {
            // The memory itself knows the end of its dropped ids.
            Retention::Memory | Retention::Day => false,
            Retention::Date => may_be_removed(date_ends(self.date), latest),
        }
    }
}

/// The last second in which an id of a safe method counts as used.
pub(crate) const fn date_ends(date: Timestamp) -> Timestamp {
    Timestamp::from_unix(date.unix().saturating_add(DATE_ENDS))
}

/// The time by which the clock may go on while the caller of a change waits, in seconds: every row stays so long after it is needed
/// (`rules/expiry.rs`). Engines answer within five seconds; the rest is for the clocks of other gateways, which are heard of meanwhile.
pub(crate) const WAITS: u64 = 60;

/// Whether housekeeping may have removed a row with that end before a change that begins now is decided.
pub(crate) const fn may_be_removed(until: Timestamp, latest: Timestamp) -> bool {
    until.unix().saturating_add(STAYS) < latest.unix().saturating_add(WAITS)
}

/// Whether the clock stepped back so far that ids may have been removed whose Dates are valid again.
pub(crate) const fn is_too_far_back(latest: Timestamp, now: Timestamp) -> bool {
    now.unix().saturating_add(DAY) < latest.unix()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hash;

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

    /// For every Date and every time of the claim: when the row is removed, no clock within the maximum step makes the Date valid.
    #[test]
    fn what_is_removed_cannot_pass_again() {
        let claimed = 10 * DAY;
        for date in claimed - 60..=claimed + 60 {
            let kept = claim(Retention::Day, date).until(at(claimed)).unix();
            let removed = kept + STAYS + 1;
            for now in removed - DAY - 10..removed - DAY + 10 {
                let passes = at(now).distance(at(date)) <= 60;
                assert!(!passes || is_too_far_back(at(removed - WAITS), at(now)));
            }
            let claim = claim(Retention::Date, date);
            let removed = claim.until(at(claimed)).unix() + STAYS + 1;
            assert!(claim.may_be_removed(at(removed - WAITS)));
            assert!(!claim.may_be_removed(at(removed - WAITS - 1)));
        }
    }

    #[test]
    fn a_day_back_is_not_too_far() {
        assert!(!is_too_far_back(at(5 * DAY), at(4 * DAY)));
        assert!(is_too_far_back(at(5 * DAY), at(4 * DAY - 1)));
        assert!(!is_too_far_back(at(0), at(0)));
    }
}
