//! Downtime: five requests in a row that are not replied to within a total of 30 seconds (EBA/GL/2018/07, guideline 2.4).
//!
//! It begins when the first of them came, and ends with the next reply. The logs of several replicas may come one after the other, so the
//! times of all replies are kept, to [`SLOTS`] parts of a second: the errors of a busy gateway are not in a row if it also replies.

use std::collections::BTreeMap;

/// The number of requests in a row without a reply.
const IN_A_ROW: usize = 5;

/// The time in which all of them came and none was replied to, counted from the first, in milliseconds.
const TOTAL: u64 = 30_000;

/// A reply that took at least this long, in milliseconds, is kept with its request: it may have come after the time of the row.
const SLOW: u64 = 1_000;

/// The parts of a second in which a reply is noted. A quarter with a reply in each second takes 200 MB.
const SLOTS: u64 = 64;

/// A request without a reply in time, or with a slow one; its times in Unix milliseconds.
#[derive(Clone, Copy, Debug)]
struct Request {
    began: u64,
    replied: Option<u64>,
}

/// The requests without a reply, and the times of replies.
#[derive(Debug, Default)]
pub(super) struct Outages {
    requests: Vec<Request>,
    /// The slots of each second in which there was a reply.
    replies: BTreeMap<u64, u64>,
}

impl Outages {
    /// A request that began at the first time was replied to at the second.
    pub(super) fn replied(&mut self, began: u64, at: u64) {
        let slot = slot(at);
        *self.replies.entry(slot / SLOTS).or_default() |= 1 << (slot % SLOTS);
        if at.saturating_sub(began) >= SLOW {
            let replied = Some(at);
            self.requests.push(Request { began, replied });
        }
    }

    /// A request that began at this time got no reply.
    pub(super) fn not_replied(&mut self, began: u64) {
        let replied = None;
        self.requests.push(Request { began, replied });
    }

    /// The periods of downtime, from the first request without a reply to the next reply. They do not overlap.
    pub(super) fn periods(mut self) -> Vec<(u64, u64)> {
        self.requests.sort_unstable_by_key(|request| request.began);
        let mut periods = Vec::new();
        let mut rest = self.requests.as_slice();
        while !rest.is_empty() {
            let period = self.downtime(rest);
            periods.extend(period);
            let passed = match period {
                // At least one, where no reply ends it.
                Some((_, ended)) => rest.partition_point(|it| it.began < ended).max(1),
                None => 1,
            };
            rest = rest.get(passed..).unwrap_or_default();
        }
        periods
    }

    /// The downtime that begins with the first of these requests, if it is one of five in a row.
    fn downtime(&self, requests: &[Request]) -> Option<(u64, u64)> {
        let five = requests.get(..IN_A_ROW)?;
        let (first, last) = (five.first()?.began, five.last()?.began);
        let until = first.saturating_add(TOTAL);
        let is_without = |it: &Request| it.began <= until && it.replied.is_none_or(|at| at > until);
        let reply = self.next_reply(slot(first));
        let is_in_between = reply.is_some_and(|reply| reply <= slot(last));
        if is_in_between || !five.iter().all(is_without) {
            return None;
        }
        // Without a later reply, the end is that of the last known request.
        let ended = reply.map_or(requests.last()?.began, start);
        Some((first, ended.max(last)))
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
        let replies: Vec<_> = replies.iter().map(|at| (*at, *at)).collect();
        periods_of(unreplied, &replies)
    }

    /// The same with requests that were replied to, as their beginnings and ends.
    fn periods_of(unreplied: &[u64], replied: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut outages = Outages::default();
        for began in unreplied {
            outages.not_replied(*began);
        }
        for (began, at) in replied {
            outages.replied(*began, *at);
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

    /// A quiet night in which one request in eight seconds fails is no downtime.
    #[test]
    fn the_five_have_thirty_seconds_together() {
        let at = |step: u64, count: u64| (0..count).map(|it| 1_000 + it * step).collect::<Vec<_>>();
        assert_eq!(periods(&at(7_500, 5), &[60_000]), [(1_000, 60_000)]);
        assert_eq!(periods(&at(7_501, 5), &[60_000]), []);
        assert_eq!(periods(&at(7_501, 500), &[]), []);
        // The downtime begins with the first of the first five that came in time.
        let late = [1_000, 20_000, 31_001, 31_002, 31_003, 31_004, 50_000];
        assert_eq!(periods(&late, &[90_000]), [(20_000, 90_000)]);
    }

    /// The time of a reply counts from the first of the row.
    #[test]
    fn slow_replies() {
        let four = [1_000, 1_100, 1_200, 1_300];
        // It comes within 30 seconds of the first: there are no five in a row, wherever it began.
        assert_eq!(periods_of(&four, &[(20_000, 31_000)]), []);
        let five = [1_000, 1_100, 1_200, 1_300, 1_400];
        assert_eq!(periods_of(&five, &[(1_150, 20_000)]), []);
        // It comes later.
        assert_eq!(
            periods_of(&four, &[(20_000, 31_001)]),
            [(1_000, start(slot(31_001)))]
        );
        // None is replied to in time, but each is within 30 seconds.
        let slow: Vec<_> = (0..9).map(|it| (it * 100, it * 100 + 29_000)).collect();
        assert_eq!(periods_of(&[], &slow), []);
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
            outages.replied(at, at);
            assert_eq!(outages.next_reply(slot(at)), Some(slot(at)));
        }
        assert_eq!(outages.next_reply(slot(64) + 1), Some(slot(999)));
        assert_eq!(outages.next_reply(slot(1_000)), Some(slot(70_000)));
        assert_eq!(outages.next_reply(slot(70_016)), None);
    }
}
