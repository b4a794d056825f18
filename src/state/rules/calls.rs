//! Four calls in any 24 hours (QUO-1): governor's decision over four cells.
//!
//! A leaky bucket cannot express "four in any 24 hours": with a burst of four it allows seven in one window. Four cells of one call in 24
//! hours each, of which the oldest is used, are exactly the sliding window. The window is half-open: a call is possible again exactly 24
//! hours after the one that it replaces. Deliberately not here: the storage of the cells.

use crate::CallsLeft;
use governor::{
    NotUntil, Quota, RateLimiter,
    clock::Clock,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{NotKeyed, StateStore},
};
use portvakt_base::clock::Timestamp;
use std::{cell::Cell, time::Duration};

/// The window, in seconds.
pub(super) const WINDOW: u64 = 24 * 60 * 60;

/// The number of calls in any window (QUO-1).
const CALLS: usize = 4;

/// governor counts nanoseconds in 64 bits, which end in 2554. Later times are replaced by this one.
const LATEST: u64 = 18_000_000_000;

/// The times of the calls of one key, in seconds since the epoch, in no particular order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls(pub(crate) [Option<u64>; CALLS]);

impl Calls {
    /// Takes a call. Returns the one that it replaced, which is at least 24 hours old.
    ///
    /// # Errors
    /// The time of the next possible call; nothing is taken.
    pub(super) fn take(&mut self, now: Timestamp) -> Result<Option<u64>, Timestamp> {
        let period = Duration::from_secs(WINDOW);
        let Some(quota) = Quota::with_period(period) else {
            return Err(now); // Unreachable: the period is not zero.
        };
        let row = Row(Cell::new(self.0));
        // governor counts from the creation of the limiter, and the cells count from the epoch.
        let limiter = RateLimiter::<_, _, _, NoOpMiddleware<Duration>>::new(
            quota,
            row,
            Moment(Cell::new(Duration::ZERO)),
        );
        limiter
            .clock()
            .0
            .set(Duration::from_secs(now.unix().min(LATEST)));
        let decision = limiter.check();
        let replaced = self.oldest();
        self.0 = limiter.into_state_store().0.get();
        decision
            .map(|()| replaced)
            .map_err(|not_until: NotUntil<Duration>| {
                Timestamp::from_unix(not_until.earliest_possible().as_secs())
            })
    }

    /// The cell that the next call replaces; `None` if one is empty.
    fn oldest(&self) -> Option<u64> {
        self.0.iter().min().copied().flatten()
    }

    /// The latest calls of both rows.
    pub(super) fn with(self, other: Self) -> Self {
        let mut all = [self.0, other.0].concat();
        all.sort_unstable_by(|one, two| two.cmp(one));
        let mut latest = Self::default();
        latest
            .0
            .iter_mut()
            .zip(all)
            .for_each(|(cell, call)| *cell = call);
        latest
    }

    /// Gives one call of that time back, in favour of the one that it had replaced: for a clock that is behind, that one still counts. Returns
    /// whether there was such a call.
    pub(super) fn give_back(&mut self, at: Timestamp, replaced: Option<u64>) -> bool {
        let cell = self.0.iter_mut().find(|cell| **cell == Some(at.unix()));
        cell.map(|cell| *cell = replaced).is_some()
    }

    /// Whether no call is stored. Then the row is removed (QUO-5).
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The last call.
    #[cfg(feature = "sandbox")]
    pub(crate) fn last(&self) -> Option<Timestamp> {
        let last = self.0.iter().flatten().max();
        last.copied().map(Timestamp::from_unix)
    }

    /// The calls that are left (QUO-11).
    pub(super) fn left(&self, now: Timestamp) -> CallsLeft {
        let live = |at: &u64| at.saturating_add(WINDOW) > now.unix();
        let live = self.0.iter().flatten().copied().filter(live);
        let used = live.clone().count();
        let next = live.min().map_or(now, |oldest| {
            Timestamp::from_unix(oldest.saturating_add(WINDOW))
        });
        CallsLeft {
            calls: u8::try_from(self.0.len() - used).unwrap_or(0),
            next,
        }
    }
}

/// The cells as governor's state: the oldest is used, an empty one first.
struct Row(Cell<[Option<u64>; CALLS]>);

