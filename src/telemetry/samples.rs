//! Samples of one scrape, and their text.

use super::{
    labels::LabelSet,
    table::{Metric, MetricKind, Row},
};
use prometheus::{
    TextEncoder,
    proto::{
        Bucket, Counter, Gauge, Histogram, LabelPair, Metric as Sample, MetricFamily, MetricType,
    },
};

/// Families of samples, for one scrape.
#[derive(Debug)]
pub(super) struct Families(Vec<MetricFamily>);

impl Families {
    /// Begins with these.
    pub(super) const fn of(families: Vec<MetricFamily>) -> Self {
        Self(families)
    }

    /// Adds a sample without labels.
    pub(super) fn one(&mut self, metric: &'static Metric<()>, value: f64) {
        self.each(metric, [((), value)]);
    }

    /// Adds samples with labels. A family without samples is left out.
    pub(super) fn each<'a, L: LabelSet>(
        &mut self,
        metric: &'static Metric<L>,
        samples: impl IntoIterator<Item = (L::Values<'a>, f64)>,
    ) {
        let row = &metric.row;
        let samples = samples.into_iter().map(|(values, value)| {
            let mut sample = Sample::from_label(labels(row, L::texts(values).as_ref()));
            match row.kind {
                MetricKind::Counter => {
                    let mut counter = Counter::default();
                    counter.set_value(value);
                    sample.set_counter(counter);
                }
                MetricKind::Gauge | MetricKind::Histogram(_) => {
                    let mut gauge = Gauge::default();
                    gauge.set_value(value);
                    sample.set_gauge(gauge);
                }
            }
            sample
        });
        self.push(row, samples.collect());
    }

    /// Adds a histogram without labels, of the counts of its buckets (the last is that beyond every bound) and the sum of its values.
    pub(super) fn histogram(&mut self, metric: &'static Metric<()>, counts: &[u64], sum: f64) {
        let histogram = distribution(&metric.row, counts.iter().copied(), sum);
        let mut sample = Sample::default();
        sample.set_histogram(histogram);
        self.push(&metric.row, vec![sample]);
    }

    /// Adds a histogram with labels: of each series the values of the labels, the counts and the sum.
    pub(super) fn histograms<'a, L: LabelSet>(
        &mut self,
        metric: &'static Metric<L>,
        series: impl IntoIterator<Item = (L::Values<'a>, Vec<u64>, f64)>,
    ) {
        let row = &metric.row;
        let samples = series.into_iter().map(|(values, counts, sum)| {
            let mut sample = Sample::from_label(labels(row, L::texts(values).as_ref()));
            sample.set_histogram(distribution(row, counts.into_iter(), sum));
            sample
        });
        self.push(row, samples.collect());
    }

    /// Adds a family, if it has samples.
    pub(super) fn push(&mut self, row: &'static Row, samples: Vec<Sample>) {
        if !samples.is_empty() {
            self.0.push(family(row, samples));
        }
    }

    /// The samples in Prometheus' text format.
    pub(super) fn text(&self) -> String {
        TextEncoder::new()
            .encode_to_string(&self.0)
            .unwrap_or_else(|error| {
                tracing::error!(%error, "metrics cannot be written");
                String::new()
            })
    }
}

/// A family of samples.
pub(super) fn family(row: &'static Row, samples: Vec<Sample>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(row.name.to_owned());
    family.set_help(row.help.to_owned());
    family.set_field_type(match row.kind {
        MetricKind::Counter => MetricType::COUNTER,
        MetricKind::Gauge => MetricType::GAUGE,
        MetricKind::Histogram(_) => MetricType::HISTOGRAM,
    });
    family.set_metric(samples);
    family
}

/// The labels of a sample.
pub(super) fn labels<V: AsRef<str>>(row: &'static Row, values: &[V]) -> Vec<LabelPair> {
    let pairs = row.labels.iter().zip(values).map(|((name, _), value)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value(value.as_ref().to_owned());
        pair
    });
    pairs.collect()
}

/// A histogram of the counts of its buckets.
pub(super) fn distribution(
    row: &'static Row,
    counts: impl Iterator<Item = u64>,
    sum: f64,
) -> Histogram {
    let MetricKind::Histogram(bounds) = row.kind else {
        return Histogram::default();
    };
    let (mut total, mut buckets, mut bounds) = (0_u64, Vec::new(), bounds.iter());
    for count in counts {
        total = total.saturating_add(count);
        // The encoder adds the bucket beyond every bound.
        if let Some(bound) = bounds.next() {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(total);
            buckets.push(bucket);
        }
    }
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets);
    histogram.set_sample_count(total);
    histogram.set_sample_sum(sum);
    histogram
}

/// A count as a sample.
#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "Prometheus has floating point numbers only, which are exact up to 2^53"
)]
pub(super) const fn number(count: u64) -> f64 {
    count as f64
}
