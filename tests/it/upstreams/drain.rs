//! An operator takes an endpoint out and back.

use super::{Pair, get, kept, state, up};
use crate::{
    audit::{ON, audit_of, records},
    harness::{Answer, Gate, Reply, check_error, eventually},
};
use serde_json::json;
use std::thread;

/// No time-out ends a request before its test ends.
const PATIENT: &str = "read_timeout: 300s";

fn tell(gate: &Gate, call: &str, endpoint: &str) -> Answer {
    let body = json!({ "upstream": "core", "endpoint": endpoint });
    gate.tell(&format!("/endpoint/{call}"), &body)
}

//= FWD-3 accepted
#[test]
fn a_drained_endpoint_completes_its_requests_and_gets_no_other() {
    let pair = Pair::start();
    let gate = pair.gate(PATIENT).line(ON).start();
    let [first, second] = [0, 1].map(|index| pair.0[index].address().to_string());
    let (held, latch) = Reply::json(200, "{}").held();
    pair.0[0].reply(held);
    thread::scope(|scope| {
        let under_way = scope.spawn(|| [get(&gate), get(&gate)]);
        latch.arrived(1);
        let drained = tell(&gate, "drain", &first);
        assert_eq!(drained.json(), json!({ "drained": true, "changed": true }));
        assert_eq!(state(&gate, 0)["drained"], true);
        assert_eq!((up(&gate, &pair.0[0]), up(&gate, &pair.0[1])), (0.0, 1.0));
        for _ in 0..10 {
            assert_eq!(get(&gate).status, 200);
        }
        latch.release();
        for answer in under_way.join().unwrap() {
            assert_eq!(answer.status, 200);
        }
    });
    assert_eq!(pair.seen()[0], 1);
    // No connection waits for a request that never comes.
    eventually("its connection is closed", || {
        gate.metric_now("portvakt_upstream_idle_connections", &[]) <= 1.0
    });
    assert_eq!(
        tell(&gate, "drain", &first).json(),
        json!({ "drained": true, "changed": false })
    );
    // The last one stays.
    check_error(
        "the last one",
        &tell(&gate, "drain", &second),
        409,
        "CONFLICT",
        "endpoint-needed",
    );
    assert_eq!(get(&gate).status, 200);
    let restored = tell(&gate, "restore", &first);
    assert_eq!(
        restored.json(),
        json!({ "drained": false, "changed": true })
    );
    pair.seen();
    for _ in 0..4 {
        assert_eq!(get(&gate).status, 200);
    }
    assert_eq!(pair.seen(), [2, 2]);
    let kinds: Vec<_> = records(&audit_of(&gate))
        .into_iter()
        .filter(|record| record["endpoint"] == *first && record["upstream"] == "core")
        .filter_map(|record| Some(record["kind"].as_str()?.to_owned()))
        .collect();
    assert_eq!(
        kinds,
        ["endpoint-drained", "endpoint-drained", "endpoint-restored"]
    );
}

/// An endpoint that is taken out gets no request either when all others fail: its machine may be half way through its maintenance.
//= FWD-3 refused
#[test]
fn a_drained_endpoint_is_not_the_last_resort() {
    let pair = Pair::start();
    let gate = pair.gate("ejection: {failures: 1, time: 1h}").start();
    let first = pair.0[0].address().to_string();
    assert_eq!(tell(&gate, "drain", &first).status, 200);
    pair.0[1].away(|| {
        for _ in 0..3 {
            assert_eq!(get(&gate).status, 502);
        }
    });
    assert_eq!(pair.seen()[0], 0);
}

#[test]
fn a_drained_endpoint_keeps_no_connection_and_a_reload_keeps_it_drained() {
    let pair = Pair::start();
    let gate = pair.gate("retry_percent: 20").with_a_file().start();
    let first = pair.0[0].address().to_string();
    for _ in 0..2 {
        assert_eq!(get(&gate).status, 200);
    }
    kept(&gate, 2);
    assert_eq!(tell(&gate, "drain", &first).status, 200);
    // Its connection that waited is closed.
    kept(&gate, 1);
    pair.seen();
    assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    assert_eq!(state(&gate, 0)["drained"], true);
    for _ in 0..4 {
        assert_eq!(get(&gate).status, 200);
    }
    assert_eq!(pair.seen(), [0, 4]);
}

#[test]
fn an_endpoint_that_nobody_has_is_named() {
    let pair = Pair::start();
    let gate = pair.gate("retry_percent: 20").start();
    for (upstream, endpoint) in [
        ("core", "192.0.2.1:80".to_owned()),
        ("other", pair.0[0].address().to_string()),
    ] {
        for call in ["drain", "restore"] {
            let body = json!({ "upstream": upstream, "endpoint": endpoint });
            let answer = gate.tell(&format!("/endpoint/{call}"), &body);
            check_error(call, &answer, 404, "NOT_FOUND", "endpoint-unknown");
        }
    }
    let answer = gate.tell("/endpoint/drain", &json!({ "upstream": "core" }));
    check_error(
        "no endpoint",
        &answer,
        400,
        "FORMAT_ERROR",
        "member-invalid",
    );
}
