//! Metrics of reloads, and of the configuration in use with the ends of validity of its certificates.

use super::{
    facts::ConfigurationFacts,
    registry::Registrar,
    samples::{Families, number},
    table,
    values::{Proves, ReloadResult},
};
use crate::clock::Timestamp;
use prometheus::{IntCounter, IntGauge};

/// The number of TPP certificates that are shown, those that expire first.
const MOST_CERTIFICATES: usize = 30;

/// Reloads since the start.
#[derive(Debug)]
pub(super) struct ReloadMetrics {
    taken: IntCounter,
    refused: IntCounter,
    successful: IntGauge,
    at: IntGauge,
    pending_restart: IntGauge,
}

impl ReloadMetrics {
    /// Before the first reload, `start` is when the last one was.
    pub(super) fn new(registrar: &Registrar, start: Timestamp) -> Self {
        let reloads = registrar.counters(&table::RELOADS);
        let metrics = Self {
            taken: reloads.of(ReloadResult::Taken),
            refused: reloads.of(ReloadResult::Refused),
            successful: registrar.gauge(&table::LAST_RELOAD_SUCCESSFUL),
            at: registrar.gauge(&table::LAST_RELOAD),
            pending_restart: registrar.gauge(&table::PENDING_RESTART),
        };
        metrics.successful.set(1);
        metrics.at.set(seconds(start));
        metrics
    }

    /// Counts a reload: `taken` is the number of changed keys that need a restart, if the configuration was taken into use.
    pub(super) fn count(&self, taken: Option<usize>, at: Timestamp) {
        let counter = if taken.is_some() {
            &self.taken
        } else {
            &self.refused
        };
        counter.inc();
        self.successful.set(i64::from(taken.is_some()));
        self.at.set(seconds(at));
        if let Some(keys) = taken {
            self.pending_restart
                .set(i64::try_from(keys).unwrap_or(i64::MAX));
        }
    }
}

/// Adds the facts of the current configuration.
pub(super) fn add(facts: &ConfigurationFacts<'_>, to: &mut Families) {
    to.one(&table::CONFIGURATION_SINCE, number(facts.since.unix()));
    if let Some(shown) = facts.shown {
        let hashes = (short(&shown.hash), short(&shown.files_hash));
        to.each(&table::CONFIGURATION_INFO, [(hashes, 1.0)]);
    }
    to.each(&table::ENVIRONMENT_INFO, [(facts.environment, 1.0)]);
    let observed = [(Proves::Identity, true), (Proves::Other, false)].map(|(proves, identity)| {
        let checks = facts.observed.iter();
        let count = checks.filter(|check| check.is_identity() == identity);
        let count = u64::try_from(count.count()).unwrap_or(u64::MAX);
        (proves, number(count))
    });
    to.each(&table::CHECKS_OBSERVED, observed);
    let ends = facts
        .ends
        .iter()
        .filter(|(of, _)| of.is_certificate())
        .map(|(of, end)| (*of, number(end.unix())));
    to.each(&table::CERTIFICATE_END, ends);
    if let Some(bundle) = facts.bundle {
        to.one(&table::BUNDLE_IMPORTED, number(bundle.imported.unix()));
        if let Some(next) = &bundle.next_update {
            to.one(&table::BUNDLE_NEXT_UPDATE, number(next.at.unix()));
        }
    }
    let cached = u64::try_from(facts.seen.count()).unwrap_or(u64::MAX);
    to.one(&table::CERTIFICATES_CACHED, number(cached));
    let seen = facts.seen.first_to_end(MOST_CERTIFICATES).into_iter();
    let seen = seen.map(|(end, certificate)| {
        let serial = certificate.serial_hex();
        (certificate, serial, number(end.unix()))
    });
    let seen: Vec<_> = seen.collect();
    let seen = seen.iter().map(|(certificate, serial, end)| {
        let labels = (certificate.tpp_id().as_str(), serial.as_str());
        (labels, *end)
    });
    to.each(&table::TPP_CERTIFICATE_END, seen);
}

/// Enough of a hash to tell two configurations apart.
fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

fn seconds(at: Timestamp) -> i64 {
    i64::try_from(at.unix()).unwrap_or(i64::MAX)
}
