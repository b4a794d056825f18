//! The number of heap allocations of one warm request, from the opened record to the head for the upstream and the metrics;
//! and the page size of the program's memory.
//!
//! The bounds are the counts at the last change: raising one must be a decision. Requests and world are those of the benchmarks. Not
//! here: the allocations of pingora and TLS.

use crate::harness::Gate;

#[path = "../../benches/warm/mod.rs"]
mod warm;

/// Allocations of a signed GET.
const GET: u64 = 68;

/// Allocations of a POST of 1 KB.
const POST: u64 = 73;

#[test]
fn a_warm_request_allocates_no_more_than_it_did() {
    let [get, post] = warm::requests();
    for (name, warm, bound) in [("GET", &get, GET), ("POST", &post, POST)] {
        let mut admitted = None;
        let counted = allocation_counter::measure(|| admitted = warm.serve());
        println!(
            "{name}: {} allocations of {} bytes together, at most {bound}",
            counted.count_total, counted.bytes_total
        );
        assert!(
            counted.count_total <= bound,
            "a warm {name} allocates {} times: the bound is {bound}",
            counted.count_total
        );
    }
}

#[test]
fn the_program_keeps_to_small_pages() {
    let gate = Gate::builder().for_program();
    let program = gate.run_silently(&mut gate.program());
    let status = format!("/proc/{}/status", program.0.id());
    let status = std::fs::read_to_string(status).unwrap();
    // Some kernels do not report the page size.
    assert!(!status.contains("THP_enabled:\t1"), "{status}");
}
