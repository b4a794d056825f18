//! Prometheus metrics of requests.
//!
//! Labels are closed sets: operations of the catalogue, outcomes, reasons, fixes, and a bounded number of authenticated TPPs.
//! No other value of a request becomes a label.

use super::{facts::Finished, per_tpp::PerTpp};
use crate::{
    admission::{Outcome, Record},
    interface::{
        Reason,
        headers::accept_fix,
        operations::{Catalogue, Operation},
    },
};
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
    TextEncoder, proto::MetricFamily,
};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

/// The label of a request that matched no operation.
const NO_OPERATION: &str = "none";

/// The label of a request without a reason.
const NO_REASON: &str = "none";

/// In seconds: from a refusal at the gateway to a slow core.
const WHOLE_BUCKETS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// In seconds: a cached signature check takes 15 µs, a new certificate 300 µs.
const CHECK_BUCKETS: &[f64] = &[
    0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.1, 1.0, 10.0,
];

#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    whole: HistogramVec,
    checks: HistogramVec,
    upstream: HistogramVec,
    accept_fix: IntCounterVec,
    /// By fix, in the order of the table.
    fixes: [IntCounter; accept_fix::COUNT],
    unsigned_target: PerTpp,
    without_session: PerTpp,
    tolerated: IntCounterVec,
    lines_dropped: IntCounter,
    turned_away: IntCounter,
    bound_elsewhere: IntCounterVec,
    inner_addresses: IntCounterVec,
}

impl Metrics {
    /// Each gateway has its own registry, so that two in one process do not share counters.
    pub(super) fn new() -> Self {
        let accept_fix = counters(
            "portvakt_accept_fix_total",
            "Admitted requests that named a fix in x-accept-fix.",
            &["fix"],
        );
        let unsigned_target = counters(
            "portvakt_unsigned_target_total",
            "Admitted requests whose signature does not cover (request-target), by TPP.",
            &["tpp"],
        );
        let without_session = counters(
            "portvakt_psu_present_without_session_total",
            "Account information read with the PSU said to be present and without a valid session, by TPP.",
            &["tpp"],
        );
        let metrics = Self {
            without_session: PerTpp::new(without_session),
            fixes: accept_fix::TABLE.map(|fix| accept_fix.with_label_values(&[fix.name])),
            accept_fix,
            unsigned_target: PerTpp::new(unsigned_target),
            registry: Registry::new(),
            requests: counters(
                "portvakt_requests_total",
                "Requests by operation, outcome and reason.",
                &["operation", "outcome", "reason"],
            ),
            whole: histograms(
                "portvakt_request_seconds",
                "From a request's head to the end of its answer.",
                WHOLE_BUCKETS,
            ),
            checks: histograms(
                "portvakt_check_seconds",
                "All checks of a request, waiting for its body included.",
                CHECK_BUCKETS,
            ),
            upstream: histograms(
                "portvakt_upstream_seconds",
                "From choosing the upstream to the head of its answer.",
                WHOLE_BUCKETS,
            ),
            tolerated: counters(
                "portvakt_tolerated_total",
                "Requests with a fault that a tolerant policy let pass, by the fault.",
                &["fault"],
            ),
            lines_dropped: counter(
                "portvakt_access_lines_dropped_total",
                "Access log lines that were dropped because the log could not keep up.",
            ),
            turned_away: counter(
                "portvakt_connections_turned_away_total",
                "Connections beyond max_connections or max_connections_per_address.",
            ),
            bound_elsewhere: counters(
                "portvakt_psu_bound_elsewhere_total",
                "PSU-IDs of one TPP that were to be bound to another, by who asked for it.",
                &["by"],
            ),
            inner_addresses: counters(
                "portvakt_inner_addresses_total",
                "Addresses in the core's answers that only the bank's network has, by where they stood and what was done.",
                &["place", "done"],
            ),
        };
        metrics.register();
        metrics
    }

    pub(super) fn handles(&self, catalogue: &Catalogue) -> Handles {
        let known = catalogue
            .operations()
            .iter()
            .map(|operation| (Some(Arc::clone(operation)), operation.name.as_str()));
        let all = known.chain([(None, NO_OPERATION)]);
        Handles {
            operations: all
                .map(|(operation, label)| (operation, self.operation(label)))
                .collect(),
        }
    }

    /// Counts features of admitted requests only (HDR-16, SIG-15).
    pub(super) fn count_admitted(&self, record: &Record) {
        let named = record.named_fixes();
        let counted = self.fixes.iter().zip(named.flags());
        for (counter, _) in counted.filter(|(_, named)| **named) {
            counter.inc();
        }
        if let Some(tpp) = record.left_target_unsigned() {
            self.unsigned_target.count(tpp);
        }
        if let Some(tpp) = record.had_no_session() {
            self.without_session.count(tpp);
        }
    }

    /// Counts faults that the tolerant policy admitted. They are rare, so the handle is looked up each time.
    pub(super) fn count_tolerated(&self, record: &Record) {
        for fault in record.tolerated() {
            self.tolerated.with_label_values(&[fault.name()]).inc();
        }
    }

    pub(super) fn refused_by_http(&self) {
        self.requests
            .with_label_values(&[NO_OPERATION, "refused", Reason::MalformedRequest.slug()])
            .inc();
    }

    pub(super) fn connection_turned_away(&self) {
        self.turned_away.inc();
    }

    pub(super) fn psu_bound_elsewhere(&self, by: &str) {
        self.bound_elsewhere.with_label_values(&[by]).inc();
    }

