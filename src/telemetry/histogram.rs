//! Histograms of durations.
//!
//! An observation is two additions to integers, because a request is observed about ten times; the histograms of the `prometheus` crate
//! convert to floating point numbers and keep a second set of buckets. A scrape may read a bucket and not yet the sum.

use super::{
    labels::LabelSet,
    samples::{Families, distribution, family, labels},
    table::{Metric, MetricKind, Row},
};
use prometheus::{
    Error,
    core::{Collector, Desc},
    proto::{Metric as Sample, MetricFamily},
};
use std::{
    collections::HashMap,
    marker::PhantomData,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A histogram of durations with labels.
#[derive(Clone, Debug)]
pub(super) struct Histograms<L>(Arc<Inner>, PhantomData<fn() -> L>);

#[derive(Debug)]
struct Inner {
    row: &'static Row,
    description: Desc,
    by_labels: Mutex<Vec<(Vec<String>, Arc<Histogram>)>>,
}

impl<L: LabelSet> Histograms<L> {
    /// A histogram without a series. The registrar makes them.
    ///
    /// # Errors
    /// The name or a label is not valid.
    pub(super) fn new(row: &'static Row) -> Result<Self, Error> {
        let names = row.labels.iter().map(|(name, _)| (*name).to_owned());
        let (name, help) = (row.name.to_owned(), row.help.to_owned());
        let inner = Inner {
            row,
            description: Desc::new(name, help, names.collect(), HashMap::new())?,
            by_labels: Mutex::default(),
        };
        Ok(Self(Arc::new(inner), PhantomData))
    }

    /// The histogram of these values, in the order of the labels.
    pub(super) fn of(&self, values: L::Values<'_>) -> Arc<Histogram> {
        self.of_texts(L::texts(values).as_ref())
    }

    /// The histogram of these texts, one for each label.
    pub(super) fn of_texts(&self, values: &[&str]) -> Arc<Histogram> {
        let mut known = self
            .0
            .by_labels
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((_, histogram)) = known.iter().find(|(known, _)| known == values) {
            return Arc::clone(histogram);
        }
        let histogram = Arc::new(Histogram::new(self.0.row.kind));
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        known.push((values, Arc::clone(&histogram)));
        histogram
    }
}

impl<L: LabelSet> Collector for Histograms<L> {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.0.description]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let row = self.0.row;
        let known = self
            .0
            .by_labels
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let samples = known
            .iter()
            .map(|(values, histogram)| histogram.sample(row, values));
        vec![family(row, samples.collect())]
    }
}

/// A histogram of durations.
#[derive(Debug)]
pub(super) struct Histogram {
    /// The upper bounds of the buckets, in nanoseconds.
    bounds: Vec<u64>,
    /// The observations of each bucket, and of those beyond every bound.
    counts: Vec<AtomicU64>,
    /// In nanoseconds: enough for 580 years.
    sum: AtomicU64,
}

impl Histogram {
    pub(super) fn new(kind: MetricKind) -> Self {
        let bounds = match kind {
            MetricKind::Histogram(bounds) => bounds,
            MetricKind::Counter | MetricKind::Gauge => &[],
        };
        let bounds = bounds
            .iter()
            .map(|bound| nanoseconds(Duration::from_secs_f64(*bound)));
        let bounds: Vec<_> = bounds.collect();
        Self {
            counts: std::iter::repeat_with(AtomicU64::default)
                .take(bounds.len().saturating_add(1))
                .collect(),
            bounds,
            sum: AtomicU64::new(0),
        }
    }

    /// Observes a duration.
    pub(super) fn observe(&self, took: Duration) {
        let took = nanoseconds(took);
        let bucket = self.bounds.iter().position(|bound| took <= *bound);
        if let Some(count) = self.counts.get(bucket.unwrap_or(self.bounds.len())) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(took, Ordering::Relaxed);
    }

    /// Adds the observations of another one with the same buckets.
    pub(super) fn add(&self, other: &Self) {
        for (count, more) in self.counts.iter().zip(&other.counts) {
            count.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.sum
            .fetch_add(other.sum.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The sample of a scrape.
    pub(super) fn sample(&self, row: &'static Row, texts: &[impl AsRef<str>]) -> Sample {
        let mut sample = Sample::from_label(labels(row, texts));
        let counts = self.counts.iter();
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        let sum = Duration::from_nanos(self.sum.load(Ordering::Relaxed));
        sample.set_histogram(distribution(row, counts, sum.as_secs_f64()));
        sample
    }
}

/// Adds histograms with labels.
pub(super) fn add<'a, L: LabelSet>(
    metric: &'static Metric<L>,
    histograms: impl IntoIterator<Item = (L::Values<'a>, &'a Histogram)>,
    to: &mut Families,
) {
    let row = &metric.row;
    let samples = histograms
        .into_iter()
        .map(|(values, histogram)| histogram.sample(row, L::texts(values).as_ref()));
    to.push(row, samples.collect());
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{registry::Registrar, table, values::ClockDirection};

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let registrar = Registrar::default();
        let skew = registrar.histograms(&table::CLOCK_SKEW);
        let skew = skew.of(ClockDirection::Ahead);
        for seconds in [0, 1, 2, 300, 301] {
            skew.observe(Duration::from_secs(seconds));
        }
        let text = registrar.gather().text();
        let ahead = text
            .lines()
            .filter(|line| line.contains("direction=\"ahead\""));
        let ahead: Vec<_> = ahead.map(|line| line.rsplit(' ').next().unwrap()).collect();
        // The buckets to 0, 1, 2, 5, 15, 30, 60 and 300 s and beyond, sum and count.
        let counts = ["1", "2", "3", "3", "3", "3", "3", "4", "5", "604", "5"];
        assert_eq!(ahead, counts);
        assert!(
            text.contains("le=\"+Inf\"") && text.contains("direction=\"behind\""),
            "{text}"
        );
    }
}
