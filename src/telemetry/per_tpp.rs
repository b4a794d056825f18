//! A counter with a label per TPP.
//!
//! Invariant: only TPPs whose signature verified are counted. At most [`MAX_TPPS`] of them have their own label and the others
//! share one, so the number of time series is bounded.

use crate::interface::TppId;
use prometheus::{IntCounter, IntCounterVec};
use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

/// A country has a few hundred TPPs.
pub(super) const MAX_TPPS: usize = 1_000;

/// The label of every TPP beyond [`MAX_TPPS`]. No TPP has it: identities start with PSD (CRT-4).
const OTHERS: &str = "other";

/// Counts by TPP.
#[derive(Debug)]
pub(super) struct PerTpp {
    counters: IntCounterVec,
    known: RwLock<HashMap<TppId, IntCounter>>,
}

impl PerTpp {
    /// Wraps counters that have one label.
    pub(super) fn new(counters: IntCounterVec) -> Self {
        Self {
            counters,
            known: RwLock::default(),
        }
    }

    /// The counters, for registration.
    pub(super) const fn counters(&self) -> &IntCounterVec {
        &self.counters
    }

    /// Increments the counter of a TPP.
    pub(super) fn count(&self, tpp: &TppId) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = known.get(tpp) {
            return counter.inc();
        }
        drop(known);
        self.meet(tpp).inc();
    }

    /// Looks up or creates the counter of a TPP.
    fn meet(&self, tpp: &TppId) -> IntCounter {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_TPPS && !known.contains_key(tpp) {
            return self.counters.with_label_values(&[OTHERS]);
        }
        let counter = || self.counters.with_label_values(&[tpp.as_str()]);
        known.entry(tpp.clone()).or_insert_with(counter).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::Opts;

    #[test]
    fn the_labels_end() {
        let counters = IntCounterVec::new(Opts::new("x", "x"), &["tpp"]).unwrap();
        let per_tpp = PerTpp::new(counters.clone());
        for round in 1..=2 {
            for number in 0..MAX_TPPS + 5 {
                per_tpp.count(&TppId::parse(&format!("PSDNO-FSA-{number}")).unwrap());
            }
            let count = |tpp: &str| counters.with_label_values(&[tpp]).get();
            assert_eq!(count("PSDNO-FSA-0"), round);
            assert_eq!(count(&format!("PSDNO-FSA-{}", MAX_TPPS - 1)), round);
            assert_eq!(count(OTHERS), 5 * round);
        }
        assert_eq!(per_tpp.known.read().unwrap().len(), MAX_TPPS);
    }
}
