//! dashboards/: Grafana's JSON, rules and alerts for Prometheus, and runbooks name only what exists, and nothing is left out.
//!
//! These tests read files. `systems::prometheus` runs every query on a Prometheus that watches a gateway.

/// What each alert has: a severity, a summary, a runbook, and cases of promtool.
mod alerts;
/// The first events that alerts count.
mod bursts;
/// From the sources of the dashboards to the JSON that Grafana imports.
mod generate;

use crate::harness;
use portvakt::expiring::Expiring;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::Command,
};

/// The dashboards, in the order of docs/dashboards.md.
pub(crate) const NAMES: [&str; 5] = [
    "overview",
    "decisions",
    "trust",
    "core",
    "state-and-process",
];

/// The folder.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("dashboards")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// The files of promtool's tests of the alerts.
pub(crate) const TESTS_OF_ALERTS: [&str; 2] = ["alerts_test.yml", "alerts_days_test.yml"];

/// A YAML file as JSON.
pub(crate) fn yaml(name: &str) -> Value {
    serde_yaml::from_str(&read(name)).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// A dashboard as Grafana imports it.
pub(crate) fn dashboard(name: &str) -> Value {
    serde_json::from_str(&read(&format!("{name}.json"))).unwrap()
}

/// A query, its dashboard, and the place where it stands.
pub(crate) struct Query {
    pub(crate) dashboard: &'static str,
    pub(crate) place: String,
    pub(crate) expr: String,
}

/// The queries of all panels.
pub(crate) fn queries() -> Vec<Query> {
    let mut all = Vec::new();
    for name in NAMES {
        for panel in list(&dashboard(name)["panels"]) {
            for target in list(&panel["targets"]) {
                all.push(Query {
                    dashboard: name,
                    place: format!(
                        "{name}: {} {}",
                        text(&panel["title"]),
                        text(&target["refId"])
                    ),
                    expr: text(&target["expr"]).to_owned(),
                });
            }
        }
    }
    all
}

/// A rule of Prometheus: one that records, or an alert.
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) expr: String,
    severity: String,
    summary: String,
    runbook: String,
}

fn rules_in(file: &str, kind: &str) -> Vec<Rule> {
    let yaml = yaml(file);
    let groups = list(&yaml["groups"]);
    let rules = groups.iter().flat_map(|group| list(&group["rules"]));
    let rules = rules.map(|rule| Rule {
        name: text(&rule[kind]).to_owned(),
        expr: text(&rule["expr"]).to_owned(),
        severity: text(&rule["labels"]["severity"]).to_owned(),
        summary: text(&rule["annotations"]["summary"]).to_owned(),
        runbook: text(&rule["annotations"]["runbook"]).to_owned(),
    });
    rules.collect()
}

/// The rules that record.
pub(crate) fn recorded() -> Vec<Rule> {
    rules_in("rules.yml", "record")
}

/// The alerts.
pub(crate) fn alerts() -> Vec<Rule> {
    rules_in("alerts.yml", "alert")
}

/// The names of the runbooks.
pub(crate) fn runbooks() -> Vec<String> {
    let entries = fs::read_dir(folder().join("runbooks")).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The shell commands of a runbook: its blocks that begin with three backticks and `sh`.
pub(crate) fn commands(runbook: &str) -> Vec<String> {
    let text = read(&format!("runbooks/{runbook}"));
    let blocks = text.split("\n```sh\n").skip(1);
    blocks
        .map(|block| block.split("\n```").next().unwrap().to_owned())
        .collect()
}

/// A metric of docs/metrics.md.
struct Documented {
    is_histogram: bool,
    labels: BTreeSet<String>,
}

/// The metrics in docs/metrics.md, which is made from the gateway's own table, by name.
fn documented() -> BTreeMap<String, Documented> {
    let text = include_str!("../../docs/metrics.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let columns: Vec<_> = row.split(" | ").collect();
        let (name, kind) = columns[0].split_once("`, ").unwrap();
        let labels = columns[1].split("; ").filter_map(|label| {
            let label = label.strip_prefix('`')?;
            Some(label.split('`').next()?.to_owned())
        });
        let documented = Documented {
            is_histogram: kind.starts_with("histogram"),
            labels: labels.collect(),
        };
        (name.to_owned(), documented)
    })
    .collect()
}

/// The names in a query that are metrics: words with the gateway's prefix or that of the process, and `up`, outside of quotes.
fn metrics_in(expr: &str) -> BTreeSet<String> {
    let unquoted = expr.split('"').step_by(2);
    let words = unquoted.flat_map(|part| {
        part.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')))
    });
    words
        .filter(|word| is_metric(word))
        .map(str::to_owned)
        .collect()
}

/// The metric that Prometheus makes of each scrape.
const UP: &str = "up";

