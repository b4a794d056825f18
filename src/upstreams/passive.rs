//! Passive ejection: an endpoint whose requests fail one after another gets no requests for a time, then a growing share of them.
//!
//! A request can be made to fail. So the failures of one TPP's requests do not eject an endpoint that answered another TPP lately.
//!
//! Deliberately not here: active checks ([`super::check`]), which failures count, and how many endpoints of a group may be ejected
//! ([`super::group`]).

use super::in_flight::TppMark;
use crate::{clock::Stopwatch, config::Ejection};
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// The time of an ejection is doubled at most so many times.
const MOST_DOUBLINGS: u32 = 3;

/// The least share of requests that an endpoint gets which returns, in percent.
const LEAST_SHARE: u64 = 5;

/// The failure of a request, by what it says about the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection was made: no request can cause that.
    NoConnection,
    /// An answer from 500 on, a broken one, or none: the request of this TPP may itself be the cause.
    OfRequest(TppMark),
}

/// The right to eject and release endpoints: each group has one, behind a lock, so that two ejections at once do not each count on
/// the endpoint of the other.
#[derive(Debug, Default)]
pub(super) struct EjectionTurn(());

/// The failures of an endpoint, and its ejection. Times are milliseconds since it was made.
#[derive(Debug)]
pub(super) struct Passive {
    since: Stopwatch,
    /// Consecutive failures.
    failures: AtomicU32,
    callers: Mutex<Callers>,
    /// The end of the last ejection; 0 if there was none, or its recovery is over.
    until: AtomicU64,
    /// Whether the last ejection was for [`Failure::OfRequest`].
    is_of_request: AtomicBool,
    /// Ejections of which each followed in the recovery of the one before.
    ejections: AtomicU32,
    /// Counts the requests of a recovery, of which each endpoint gets its share.
    offered: AtomicU64,
}

/// The TPPs of an endpoint.
#[derive(Debug, Default)]
struct Callers {
    /// The last two TPPs that were answered, the last one first, and when.
    answered: [Option<(TppMark, u64)>; 2],
    /// The cause of the consecutive failures.
    failed: Blame,
}

/// Whose requests failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Blame {
    #[default]
    Nobody,
    /// Those of one TPP.
    One(TppMark),
    /// Those of several TPPs, or a connection.
    Endpoint,
}

impl Callers {
    fn answered(&mut self, tpp: TppMark, now: u64) {
        let [last, _] = self.answered;
        if last.is_some_and(|(known, _)| known != tpp) {
            self.answered = [None, last];
        }
        self.answered[0] = Some((tpp, now));
    }

    fn failed(&mut self, failure: Failure) {
        self.failed = match (self.failed, failure) {
            (Blame::Nobody, Failure::OfRequest(tpp)) => Blame::One(tpp),
            (Blame::One(known), Failure::OfRequest(tpp)) if known == tpp => Blame::One(tpp),
            _ => Blame::Endpoint,
        };
    }

    /// Whether one TPP alone failed, and another one was answered within this time.
    fn is_one_of_several(&self, now: u64, within: Duration) -> bool {
        let Blame::One(tpp) = self.failed else {
            return false;
        };
        let mut answered = self.answered.iter().flatten();
        answered.any(|(other, at)| *other != tpp && now.saturating_sub(*at) < millis(within))
    }
}

impl Passive {
    pub(super) fn new() -> Self {
        Self {
            since: Stopwatch::start(),
            failures: AtomicU32::new(0),
            callers: Mutex::default(),
            until: AtomicU64::new(0),
            is_of_request: AtomicBool::new(false),
            ejections: AtomicU32::new(0),
            offered: AtomicU64::new(0),
        }
    }

    /// Whether it may get this request: yes, but while it is ejected, and for its share of requests during the recovery.
    pub(super) fn accepts(&self, ejection: &Ejection) -> bool {
        match self.until.load(Relaxed) {
            0 => true,
            until => self.accepts_at(self.now(), until, ejection),
        }
    }

