//! Makes metrics from rows of the table, and gathers their samples.
//!
//! Invariant: a metric that counts by itself is registered where it is made ([`Registrar`]); every other sample is written at a scrape by
//! [`Families`]. So a metric cannot be forgotten.

use super::{
    histogram::Histograms,
    labels::{LabelSet, Values},
    samples::Families,
    table::{Metric, MetricKind, Row},
};
use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry, core::Collector};
use std::marker::PhantomData;

/// Makes and registers metrics.
#[derive(Debug, Default)]
pub(super) struct Registrar(Registry);

#[allow(
    clippy::expect_used,
    reason = "names and labels are constants of the table, and every test starts with them"
)]
impl Registrar {
    /// A counter without labels.
    pub(super) fn counter(&self, metric: &'static Metric<()>) -> IntCounter {
        let row = &metric.row;
        let counter = IntCounter::new(row.name, row.help).expect("a valid metric");
        self.register(row, MetricKind::Counter, counter)
    }

    /// A counter with labels. Series of closed sets exist from the start.
    pub(super) fn counters<L: LabelSet>(&self, metric: &'static Metric<L>) -> Counters<L> {
        let row = &metric.row;
        let names: Vec<_> = row.labels.iter().map(|(name, _)| *name).collect();
        let options = Opts::new(row.name, row.help);
        let counters = IntCounterVec::new(options, &names).expect("a valid metric");
        for values in closed(row) {
            counters.with_label_values(&values);
        }
        Counters {
            vector: self.register(row, MetricKind::Counter, counters),
            labels: PhantomData,
        }
    }

    /// A gauge without labels.
    pub(super) fn gauge(&self, metric: &'static Metric<()>) -> IntGauge {
        let row = &metric.row;
        let gauge = IntGauge::new(row.name, row.help).expect("a valid metric");
        self.register(row, MetricKind::Gauge, gauge)
    }

    /// A histogram of durations. Series of closed sets exist from the start.
    pub(super) fn histograms<L: LabelSet>(&self, metric: &'static Metric<L>) -> Histograms<L> {
        let row = &metric.row;
        let histograms = Histograms::new(row).expect("a valid metric");
        for values in closed(row) {
            histograms.of_texts(&values);
        }
        self.register(row, row.kind, histograms)
    }

    fn register<C: Collector + Clone + 'static>(
        &self,
        row: &'static Row,
        kind: MetricKind,
        collector: C,
    ) -> C {
        debug_assert_eq!(row.kind, kind, "{}", row.name);
        let registered = self.0.register(Box::new(collector.clone()));
        registered.expect("each metric is made once");
        collector
    }

    /// The samples of every registered metric.
    pub(super) fn gather(&self) -> Families {
        Families::of(self.0.gather())
    }
}

/// A counter with labels.
#[derive(Clone, Debug)]
pub(super) struct Counters<L> {
    vector: IntCounterVec,
    labels: PhantomData<fn() -> L>,
}

impl<L: LabelSet> Counters<L> {
    /// The counter of these values, in the order of the labels.
    pub(super) fn of(&self, values: L::Values<'_>) -> IntCounter {
        self.vector.with_label_values(L::texts(values).as_ref())
    }
}

/// The combinations of labels that exist from the start: all, if each label is such a closed set.
fn closed(row: &'static Row) -> Vec<Vec<&'static str>> {
    let mut all = vec![Vec::new()];
    for (_, values) in row.labels {
        let Values::Closed(values) = values else {
            return Vec::new();
        };
        let longer = |values: &Vec<&'static str>, value| [values.as_slice(), &[value]].concat();
        let with = |known: &Vec<_>| {
            values()
                .into_iter()
                .map(|value| longer(known, value))
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}
