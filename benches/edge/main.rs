//! Portvakt under attack, beside nginx and HAProxy on the same machine: docs/edge.md.
//!
//! `make edge` runs every row; `make edge ARGS="--rows 1,7"` runs two; `make edge ARGS="fuzz --minutes 20"` sends random bytes, records
//! and frames to Portvakt only. The peer runs on one core; attackers, honest client and core run on the other.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "a benchmark fails by panicking, prints what it found, and takes the time"
)]

mod arena;
mod core_server;
mod fuzz;
mod honest;
mod host;
mod peers;
mod rows;
mod slow;
mod table;
mod wire;

use arena::Arena;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};
use table::Line;

/// The connections of a crowd, and the descriptors for them and everything else.
const CROWD: usize = 10_000;
const DESCRIPTORS: u64 = 12_000;

/// The command line.
#[derive(Default)]
struct Options {
    /// The rows to run; all if none is named.
    rows: Vec<String>,
    /// Portvakt's program, if it is not beside this one.
    program: Option<PathBuf>,
    /// Whether the peers are left out.
    is_alone: bool,
    crowd: Option<usize>,
    fuzz: bool,
    minutes: Option<f64>,
    seed: Option<u64>,
}

impl Options {
    fn read() -> Self {
        let mut options = Self::default();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .unwrap_or_else(|| panic!("{word} needs a value"))
            };
            match word.as_str() {
                "fuzz" => options.fuzz = true,
                "--minutes" => options.minutes = Some(value().parse().unwrap()),
                "--seed" => options.seed = Some(value().parse().unwrap()),
                "--rows" => options.rows = value().split(',').map(str::to_owned).collect(),
                "--program" => options.program = Some(value().into()),
                "--crowd" => options.crowd = Some(value().parse().unwrap()),
                "--alone" => options.is_alone = true,
                _ => refuse(&format!("{word} is no option")),
            }
        }
        let names = rows::ALL.map(|(name, _)| name);
        if let Some(row) = options
            .rows
            .iter()
            .find(|row| !names.contains(&row.as_str()))
        {
            refuse(&format!("{row} is no row"));
        }
        options
    }
}

/// Ends the process: the command line is wrong.
fn refuse(fault: &str) -> ! {
    let names = rows::ALL.map(|(name, _)| name).join(",");
    eprintln!(
        "{fault}. Options: --rows {names}; --crowd N; --alone (without the peers); --program FILE; or fuzz --minutes N --seed N"
    );
    std::process::exit(2);
}

/// The lines of a row. One in which a bar is missed runs twice more, and the medians of the three count: a few of 300 calls are the 99th
/// percentile, so that one pause of the machine decides it.
fn measured(name: &str, run: fn(&Arena) -> Vec<Line>, arena: &Arena) -> Vec<Line> {
    let first = run(arena);
    let missed: Vec<_> = first.iter().filter_map(Line::verdict).collect();
    if missed.is_empty() {
        return first;
    }
    eprintln!("row {name} runs three times: {}", missed.join("; "));
    let others = [run(arena), run(arena)];
    let [second, third] = others.map(Vec::into_iter);
    let runs = first.into_iter().zip(second.zip(third));
    runs.map(|(first, (second, third))| Line::median([first, second, third]))
        .collect()
}

fn main() -> ExitCode {
    let options = Options::read();
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    prepare_process();
    let crowd = options.crowd.unwrap_or(CROWD);
    let is_alone = options.is_alone || options.fuzz;
    let arena = Arena::new(options.program, is_alone, crowd);
    if options.fuzz {
        let minutes = options.minutes.unwrap_or(1.0);
        return match fuzz::run(&arena, minutes, options.seed.unwrap_or(18)) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        };
    }
    let mut lines = Vec::new();
    let before = host::ticks();
    for (name, run) in rows::ALL {
        if options.rows.is_empty() || options.rows.iter().any(|row| row == name) {
            let begun = Instant::now();
            lines.extend(measured(name, run, &arena));
            eprintln!("row {name}: {:.0} s", begun.elapsed().as_secs_f64());
        }
    }
    lines.sort_by_key(|line| line.row.parse().unwrap_or(u32::MAX));
    println!(
        "{}{}",
        table::HEAD,
        lines.iter().map(Line::markdown).collect::<String>()
    );
    let missed = lines.iter().filter(|line| line.verdict().is_some()).count();
    let [all, stolen] = host::ticks();
    println!(
        "{} lines, {missed} of them with a missed bar. Other machines took {:.1} % of the processors' time.",
        lines.len(),
        100.0 * (stolen - before[1]) / (all - before[0])
    );
    ExitCode::SUCCESS
}

/// Raises the limit on descriptors, and leaves the first core to the peers.
fn prepare_process() {
    let limit = getrlimit(Resource::Nofile);
    assert!(
        limit.maximum.is_none_or(|most| most >= DESCRIPTORS),
        "the hard limit on file descriptors must be at least {DESCRIPTORS} (ulimit -Hn)"
    );
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let own = std::process::id().to_string();
    let pinned = Command::new("taskset")
        .args(["--pid", "--cpu-list", "1", &own])
        .stdout(Stdio::null())
        .status();
    assert!(
        pinned.is_ok_and(|status| status.success()),
        "two cores are needed"
    );
}
