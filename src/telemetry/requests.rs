//! Metrics of finished requests.
//!
//! A request is counted in several families, so that the number of series is a sum of small products: by operation and outcome, by reason,
//! by check, by TPP. No handle is looked up on a request's path once its operation has been used.

use super::{
    facts::Finished,
    handles::{Handles, Outcomes},
    histogram::Histogram,
    labels::{ObservedCheck, ToleratedFault},
    per_tpp::PerTpp,
    registry::{Counters, Registrar},
    table,
    values::ClockDirection,
};
use crate::{
    admission::{Outcome, Record, Stage, Verdict},
    interface::{Reason, Side, TppId, headers::accept_fix, operations::Catalogue},
    trust::CertificateSource,
};
use prometheus::{IntCounter, IntGauge};
use std::{sync::Arc, time::Duration};

/// The most TPPs with a series of their own where every TPP has one: a bank has some tens of them.
const MOST_TPPS: usize = 100;

/// The most TPPs with a series of their own where only those with such a request have one.
const MOST_COUNTED: usize = 40;

/// The most that one request adds to the sum of clock skews: a Date of the year 9999 would make it overflow, and the mean useless.
const MOST_SKEW: Duration = Duration::from_hours(24);

/// Metrics of finished requests.
#[derive(Debug)]
pub(super) struct RequestMetrics {
    outcomes: Outcomes,
    pub(super) in_flight: IntGauge,
    /// By timed check, in the order of the checks.
    checks: Vec<(Stage, Arc<Histogram>)>,
    /// By whether the caller's clock is ahead.
    skew: [Arc<Histogram>; 2],
    accept_fix: [IntCounter; accept_fix::COUNT],
    tolerated: Counters<ToleratedFault>,
    observed: Counters<ObservedCheck>,
    lookups: Vec<(CertificateSource, IntCounter)>,
    tpp: TppMetrics,
}

/// Metrics of the requests of each TPP.
#[derive(Debug)]
struct TppMetrics {
    requests: PerTpp,
    refusals: PerTpp,
    signature_failures: PerTpp,
    quota_exceeded: PerTpp,
    unsigned_target: PerTpp,
    without_session: PerTpp,
}

impl RequestMetrics {
    pub(super) fn new(registrar: &Registrar) -> Self {
        let checks = registrar.histograms(&table::CHECK_SECONDS);
        let skew = registrar.histograms(&table::CLOCK_SKEW);
        let fixes = registrar.counters(&table::ACCEPT_FIX);
        let lookups = registrar.counters(&table::CERTIFICATE_LOOKUPS);
        let sources = CertificateSource::ALL.iter();
        Self {
            outcomes: Outcomes::new(registrar),
            in_flight: registrar.gauge(&table::IN_FLIGHT),
            checks: Stage::timed()
                .map(|stage| (stage, checks.of(stage)))
                .collect(),
            skew: [ClockDirection::Behind, ClockDirection::Ahead]
                .map(|direction| skew.of(direction)),
            accept_fix: accept_fix::TABLE.each_ref().map(|fix| fixes.of(fix)),
            tolerated: registrar.counters(&table::TOLERATED_FAULTS),
            observed: registrar.counters(&table::OBSERVED),
            lookups: sources
                .map(|source| (*source, lookups.of(*source)))
                .collect(),
            tpp: TppMetrics::new(registrar),
        }
    }

    /// The handles for a catalogue's operations.
    pub(super) fn handles(&self, catalogue: &Catalogue) -> Handles {
        self.outcomes.handles(catalogue)
    }

    /// Counts a request that has ended.
    pub(super) fn count(&self, handles: &Handles, finished: &Finished<'_>) {
        handles.count(finished);
        let record = finished.record;
        self.count_checks(record);
        self.count_admitted(record);
        self.tpp.count(record, finished.outcome);
        if let Some(skew) = record.clock_skew() {
            let [behind, ahead] = &self.skew;
            let histogram = if skew.is_ahead { ahead } else { behind };
            let distance = Duration::from_secs(skew.seconds).min(MOST_SKEW);
            histogram.observe(distance);
        }
        if let Some(found) = record.certificate_source() {
            let known = self.lookups.iter().find(|(source, _)| *source == found);
            if let Some((_, counter)) = known {
                counter.inc();
            }
        }
        self.count_observed(record);
        // Rare, so the handle is looked up each time.
        for fault in record.tolerated() {
            self.tolerated.of(fault).inc();
        }
    }

