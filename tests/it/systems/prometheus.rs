//! The dashboards, rules, alerts and runbooks on a real Prometheus, which watches a gateway under mixed traffic.
//!
//! Faults are turned on one after the other. Each must change a series of its own within 15 s and make its alerts active, and no
//! other alert that pages. Every query of every panel has returned data in the end, and every command of the runbooks has succeeded.

/// The faults.
mod faults;
/// Prometheus.
mod server;
/// The gateway and its surroundings.
mod stage;
/// The traffic.
mod traffic;
/// What Grafana does with variables.
mod variables;

use crate::{
    dashboards::{self, Query},
    harness::{Gate, RAN_OUT, Reply, eventually, let_pass, write_private},
    observe::breach,
    signers::python_with,
};
use faults::{FAULTS, Fault};
use portvakt::clock::Stopwatch;
use server::{Active, Prometheus, promtool};
use stage::{Stage, Until};
use std::{
    collections::BTreeSet, fs, path::Path, process::Command, sync::atomic::AtomicBool, thread,
    time::Duration,
};
use variables::Variables;

/// The limit of the wait until a fault shows.
const WITHIN: Duration = Duration::from_secs(60);

/// For this time after a fault has shown, other pages would show.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// The range of the panels' queries.
const RATE_INTERVAL: &str = "8s";

#[test]
#[ignore = "make test-systems"]
fn promtool_accepts_rules_and_alerts() {
    promtool(&["check", "rules", "rules.yml", "alerts.yml"], None);
    let [minutes, days] = dashboards::TESTS_OF_ALERTS;
    promtool(&["test", "rules", minutes, days], None);
}

/// Each query of each panel on series whose truth is known (`dashboards/truth.py`).
#[test]
#[ignore = "make test-systems"]
fn panels_show_the_truth() {
    let mut python = Command::new("python3");
    let output = python.arg(dashboards::folder().join("truth.py")).output();
    let output = output.unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    assert!(output.status.success(), "{}{}", said[0], said[1]);
}

/// Grafana's own model of 10.1 knows every field of the dashboards.
#[test]
#[ignore = "make test-systems"]
fn grafanas_model_reads_the_dashboards() {
    let python = python_with(
        "grafana",
        "grafana_foundation_sdk",
        &["grafana-foundation-sdk"],
    );
    let mut python = python.expect("grafana-foundation-sdk comes from PyPI");
    python
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/systems/prometheus/grafana.py"));
    for name in dashboards::NAMES {
        python.arg(dashboards::folder().join(format!("{name}.json")));
    }
    let output = python.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    println!("{said}");
}

#[test]
#[ignore = "make test-systems"]
fn faults_are_seen_and_every_panel_has_data() {
    let begun = Stopwatch::start();
    let stage = Stage::start();
    stage.gate.upstream().reply(usual());
    let prometheus = Prometheus::start(&[("portvakt", &stage.gate)]);
    let mut unanswered = filled(None, &prometheus);
    let stop = AtomicBool::new(false);
    traffic::introduce(&stage);
    thread::scope(|scope| {
        let _ends = Until(&stop);
        for caller in 0..traffic::CALLERS {
            let (stage, stop) = (&stage, &stop);
            scope.spawn(move || traffic::drive(stage, caller, stop));
        }
        let (last, others) = FAULTS.split_last().unwrap();
        for fault in others {
            calm(&prometheus, fault);
            (fault.turn)(&stage, &mut || is_seen(&prometheus, fault, &mut unanswered));
        }
        calm(&prometheus, last);
        let broken = prometheus.broken_rules();
        assert!(broken.is_empty(), "{broken:#?}");
        let unrecorded = dashboards::recorded();
        let unrecorded = unrecorded
            .iter()
            .filter(|rule| prometheus.query(&rule.name).is_empty());
        assert_eq!(
            unrecorded.map(|rule| &rule.name).collect::<Vec<_>>(),
            [""; 0]
        );
        let metrics = stage.gate.folder().join("metrics");
        fs::write(&metrics, stage.gate.control("/metrics").body).unwrap();
        promtool(&["check", "metrics"], Some(&metrics));
        every_command_of_the_runbooks_runs(&stage, &prometheus, None);
        // Where /readyz has a token of its own.
        let (name, token) = ("readiness.token", "9".repeat(32));
        write_private(&stage.gate.folder().join(name), &token);
        let good = stage.gate.yaml();
        let guarded = good.replace(
            "control:\n",
            &format!("control:\n  readiness_token_file: {name}\n"),
        );
        assert_eq!(stage.reload_with("gateway.yaml", &guarded), 200);
        every_command_of_the_runbooks_runs(&stage, &prometheus, Some(&token));
        assert_eq!(stage.reload_with("gateway.yaml", good), 200);
        draw(&prometheus, begun.elapsed());
        (last.turn)(&stage, &mut || is_seen(&prometheus, last, &mut unanswered));
    });
    let unanswered: Vec<_> = unanswered.iter().map(|query| &query.place).collect();
    assert!(unanswered.is_empty(), "never any data: {unanswered:#?}");
    println!("{} faults in {:?}", FAULTS.len(), begun.elapsed());
}