fn is_metric(word: &str) -> bool {
    let prefixes = ["portvakt_", "portvakt:", "process_"];
    word == UP || prefixes.iter().any(|prefix| word.starts_with(prefix))
}

/// The metric of a series: a histogram has three kinds of series.
fn metric_of<'a>(series: &'a str, documented: &BTreeMap<String, Documented>) -> &'a str {
    let endings = ["_bucket", "_sum", "_count"];
    let mut stems = endings.iter().filter_map(|end| series.strip_suffix(end));
    let is_histogram = |stem: &&str| documented.get(*stem).is_some_and(|of| of.is_histogram);
    stems.find(is_histogram).unwrap_or(series)
}

/// The labels that a query names: those that it compares, and those that it sums by.
fn labels_in(expr: &str) -> BTreeSet<String> {
    let unquoted: String = expr.split('"').step_by(2).collect();
    let inside = |opening: &str, closing: char| {
        let parts = unquoted.split(opening).skip(1);
        let lists = parts.filter_map(|part| part.split(closing).next());
        let names = lists.flat_map(|list| list.split(','));
        let names = names.map(|name| name.trim_matches([' ', '=', '~', '!']).to_owned());
        names.collect::<BTreeSet<_>>()
    };
    let (compared, by, on) = (inside("{", '}'), inside("by (", ')'), inside("on (", ')'));
    compared.into_iter().chain(by).chain(on).collect()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn the_dashboards_are_made_from_their_sources() {
    for name in NAMES {
        let source = serde_yaml::from_str(&read(&format!("panels/{name}.yaml")))
            .unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let made = generate::dashboard(name, &source);
        let made = serde_json::to_string_pretty(&made).unwrap() + "\n";
        let file = format!("{name}.json");
        if std::env::var_os("PORTVAKT_BLESS").is_some() {
            fs::write(folder().join(&file), &made).unwrap();
        }
        let kept = fs::read_to_string(folder().join(&file)).unwrap_or_default();
        assert_eq!(kept, made, "PORTVAKT_BLESS=1 writes {file} anew");
    }
}

/// Deleting or renaming a metric, or adding one that nobody sees, fails here.
/// What `make test-systems` compares panels with; here only that there is one for each.
#[test]
fn every_panel_has_its_truth() {
    let mut python = Command::new("python3");
    let asked = python.arg(folder().join("truth.py")).arg("--panels");
    let Ok(output) = asked.output() else {
        return harness::missing("python3 is not installed");
    };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
}

#[test]
fn every_metric_that_is_read_exists_and_every_metric_is_read() {
    let documented = documented();
    assert!(documented.len() > 40, "{}", documented.len());
    let (recorded, alerts) = (recorded(), alerts());
    let queries = queries();
    // Summaries ask by templates, in which %q is a quoted value.
    let asked = alerts
        .iter()
        .flat_map(|alert| alert.summary.split('`').skip(1).step_by(2));
    let asked: Vec<_> = asked.map(|query| query.replace("%q", "\"\"")).collect();
    let exprs = queries.iter().map(|query| &query.expr);
    let exprs = exprs.chain(recorded.iter().chain(&alerts).map(|rule| &rule.expr));
    let exprs = exprs.chain(&asked);
    let exprs: Vec<_> = exprs.collect();
    let read: BTreeSet<String> = exprs.iter().flat_map(|expr| metrics_in(expr)).collect();
    let (recordings, series): (BTreeSet<_>, BTreeSet<_>) =
        read.iter().partition(|name| name.starts_with("portvakt:"));
    let read = series.iter().filter(|series| **series != UP);
    let read: BTreeSet<_> = read.map(|series| metric_of(series, &documented)).collect();
    let unknown: Vec<_> = read
        .iter()
        .filter(|name| !documented.contains_key(**name))
        .collect();
    assert!(unknown.is_empty(), "not in docs/metrics.md: {unknown:?}");
    let unseen: Vec<_> = documented
        .keys()
        .filter(|name| !read.contains(name.as_str()))
        .collect();
    assert!(unseen.is_empty(), "on no panel and in no rule: {unseen:?}");
    let rules: BTreeSet<_> = recorded.iter().map(|rule| &rule.name).collect();
    assert_eq!(recordings, rules, "recorded, and read");
    for expr in exprs {
        let metrics = metrics_in(expr);
        let metrics = metrics
            .iter()
            .filter_map(|name| documented.get(metric_of(name, &documented)));
        let mut known: BTreeSet<_> = metrics.flat_map(|metric| metric.labels.clone()).collect();
        known.extend(["job", "instance", "le"].map(str::to_owned));
        let unknown: Vec<_> = labels_in(expr).difference(&known).cloned().collect();
        assert!(
            unknown.is_empty(),
            "no labels of these metrics: {unknown:?} in {expr}"
        );
    }
}

#[test]
fn every_panel_tells_what_to_do_and_asks_as_grafana_expects() {
    for name in NAMES {
        for panel in list(&dashboard(name)["panels"]) {
            let title = format!("{name}: {}", text(&panel["title"]));
            let targets = list(&panel["targets"]);
            if panel["type"] == "row" {
                continue;
            }
            assert!(!targets.is_empty(), "{title}");
            assert!(text(&panel["description"]).len() > 30, "{title}");
            for target in targets {
                let expr = text(&target["expr"]);
                // A fixed range is too short or too long at another zoom.
                let has_rate = expr.contains("rate(") || expr.contains("increase(");
                assert_eq!(
                    has_rate,
                    expr.contains("[$__rate_interval]"),
                    "{title}: {expr}"
                );
                for variable in ["job", "operation", "tpp"] {
                    let used = expr.contains(&format!("${variable}"));
                    let rightly = expr.contains(&format!("{variable}=~\"${variable}\""));
                    assert_eq!(used, rightly, "{title}: {expr}");
                }
            }
        }
    }
}

/// The jobs of all panels' queries are those that the chosen environments have: a value of its own for All would be every job.
#[test]
fn the_chosen_environment_decides_the_jobs() {
    for name in NAMES {
        let variables = list(&dashboard(name)["templating"]["list"]);
        let of = |name: &str| {
            variables
                .iter()
                .position(|one| one["name"] == name)
                .unwrap()
        };
        let (environment, job) = (of("environment"), of("job"));
        assert!(environment < job, "{name}");
        let job = &variables[job];
        assert!(job["allValue"].is_null(), "{name}: {job}");
        let query = text(&job["query"]["query"]);
        assert!(
            query.contains("{environment=~\"$environment\"}"),
            "{name}: {query}"
        );
        for panel in list(&dashboard(name)["panels"]) {
            for target in list(&panel["targets"]) {
                let expr = text(&target["expr"]);
                let unquoted: String = expr.split('"').step_by(2).collect();
                let selectors = unquoted.matches("{job=~").count();
                let words = unquoted
                    .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')));
                let metrics = words.filter(|word| is_metric(word)).count();
                assert_eq!(selectors, metrics, "{name}: {expr}");
            }
        }
    }
}

/// The runbook says how to go on for each cause that the metric has.
#[test]
fn every_cause_of_not_being_ready_has_its_row() {
    let metrics = include_str!("../../docs/metrics.md");
    let row = metrics
        .lines()
        .find(|line| line.starts_with("| `portvakt_not_ready`"));
    let causes = row.unwrap().split("`cause`: ").nth(1).unwrap();
    let causes = causes.split(" |").next().unwrap();
    let runbook = read("runbooks/process.md");
    let section = runbook.split("\n## PortvaktNotReady\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    for cause in causes.split(", ") {
        assert!(section.contains(&format!("\n| `{cause}` | ")), "{cause}");
    }
}

#[test]
fn every_kind_that_ends_is_in_the_table_of_the_configuration() {
    let page = fs::read_to_string("docs/configuration.md").unwrap();
    let section = page.split("\n## What ends or fills\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let first = rows.skip(1).filter_map(|row| row.split(" | ").next());
    let mut described: Vec<_> = first
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    described.sort_unstable();
    let mut kinds: Vec<_> = Expiring::ALL.iter().map(|kind| kind.name()).collect();
    kinds.sort_unstable();
    assert_eq!(described, kinds);
}

/// Everything that ends or fills has a ticket before, and a page when requests fail.
#[test]
fn every_kind_that_ends_has_a_ticket_and_a_page() {
    let alerts = alerts();
    let alert = |name: &str, severity: &str| {
        let found = alerts.iter().find(|alert| alert.name == name);
        let found = found.unwrap_or_else(|| panic!("{name}"));
        assert_eq!(found.severity, severity, "{name}");
        found.expr.clone()
    };
    let page = alert("PortvaktExpired", "page");
    assert!(
        page.contains("(portvakt_expiring{of!=\"revocation\"}) == 2"),
        "every kind but one: {page}"
    );
    alert("PortvaktRevocationUnreachable", "ticket");
    let ticket = alert("PortvaktExpiresSoon", "ticket");
    let (_, others) = ticket.split_once("of!~\"").unwrap();
    let (others, _) = others.split_once('"').unwrap();
    for name in others.split('|') {
        let kind = Expiring::ALL.iter().find(|kind| kind.name() == name);
        let own = match kind.unwrap_or_else(|| panic!("{name} is no kind")) {
            Expiring::ListenerOcsp => "PortvaktListenerOcspEnds",
            Expiring::Register => "PortvaktRegisterAging",
            Expiring::TokenKey => "PortvaktTokenSealsHigh",
            kind => {
                assert!(kind.is_certificate(), "{name} has no ticket");
                "PortvaktCertificateEndsSoon"
            }
        };
        alert(own, "ticket");
    }
}
