//! Metrics of quotas, SCAs, bindings and the access log.

use super::{
    facts::Finished,
    registry::{Counters, Registrar},
    samples::{Families, number},
    table,
};
use crate::{admission::Outcome, interface::Reason};
use prometheus::IntCounter;
use std::sync::atomic::{AtomicU64, Ordering};

/// The events of an SCA that the control listener reports. The links that start one are counted where they are made.
const ENDS: [&str; 3] = ["completed", "failed", "expired"];

/// Counters of events.
#[derive(Debug)]
pub(super) struct EventMetrics {
    taken: IntCounter,
    refused: IntCounter,
    given_back: IntCounter,
    /// In the order of [`ENDS`].
    sca: [AtomicU64; ENDS.len()],
    bound_elsewhere: Counters,
    lines: LineCounters,
}

/// Counters of the access log's lines.
#[derive(Clone, Debug)]
pub(super) struct LineCounters {
    pub(super) written: IntCounter,
    pub(super) dropped: IntCounter,
    pub(super) failed: IntCounter,
}

impl EventMetrics {
    pub(super) fn new(registrar: &Registrar) -> Self {
        let quota = registrar.counters(&table::QUOTA_CALLS);
        let lines = registrar.counters(&table::ACCESS_LINES);
        Self {
            taken: quota.of(&["taken"]),
            refused: quota.of(&["refused"]),
            given_back: quota.of(&["given_back"]),
            sca: Default::default(),
            bound_elsewhere: registrar.counters(&table::BOUND_ELSEWHERE),
            lines: LineCounters {
                written: lines.of(&["written"]),
                dropped: lines.of(&["dropped"]),
                failed: lines.of(&["failed"]),
            },
        }
    }

    /// The counters for the access log.
    pub(super) fn lines(&self) -> LineCounters {
        self.lines.clone()
    }

    /// Counts the call of a quota that a request took, or was refused.
    pub(super) fn count_quota(&self, finished: &Finished<'_>) {
        if finished.record.took_call() {
            self.taken.inc();
        }
        if finished.outcome == Outcome::Refused(Reason::QuotaExceeded) {
            self.refused.inc();
        }
    }

    pub(super) fn quota_given_back(&self) {
        self.given_back.inc();
    }

    pub(super) fn sca(&self, event: &str) {
        let counted = ENDS.iter().zip(&self.sca);
        for (_, count) in counted.filter(|(end, _)| **end == event) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn bound_elsewhere(&self, by: &str) {
        self.bound_elsewhere.of(&[by]).inc();
    }

    /// Adds the samples of SCAs; `started` is the number of links.
    pub(super) fn add(&self, started: u64, to: &mut Families) {
        let ended = self.sca.iter().map(|count| count.load(Ordering::Relaxed));
        let ended = ENDS.into_iter().zip(ended);
        let all = std::iter::once(("started", started)).chain(ended);
        to.each(
            &table::SCA_EVENTS,
            all.map(|(event, count)| ([event], number(count))),
        );
    }
}