    /// Whether it is ejected.
    pub(super) fn is_ejected(&self) -> bool {
        self.now() < self.until.load(Relaxed)
    }

    /// A request was answered: one of this TPP, if the group has other endpoints.
    pub(super) fn succeeded(&self, tpp: Option<TppMark>) {
        if self.failures.load(Relaxed) > 0 {
            self.failures.store(0, Relaxed);
            self.callers().failed = Blame::Nobody;
        }
        if let Some(tpp) = tpp {
            self.answered_at(self.now(), tpp);
        }
    }

    /// Whether it is ejected, and requests may have been the cause.
    pub(super) fn is_ejected_for_requests(&self) -> bool {
        self.is_ejected() && self.is_of_request.load(Relaxed)
    }

    /// A request failed. Returns whether the endpoint is to be ejected because of that.
    pub(super) fn failed(&self, failure: Failure, ejection: &Ejection) -> bool {
        self.failed_at(self.now(), failure, ejection)
    }

    /// Ejects it, and returns for how long; `None` if it is ejected already.
    pub(super) fn eject(
        &self,
        _turn: &mut EjectionTurn,
        failure: Failure,
        ejection: &Ejection,
    ) -> Option<Duration> {
        self.eject_at(self.now(), failure, ejection)
    }

    /// Ends the ejection at once.
    pub(super) fn release(&self, _turn: &mut EjectionTurn) {
        self.failures.store(0, Relaxed);
        self.ejections.store(0, Relaxed);
        self.until.store(0, Relaxed);
    }

    fn accepts_at(&self, now: u64, until: u64, ejection: &Ejection) -> bool {
        let Some(since) = now.checked_sub(until) else {
            return false;
        };
        let whole = millis(ejection.recovery).max(1);
        if since >= whole {
            return match self.until.compare_exchange(until, 0, Relaxed, Relaxed) {
                Ok(_) => {
                    self.ejections.store(0, Relaxed);
                    true
                }
                // Another request ended the recovery, or ejected it at this moment.
                Err(until) => until <= now,
            };
        }
        let share = (since.saturating_mul(100) / whole).max(LEAST_SHARE);
        let before = self.offered.fetch_add(1, Relaxed) % 100;
        let due = |count: u64| count.saturating_mul(share) / 100;
        due(before.saturating_add(1)) > due(before)
    }

    fn answered_at(&self, now: u64, tpp: TppMark) {
        // Among simultaneous answers, one is enough.
        if let Ok(mut callers) = self.callers.try_lock() {
            callers.answered(tpp, now);
        }
    }

    fn failed_at(&self, now: u64, failure: Failure, ejection: &Ejection) -> bool {
        let failures = self.failures.fetch_add(1, Relaxed).saturating_add(1);
        let until = self.until.load(Relaxed);
        let mut callers = self.callers();
        callers.failed(failure);
        // Requests that were under way when it was ejected fail too.
        now >= until
            && (until != 0 || failures >= ejection.failures)
            && !callers.is_one_of_several(now, ejection.time)
    }

