//! Makes metrics from rows of the table, and gathers their samples.
//!
//! Invariant: a metric that counts by itself is registered where it is made ([`Registrar`]); every other sample is written at a scrape by
//! [`Families`]. So a metric cannot be forgotten.

use super::{
    histogram::Histograms,
    labels::Values,
    samples::Families,
    table::{Kind, Metric},
};
use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry, core::Collector};

/// Makes and registers metrics.
#[derive(Debug, Default)]
pub(super) struct Registrar(Registry);

#[allow(
    clippy::expect_used,
    reason = "names and labels are constants of the table, and every test starts with them"
)]
impl Registrar {
    /// A counter without labels.
    pub(super) fn counter(&self, metric: &'static Metric) -> IntCounter {
        let counter = IntCounter::new(metric.name, metric.help).expect("a valid metric");
        self.register(metric, Kind::Counter, counter)
    }

    /// A counter with labels. Series of closed sets exist from the start.
    pub(super) fn counters(&self, metric: &'static Metric) -> Counters {
        let (options, names) = (Opts::new(metric.name, metric.help), names(metric));
        let counters = IntCounterVec::new(options, &names).expect("a valid metric");
        let counters = Counters {
            vector: self.register(metric, Kind::Counter, counters),
            metric,
        };
        for values in closed(metric) {
            counters.of(&values);
        }
        counters
    }

    /// A gauge without labels.
    pub(super) fn gauge(&self, metric: &'static Metric) -> IntGauge {
        let gauge = IntGauge::new(metric.name, metric.help).expect("a valid metric");
        self.register(metric, Kind::Gauge, gauge)
    }

    /// A histogram of durations. Series of closed sets exist from the start.
    pub(super) fn histograms(&self, metric: &'static Metric) -> Histograms {
        let histograms = Histograms::new(metric).expect("a valid metric");
        for values in closed(metric) {
            histograms.of(&values);
        }
        self.register(metric, metric.kind, histograms)
    }

    fn register<C: Collector + Clone + 'static>(
        &self,
        metric: &'static Metric,
        kind: Kind,
        collector: C,
    ) -> C {
        debug_assert_eq!(metric.kind, kind, "{}", metric.name);
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
pub(super) struct Counters {
    vector: IntCounterVec,
    metric: &'static Metric,
}

impl Counters {
    /// The counter of these values, in the order of the labels.
    pub(super) fn of(&self, values: &[&str]) -> IntCounter {
        debug_assert!(
            self.metric.allows(values),
            "{}: {values:?}",
            self.metric.name
        );
        self.vector.with_label_values(values)
    }
}

/// The combinations of labels that exist from the start: all, if each label is such a closed set.
fn closed(metric: &'static Metric) -> Vec<Vec<&'static str>> {
    let mut all = vec![Vec::new()];
    for label in metric.labels {
        let Values::Closed(values) = label.values else {
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

fn names(metric: &Metric) -> Vec<&'static str> {
    metric.labels.iter().map(|label| label.name).collect()
}
