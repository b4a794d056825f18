//! Upper bounds on times, which hold only on a machine that does nothing else: `make bounds` runs these tests one after the other.

use super::idle_until_the_end;
use std::time::Duration;

/// docs/operations.md: an idle connection ends after 2 s, and the process then waits 2 s for threads.
#[test]
#[ignore = "a bound on a time: make bounds"]
fn nothing_under_way_ends_it_soon() {
    let took = idle_until_the_end();
    println!("it ended {took:?} after SIGTERM");
    assert!(took < Duration::from_secs(5), "{took:?}");
}
