//! Upper bounds on times, which hold only on a machine that does nothing else: `make bounds` runs these tests one after the other.

use super::revocation::{GOOD, fetched, gate, naming};
use crate::harness::{LIMIT, Protocol, Said, Source, check_error, eventually};
use portvakt::clock::Stopwatch;
use std::time::Duration;

/// A request waits for a source that has never answered, two seconds at most; and none waits once an attempt has failed.
//= CRT-11 refused
#[test]
#[ignore = "a bound on a time: make bounds"]
fn no_request_waits_after_a_failure() {
    let silent = Source::saying(|_| Said {
        after: 2 * LIMIT,
        ..Said::ok(Vec::new())
    });
    let (gate, call) = (gate(), naming(GOOD, &[], &[silent.url()]));
    let stopped_after = || {
        let sealed = gate.seal(&call);
        let watch = Stopwatch::start();
        let answer = gate.send_sealed(&sealed, Protocol::Http2).unwrap();
        let took = watch.elapsed();
        check_error(
            "silent",
            &answer,
            503,
            "SYSTEM_ERROR",
            "revocation-unavailable",
        );
        took
    };
    let first = stopped_after();
    println!("the first request was refused after {first:?}");
    assert!(first < Duration::from_secs(3), "{first:?}");
    eventually("the fetch ends", || fetched(&gate, "slow") == 1);
    for _ in 0..5 {
        let later = stopped_after();
        println!("a later one was refused after {later:?}");
        assert!(later < Duration::from_millis(500), "{later:?}");
    }
    assert_eq!(silent.asked(), 1);
    assert!(gate.upstream().saw_nothing());
}
