//! Each alert has a severity, a summary, a runbook and cases of promtool, which `systems::prometheus` runs.

use super::{
    Rule, TESTS_OF_ALERTS, alerts, dashboard, list, metrics_in, queries, read, recorded, runbooks,
    text, yaml,
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
            // The others compare a summary.
            if case["exp_alerts"].is_null() {
                silent.insert(text(&case["alertname"]).to_owned());
            }
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

/// A summary is read while its alert is pending, so a time in it is that of a range, and not of `for`. One that asks Prometheus has a case.
#[test]
fn a_summary_states_what_its_expression_finds() {
    let cases = tests_of_alerts();
    let compared = cases.iter().flat_map(|case| list(&case["alert_rule_test"]));
    let compared: BTreeSet<_> = compared
        .filter(|case| !case["exp_alerts"].is_null())
        .map(|case| text(&case["alertname"]).to_owned())
        .collect();
    for alert in alerts() {
        let words = alert.summary.split(|c: char| !c.is_alphabetic());
        let is_time = |word: &str| ["minute", "hour", "day"].contains(&word.trim_end_matches('s'));
        let has_time = words.into_iter().any(is_time);
        assert!(!has_time || alert.expr.contains('['), "{}", alert.name);
        let asks = alert.summary.contains("| query");
        assert!(!asks || compared.contains(&alert.name), "{}", alert.name);
    }
}

/// A number turns orange or red where its alert begins. Compared are the parts of alerts that compare the same metrics with a number, but for
/// those of fewer series than the panel's.
#[test]
fn panels_have_the_thresholds_of_alerts() {
    let parts: Vec<_> = alerts().iter().flat_map(thresholds).collect();
    let mut compared = BTreeSet::new();
    for query in queries() {
        let panel = list(&dashboard(query.dashboard)["panels"]);
        let panel = panel
            .into_iter()
            .find(|panel| {
                query
                    .place
                    .starts_with(&format!("{}: {} ", query.dashboard, text(&panel["title"])))
            })
            .unwrap();
        let defaults = &panel["fieldConfig"]["defaults"];
        let steps = list(&defaults["thresholds"]["steps"]);
        let limits: Vec<_> = steps
            .iter()
            .filter_map(|step| step["value"].as_f64())
            .collect();
        if limits.is_empty() || defaults["unit"] == "bool_yes_no" {
            continue;
        }
        for part in &parts {
            let is_same = part.metrics == metrics_in(&query.expr);
            if !is_same
                || part
                    .selected
                    .iter()
                    .any(|label| !query.expr.contains(label))
            {
                continue;
            }
            let bound = match query.expr.starts_with("1 - ") {
                true => 1.0 - part.bound,
                false => part.bound.abs(),
            };
            let is_limit = limits.iter().any(|limit| (limit - bound).abs() < 1e-9);
            assert!(
                is_limit,
                "{}: {bound} of {} is none of {limits:?}",
                query.place, part.alert
            );
            compared.insert(query.place.clone());
        }
    }
    assert!(compared.len() > 8, "{compared:?}");
}

/// A part of an alert's expression that compares with a number.
struct Threshold {
    alert: String,
    metrics: BTreeSet<String>,
    /// The labels that it compares with a value.
    selected: Vec<String>,
    bound: f64,
}

fn thresholds(alert: &Rule) -> Vec<Threshold> {
    let expr = alert.expr.split_whitespace().collect::<Vec<_>>().join(" ");
    let joined = [" unless ", " or "]
        .iter()
        .fold(expr, |expr, word| expr.replace(word, " and "));
    let parts = joined.split(" and ").filter_map(|part| {
        let sign = part.rfind(['<', '>']).or_else(|| part.rfind("=="))?;
        let (left, right) = part.split_at(sign);
        let factors = right.trim_start_matches(['<', '>', '=']).split('*');
        let factors: Result<Vec<f64>, _> = factors.map(|factor| factor.trim().parse()).collect();
        let bound: f64 = factors.ok()?.iter().product();
        let labels = left.split(['{', '}', ',']).map(str::trim);
        let is_one = |label: &&str| label.contains("=\"") && !label.contains("!=");
        // 0 is a sign or a fault, and no threshold.
        (bound != 0.0).then(|| Threshold {
            alert: alert.name.clone(),
            metrics: metrics_in(left),
            selected: labels.filter(is_one).map(str::to_owned).collect(),
            bound,
        })
    });
    parts.collect()
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
