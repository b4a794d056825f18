//! How many requests the core has at once, in all and of one TPP (ERR-4, HTTP-9).
//!
//! A request counts from before it is sent until its answer has ended, whether or not its caller is still there: a caller that
//! resets its streams does not make room. Deliberately not here: rates (QUO-12), which bound requests per second.

use crate::{interface::TppId, telemetry::Telemetry};
use std::{
    collections::{HashMap, hash_map::RandomState},
    fmt,
    hash::BuildHasher,
    sync::{Arc, Mutex},
};

/// The requests that the core has.
pub(super) struct InFlight {
    total: usize,
    per_tpp: usize,
    /// TPPs are told apart by a hash that nobody outside can foresee.
    hasher: RandomState,
    counts: Mutex<Counts>,
    telemetry: Arc<Telemetry>,
}

#[derive(Default)]
struct Counts {
    total: usize,
    by_tpp: HashMap<u64, usize>,
}

impl fmt::Debug for InFlight {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("InFlight")
            .field("total", &self.total)
            .field("per_tpp", &self.per_tpp)
            .finish_non_exhaustive()
    }
}

impl InFlight {
    /// So many in all, and of one TPP.
    pub(super) fn new(total: usize, per_tpp: usize, telemetry: Arc<Telemetry>) -> Self {
        Self {
            total,
            per_tpp,
            hasher: RandomState::new(),
            counts: Mutex::default(),
            telemetry,
        }
    }

    /// Counts one more of this TPP, or of those that are not known; none where the core has enough.
    pub(super) fn begin(&self, tpp: Option<&TppId>) -> Option<InFlightRequest<'_>> {
        let tpp = self.hasher.hash_one(tpp);
        let mut counts = self.counts.lock().ok()?;
        if counts.total >= self.total {
            self.telemetry.cut("core_busy");
            return None;
        }
        let own = counts.by_tpp.entry(tpp).or_default();
        if *own >= self.per_tpp {
            self.telemetry.cut("core_busy_with_tpp");
            return None;
        }
        *own = own.saturating_add(1);
        counts.total = counts.total.saturating_add(1);
        self.telemetry.core_has_request();
        Some(InFlightRequest { all: self, tpp })
    }
}

/// A request that the core has, until this is dropped.
#[must_use]
#[derive(Debug)]
pub(super) struct InFlightRequest<'a> {
    all: &'a InFlight,
    tpp: u64,
}

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        self.all.telemetry.core_has_answered();
        let Ok(mut counts) = self.all.counts.lock() else {
            return;
        };
        counts.total = counts.total.saturating_sub(1);
        if let Some(own) = counts.by_tpp.get_mut(&self.tpp) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                counts.by_tpp.remove(&self.tpp);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_all_and_of_one_tpp() {
        let all = InFlight::new(3, 2, Arc::new(Telemetry::new(false)));
        let [a, b, c] = [1, 2, 3].map(|id| TppId::parse(&format!("PSDNO-FSA-{id}")).unwrap());
        let first = all.begin(Some(&a)).unwrap();
        let second = all.begin(Some(&a)).unwrap();
        assert!(all.begin(Some(&a)).is_none(), "it has its two");
        let other = all.begin(Some(&b)).unwrap();
        assert!(all.begin(Some(&c)).is_none(), "three are three");
        drop(first);
        assert!(all.begin(Some(&a)).is_some());
        drop((second, other));
        let counts = all.counts.lock().unwrap();
        assert_eq!((counts.total, counts.by_tpp.len()), (0, 0));
    }
}