    fn callers(&self) -> MutexGuard<'_, Callers> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn eject_at(&self, now: u64, failure: Failure, ejection: &Ejection) -> Option<Duration> {
        if now < self.until.load(Relaxed) {
            return None;
        }
        let doublings = self.ejections.fetch_add(1, Relaxed).min(MOST_DOUBLINGS);
        let time = ejection.time.saturating_mul(1 << doublings);
        let until = now.saturating_add(millis(time)).max(1);
        self.is_of_request
            .store(matches!(failure, Failure::OfRequest(_)), Relaxed);
        self.until.store(until, Relaxed);
        self.failures.store(0, Relaxed);
        self.callers().failed = Blame::Nobody;
        Some(time)
    }

    fn now(&self) -> u64 {
        millis(self.since.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EJECTION: Ejection = Ejection {
        failures: 3,
        time: Duration::from_secs(10),
        recovery: Duration::from_secs(10),
    };

    const ONE: TppMark = TppMark(1);
    const OTHER: TppMark = TppMark(2);

    /// The number of accepted ones among 100 requests at a time.
    fn accepted(passive: &Passive, now: u64) -> usize {
        let until = passive.until.load(Relaxed);
        let all = (0..100).filter(|_| until == 0 || passive.accepts_at(now, until, &EJECTION));
        all.count()
    }

    /// A failure, and the ejection that follows where no other endpoint matters.
    fn fail(passive: &Passive, now: u64) -> Option<Duration> {
        let failure = Failure::OfRequest(ONE);
        let is_due = passive.failed_at(now, failure, &EJECTION);
        is_due
            .then(|| passive.eject_at(now, failure, &EJECTION))
            .flatten()
    }

    #[test]
    fn consecutive_failures_eject_and_the_share_grows_back() {
        let passive = Passive::new();
        for _ in 0..5 {
            assert_eq!(fail(&passive, 0), None);
            assert_eq!(fail(&passive, 0), None);
            passive.succeeded(None);
        }
        let failed = [(); 3].map(|()| fail(&passive, 1_000));
        assert_eq!(failed, [None, None, Some(Duration::from_secs(10))]);
        for (now, share) in [
            (1_000, 0),
            (10_999, 0),
            (11_000, 5),
            (12_000, 10),
            (16_000, 50),
            (20_900, 99),
            (21_000, 100),
        ] {
            assert_eq!(accepted(&passive, now), share, "{now}");
        }
        assert_eq!(passive.until.load(Relaxed), 0, "it is as before");
    }

    #[test]
    fn a_failure_of_a_recovery_ejects_for_longer() {
        let passive = Passive::new();
        let mut now = 0;
        for time in [10, 20, 40, 80, 80] {
            let failures = if now == 0 { 2 } else { 0 };
            for _ in 0..failures {
                assert_eq!(fail(&passive, now), None);
            }
            let ejected = fail(&passive, now);
            assert_eq!(ejected, Some(Duration::from_secs(time)));
            assert_eq!(fail(&passive, now + 1), None, "under way");
            now += time * 1_000 + 1;
        }
    }

    #[test]
    fn one_tpp_ejects_no_endpoint_that_answers_another() {
        let (one, other) = (Failure::OfRequest(ONE), Failure::OfRequest(OTHER));
        let passive = Passive::new();
        let succeeded = |now, tpp| {
            passive.succeeded(None);
            passive.answered_at(now, tpp);
        };
        let fails = |now, failure| passive.failed_at(now, failure, &EJECTION);
        succeeded(0, OTHER);
        succeeded(1, ONE);
        succeeded(2, ONE);
        assert!(!(0..100).any(|_| fails(3, one)));
        // Another TPP fails too, or a connection.
        assert!(fails(4, other) && fails(5, one));
        succeeded(6, OTHER);
        assert!(!(0..100).any(|_| fails(7, one)));
        assert!(fails(8, Failure::NoConnection));
        // The last answer to another TPP was long ago.
        succeeded(100, OTHER);
        assert!(!(0..100).any(|_| fails(10_099, one)));
        assert!(fails(10_100, one));
        // In its recovery.
        passive.eject_at(10_100, one, &EJECTION);
        assert!(fails(20_101, one));
        succeeded(20_102, OTHER);
        assert!(!fails(20_103, one) && fails(20_104, other));
    }

    #[test]
    fn two_failures_at_once_eject_once() {
        let passive = Passive::new();
        let failure = Failure::OfRequest(ONE);
        let due = [(); 4].map(|()| passive.failed_at(1, failure, &EJECTION));
        assert_eq!(due, [false, false, true, true]);
        let ejected = [(); 2].map(|()| passive.eject_at(1, failure, &EJECTION));
        assert_eq!(ejected, [Some(Duration::from_secs(10)), None]);
        passive.release(&mut EjectionTurn::default());
        assert_eq!(accepted(&passive, 1), 100);
    }
}
