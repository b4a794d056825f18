//! Ejection: endpoints whose requests fail get no requests for a time, and enough others always remain.

use super::{Pair, get, pay, state, up, with_health};
use crate::harness::{Call, Gate, Over, Protocol, Reply, Upstream, eventually, pki, world};
use serde_json::json;
use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

/// Answers 500 to a GET, and 200 to all else: what one TPP sends may fail at every endpoint.
fn refuses_get() -> Reply {
    Reply::Suited(|seen| match seen.method.as_str() {
        "GET" => Reply::json(500, "{}"),
        _ => Reply::json(200, "{}"),
    })
}

/// The endpoints that are ejected, and the status of /readyz.
fn ejected(gate: &Gate) -> (Vec<u64>, u16) {
    let ready = gate.control("/readyz");
    let body = ready.json();
    let endpoints = body["endpoints"].as_array().unwrap();
    let ejected = endpoints.iter().map(|one| one["ejected"].as_u64().unwrap());
    (ejected.collect(), ready.status)
}

/// The endpoint of two that is ejected, and the other one.
fn first_and_last(gate: &Gate) -> [usize; 2] {
    match ejected(gate) {
        (ejected, 200) if ejected == [1, 0] => [0, 1],
        (ejected, 200) if ejected == [0, 1] => [1, 0],
        other => panic!("one of two: {other:?}"),
    }
}

/// A gateway in front of these endpoints.
fn gate_of(endpoints: &[Upstream], keys: &str) -> Gate {
    let endpoints = endpoints.iter().map(Upstream::address);
    let endpoints: Vec<_> = endpoints
        .map(|one| format!("{{address: '{one}'}}"))
        .collect();
    let endpoints = endpoints.join(", ");
    Gate::builder()
        .groups(&format!("{{core: {{endpoints: [{endpoints}], {keys}}}}}"))
        .start()
}

//= FWD-3 accepted
#[test]
fn an_endpoint_that_fails_is_ejected_and_returns() {
    let pair = Pair::start();
    let gate = pair.gate("ejection: {failures: 2, time: 1h}").start();
    pair.0[0].reply(Reply::json(500, "{}"));
    let errors = (0..10).filter(|_| get(&gate).status == 500).count();
    assert_eq!(errors, 2);
    gate.eventually_metric("portvakt_upstream_ejections_total", &[], 1.0);
    // It returns when its time is over.
    let gate = pair
        .gate("ejection: {failures: 2, time: 1s, recovery: 500ms}")
        .start();
    eventually("it is ejected", || {
        let _ = get(&gate);
        gate.metric_at_rest("portvakt_upstream_ejections_total", &[]) > 0.9
    });
    pair.0[0].reply(Reply::json(200, "{}"));
    pair.seen();
    eventually("it returns", || {
        assert_eq!(get(&gate).status, 200);
        pair.seen()[0] == 1
    });
    eventually("it is as before", || up(&gate, &pair.0[0]) > 0.9);
    assert_eq!(state(&gate, 0)["ejected"], 0);
}

//= FWD-3 accepted
#[test]
fn answers_never_eject_the_last_endpoint() {
    let pair = Pair::start();
    let gate = pair.gate("ejection: {failures: 1, time: 1h}").start();
    for one in &pair.0 {
        one.reply(refuses_get());
    }
    assert_eq!(get(&gate).status, 500);
    let [first, last] = first_and_last(&gate);
    for _ in 0..10 {
        assert_eq!(get(&gate).status, 500);
        assert_eq!(first_and_last(&gate), [first, last]);
        assert_eq!(pay(&gate).status, 200);
    }
    eventually("the metric says so too", || {
        up(&gate, &pair.0[first]) < 0.1 && up(&gate, &pair.0[last]) > 0.9
    });
    let not_ready = gate.metric_at_rest("portvakt_not_ready", &["cause=\"upstreams\""]);
    assert!(not_ready < 0.1);
}

/// The requests of one TPP fail at each endpoint, while the core answers another TPP: no endpoint is ejected until that one fails too.
//= FWD-3 accepted
#[test]
fn one_tpp_ejects_no_endpoint_that_answers_another() {
    let pair = Pair::start();
    let gate = pair.gate("ejection: {failures: 1, time: 1h}").start();
    for one in &pair.0 {
        one.reply(refuses_get());
    }
    let other = world().issue(&pki::LeafSpec {
        organization_identifier: Some("PSDNO-FSA-765432".into()),
        ..world().leaf()
    });
    let send = |call: Call| gate.send(&call.by(&other), Protocol::Http1).status;
    for _ in 0..4 {
        assert_eq!(send(Call::payment()), 200);
    }
    for _ in 0..20 {
        assert_eq!(get(&gate).status, 500);
        assert_eq!(ejected(&gate), (vec![0, 0], 200));
    }
    assert_eq!(send(Call::accounts()), 500);
    first_and_last(&gate);
}

//= FWD-3 accepted
#[test]
fn a_failure_in_a_recovery_does_not_eject_the_last_endpoint() {
    let pair = Pair::start();
    let gate = pair
        .gate("ejection: {failures: 1, time: 100ms, recovery: 200ms}")
        .start();
    for one in &pair.0 {
        one.reply(refuses_get());
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = Over(&over);
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert_eq!(get(&gate).status, 500);
                }
            });
        }
        let mut seen = [false; 2];
        eventually("each was ejected, and returned", || {
            let (ejected, status) = ejected(&gate);
            assert_eq!(status, 200);
            assert!(ejected.iter().sum::<u64>() <= 1, "{ejected:?}");
            assert_eq!(pay(&gate).status, 200);
            for (seen, ejected) in seen.iter_mut().zip(ejected) {
                *seen |= ejected == 1;
            }
            seen == [true; 2]
        });
        drop(ends);
    });
}

