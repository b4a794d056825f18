//! How often the heap is asked for one warm request, from the opened record to the head for the upstream and the metrics.
//!
//! The bounds are what was counted when they were last lowered: an allocation more has to be meant. Requests and world are those of
//! the benchmarks. Deliberately not here: what pingora and TLS allocate.

use crate::harness::pki;

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
        let counted = allocation_counter::measure(|| admitted = Some(warm.serve()));
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