/// The core's usual answer, which names a host of the bank's network.
fn usual() -> Reply {
    Reply::json(200, "{}").with("Location", "https://10.1.2.3:8443/v1/internal")
}

/// Waits until the faults before are over.
fn calm(prometheus: &Prometheus, fault: &Fault) {
    eventually(&format!("calm before: {}", fault.name), || {
        let active = prometheus.active();
        let is_on = |alert: &Active| alert.is_page || fault.alerts.contains(&&*alert.name);
        !active.iter().any(is_on) && prometheus.query(fault.series).is_empty()
    });
}

/// Waits until a fault shows, and notes which panels have data meanwhile.
fn is_seen(prometheus: &Prometheus, fault: &Fault, unanswered: &mut Vec<Query>) {
    let begun = Stopwatch::start();
    let mut seen = None;
    while seen.is_none_or(|seen| begun.elapsed() < seen + AFTERWARDS) {
        let active = prometheus.active();
        let other = active
            .iter()
            .find(|alert| alert.is_page && alert.fires && !fault.alerts.contains(&&*alert.name));
        assert_eq!(other, None, "{} pages too", fault.name);
        let changed = !prometheus.query(fault.series).is_empty();
        let names: Vec<_> = active.iter().map(|alert| alert.name.as_str()).collect();
        if changed && fault.alerts.iter().all(|name| names.contains(name)) && seen.is_none() {
            seen = Some(begun.elapsed());
        }
        let took = begun.elapsed();
        assert!(
            seen.is_some() || took < WITHIN,
            "{RAN_OUT}: {}: {changed}, {names:?}",
            fault.name
        );
        let_pass(Duration::from_millis(300));
    }
    unanswered.retain(|query| prometheus.query(&query.expr).is_empty());
    println!(
        "{}: seen after {:.1} s",
        fault.name,
        seen.unwrap().as_secs_f64()
    );
}

/// The panels' queries as Grafana sends them: everything is chosen, but of the environments only one, if it is named.
fn filled(environment: Option<&str>, prometheus: &Prometheus) -> Vec<Query> {
    let mut queries = dashboards::queries();
    for name in dashboards::NAMES {
        let variables = Variables::of(&dashboards::dashboard(name), environment, prometheus);
        for query in queries.iter_mut().filter(|query| query.dashboard == name) {
            let expr = query.expr.replace("$__rate_interval", RATE_INTERVAL);
            query.expr = variables.fill(&expr);
            assert!(!query.expr.contains('$'), "{}", query.expr);
        }
    }
    queries
}

/// The jobs of the series that a query reads, from each of its selectors.
fn jobs_of(query: &Query, prometheus: &Prometheus) -> BTreeSet<String> {
    let selectors = query.expr.split_inclusive('}').filter_map(|part| {
        let (before, labels) = part.split_once('{')?;
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
        let name = before.rsplit(|c: char| !is_of_name(c)).next()?;
        Some(format!("count by (job) ({name}{{{labels})"))
    });
    let found = selectors.flat_map(|selector| prometheus.query(&selector));
    let jobs = found.map(|sample| sample["metric"]["job"].as_str().unwrap().to_owned());
    jobs.collect()
}

