//! Metrics of quotas, SCAs, bindings and upgrades.

use super::{
    facts::Finished,
    labels::{BoundBy, Registration, Upgrade},
    registry::{Counters, Registrar},
    samples::{Families, number},
    table,
    values::{BindingSource, QuotaEvent, RegistrationEvent, ScaEvent, UpgradeResult},
};
use crate::{admission::Outcome, interface::Reason};
use moka::sync::Cache;
use prometheus::IntCounter;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The links that are remembered as read, and for how long: longer than a link is valid by default.
const LINKS: u64 = 10_000;
const LINK_LASTS: Duration = Duration::from_secs(3_600);

/// Counters of events.
#[derive(Debug)]
pub(super) struct EventMetrics {
    taken: IntCounter,
    refused: IntCounter,
    given_back: IntCounter,
    /// By event. Links are counted where they are made.
    sca: [AtomicU64; ScaEvent::ALL.len()],
    /// The links that the bank's page has read, by the ids of their tokens: a page may read a link again.
    read: Cache<[u8; 16], ()>,
    bound_elsewhere: Counters<BoundBy>,
    registrations: Counters<Registration>,
    upgrades: Counters<Upgrade>,
}

impl EventMetrics {
    pub(super) fn new(registrar: &Registrar) -> Self {
        let quota = registrar.counters(&table::QUOTA_CALLS);
        Self {
            taken: quota.of(QuotaEvent::Taken),
            refused: quota.of(QuotaEvent::Refused),
            given_back: quota.of(QuotaEvent::GivenBack),
            sca: Default::default(),
            read: Cache::builder()
                .max_capacity(LINKS)
                .time_to_live(LINK_LASTS)
                .build(),
            bound_elsewhere: registrar.counters(&table::BOUND_ELSEWHERE),
            registrations: registrar.counters(&table::REGISTRATIONS),
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

    pub(super) fn sca(&self, event: ScaEvent) {
        if let Some(count) = self.sca.get(event.index()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an SCA as started when its link is read for the first time.
    pub(super) fn sca_read(&self, token: [u8; 16]) {
        if self.read.entry(token).or_insert(()).is_fresh() {
            self.sca(ScaEvent::Started);
        }
    }

    pub(super) fn bound_elsewhere(&self, by: BindingSource) {
        self.bound_elsewhere.of(by).inc();
    }

    pub(super) fn registration(&self, event: RegistrationEvent) {
        self.registrations.of(event).inc();
    }

    pub(super) fn upgraded(&self, result: UpgradeResult) {
        self.upgrades.of(result).inc();
    }

    /// Adds the samples of SCAs; `links` is the number of links that were made.
    pub(super) fn add(&self, links: u64, to: &mut Families) {
        let counted = ScaEvent::ALL.iter().zip(&self.sca);
        let all = counted.map(|(event, count)| match event {
            ScaEvent::Link => (*event, number(links)),
            _ => (*event, number(count.load(Ordering::Relaxed))),
        });
        to.each(&table::SCA_EVENTS, all);
    }
}
