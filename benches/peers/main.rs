//! A comparison of Portvakt with alternatives on the same machine at the same time.
//!
//! `make bench` builds and runs the comparison; `make bench ARGS="get refused --rounds 5"` runs two of its loads. The peer runs on one
//! core; the upstream and the load generator run on the other. Each round signs new requests and sends them to every peer, in a
//! different order each time. The CPU per request comes from the kernel's accounting of the peer's threads. Results are ratios within a
//! round: they are stable on a noisy machine, where requests per second are not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::too_many_arguments,
    clippy::too_many_lines,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "a benchmark fails by panicking, prints what it found, and takes the time"
)]

mod budgets;
mod load;
mod loads;
#[allow(dead_code, reason = "portvakt-edge uses the rest")]
mod peer;
mod pool;
mod report;
#[allow(dead_code, reason = "portvakt-edge uses the rest")]
mod running;
#[allow(dead_code, reason = "portvakt-edge uses the rest")]
mod stage;

use loads::{Entry, Load};
use pool::Pool;
use report::{Row, Table};
use running::Running;
use stage::Stage;
use std::{
    collections::HashMap,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

/// The command line.
struct Options {
    rounds: usize,
    /// The duration of each peer's run in a round. With one second, p99 would measure the start of the connections (docs/performance.md).
    seconds: u64,
    /// The loads to run; all if none is named.
    loads: Vec<String>,
    /// The entries to run, by a part of their names; all if none is named.
    only: Vec<String>,
    /// The folder of the tables and the chart.
    write: Option<PathBuf>,
}

impl Options {
    fn read() -> Self {
        let mut options = Self {
            rounds: 7,
            seconds: 3,
            loads: Vec::new(),
            only: Vec::new(),
            write: None,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .unwrap_or_else(|| panic!("{word} needs a value"))
            };
            match word.as_str() {
                "--rounds" => options.rounds = value().parse().expect("a number of rounds"),
                "--seconds" => options.seconds = value().parse().expect("a number of seconds"),
                "--only" => options.only = value().split(',').map(str::to_owned).collect(),
                "--write" => options.write = Some(value().into()),
                _ if loads::all().iter().any(|load| load.name == word) => options.loads.push(word),
                _ => {
                    let names: Vec<_> = loads::all().iter().map(|load| load.name).collect();
                    println!(
                        "{word} is no load; there are {}. Options: --rounds N, --seconds N, --only NAME,NAME, --write FILE",
                        names.join(", ")
                    );
                    std::process::exit(2);
                }
            }
        }
        options
    }
}

fn main() {
    let options = Options::read();
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    for program in ["nginx", "wrk", "taskset", "setpriv"] {
        if !peer::has(program) {
            println!(
                "{program} is missing: sudo apt-get install -y --no-install-recommends nginx wrk util-linux"
            );
            std::process::exit(1);
        }
    }
    let own = std::env::current_exe().unwrap();
    let stage = Stage::new(&own.with_file_name("peers"));
    let mut tables = Vec::new();
    for load in loads::all() {
        if options.loads.is_empty() || options.loads.iter().any(|name| name == load.name) {
            let table = measure(&load, &stage, &options);
            if table.rows.is_empty() {
                println!("{}: nothing of that name is there", load.name);
                continue;
            }
            println!("{}", table.markdown());
            tables.push(table);
        }
    }
    print!("{}", budgets::markdown(&tables));
    if let Some(file) = &options.write {
        write(file, &tables);
    }
}

/// Runs a load: every entry once per round. The first round is a warm-up and is discarded.
fn measure(load: &Load, stage: &Stage, options: &Options) -> Table {
    let is_asked = |entry: &&Entry| {
        options.only.is_empty() || options.only.iter().any(|part| entry.name.contains(part))
    };
    let entries: Vec<&Entry> = load
        .entries
        .iter()
        .filter(is_asked)
        .filter(|entry| is_possible(entry))
        .collect();
    let mut peers: HashMap<_, Running> = HashMap::new();
    for entry in &entries {
        peers.entry((entry.peer, entry.core)).or_insert_with(|| {
            let core = entry.core;
            stage.start(entry.peer, peer::Setup { core, ..load.setup })
        });
    }
    let mut rows: Vec<Row> = entries
        .iter()
        .map(|entry| Row {
            name: entry.name.clone(),
            samples: Vec::new(),
        })
        .collect();
    // The highest rate per second so far.
    let mut fastest = None;
    for round in 0..=options.rounds {
        let seconds = if round == 0 { 1 } else { options.seconds };
        let date = SystemTime::now() + pool::AHEAD;
        let signing = Instant::now();
        let mut pools: HashMap<usize, Pool> = HashMap::new();
        for entry in &entries {
            pools.entry(entry.pool).or_insert_with(|| {
                let count = entry.count(seconds, load.setup.threads, fastest);
                Pool::sign(entry.who.of(stage), &entry.call, count, date)
            });
        }
        let mut order: Vec<usize> = (0..entries.len()).collect();
        shuffle(&mut order);
        for number in order {
            let (entry, row) = (entries[number], &mut rows[number]);
            let peer = &peers[&(entry.peer, entry.core)];
            let sample = load::run(
                &entry.name,
                entry.client,
                peer,
                &pools[&entry.pool],
                entry.expected(),
                seconds,
                stage.folder(),
                load.setup.threads,
                fastest.unwrap_or(loads::FASTEST),
            );
            let per_second = usize::try_from(sample.done / seconds).unwrap();
            if entry.peer.verifies() && pools[&entry.pool].len() > 1 {
                fastest = fastest.max(Some(per_second));
            }
            if round > 0 {
                row.samples.push(sample);
            }
            assert!(
                signing.elapsed() < pool::AHEAD + Duration::from_secs(50),
                "the requests of this round have become too old: fewer seconds"
            );
        }
        eprintln!("{}: round {round} of {}", load.name, options.rounds);
    }
    Table {
        name: load.name,
        title: load.title,
        base: entries.iter().position(|entry| entry.is_base).unwrap_or(0),
        rows,
    }
}

fn is_possible(entry: &Entry) -> bool {
    let is_there =
        entry.peer.is_there() && (entry.client != load::Client::Handshakes || peer::has("h2load"));
    if !is_there {
        eprintln!(
            "{} is left out: it is not installed (see .ci/needs.sh bench)",
            entry.name
        );
    }
    is_there
}

fn shuffle(order: &mut [usize]) {
    for last in (1..order.len()).rev() {
        let random = uuid::Uuid::new_v4().as_u128() % (u128::try_from(last).unwrap() + 1);
        order.swap(last, usize::try_from(random).unwrap());
    }
}

/// Replaces the text between the two marks of a document by the tables, and writes the chart of the first load beside it.
fn write(file: &std::path::Path, tables: &[Table]) {
    const MARKS: [&str; 2] = ["<!-- measured -->\n", "<!-- /measured -->\n"];
    let text = std::fs::read_to_string(file).unwrap();
    let (before, rest) = text
        .split_once(MARKS[0])
        .expect("the document has the marks");
    let (_, after) = rest
        .split_once(MARKS[1])
        .expect("the document has the marks");
    let measured: Vec<String> = tables.iter().map(Table::markdown).collect();
    let measured = format!("{}\n{}\n", measured.join("\n"), budgets::markdown(tables));
    let [begin, end] = MARKS;
    std::fs::write(file, format!("{before}{begin}\n{measured}{end}{after}")).unwrap();
    if let Some(first) = tables.first() {
        std::fs::write(file.with_extension("svg"), first.chart()).unwrap();
    }
}
