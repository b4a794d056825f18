//! The age of what a process knows of the state, by a clock (SCA-6, SCA-13).
//!
//! A process that was stopped, starved or cut off does not notice it by itself: its memory looks as it did. So every fact has the moment as
//! of which it is known ([`AsOf`]), and is judged by it where it is used, not where it was read. Memory is as of the last moment at which
//! the engine heard of every change: an engine that hears of nothing for a second answers nothing from memory. Deliberately not here: what
//! is done where a fact is too old, which admission decides.

use portvakt_base::clock::BootTime;
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// The greatest age of a fact that is used.
const LIMIT: Duration = Duration::from_secs(1);

/// The moment as of which a fact of the state is known.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsOf(Option<BootTime>);

impl AsOf {
    /// Of a judgement that rests on no fact of the state, or on one that cannot be of another time.
    pub const ANY_TIME: Self = Self(None);

    /// Whether the fact is at most a second old. Reads the clock.
    pub fn is_fresh(self) -> bool {
        self.0.is_none_or(|at| at.elapsed() <= LIMIT)
    }

    /// Whether the fact is at most a second old at this moment.
    pub fn is_fresh_at(self, now: BootTime) -> bool {
        self.0.is_none_or(|at| at.until(now) <= LIMIT)
    }

    /// Whether the fact is known as of this moment or a later one.
    #[cfg(test)]
    pub(super) fn is_not_before(self, moment: BootTime) -> bool {
        self.0.is_none_or(|at| at >= moment)
    }
}

/// A fact, and the moment as of which it is known.
#[must_use]
#[derive(Clone, Debug)]
pub struct Dated<T> {
    /// The fact.
    pub fact: T,
    /// The moment.
    pub as_of: AsOf,
}

impl<T> Dated<T> {
    /// Another fact that follows from this one, as of the same moment.
    pub fn map<U>(self, follows: impl FnOnce(T) -> U) -> Dated<U> {
        Dated {
            fact: follows(self.fact),
            as_of: self.as_of,
        }
    }
}

/// How an engine's answers age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// The rows are those of this process: there is no other state.
    Own,
    /// An answer is as of the moment at which the engine began to read.
    AsRead,
    /// The same, but not later than the last proof that the engine is the one that decides: a former primary answers too.
    AsProven,
}

/// The last moment at which an engine had heard of every change.
#[derive(Debug)]
pub(super) struct Freshness {
    reads: Reads,
    since: BootTime,
    /// Milliseconds from `since` to that moment, plus one; 0 before the first.
    heard: AtomicU64,
    /// Whether memory may be used whatever its age: the operator's choice (`state.postgres.reads: memory`).
    is_ignored: AtomicBool,
}

impl Freshness {
    pub(super) fn new(reads: Reads, is_ignored: bool) -> Self {
        Self {
            reads,
            since: BootTime::now(),
            heard: AtomicU64::new(0),
            is_ignored: AtomicBool::new(is_ignored),
        }
    }

    /// Records that every change before this moment was heard of. The moment is the one at which the engine began to ask.
    pub(super) fn heard(&self, began: BootTime) {
        let millis = u64::try_from(self.since.until(began).as_millis()).unwrap_or(u64::MAX);
        self.heard
            .fetch_max(millis.saturating_add(1), Ordering::Release);
    }

    /// Ends the use of memory: it is of another state.
    pub(super) fn end(&self) {
        self.is_ignored.store(false, Ordering::Relaxed);
        self.heard.store(0, Ordering::Release);
    }

    /// Whether a change after this moment was heard of.
    pub(super) fn was_heard_since(&self, began: BootTime) -> bool {
        self.last().is_some_and(|last| last > began)
    }

    /// The moment as of which memory is known; `None` if it may not be used. Call this before memory is read. Reads the clock.
    pub(super) fn of_memory(&self) -> Option<AsOf> {
        if self.is_any_time() {
            return Some(AsOf::ANY_TIME);
        }
        let as_of = AsOf(Some(self.last()?));
        as_of.is_fresh().then_some(as_of)
    }

    /// The moment as of which an answer is known that the engine began to read at this moment.
    pub(super) fn of_answer(&self, began: BootTime) -> AsOf {
        if self.is_any_time() {
            return AsOf::ANY_TIME;
        }
        match self.reads {
            Reads::Own | Reads::AsRead => AsOf(Some(began)),
            Reads::AsProven => AsOf(Some(self.last().unwrap_or(self.since).min(began))),
        }
    }

    fn is_any_time(&self) -> bool {
        self.reads == Reads::Own || self.is_ignored.load(Ordering::Relaxed)
    }

    fn last(&self) -> Option<BootTime> {
        let heard = self.heard.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.since.after(Duration::from_millis(heard)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(millis: u64) -> BootTime {
        BootTime::now().before(Duration::from_millis(millis))
    }

    fn since(millis: u64, reads: Reads, is_ignored: bool) -> Freshness {
        let freshness = Freshness::new(reads, is_ignored);
        let since = ago(millis);
        Freshness { since, ..freshness }
    }

    #[test]
    fn memory_is_used_for_a_second_after_everything_was_heard() {
        let freshness = since(3_600_000, Reads::AsRead, false);
        assert_eq!(freshness.of_memory(), None, "nothing was heard yet");
        freshness.heard(ago(60_000));
        assert_eq!(freshness.of_memory(), None);
        freshness.heard(BootTime::now());
        assert!(freshness.of_memory().is_some());
        freshness.heard(ago(60_000));
        assert!(freshness.of_memory().is_some(), "a late report is no news");
        freshness.end();
        assert_eq!(freshness.of_memory(), None);
    }

    /// What was fresh when it was read is not fresh for ever: it is judged where it is used.
    #[test]
    fn a_fact_grows_old() {
        let freshness = since(3_600_000, Reads::AsRead, false);
        assert!(freshness.of_answer(BootTime::now()).is_fresh());
        assert!(!freshness.of_answer(ago(60_000)).is_fresh());
        assert!(AsOf::ANY_TIME.is_fresh());
    }

    /// A former primary answers too: its answer is as old as the last proof.
    #[test]
    fn an_answer_is_no_newer_than_the_last_proof() {
        let freshness = since(3_600_000, Reads::AsProven, false);
        assert!(!freshness.of_answer(BootTime::now()).is_fresh());
        freshness.heard(ago(60_000));
        assert!(!freshness.of_answer(BootTime::now()).is_fresh());
        freshness.heard(BootTime::now());
        assert!(freshness.of_answer(BootTime::now()).is_fresh());
        assert!(!freshness.of_answer(ago(60_000)).is_fresh());
    }

    #[test]
    fn the_operator_may_use_memory_of_any_age() {
        let freshness = since(3_600_000, Reads::AsProven, true);
        assert_eq!(freshness.of_memory(), Some(AsOf::ANY_TIME));
        assert!(freshness.of_answer(ago(60_000)).is_fresh());
        freshness.end();
        assert_eq!(freshness.of_memory(), None, "it is of another state");
    }
}
