//! docs/metrics.md, made from the table.

use super::{
    labels::Values,
    table::{MetricKind, Row, SECTIONS},
};
use std::{env, fmt::Write, fs, path::Path};

const HEAD: &str = "\
# Metrics

Every metric of `/metrics` on the control listener, as the table in the code has it; `PORTVAKT_BLESS=1 make test` writes this page anew.
Labels are closed sets, or bounded where it says so. No label contains a PSU, a path or an id of a request. A series with a closed set of
labels exists from the start; those that are marked * begin with their first sample, unless the meaning says otherwise.

`fault` of `portvakt_answers_total` and `portvakt_requests_total` is the side that has to act. Availability is the share of the answers that
succeeded among those that succeeded or that the gateway or the core failed: requests that their callers got wrong count on neither side.

    1 - sum(rate(portvakt_answers_total{fault=~\"gateway|core\"}[5m])) / sum(rate(portvakt_answers_total{fault!=\"caller\"}[5m]))

A status that the core sent and the gateway passed on is the caller's fault from 400 and the core's from 500. A request whose caller went
away (`abandoned`) is the core's if the core had owed the answer, or the next part of it, for 0.9 s: a second, less what the way takes of a
caller's time-out. Otherwise it is the caller's, and so is one whose answer the gateway ended because the caller did not take it or flooded the
connection (`cut`). A 503 by a limit of one caller (`too-many-at-once`: its requests in flight, its connections, its unknown certificates) is
that caller's, who has to send less; a 503 by a limit of all, or in an overload, is the gateway's: the operator has to add capacity or block
the flood.
";

fn markdown() -> String {
    let mut text = HEAD.to_owned();
    for (section, metrics) in SECTIONS {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n## {section}\n\n| metric | labels | meaning |\n|---|---|---|\n"
        );
        for metric in *metrics {
            let labels: Vec<_> = metric.labels.iter().map(described).collect();
            let labels = labels.join("; ");
            let _ = writeln!(
                text,
                "| `{}`, {} | {labels} | {} |",
                metric.name,
                kind(metric),
                metric.help
            );
        }
    }
    text
}

fn described((name, values): &(&str, Values)) -> String {
    match values {
        Values::Closed(values) => format!("`{name}`: {}", values().join(", ")),
        Values::AtFirstUse(values) => format!("`{name}`*: {}", values().join(", ")),
        Values::Bounded(text) => format!("`{name}`*: {text}"),
    }
}

fn kind(metric: &Row) -> String {
    match metric.kind {
        MetricKind::Counter => "counter".to_owned(),
        MetricKind::Gauge => "gauge".to_owned(),
        MetricKind::Histogram(bounds) => {
            let bounds: Vec<_> = bounds.iter().map(ToString::to_string).collect();
            format!("histogram: {}", bounds.join(", "))
        }
    }
}

#[test]
fn docs_metrics_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    if env::var_os("PORTVAKT_BLESS").is_some() {
        fs::write(&path, markdown()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == markdown(),
        "docs/metrics.md is not what the table says: PORTVAKT_BLESS=1 make test"
    );
}

#[test]
fn names_are_unique_and_follow_the_conventions() {
    let all = SECTIONS.iter().flat_map(|(_, metrics)| *metrics);
    let mut names: Vec<_> = all.clone().map(|metric| metric.name).collect();
    for metric in all {
        let name = metric.name;
        let is_plain = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(is_plain, "{name}");
        assert!(
            name.starts_with("portvakt_") || name.starts_with("process_"),
            "{name}"
        );
        assert_eq!(
            name.ends_with("_total"),
            metric.kind == MetricKind::Counter,
            "{name}"
        );
        assert!(metric.help.ends_with('.'), "{name}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