/// Two gateways of two environments: no panel shows the one while the other is chosen.
#[test]
#[ignore = "make test-systems"]
fn a_chosen_environment_excludes_the_other() {
    let sandbox = Gate::start();
    let production = breach::checking_everything()
        .environment("production")
        .start();
    let jobs = [("portvakt-a", &sandbox), ("portvakt-b", &production)];
    let prometheus = Prometheus::start(&jobs);
    eventually("both are known, and the rules", || {
        let known = prometheus.query("count by (job) (portvakt_environment_info)");
        known.len() == 2 && prometheus.query("portvakt:verified:rate5m").len() == 2
    });
    for (environment, expected) in [
        (Some("sandbox"), &["portvakt-a"][..]),
        (Some("production"), &["portvakt-b"]),
        (None, &["portvakt-a", "portvakt-b"]),
    ] {
        let expected: BTreeSet<_> = expected.iter().map(|job| (*job).to_owned()).collect();
        let mut all = BTreeSet::new();
        for query in filled(environment, &prometheus) {
            let jobs = jobs_of(&query, &prometheus);
            assert!(
                jobs.is_subset(&expected),
                "{environment:?}: {}: {jobs:?}",
                query.place
            );
            all.extend(jobs);
        }
        assert_eq!(all, expected, "{environment:?}");
    }
}

/// Runs each block of commands in the runbooks, where the gateway runs. `readiness` is the token of /readyz, if it has one.
fn every_command_of_the_runbooks_runs(
    stage: &Stage,
    prometheus: &Prometheus,
    readiness: Option<&str>,
) {
    let programs = Path::new(env!("CARGO_BIN_EXE_portvakt")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let folder = stage.gate.folder();
    let process = stage.id().to_string();
    for runbook in dashboards::runbooks() {
        for block in dashboards::commands(&runbook) {
            let mut shell = Command::new("nsenter");
            shell.args([
                "--target",
                &process,
                "--user",
                "--mount",
                "--preserve-credentials",
            ]);
            shell.args(["sh", "-eu", "-c", &block]);
            shell.env("PATH", &path);
            shell.env("PROMETHEUS", prometheus.url());
            shell.env(
                "CONTROL",
                format!("http://{}", stage.gate.control_address()),
            );
            shell.env("TOKEN", "none");
            shell.env("READINESS", readiness.unwrap_or("none"));
            shell.env("OPERATE", "none");
            shell.env("CORE", stage.gate.upstream().address().to_string());
            shell.env("TPP", stage.tpps[2].id().unwrap());
            for (name, file) in [
                ("CONFIG", "gateway.yaml"),
                ("STATE", "state"),
                ("CERTIFICATE", "server.pem"),
                ("ACCESS", "access.log"),
                ("EVENTS", "events.log"),
            ] {
                shell.env(name, folder.join(file));
            }
            let output = shell.output().unwrap();
            let said = [output.stdout, output.stderr]
                .map(|said| String::from_utf8_lossy(&said).into_owned());
            assert!(output.status.success(), "{runbook}:\n{block}\n{said:?}");
            assert!(
                !said[0].contains("caller-unknown"),
                "{runbook}:\n{block}\nis refused: {said:?}"
            );
            assert!(
                !said[0].is_empty() || block.contains("export "),
                "{runbook}:\n{block}\nsays nothing"
            );
        }
    }
}

/// Draws the dashboards: every one, none without data.
fn draw(prometheus: &Prometheus, since: Duration) {
    let mut python = python_with("matplotlib", "matplotlib", &["matplotlib"])
        .expect("matplotlib comes from PyPI");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboards");
    let minutes = (since.as_secs_f64() / 60.0).to_string();
    let output = python
        .arg(dashboards::folder().join("draw.py"))
        .args([
            &prometheus.url(),
            "--minutes",
            &minutes,
            "--rate-interval",
            RATE_INTERVAL,
        ])
        .arg(&out)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    println!("pictures in {}:\n{said}", out.display());
}
