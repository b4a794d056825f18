//! The cost of a warm request: the total, each check, and the RSA verification alone in the same run.
//!
//! `make bench-parts` runs this benchmark. Before criterion's figures it prints the heap allocations of one request, the time of each
//! check from the record of the access log (the median of many requests, including the reading of the clock between two checks), and the
//! cost of access log and audit.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking, and prints what it found"
)]

mod warm;

use criterion::{Criterion, criterion_group, criterion_main};
use portvakt::{
    clock::{Stopwatch, Timestamp},
    signing::{AssertionKey, AssertionSigner},
};
use serde_json::{Map, Value, json};
use std::{hint::black_box, time::Duration};
use warm::Warm;

const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

/// The number of requests whose checks are measured.
const ROUNDS: usize = 20_000;

/// The number of lines that are measured.
const LINES: u32 = 400_000;

/// A part of the lines for which the queue of the access log has place.
const BURST: u32 = 4_000;

fn bench(criterion: &mut Criterion) {
    let [get, post] = warm::requests();
    for (name, warm) in [("signed GET", &get), ("POST of 1 KB", &post)] {
        let mut admitted = None;
        let counted = allocation_counter::measure(|| admitted = warm.serve());
        println!(
            "{name}: {} allocations, {} bytes",
            counted.count_total, counted.bytes_total
        );
        warm.give_back(admitted.as_deref());
    }
    // `cargo bench` passes `--bench`; test runs skip the benchmark.
    if std::env::args().any(|argument| argument == "--bench") {
        stages("signed GET", &get);
        stages("POST of 1 KB", &post);
        logs(&get);
    }
    let mut group = criterion.benchmark_group("admit");
    group.bench_function("signed GET, warm", |bencher| bencher.iter(|| get.again()));
    group.bench_function("POST of 1 KB, warm", |bencher| {
        bencher.iter(|| post.again())
    });
    group.bench_function("RSA-2048 verification alone", |bencher| {
        bencher.iter(|| get.verify());
    });
    group.finish();
    assertion(criterion);
}

/// The time of each check, then the other costs of a request, in the order of execution.
fn stages(name: &str, warm: &Warm) {
    let mut rows: Vec<(String, Vec<Duration>)> = Vec::new();
    for _ in 0..ROUNDS {
        let (record, admitted) = warm.judge();
        let mut watch = Stopwatch::start();
        let _ = black_box(warm.head(admitted.as_deref()));
        let head = watch.lap();
        warm.count(&record);
        let counted = watch.lap();
        let checks = record.checks().iter();
        let took = checks
            .map(|check| (check.stage.name(), check.took))
            .chain([("head for the upstream", head), ("metrics", counted)]);
        for (index, (stage, took)) in took.enumerate() {
            if rows.len() == index {
                rows.push((stage.to_owned(), Vec::with_capacity(ROUNDS)));
            }
            rows[index].1.push(took);
        }
        warm.give_back(admitted.as_deref());
    }
    let medians: Vec<(String, u128)> = rows
        .into_iter()
        .map(|(stage, mut took)| {
            took.sort_unstable();
            (stage, took[took.len() / 2].as_nanos())
        })
        .collect();
    let whole: u128 = medians.iter().map(|(_, nanos)| nanos).sum();
    println!("\n| {name} | ns | share |\n|---|---:|---:|");
    for (stage, nanos) in medians.iter().chain([&("all".to_owned(), whole)]) {
        let share = *nanos as f64 / whole as f64 * 100.0;
        println!("| {stage} | {nanos} | {share:.1} % |");
    }
    println!();
}

/// The end of a request without logs, and with access log and audit: the time of its thread, and the CPU time of all threads.
fn logs(get: &Warm) {
    let (record, admitted) = get.judge();
    get.give_back(admitted.as_deref());
    let [other, _] = warm::requests();
    let logged = other.logged();
    let [without, with] = [get, &logged].map(|warm| {
        let (begun, mut own) = (cpu_time(), Duration::ZERO);
        for _ in 0..LINES / BURST {
            let watch = Stopwatch::start();
            for _ in 0..BURST {
                warm.count(&record);
            }
            own += watch.elapsed();
            warm.flush();
        }
        [own, cpu_time() - begun].map(|time| time / LINES)
    });
    println!("\n| the end of a GET | its thread | all threads (CPU) |\n|---|---:|---:|");
    for (name, [own, all]) in [("metrics", without), ("with access log and audit", with)] {
        println!("| {name} | {} ns | {} ns |", own.as_nanos(), all.as_nanos());
    }
    println!();
}

/// The CPU time of this process so far, in ticks of 10 ms: the fields 14 and 15 of proc_pid_stat(5).
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_ascii_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// FWD-1: one assertion, with as many claims as a request without the PSU has.
fn assertion(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let key = AssertionKey::read_or_make(&folder.path().join("key")).unwrap();
    let signer = AssertionSigner::new(key, None, "portvakt", "core");
    let facts: Map<String, Value> = (0..14)
        .map(|number| (format!("gateway-claim-{number}"), json!("x".repeat(20))))
        .collect();
    criterion.bench_function("assertion", |bencher| {
        bencher.iter(|| signer.assert("id", black_box(facts.clone()), NOW));
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
