//! The consumers of events, how far each has come, and the events that none of them gets (CTL-3).
//!
//! A consumer's position is the cursor that it last sent to this gateway. Invariant: the number of consumers is bounded. Deliberately not here:
//! reading events, which the control listener does.

use super::{
    labels::Poll,
    registry::{Counters, Registrar},
    samples::{Families, number},
    table,
    values::PollResult,
};
use crate::{clock::Timestamp, state::Cursor};
use prometheus::IntCounter;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The most consumers with a series of their own.
const MOST: usize = 16;

/// Counts polls, and keeps the positions.
#[derive(Debug)]
pub(crate) struct ConsumerMetrics {
    polls: Counters<Poll>,
    lost: IntCounter,
    known: Mutex<BTreeMap<String, Position>>,
}

/// Where a consumer stands.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    after: Option<Cursor>,
    /// The time of the oldest event behind it, when it was last looked for.
    waits_since: Option<Timestamp>,
}

impl ConsumerMetrics {
    pub(super) fn new(registrar: &Registrar) -> Self {
        Self {
            polls: registrar.counters(&table::EVENT_POLLS),
            lost: registrar.counter(&table::EVENTS_LOST),
            known: Mutex::default(),
        }
    }

    /// Counts a call for events.
    pub(crate) fn count(&self, result: PollResult) {
        self.polls.of(result).inc();
    }

    /// Counts an observation that is no event, because too many wait for the state.
    pub(crate) fn lost(&self) {
        self.lost.inc();
    }

    /// Notes that a consumer has taken every event up to a cursor; `None` is before the oldest.
    pub(crate) fn note(&self, name: &str, after: Option<Cursor>) {
        let mut known = self.lock();
        if known.len() >= MOST && !known.contains_key(name) {
            return;
        }
        let position = known.entry(name.to_owned()).or_default();
        if position.after != after {
            *position = Position {
                after,
                waits_since: None,
            };
        }
    }

    /// The consumers, each with its cursor.
    pub(crate) fn positions(&self) -> Vec<(String, Option<Cursor>)> {
        let known = self.lock();
        let positions = known.iter().map(|(name, at)| (name.clone(), at.after));
        positions.collect()
    }

    /// Notes the time of the oldest event after a cursor, if the consumer is there still; `None` if there is none.
    pub(crate) fn waits(&self, name: &str, after: Option<Cursor>, since: Option<Timestamp>) {
        let mut known = self.lock();
        let position = known.get_mut(name);
        if let Some(position) = position.filter(|position| position.after == after) {
            position.waits_since = since;
        }
    }

    /// Adds the age of the oldest event that each consumer has not taken.
    pub(super) fn add(&self, now: Timestamp, to: &mut Families) {
        let known = self.lock().clone();
        let ages = known.iter().map(|(name, position)| {
            let since = position.waits_since;
            let age = since.map_or(0, |since| now.unix().saturating_sub(since.unix()));
            (name.as_str(), number(age))
        });
        to.each(&table::EVENT_CONSUMER_WAITING, ages);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Position>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl ConsumerMetrics {
    pub(crate) fn lost_so_far(&self) -> u64 {
        self.lost.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= CTL-3 accepted
    #[test]
    fn positions_are_bounded_and_a_new_one_has_no_age_yet() {
        let metrics = ConsumerMetrics::new(&Registrar::default());
        for number in 0..MOST + 5 {
            metrics.note(&format!("consumer-{number}"), None);
        }
        assert_eq!(metrics.positions().len(), MOST);
        let at = Timestamp::from_unix;
        let age = |now| {
            let mut families = Families::of(Vec::new());
            metrics.add(at(now), &mut families);
            let text = families.text();
            let line = text.lines().find(|line| line.contains("\"consumer-0\""));
            line.unwrap().rsplit(' ').next().unwrap().to_owned()
        };
        assert_eq!(age(1_000), "0");
        metrics.waits("consumer-0", None, Some(at(100)));
        assert_eq!(age(1_000), "900");
        metrics.waits("consumer-0", None, None);
        assert_eq!(age(1_000), "0");
    }
}