impl StateStore for Row {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _: &NotKeyed, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut cells = self.0.get();
        let oldest = Calls(cells).oldest();
        let free_at = oldest.map(|at| {
            let free_at = at.min(LATEST).saturating_add(WINDOW);
            Nanos::from(Duration::from_secs(free_at))
        });
        let (outcome, next) = decide(free_at)?;
        let at = Duration::from_nanos(next.as_u64())
            .as_secs()
            .saturating_sub(WINDOW);
        if let Some(cell) = cells.iter_mut().find(|cell| **cell == oldest) {
            *cell = Some(at);
        }
        self.0.set(cells);
        Ok(outcome)
    }
}

/// A clock that shows a fixed time.
struct Moment(Cell<Duration>);

impl Clock for Moment {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix(seconds)
    }

    #[test]
    fn the_fifth_call_waits_for_the_first_to_be_24_hours_old() {
        let mut calls = Calls::default();
        for (second, left) in [(100, 3), (200, 2), (300, 1), (300, 0)] {
            assert_eq!(calls.take(at(second)), Ok(None));
            let next = at(100 + WINDOW);
            assert_eq!(calls.left(at(second)), CallsLeft { calls: left, next });
        }
        assert_eq!(calls.take(at(301)), Err(at(100 + WINDOW)));
        assert_eq!(calls.take(at(100 + WINDOW - 1)), Err(at(100 + WINDOW)));
        assert_eq!(calls.take(at(100 + WINDOW)), Ok(Some(100)));
        assert_eq!(calls.take(at(100 + WINDOW)), Err(at(200 + WINDOW)));
    }

    #[test]
    fn a_call_that_is_given_back_is_as_if_it_had_not_been() {
        let mut calls = Calls::default();
        for second in [5, 5, 6, 7] {
            calls.take(at(second)).unwrap();
        }
        let mut give_back = |second| (calls.give_back(at(second), None), calls);
        assert!(give_back(5).0 && give_back(5).0);
        let (returned, calls) = give_back(5);
        assert!(!returned);
        assert_eq!(calls.left(at(8)).calls, 2);
        assert!(!give_back(6).1.is_empty());
        let (returned, calls) = give_back(7);
        assert!(returned && calls.is_empty());
        assert_eq!(calls.left(at(8)).next, at(8));
    }

    #[test]
    fn a_call_that_is_given_back_brings_back_the_one_that_it_replaced() {
        let mut calls = Calls::default();
        for second in [0, 1, 2, 3] {
            calls.take(at(second)).unwrap();
        }
        let before = calls;
        let replaced = calls.take(at(WINDOW)).unwrap();
        assert_eq!(replaced, Some(0));
        assert!(calls.give_back(at(WINDOW), replaced));
        assert_eq!(calls, before);
        // A gateway whose clock is behind.
        assert_eq!(calls.take(at(WINDOW - 1)), Err(at(WINDOW)));
    }

    #[test]
    fn calls_of_two_rows_count_together() {
        let (mut one, mut two) = (Calls::default(), Calls::default());
        for second in [1, 4, 5] {
            one.take(at(second)).unwrap();
            two.take(at(second + 1)).unwrap();
        }
        let mut both = one.with(two);
        assert_eq!(both, two.with(one));
        assert_eq!(
            both.left(at(7)),
            CallsLeft {
                calls: 0,
                next: at(4 + WINDOW)
            }
        );
        assert_eq!(both.take(at(7)), Err(at(4 + WINDOW)));
        assert_eq!(one.with(Calls::default()).left(at(7)).calls, 1);
    }

    #[test]
    fn the_end_of_time_does_not_overflow() {
        let mut calls = Calls::default();
        for _ in 0..4 {
            assert!(calls.take(at(u64::MAX)).is_ok());
        }
        assert!(calls.take(at(u64::MAX)).is_err());
    }

    proptest! {
        /// A direct definition of the sliding window: a call is possible if fewer than four calls are younger than 24 hours.
        #[test]
        fn it_is_the_sliding_window(steps in proptest::collection::vec(0_u64..40_000, 1..60)) {
            let (mut calls, mut log, mut now) = (Calls::default(), Vec::new(), 1_000_000);
            for step in steps {
                now += step;
                let live: Vec<u64> = log.iter().copied().filter(|at| at + WINDOW > now).collect();
                let expected = match live.as_slice() {
                    [.., fourth_last, _, _, _] => Err(at(fourth_last + WINDOW)),
                    _ => Ok(()),
                };
                prop_assert_eq!(calls.take(at(now)).map(drop), expected);
                if expected.is_ok() {
                    log.push(now);
                }
            }
        }
    }
}
