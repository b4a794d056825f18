//! Limits the number of concurrent requests at the core, in total and per TPP (ERR-4, HTTP-9).
//!
//! A request counts from before it is sent until its answer has ended, even if its caller has disconnected: resetting streams
//! does not free capacity. Deliberately not here: rates (QUO-12), which limit requests per second.

use crate::{interface::TppId, telemetry::Telemetry};
use std::{
    collections::{HashMap, hash_map::RandomState},
    fmt,
    hash::BuildHasher,
    sync::{Arc, Mutex},
};

/// The number of concurrent requests at the core.
pub(super) struct InFlight {
    total: usize,
    per_tpp: usize,
    /// TPPs are distinguished by a hash with a random key, which no outsider can predict.
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
    /// Creates the limits: in total, and per TPP.
    pub(super) fn new(total: usize, per_tpp: usize, telemetry: Arc<Telemetry>) -> Self {
        Self {
            total,
            per_tpp,
            hasher: RandomState::new(),
            counts: Mutex::default(),
            telemetry,
        }
    }

    /// Counts a request of this TPP, or of the unidentified ones; `None` if a limit is reached.
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

/// A counted request; dropping it ends the count.
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
