//! A counter with a label per TPP.
//!
//! Invariant: only a TPP whose signature verified has its own label, and only as many of them as the limit of the counter allows. The others
//! share one, so the number of time series is bounded.

use super::{
    labels::{OTHER, Tpp},
    registry::Counters,
};
use crate::interface::TppId;
use prometheus::IntCounter;
use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

/// Counts by TPP.
#[derive(Debug)]
pub(super) struct PerTpp {
    counters: Counters<Tpp>,
    /// The most TPPs with their own label.
    most: usize,
    known: RwLock<HashMap<TppId, IntCounter>>,
}

impl PerTpp {
    /// Wraps counters by TPP, of whose label `most` TPPs have their own value. The series of the others exists from the start.
    pub(super) fn new(counters: Counters<Tpp>, most: usize) -> Self {
        counters.of(OTHER);
        Self {
            counters,
            most,
            known: RwLock::default(),
        }
    }

    /// Increments the counter of a TPP. True if the TPP has one of its own from now on.
    pub(super) fn count(&self, tpp: &TppId) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = known.get(tpp) {
            counter.inc();
            return false;
        }
        drop(known);
        self.meet(tpp).inc();
        self.knows(tpp)
    }

    /// Begins the series of a TPP at 0, so that Prometheus sees its first increase.
    pub(super) fn begin(&self, tpp: &TppId) {
        self.meet(tpp);
    }

    /// Increments the counter of TPPs without their own.
    pub(super) fn count_other(&self) {
        self.counters.of(OTHER).inc();
    }

    /// Whether the TPP has its own counter.
    pub(super) fn knows(&self, tpp: &TppId) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.contains_key(tpp)
    }

    /// Looks up or creates the counter of a TPP.
    fn meet(&self, tpp: &TppId) -> IntCounter {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.most && !known.contains_key(tpp) {
            return self.counters.of(OTHER);
        }
        let counter = || self.counters.of(tpp.as_str());
        known.entry(tpp.clone()).or_insert_with(counter).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{registry::Registrar, table};

    #[test]
    fn the_labels_end() {
        const MOST: usize = 10;
        let counters = Registrar::default().counters(&table::TPP_REQUESTS);
        let per_tpp = PerTpp::new(counters.clone(), MOST);
        for round in 1..=2 {
            for number in 0..MOST + 5 {
                per_tpp.count(&TppId::parse(&format!("PSDNO-FSA-{number}")).unwrap());
            }
            let count = |tpp: &str| counters.of(tpp).get();
            assert_eq!(count("PSDNO-FSA-0"), round);
            assert_eq!(count(&format!("PSDNO-FSA-{}", MOST - 1)), round);
            assert_eq!(count(OTHER), 5 * round);
        }
        assert_eq!(per_tpp.known.read().unwrap().len(), MOST);
        assert!(per_tpp.knows(&TppId::parse("PSDNO-FSA-9").unwrap()));
        assert!(!per_tpp.knows(&TppId::parse("PSDNO-FSA-10").unwrap()));
    }
}
