//! Each alert has a severity, a summary, a runbook and cases of promtool, which `systems::prometheus` runs.

use super::{
    Rule, TESTS_OF_ALERTS, alerts, list, metrics_in, read, recorded, runbooks, text, yaml,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// The pages about one replica. Others are about what all replicas share, and fire once for a job.
const OF_ONE_REPLICA: [&str; 3] = [
    "PortvaktAuditLosesRecords",
    "PortvaktDiskFullTomorrow",
    "PortvaktDown",
];

/// The cases of promtool.
fn tests_of_alerts() -> Vec<Value> {
    let files = TESTS_OF_ALERTS.iter();
    files.flat_map(|file| list(&yaml(file)["tests"])).collect()
}

#[test]
fn every_alert_has_a_severity_a_summary_a_runbook_and_tests() {
    let (mut fires, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for test in tests_of_alerts() {
        for case in list(&test["alert_rule_test"]) {
            assert!(case["exp_alerts"].is_null(), "{case}");
            silent.insert(text(&case["alertname"]).to_owned());
        }
        for case in list(&test["promql_expr_test"]) {
            let expr = text(&case["expr"]);
            let name = expr.split("alertname=\"").nth(1).unwrap_or_default();
            assert!(expr.contains("alertstate=\"firing\""), "{expr}");
            assert!(!list(&case["exp_samples"]).is_empty(), "{expr}");
            fires.insert(name.split('"').next().unwrap().to_owned());
        }
    }
    let alerts = alerts();
    let mut linked = BTreeSet::from(["README.md".to_owned()]);
    for alert in &alerts {
        let name = &alert.name;
        assert!(
            ["page", "ticket"].contains(&alert.severity.as_str()),
            "{name}"
        );
        assert!(alert.summary.ends_with('.'), "{name}");
        let path = alert.runbook.strip_prefix("dashboards/runbooks/");
        let (file, anchor) = path.unwrap().split_once('#').unwrap();
        let text = read(&format!("runbooks/{file}"));
        let section = text.split(&format!("\n## {name}\n")).nth(1);
        let section = section.and_then(|section| section.split("\n## ").next());
        assert!(
            section.is_some_and(|section| section.contains("\n```sh\n")),
            "{name}: {file}"
        );
        assert_eq!(anchor, name.to_lowercase(), "{name}");
        linked.insert(file.to_owned());
    }
    let names: BTreeSet<_> = alerts.iter().map(|alert| alert.name.clone()).collect();
    assert_eq!(names.len(), alerts.len(), "a name is used twice");
    assert_eq!(fires, names, "a case that fires");
    assert_eq!(silent, names, "a case that stays silent");
    let runbooks = runbooks();
    assert_eq!(
        linked,
        runbooks.iter().cloned().collect(),
        "linked runbooks"
    );
    for runbook in &runbooks {
        let text = read(&format!("runbooks/{runbook}"));
        let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
        let unknown: Vec<_> = headings.filter(|name| !names.contains(*name)).collect();
        assert!(
            unknown.is_empty() || runbook == "README.md",
            "{runbook}: {unknown:?}"
        );
    }
}

/// The alert that a case says fires.
fn fires(case: &Value) -> Option<String> {
    let cases = list(&case["promql_expr_test"]);
    let expr = text(&cases.first()?["expr"]).to_owned();
    let name = expr.split("alertname=\"").nth(1)?.split('"').next()?;
    Some(name.to_owned())
}

/// The series of a case, with their samples.
fn inputs(case: &Value) -> Vec<(String, String)> {
    let inputs = list(&case["input_series"]).into_iter();
    let both = |one: Value| {
        (
            text(&one["series"]).to_owned(),
            text(&one["values"]).to_owned(),
        )
    };
    inputs.map(both).collect()
}

/// Whether an alert counts events: by a rate of its own, or by one that is recorded.
fn counts(alert: &Rule, recorded: &[Rule]) -> bool {
    let has_rate = |expr: &str| expr.contains("rate(") || expr.contains("increase(");
    let read = metrics_in(&alert.expr);
    let used = recorded.iter().filter(|rule| read.contains(&rule.name));
    has_rate(&alert.expr) || used.into_iter().any(|rule| has_rate(&rule.expr))
}

/// A gateway has just started: before that, Prometheus knew no series of it.
#[test]
fn every_alert_that_counts_fires_where_its_series_were_absent() {
    let (cases, recorded) = (tests_of_alerts(), recorded());
    let begins = |case: &&Value| {
        inputs(case)
            .iter()
            .all(|(_, values)| values.starts_with('_'))
    };
    let begun: BTreeSet<_> = cases.iter().filter(begins).filter_map(fires).collect();
    let alerts = alerts();
    let counting = alerts.iter().filter(|alert| counts(alert, &recorded));
    let missing: Vec<_> = counting
        .map(|alert| &alert.name)
        .filter(|name| !begun.contains(*name))
        .collect();
    assert!(
        missing.is_empty(),
        "no case whose series all begin with _: {missing:?}"
    );
}

/// The database, the core or Prometheus' clock fails for all replicas at once, and wakes a person once.
#[test]
fn a_page_about_what_replicas_share_fires_once_for_three() {
    let of_three = |case: &&Value| {
        let inputs = inputs(case);
        let has = |replica: &str| inputs.iter().any(|(series, _)| series.contains(replica));
        ["\"a\"", "\"b\"", "\"c\""]
            .iter()
            .all(|name| has(&format!("instance={name}")))
            && case["promql_expr_test"][0]["exp_samples"][0]["value"] == 1
    };
    let once: BTreeSet<_> = tests_of_alerts()
        .iter()
        .filter(of_three)
        .filter_map(fires)
        .collect();
    for alert in alerts().iter().filter(|alert| alert.severity == "page") {
        let is_own = OF_ONE_REPLICA.contains(&alert.name.as_str());
        assert_eq!(
            alert.summary.contains("$labels.instance"),
            is_own,
            "{}",
            alert.name
        );
        assert!(
            is_own || once.contains(&alert.name),
            "no case of three replicas: {}",
            alert.name
        );
    }
}
