//! The rest of a quota (QUO-11).

use portvakt_base::clock::Timestamp;
use portvakt_interface::QuotaLeft;

/// The calls that are left of a quota (QUO-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallsLeft {
    /// The number of calls that are possible now.
    pub calls: u8,
    /// The time at which one more call becomes possible.
    pub next: Timestamp,
}

impl CallsLeft {
    /// The same values relative to `now`, in the form of the interface.
    pub const fn seen_at(self, now: Timestamp) -> QuotaLeft {
        QuotaLeft {
            calls: self.calls,
            seconds: self.next.unix().saturating_sub(now.unix()),
        }
    }
}