//= FWD-3 accepted
#[test]
fn answers_eject_half_of_the_endpoints_and_refused_connections_all_but_one() {
    for (count, by_answers) in [(3, 1), (4, 2), (5, 2)] {
        let cores: Vec<_> = (0..count).map(|_| Upstream::start()).collect();
        let gate = gate_of(
            &cores,
            "ejection: {failures: 1, time: 1h}, retry_percent: 100",
        );
        for core in &cores {
            core.reply(refuses_get());
        }
        for _ in 0..20 {
            assert_eq!(get(&gate).status, 500);
        }
        let (now, status) = ejected(&gate);
        assert_eq!(
            (now.iter().sum::<u64>(), status),
            (by_answers, 200),
            "{now:?}"
        );
        for core in &cores[1..] {
            core.stop();
        }
        cores[0].reply(Reply::json(200, "{}"));
        eventually("the one that is left", || {
            let _ = get(&gate);
            let mut expected = vec![1; count];
            expected[0] = 0;
            ejected(&gate) == (expected, 200)
        });
        assert!((0..10).all(|_| get(&gate).status == 200));
    }
}

/// The first endpoint leaves the second one half of its time: only the first one has failed.
//= FWD-3 accepted
#[test]
fn an_endpoint_is_not_ejected_for_the_time_that_another_took() {
    let cores: Vec<_> = (0..4).map(|_| Upstream::start()).collect();
    let gate = gate_of(
        &cores,
        "ejection: {failures: 1, time: 1h}, retry_percent: 100, read_timeout: 1s, timeout: 1500ms",
    );
    for core in &cores {
        core.reply(Reply::Silence);
    }
    for round in 1..=2 {
        assert_eq!(get(&gate).status, 504);
        let (now, status) = ejected(&gate);
        assert_eq!((now.iter().sum::<u64>(), status), (round, 200), "{now:?}");
    }
}

//= FWD-3 accepted
#[test]
fn an_endpoint_that_answers_is_used_in_place_of_one_that_cannot_be_reached() {
    let pair = Pair::start();
    let gate = pair
        .gate("ejection: {failures: 1, time: 1h}, retry_percent: 100")
        .start();
    for one in &pair.0 {
        one.reply(refuses_get());
    }
    assert_eq!(get(&gate).status, 500);
    let [first, last] = first_and_last(&gate);
    pair.0[last].stop();
    for _ in 0..10 {
        assert_eq!(pay(&gate).status, 200);
        assert_eq!(first_and_last(&gate), [last, first]);
    }
    // Nor do answers eject it now, and if neither can be reached, one remains.
    assert_eq!(get(&gate).status, 500);
    pair.0[first].stop();
    assert_eq!(get(&gate).status, 502);
    assert_eq!(first_and_last(&gate), [last, first]);
}

//= FWD-3 accepted
#[test]
fn a_single_endpoint_is_never_ejected() {
    let pair = Pair::start();
    let gate = pair
        .gate("ejection: {failures: 1, time: 1h}")
        .with_a_file()
        .start();
    pair.0[0].reply(refuses_get());
    eventually("it is ejected", || {
        let _ = get(&gate);
        ejected(&gate) == (vec![1, 0], 200)
    });
    let second = format!(", {{address: '{}'}}", pair.0[1].address());
    let one = gate.yaml().replace(&second, "");
    assert_ne!(one, gate.yaml());
    fs::write(gate.folder().join("gateway.yaml"), one).unwrap();
    assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    assert_eq!(ejected(&gate), (vec![0], 200));
    pair.seen();
    for _ in 0..5 {
        assert_eq!(get(&gate).status, 500);
        assert_eq!(gate.send(&Call::payment(), Protocol::Http1).status, 200);
    }
    assert_eq!(ejected(&gate), (vec![0], 200));
    eventually("it is up", || up(&gate, &pair.0[0]) > 0.9);
    assert_eq!(pair.seen(), [10, 0]);
}

//= FWD-3 accepted
#[test]
fn ejected_endpoints_are_used_where_checks_leave_no_other() {
    let pair = Pair::start();
    let gate = pair
        .gate("health: {path: /health, interval: 100ms, timeout: 5s, unhealthy_after: 1, healthy_after: 1}, ejection: {failures: 1, time: 1h}")
        .start();
    pair.0[0].reply(Reply::Suited(|seen| match seen.target.as_str() {
        "/health" => Reply::json(200, "{}"),
        _ => Reply::json(500, "{}"),
    }));
    eventually("it is ejected", || {
        let _ = get(&gate);
        ejected(&gate) == (vec![1, 0], 200)
    });
    pair.0[0].reply(Reply::json(200, "{}"));
    pair.0[1].reply(with_health(503));
    eventually("the other one is unhealthy", || state(&gate, 1)["up"] == 0);
    assert_eq!(ejected(&gate), (vec![0, 0], 200));
    for _ in 0..5 {
        assert_eq!(get(&gate).status, 200);
        assert_eq!(pay(&gate).status, 200);
    }
}
