//! Metrics of the store.
//!
//! Invariant: no metric is computed on a request's path. The store keeps its own counters, which a scrape reads.

use crate::state::{Counters, Rows};
use prometheus::{
    Counter, IntCounter, IntGauge, IntGaugeVec, Opts, core::Collector, proto::MetricFamily,
};

/// The current counters of the store.
pub(super) fn families(counters: &Counters) -> Vec<MetricFamily> {
    let Counters {
        batches,
        failed,
        changes,
        largest_batch,
        spent,
        rows,
        clock_stepped_back,
    } = counters;
    [
        counted(
            "portvakt_state_batches_total",
            "Transactions of the store, those that failed included.",
            *batches,
        ),
        counted(
            "portvakt_state_batches_failed_total",
            "Transactions of the store that failed; the requests in them were answered with 503.",
            *failed,
        ),
        counted(
            "portvakt_state_changes_total",
            "Changes requested of the store, its own housekeeping included.",
            *changes,
        ),
        sum(
            "portvakt_state_batch_seconds_total",
            "The time that the store spent in transactions.",
            spent.as_secs_f64(),
        ),
        gauge(
            "portvakt_state_largest_batch",
            "The most changes in one transaction of the store.",
            *largest_batch,
        ),
        gauge(
            "portvakt_state_clock_stepped_back",
            "Whether requests are refused because the clock stepped back (REP-1).",
            u64::from(*clock_stepped_back),
        ),
        held(rows),
    ]
    .into_iter()
    .flatten()
    // A family without samples cannot be encoded.
    .filter(|family| !family.get_metric().is_empty())
    .collect()
}

fn counted(name: &str, help: &str, value: u64) -> Vec<MetricFamily> {
    IntCounter::new(name, help).map_or_else(not_made, |counter| {
        counter.inc_by(value);
        counter.collect()
    })
}

fn sum(name: &str, help: &str, value: f64) -> Vec<MetricFamily> {
    Counter::new(name, help).map_or_else(not_made, |counter| {
        counter.inc_by(value);
        counter.collect()
    })
}

fn gauge(name: &str, help: &str, value: u64) -> Vec<MetricFamily> {
    IntGauge::new(name, help).map_or_else(not_made, |gauge| {
        gauge.set(number(value));
        gauge.collect()
    })
}

/// Omits tables that were not counted yet.
fn held(rows: &Rows) -> Vec<MetricFamily> {
    let Rows {
        quotas,
        pages,
        requests,
        tokens,
        psus,
    } = *rows;
    let kinds = [
        ("psu", psus),
        ("quota", quotas),
        ("page", pages),
        ("request", requests),
        ("token", tokens),
    ];
    let opts = Opts::new(
        "portvakt_state_rows",
        "Rows of the store by table, as housekeeping last counted them.",
    );
    IntGaugeVec::new(opts, &["table"]).map_or_else(not_made, |gauges| {
        for (table, rows) in kinds {
            if let Some(rows) = rows {
                gauges.with_label_values(&[table]).set(number(rows));
            }
        }
        gauges.collect()
    })
}

/// A count as a gauge's value.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "map_err passes the error by value"
)]
fn not_made(error: prometheus::Error) -> Vec<MetricFamily> {
    tracing::error!(%error, "a metric of the store cannot be made");
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::{Encoder, TextEncoder};
    use std::time::Duration;

    #[test]
    fn counters_are_shown() {
        let counters = Counters {
            batches: 7,
            failed: 1,
            changes: 5_000_000_000,
            largest_batch: 64,
            spent: Duration::from_millis(1_500),
            rows: Rows {
                psus: Some(3),
                quotas: Some(0),
                ..Rows::default()
            },
            clock_stepped_back: true,
        };
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&families(&counters), &mut text)
            .unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        // The rows of a family are in no defined order.
        samples.sort_by_key(|line| line.starts_with("portvakt_state_rows").then_some(*line));
        assert_eq!(
            samples,
            [
                "portvakt_state_batches_total 7",
                "portvakt_state_batches_failed_total 1",
                "portvakt_state_changes_total 5000000000",
                "portvakt_state_batch_seconds_total 1.5",
                "portvakt_state_largest_batch 64",
                "portvakt_state_clock_stepped_back 1",
                r#"portvakt_state_rows{table="psu"} 3"#,
                r#"portvakt_state_rows{table="quota"} 0"#,
            ]
        );
        assert!(text.contains("# TYPE portvakt_state_batches_total counter"));
    }

    #[test]
    fn rows_are_omitted_before_the_first_housekeeping() {
        let families = families(&Counters::default());
        let mut text = Vec::new();
        TextEncoder::new().encode(&families, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("portvakt_state_batches_total 0"), "{text}");
        assert!(!text.contains("portvakt_state_rows"), "{text}");
    }
}
