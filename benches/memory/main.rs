//! The memory of the gateway process, and the cost of a request by the number of TPPs.
//!
//! `cargo bench --features sandbox --bench memory` prints tables in Markdown. Memory is the resident memory (`Rss` of the kernel's
//! smaps_rollup), without the kernel's socket buffers. CPU is the time of all the gateway's threads by the kernel's accounting, so other
//! programs on the machine do not count. The benchmark `state` measures the cost of a PSU. Not here: throughput and latency.
#![allow(missing_docs, reason = "a benchmark has no interface")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::as_conversions,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark fails by panicking, prints what it found, and takes the time"
)]

// Many TPPs and their requests.
mod tpps;
// The gateway as a process, with a core.
mod gateway;
// Connections to it.
mod client;

use client::Link;
use gateway::Gateway;
use std::{os::unix::process::CommandExt, process::Command};
use tpps::Tpps;

/// The default limit on connections.
const CONNECTIONS: usize = 10_000;

/// The required file descriptors on either side.
const DESCRIPTORS: usize = CONNECTIONS + 1_000;

/// The number of TPPs: more than exist in Europe.
const TPPS: usize = 5_000;

/// The number of requests for each CPU figure, and the number of figures.
const REQUESTS: usize = 3_000;
const ROUNDS: usize = 7;

fn main() {
    // `cargo bench` passes `--bench`; test runs skip the benchmark.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    raise_descriptors();
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let tpps = Tpps::new(TPPS);
    connections(&tpps);
    many_tpps(&tpps);
}

/// Restarts this program in a shell with a higher limit on open files, which the gateway inherits. This avoids `unsafe`.
fn raise_descriptors() {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.unwrap().split_whitespace().nth(3).unwrap();
    if soft.parse().is_ok_and(|soft: usize| soft < DESCRIPTORS) {
        let fault = Command::new("sh")
            .args([
                "-c",
                &format!("ulimit -n {DESCRIPTORS} && exec \"$0\" \"$@\""),
            ])
            .args(std::env::args_os())
            .exec();
        panic!("{fault}");
    }
}

/// 10 000 idle connections.
fn connections(tpps: &Tpps) {
    println!("\n| idle connections | resident, KiB | each, KiB |\n|---|---:|---:|");
    let gateway = Gateway::start(tpps);
    // Memory that is allocated once for all connections.
    let mut links: Vec<Link> = (0..50).map(|_| Link::open(&gateway, tpps)).collect();
    for link in &mut links {
        link.ask(&tpps.request(0));
    }
    let mut report = Growth::of(&gateway, "none");
    for (count, what) in [
        (1_000, "1 000, nothing sent on them"),
        (CONNECTIONS, "10 000, nothing sent on them"),
    ] {
        let more = count - links.len();
        links.extend((0..more).map(|_| Link::open(&gateway, tpps)));
        report.row(what, more);
    }
    for link in &mut links {
        link.ask(&tpps.request(0));
    }
    report.row("10 000, after a request on each", links.len());
    for link in &mut links {
        link.ask(&tpps.request(0));
    }
    report.row("10 000, after another", links.len());
    let many = links.len();
    drop(links);
    // The allocator returns freed memory to the system during requests.
    let mut link = Link::open(&gateway, tpps);
    for _ in 0..20 {
        (0..100).for_each(|_| link.ask(&tpps.request(0)));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    report.row("none again, but for one with 2 000 requests", many);
    links = (0..many).map(|_| Link::open(&gateway, tpps)).collect();
    report.row("10 000 once more", many);
    drop((links, link, gateway));

    let gateway = Gateway::start(tpps);
    let mut links: Vec<Link> = (0..50).map(|_| Link::open_http2(&gateway, tpps)).collect();
    Link::open(&gateway, tpps).ask(&tpps.request(0));
    let mut report = Growth::of(&gateway, "none, HTTP/2");
    let more = 2_000 - links.len();
    links.extend((0..more).map(|_| Link::open_http2(&gateway, tpps)));
    report.row("2 000, HTTP/2, nothing asked on them", more);
}

/// 5 000 TPPs that call once, and then repeatedly.
fn many_tpps(tpps: &Tpps) {
    let gateway = Gateway::start(tpps);
    let mut links: Vec<Link> = (0..4).map(|_| Link::open(&gateway, tpps)).collect();
    println!("\n| TPPs that have called | resident, KiB | each, KiB |\n|---|---:|---:|");
    let mut call = |from: usize, to: usize| {
        for number in from..to {
            links[number % 4].ask(&tpps.request(number % TPPS));
        }
    };
    call(0, 1);
    let mut report = Growth::of(&gateway, "1");
    for _ in 0..5_000 {
        call(0, 1);
    }
    report.row("1, 5 000 times more: what a call leaves", 5_000);
    call(1, 10);
    report.row("10", 9);
    call(10, 1_000);
    report.row("1 000", 990);
    call(1_000, TPPS);
    report.row("5 000", TPPS - 1_000);
    call(0, TPPS);
    report.row("5 000, each once more", TPPS);
    cpu(&gateway, tpps, &mut links);
}

/// The cost of a request that may come from any of this number of TPPs.
fn cpu(gateway: &Gateway, tpps: &Tpps, links: &mut [Link]) {
    let sizes = [1, 10, 1_000, TPPS];
    let mut next = [0; 4];
    let mut took = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        for ((known, next), took) in sizes.iter().zip(&mut next).zip(&mut took) {
            let numbers: Vec<usize> = (*next..*next + REQUESTS).map(|n| n % known).collect();
            *next = (*next + REQUESTS) % known;
            let requests = tpps.requests(&numbers);
            let before = gateway.cpu();
            for (number, request) in requests.iter().enumerate() {
                links[number % 4].ask(request);
            }
            took.push((gateway.cpu() - before).as_secs_f64() * 1e6 / REQUESTS as f64);
        }
    }
    println!("\n| calling in turns, TPPs | CPU per request, µs | of 1 |\n|---|---:|---:|");
    let medians = took.map(|mut took| {
        took.sort_by(f64::total_cmp);
        took[ROUNDS / 2]
    });
    for (known, median) in sizes.iter().zip(&medians) {
        println!("| {known} | {median:.1} | {:.3} |", median / medians[0]);
    }
}

/// A table of the gateway's growth.
struct Growth<'a> {
    gateway: &'a Gateway,
    resident: u64,
}

impl<'a> Growth<'a> {
    fn of(gateway: &'a Gateway, what: &str) -> Self {
        let resident = gateway.resident();
        println!("| {what} | {resident} | |");
        Self { gateway, resident }
    }

    /// Adds a row: `more` items were added since the previous row.
    fn row(&mut self, what: &str, more: usize) {
        let before = std::mem::replace(&mut self.resident, self.gateway.resident());
        let each = (self.resident as f64 - before as f64) / more as f64;
        println!("| {what} | {} | {each:.2} |", self.resident);
    }
}
