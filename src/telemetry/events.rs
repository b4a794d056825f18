//! Metrics of quotas, SCAs, bindings and upgrades.

use super::{
    facts::Finished,
    registry::{Counters, Registrar},
    samples::{Families, number},
    table,
};
use crate::{admission::Outcome, interface::Reason};
use moka::sync::Cache;
use prometheus::IntCounter;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The events of an SCA that the control listener reports. Links are counted where they are made.
const REPORTED: [&str; 4] = ["started", "completed", "failed", "expired"];

/// The links that are remembered as read, and for how long: longer than a link is valid by default.
const LINKS: u64 = 10_000;
const LINK_LASTS: Duration = Duration::from_secs(3_600);

/// Counters of events.
#[derive(Debug)]
pub(super) struct EventMetrics {
    taken: IntCounter,
    refused: IntCounter,
    given_back: IntCounter,
    /// In the order of [`REPORTED`].
    sca: [AtomicU64; REPORTED.len()],
    /// The links that the bank's page has read, by the ids of their tokens: a page may read a link again.
    read: Cache<[u8; 16], ()>,
    bound_elsewhere: Counters,
    upgrades: Counters,
}

impl EventMetrics {
    pub(super) fn new(registrar: &Registrar) -> Self {
        let quota = registrar.counters(&table::QUOTA_CALLS);
        Self {
            taken: quota.of(&["taken"]),
            refused: quota.of(&["refused"]),
            given_back: quota.of(&["given_back"]),
            sca: Default::default(),
            read: Cache::builder()
                .max_capacity(LINKS)
                .time_to_live(LINK_LASTS)
                .build(),
            bound_elsewhere: registrar.counters(&table::BOUND_ELSEWHERE),
            upgrades: registrar.counters(&table::UPGRADES),
        }
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
        let counted = REPORTED.iter().zip(&self.sca);
        for (_, count) in counted.filter(|(reported, _)| **reported == event) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an SCA as started when its link is read for the first time.
    pub(super) fn sca_read(&self, token: [u8; 16]) {
        if self.read.entry(token).or_insert(()).is_fresh() {
            self.sca("started");
        }
    }

    pub(super) fn bound_elsewhere(&self, by: &str) {
        self.bound_elsewhere.of(&[by]).inc();
    }

    pub(super) fn upgraded(&self, result: &str) {
        self.upgrades.of(&[result]).inc();
    }

    /// Adds the samples of SCAs; `links` is the number of links that were made.
    pub(super) fn add(&self, links: u64, to: &mut Families) {
        let reported = self.sca.iter().map(|count| count.load(Ordering::Relaxed));
        let reported = REPORTED.into_iter().zip(reported);
        let all = std::iter::once(("link", links)).chain(reported);
        to.each(
            &table::SCA_EVENTS,
            all.map(|(event, count)| ([event], number(count))),
        );
    }
}