    /// Counts a request that the HTTP layer refused by itself (ERR-8).
    pub(super) fn refused_by_http(&self, reason: Reason) {
        self.outcomes.refused_by_http(reason);
    }

    /// Both are in the order of the checks.
    fn count_checks(&self, record: &Record) {
        let mut rest = self.checks.iter();
        for check in record
            .checks()
            .iter()
            .filter(|check| check.stage.is_timed())
        {
            if let Some((_, histogram)) = rest.find(|(stage, _)| *stage == check.stage) {
                histogram.observe(check.took);
            }
        }
    }

    /// Counts each check once that failed and is only observed. That happens in the first weeks only, so the handle is looked up each time.
    fn count_observed(&self, record: &Record) {
        let mut counted = Vec::new();
        for fault in record.observed() {
            // The faults of one check may come from several stages.
            if !counted.contains(&fault.check) {
                self.observed.of(fault.check).inc();
                counted.push(fault.check);
            }
        }
    }

    /// Counts features of admitted requests only (HDR-16).
    fn count_admitted(&self, record: &Record) {
        let named = record.named_fixes();
        let counted = self.accept_fix.iter().zip(named.flags());
        for (counter, _) in counted.filter(|(_, named)| **named) {
            counter.inc();
        }
    }
}

impl TppMetrics {
    fn new(registrar: &Registrar) -> Self {
        let of = |metric, most| PerTpp::new(registrar.counters(metric), most);
        Self {
            requests: of(&table::TPP_REQUESTS, MOST_TPPS),
            refusals: of(&table::TPP_REFUSALS, MOST_TPPS),
            signature_failures: of(&table::TPP_SIGNATURE_FAILURES, MOST_TPPS),
            quota_exceeded: of(&table::TPP_QUOTA_EXCEEDED, MOST_TPPS),
            unsigned_target: of(&table::UNSIGNED_TARGET, MOST_COUNTED),
            without_session: of(&table::WITHOUT_SESSION, MOST_COUNTED),
        }
    }

    fn count(&self, record: &Record, outcome: Outcome) {
        let Some(certificate) = record.certificate() else {
            return;
        };
        let tpp = certificate.tpp_id();
        if record.holds(Stage::Signature) {
            if self.requests.count(tpp) {
                self.begin_faults(tpp);
            }
            if let Outcome::Refused(reason) = outcome {
                self.count_refusal(tpp, reason);
            }
        } else if is_signature_refused(record) {
            // Certificates are public, so anybody can show the certificate of a TPP; a series is made only for a TPP that is known.
            match self.requests.knows(tpp) {
                true => {
                    self.signature_failures.count(tpp);
                }
                false => self.signature_failures.count_other(),
            }
        }
        if let Some(tpp) = record.left_target_unsigned() {
            self.unsigned_target.count(tpp);
        }
        if let Some(tpp) = record.had_no_session() {
            self.without_session.count(tpp);
        }
    }

    /// Begins what alerts and shares read of a TPP.
    fn begin_faults(&self, tpp: &TppId) {
        for family in [
            &self.refusals,
            &self.signature_failures,
            &self.quota_exceeded,
        ] {
            family.begin(tpp);
        }
    }

    fn count_refusal(&self, tpp: &TppId, reason: Reason) {
        if reason.at_fault() == Side::Caller {
            self.refusals.count(tpp);
        }
        if reason == Reason::QuotaExceeded {
            self.quota_exceeded.count(tpp);
        }
    }
}

fn is_signature_refused(record: &Record) -> bool {
    let last = record.checks().last();
    last.is_some_and(|check| {
        check.stage == Stage::Signature && matches!(check.verdict, Verdict::Refused(_))
    })
}

#[cfg(test)]
impl RequestMetrics {
    /// Counts requests of a TPP in every family of TPPs.
    pub(super) fn fill(&self, tpp: &TppId) {
        let TppMetrics {
            requests,
            refusals,
            signature_failures,
            quota_exceeded,
            unsigned_target,
            without_session,
        } = &self.tpp;
        for family in [
            requests,
            refusals,
            signature_failures,
            quota_exceeded,
            unsigned_target,
            without_session,
        ] {
            family.count(tpp);
        }
    }
}
