//! The times at which housekeeping removes rows. Rows stay a minute longer than necessary because clocks differ; request ids stay four
//! minutes and spent tokens a day longer, because clocks step back.

use super::{
    calls::WINDOW,
    pages::PAGES,
    replay::{DAY, STAYS},
};
use crate::Rows;
use portvakt_base::clock::Timestamp;

/// The time that a row stays after its end, in seconds.
const GRACE: u64 = 60;

/// A table that housekeeping visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Quota,
    List,
    Request,
    Token,
    /// CTL-2: blocks of TPPs.
    Block,
    /// Only counted: PSUs do not expire (SCA-19).
    Psu,
}

impl Table {
    pub(crate) const ALL: [Self; 6] = [
        Self::Quota,
        Self::List,
        Self::Request,
        Self::Token,
        Self::Block,
        Self::Psu,
    ];

    /// The time up to which rows are removed: a quota's last call, a list's call, a request id's end, the end of a token or
    /// a block. `None` if no row
    /// is removed.
    pub(crate) fn removed_through(self, now: Timestamp) -> Option<Timestamp> {
        let stays = match self {
            Self::Quota => WINDOW + GRACE,
            Self::List => PAGES + GRACE,
            // The last second of an id still counts.
            Self::Request => STAYS + 1,
            // SCA-12, CTL-2: a clock that stepped back by 24 hours or less neither makes a token valid again, nor ends a block early.
            Self::Token | Self::Block => DAY + GRACE + 1,
            Self::Psu => return None,
        };
        now.unix().checked_sub(stays).map(Timestamp::from_unix)
    }
}

impl Rows {
    /// The count of a table.
    pub(crate) const fn of(&mut self, table: Table) -> &mut Option<u64> {
        match table {
            Table::Quota => &mut self.quotas,
            Table::List => &mut self.pages,
            Table::Request => &mut self.requests,
            Table::Token => &mut self.tokens,
            Table::Block => &mut self.blocks,
            Table::Psu => &mut self.psus,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_as_long_as_a_clock_that_steps_back_needs_them() {
        let now = Timestamp::from_unix(1_790_000_000);
        for (table, stays) in [
            (Table::Quota, 86_460),
            (Table::List, 960),
            (Table::Request, 241),
            (Table::Token, 86_461),
            (Table::Block, 86_461),
        ] {
            let through = table.removed_through(now).unwrap();
            assert_eq!(now.unix() - through.unix(), stays, "{table:?}");
            assert_eq!(table.removed_through(Timestamp::from_unix(stays - 1)), None);
        }
        assert_eq!(Table::Psu.removed_through(now), None);
    }
}
