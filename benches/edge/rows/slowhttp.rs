//! slowhttptest: slow heads, bodies and reads.

use crate::{
    arena::{Arena, Attacked, CALLS, figure, has, honest_metrics, honest_values},
    honest::Served,
    table::{Better, Line, Metric},
};
use std::{
    fs,
    process::{Command, Stdio},
    time::Duration,
};

/// Connections, and the duration in seconds.
const CONNECTIONS: &str = "2000";
const SECONDS: &str = "10";

/// The interval of the honest client's calls.
const EVERY: Duration = Duration::from_millis(30);

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
        metrics.extend(honest_metrics());
        let mut line = Line::new("-", format!("slowhttptest, {name}, {CONNECTIONS}"), metrics);
        for attacked in arena.each() {
            let quiet = arena.quiet(&attacked);
            let (held, served) = attack(arena, &attacked, options);
            let mut values = vec![Some(figure(held))];
            values.extend(honest_values(&served, &quiet));
            line.values[attacked.column] = values;
        }
        eprint!("{}", line.markdown());
        line
    });
    lines.into()
}

/// The connections that the peer still has at the end, and the honest client's calls.
fn attack(arena: &Arena, attacked: &Attacked, options: &[&str]) -> (usize, Served) {
    let port = attacked.running.port;
    let mut testing = Command::new("slowhttptest")
        .args(["-c", CONNECTIONS, "-r", "1000", "-l", SECONDS, "-p", "3"])
        .args(options)
        .args(["-u", &format!("https://127.0.0.1:{port}/v1/accounts")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let served = arena.honest(attacked, CALLS, EVERY).join().unwrap();
    let held = established(port);
    let _ = testing.kill();
    testing.wait().unwrap();
    (held, served)
}

/// The established connections of a local port, by the kernel's table: slowhttptest itself does not notice all that are closed.
fn established(port: u16) -> usize {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let end = format!(":{port:04X}");
    let is_held = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next(), fields.nth(1));
        local.is_some_and(|local| local.ends_with(&end)) && state == Some("01")
    };
    table.lines().filter(is_held).count()
}
