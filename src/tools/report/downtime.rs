//! Downtime: five requests in a row without a reply (EBA/GL/2018/07, guideline 2.4).
//!
//! It begins with the first of them, and ends with the next reply. The logs of several replicas may come one after the other, so the times
//! of all replies are kept, to [`SLOTS`] parts of a second: the errors of a busy gateway are not in a row if it also replies.

use std::collections::BTreeMap;

/// The number of requests in a row without a reply.
const IN_A_ROW: usize = 5;

/// The parts of a second in which a reply is noted. A quarter with a reply in each second takes 200 MB.
const SLOTS: u64 = 64;

/// The times of requests without a reply, in Unix milliseconds, and of replies.
#[derive(Debug, Default)]
pub(super) struct Outages {
    /// When each request began that got no reply.
    unreplied: Vec<u64>,
    /// The slots of each second in which there was a reply.
    replies: BTreeMap<u64, u64>,
}

impl Outages {
    /// A reply was sent at this time.
    pub(super) fn replied(&mut self, at: u64) {
        let slot = slot(at);
        *self.replies.entry(slot / SLOTS).or_default() |= 1 << (slot % SLOTS);
    }

    /// A request that began at this time got no reply.
    pub(super) fn not_replied(&mut self, began: u64) {
        self.unreplied.push(began);
    }

    /// The periods of downtime, from the first request without a reply to the next reply. They do not overlap.
    pub(super) fn periods(mut self) -> Vec<(u64, u64)> {
        self.unreplied.sort_unstable();
        let is_same_row = |last: &u64, next: &u64| {
            let reply = self.next_reply(slot(*last));
            reply.is_none_or(|reply| slot(*next) < reply)
        };
        let rows = self.unreplied.chunk_by(is_same_row);
        let long = rows.filter(|row| row.len() >= IN_A_ROW);
        long.filter_map(|row| {
            let (first, last) = (*row.first()?, *row.last()?);
            // Without a later reply, the end is that of the last known request.
            let reply = self.next_reply(slot(last)).map_or(last, start);
            Some((first, reply.max(last)))
        })
        .collect()
    }

    /// The first slot from this one on with a reply.
    fn next_reply(&self, from: u64) -> Option<u64> {
        let mut seconds = self.replies.range(from / SLOTS..);
        seconds.find_map(|(second, slots)| {
            let start = second.saturating_mul(SLOTS);
            let earlier = from.saturating_sub(start);
            let left = slots >> earlier << earlier;
            (left != 0).then(|| start.saturating_add(left.trailing_zeros().into()))
        })
    }
}

/// The slot of a time.
const fn slot(at: u64) -> u64 {
    at.saturating_mul(SLOTS) / 1_000
}

/// The first millisecond of a slot.
const fn start(slot: u64) -> u64 {
    slot.saturating_mul(1_000).div_ceil(SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(unreplied: &[u64], replies: &[u64]) -> Vec<(u64, u64)> {
        let mut outages = Outages::default();
        for began in unreplied {
            outages.not_replied(*began);
        }
        for at in replies {
            outages.replied(*at);
        }
        outages.periods()
    }

    #[test]
    fn five_in_a_row_are_downtime() {
        let five = [1_000, 1_100, 1_200, 1_300, 1_400];
        assert_eq!(periods(&five, &[500, 9_000]), [(1_000, 9_000)]);
        assert_eq!(periods(&five, &[500]), [(1_000, 1_400)]);
        assert_eq!(periods(&five[1..], &[500, 9_000]), []);
        // A reply between them, also of a replica whose log comes later.
        assert_eq!(periods(&five, &[9_000, 1_250]), []);
        let two = [five, five.map(|at| at + 1_000)].concat();
        assert_eq!(
            periods(&two, &[1_750, 3_000]),
            [(1_000, 1_750), (2_000, 3_000)]
        );
    }

    /// A gateway that replies 250 times in a second is not down because five others fail in each second.
    #[test]
    fn errors_between_replies_are_no_downtime() {
        let replies: Vec<_> = (0..60_000).step_by(4).collect();
        let unreplied: Vec<_> = (1..60_000).step_by(200).collect();
        assert_eq!(periods(&unreplied, &replies), []);
    }

    #[test]
    fn a_slot_is_found_again() {
        for at in 0..3_000 {
            assert!(start(slot(at)) <= at && slot(start(slot(at))) == slot(at));
        }
        let mut outages = Outages::default();
        for at in [63, 999, 70_000] {
            outages.replied(at);
            assert_eq!(outages.next_reply(slot(at)), Some(slot(at)));
        }
        assert_eq!(outages.next_reply(slot(64) + 1), Some(slot(999)));
        assert_eq!(outages.next_reply(slot(1_000)), Some(slot(70_000)));
        assert_eq!(outages.next_reply(slot(70_016)), None);
    }
}