    pub(super) fn inner_address(&self, place: &str, done: &str) {
        self.inner_addresses.with_label_values(&[place, done]).inc();
    }

    pub(super) fn line_dropped(&self) {
        self.lines_dropped.inc();
    }

    /// The metrics as text, with families that other modules keep.
    pub(super) fn text(&self, others: Vec<MetricFamily>) -> String {
        let mut text = Vec::new();
        let mut families = self.registry.gather();
        families.extend(others);
        if let Err(error) = TextEncoder::new().encode(&families, &mut text) {
            tracing::error!(%error, "metrics cannot be written");
        }
        String::from_utf8(text).unwrap_or_default()
    }

    fn operation(&self, label: &str) -> OperationHandles {
        OperationHandles {
            label: label.to_owned(),
            requests: self.requests.clone(),
            counters: std::iter::repeat_with(OnceLock::new)
                .take(OUTCOMES.len().saturating_mul(REASONS))
                .collect(),
            whole: Lazy::of(&self.whole),
            checks: Lazy::of(&self.checks),
            upstream: Lazy::of(&self.upstream),
        }
    }

    fn register(&self) {
        let all: [Box<dyn prometheus::core::Collector>; 12] = [
            Box::new(self.without_session.counters().clone()),
            Box::new(self.requests.clone()),
            Box::new(self.whole.clone()),
            Box::new(self.checks.clone()),
            Box::new(self.upstream.clone()),
            Box::new(self.accept_fix.clone()),
            Box::new(self.unsigned_target.counters().clone()),
            Box::new(self.tolerated.clone()),
            Box::new(self.lines_dropped.clone()),
            Box::new(self.turned_away.clone()),
            Box::new(self.bound_elsewhere.clone()),
            Box::new(self.inner_addresses.clone()),
        ];
        for collector in all {
            if let Err(error) = self.registry.register(collector) {
                tracing::error!(%error, "a metric cannot be registered");
            }
        }
    }
}

/// The metric handles of one catalogue.
#[derive(Debug)]
pub struct Handles {
    operations: Vec<(Option<Arc<Operation>>, OperationHandles)>,
}

#[derive(Debug)]
struct OperationHandles {
    label: String,
    requests: IntCounterVec,
    /// By outcome and reason, resolved at the first use, because most never occur.
    counters: Vec<OnceLock<IntCounter>>,
    whole: Lazy,
    checks: Lazy,
    upstream: Lazy,
}

/// A histogram that is registered at its first observation, so /metrics shows only operations in use.
#[derive(Debug)]
struct Lazy {
    histograms: HistogramVec,
    handle: OnceLock<Histogram>,
}

impl Lazy {
    fn of(histograms: &HistogramVec) -> Self {
        Self {
            histograms: histograms.clone(),
            handle: OnceLock::new(),
        }
    }

    fn observe(&self, operation: &str, took: Duration) {
        self.handle
            .get_or_init(|| self.histograms.with_label_values(&[operation]))
            .observe(took.as_secs_f64());
    }
}

/// The label of each outcome.
const OUTCOMES: [&str; 5] = ["forwarded", "refused", "failed", "abandoned", "answered"];

/// The number of reasons, and one for none.
const REASONS: usize = Reason::ALL.len() + 1;

impl Handles {
    pub(super) fn count(&self, finished: &Finished<'_>) {
        let operation = finished.record.operation().map(Arc::as_ptr);
        let same = |known: &Option<Arc<Operation>>| known.as_ref().map(Arc::as_ptr) == operation;
        let Some((_, handles)) = self.operations.iter().find(|(known, _)| same(known)) else {
            return;
        };
        handles.count(finished);
    }
}

impl OperationHandles {
    fn count(&self, finished: &Finished<'_>) {
        let (outcome, reason) = match finished.outcome {
            Outcome::Forwarded(_) => (0, None),
            Outcome::Refused(reason) => (1, Some(reason)),
            Outcome::Failed(reason) => (2, Some(reason)),
            Outcome::Abandoned => (3, None),
            Outcome::Answered => (4, None),
        };
        let index = reason.map_or(0, |reason| reason.index().saturating_add(1));
        let labels = || {
            [
                self.label.as_str(),
                OUTCOMES.get(outcome).copied().unwrap_or_default(),
                reason.map_or(NO_REASON, Reason::slug),
            ]
        };
        if let Some(counter) = self
            .counters
            .get(outcome.saturating_mul(REASONS).saturating_add(index))
        {
            counter
                .get_or_init(|| self.requests.with_label_values(&labels()))
                .inc();
        }
        self.whole.observe(&self.label, finished.record.elapsed());
        self.checks.observe(&self.label, finished.record.judging());
        if let Some(upstream) = finished.upstream {
            self.upstream.observe(&self.label, upstream);
        }
    }
}

#[allow(
    clippy::expect_used,
    reason = "the names and labels are constants, and every test starts with them"
)]
fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    IntCounterVec::new(Opts::new(name, help), labels).expect("a valid metric")
}

#[allow(
    clippy::expect_used,
    reason = "the names are constants, and every test starts with them"
)]
fn counter(name: &str, help: &str) -> IntCounter {
    IntCounter::new(name, help).expect("a valid metric")
}

#[allow(
    clippy::expect_used,
    reason = "the names and labels are constants, and every test starts with them"
)]
fn histograms(name: &str, help: &str, buckets: &[f64]) -> HistogramVec {
    HistogramVec::new(
        HistogramOpts::new(name, help).buckets(buckets.to_vec()),
        &["operation"],
    )
    .expect("a valid metric")
}
