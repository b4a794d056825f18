//! slowhttptest: slow heads, bodies and reads.

use crate::{
    arena::{Arena, Attacked, figure, has, honest_metrics, honest_values},
    table::{Better, Line, Metric},
};
use std::{
    process::{Command, Stdio},
    time::Duration,
};

/// Connections, and the duration in seconds.
const CONNECTIONS: &str = "2000";
const SECONDS: &str = "10";

/// The calls of the honest client, and their interval.
const CALLS: usize = 100;
const EVERY: Duration = Duration::from_millis(90);

/// The options of each test.
const TESTS: [(&str, &[&str]); 3] = [
    ("slow heads", &["-H", "-i", "2"]),
    ("slow bodies", &["-B", "-i", "2", "-s", "8192"]),
    (
        "slow reads",
        &["-X", "-w", "1", "-y", "16", "-n", "2", "-z", "4", "-k", "3"],
    ),
];

/// Each test, on a peer that was started anew.
pub fn run(arena: &Arena) -> Vec<Line> {
    if !has("slowhttptest") {
        eprintln!("slowhttptest is not installed (see .ci/needs.sh edge)");
        return Vec::new();
    }
    let lines = TESTS.map(|(name, options)| {
        let mut metrics = vec![Metric {
            name: "held at the end",
            unit: "",
            digits: 0,
            better: Better::Lower,
            bar: None,
            slack: None,
        }];
        metrics.extend(honest_metrics(CALLS));
        let mut line = Line::new("-", format!("slowhttptest, {name}, {CONNECTIONS}"), metrics);
        for attacked in arena.each() {
            let quiet = arena.quiet(&attacked, CALLS, Duration::from_millis(20));
            let (held, served) = attack(arena, &attacked, options);
            let mut values = vec![held];
            values.extend(honest_values(&served, &quiet));
            line.values[attacked.column] = values;
        }
        eprint!("{}", line.markdown());
        line
    });
    lines.into()
}

/// The connections that are open at the end, by slowhttptest's account, and the honest client's calls.
fn attack(
    arena: &Arena,
    attacked: &Attacked,
    options: &[&str],
) -> (Option<f64>, crate::honest::Served) {
    let url = format!("https://127.0.0.1:{}/v1/accounts", attacked.running.port);
    let testing = Command::new("slowhttptest")
        .args(["-c", CONNECTIONS, "-r", "1000", "-l", SECONDS, "-p", "3"])
        .args(options)
        .args(["-u", &url])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let served = arena.honest(attacked, CALLS, EVERY).join().unwrap();
    let output = testing.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // The last report counts. Codes of a terminal's colours end with "m".
    let held = text.lines().filter_map(|line| {
        let (name, count) = line.split_once(':')?;
        let count = count.rsplit('m').next()?.trim();
        name.ends_with("connected").then(|| count.parse().ok())?
    });
    (held.last().map(figure), served)
}
