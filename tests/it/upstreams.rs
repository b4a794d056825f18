//! Groups of endpoints: routes, repeated requests, health, ejection, names, and reloads: FWD-3, FWD-4.

/// Endpoints that an operator takes out.
mod drain;
/// Endpoints whose requests fail.
mod ejection;
/// FWD-4: callers who leave.
mod leaving;
/// Names of endpoints, by a DNS server of the test.
mod names;
/// TLS to endpoints: files that change.
mod tls;

use crate::harness::{
    Answer, Call, Connection, Gate, GateBuilder, Over, Protocol, Reply, Seen, Upstream,
    check_error, eventually,
};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    fs,
    io::Write,
    net::TcpStream,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

/// Two endpoints of one group.
struct Pair([Upstream; 2]);

impl Pair {
    fn start() -> Self {
        Self([Upstream::start(), Upstream::start()])
    }

    /// A gateway in front of both, with these keys of the group.
    fn gate(&self, keys: &str) -> GateBuilder {
        Gate::builder().groups(&self.groups(keys))
    }

    fn groups(&self, keys: &str) -> String {
        let [first, second] = [0, 1].map(|index| self.0[index].address());
        format!(
            "{{core: {{endpoints: [{{address: '{first}'}}, {{address: '{second}'}}], {keys}}}}}"
        )
    }

    /// The number of requests that each got.
    fn seen(&self) -> [usize; 2] {
        [0, 1].map(|index| self.0[index].take().len())
    }
}

fn get(gate: &Gate) -> Answer {
    gate.send(&Call::accounts(), Protocol::Http1)
}

fn pay(gate: &Gate) -> Answer {
    gate.send(&Call::payment(), Protocol::Http2)
}

/// Waits until so many connections are in the pool: they return to it a moment after the caller has the answer.
fn kept(gate: &Gate, count: usize) {
    gate.eventually_metric("portvakt_upstream_idle_connections", &[], count as f64);
}

/// The state of an endpoint in /readyz.
fn state(gate: &Gate, index: usize) -> Value {
    gate.control("/readyz").json()["endpoints"][index].clone()
}

fn up(gate: &Gate, upstream: &Upstream) -> f64 {
    let endpoint = format!("endpoint=\"{}\"", upstream.address());
    gate.metric_now("portvakt_upstream_endpoint_up", &[&endpoint])
}

//= FWD-3 accepted
#[test]
fn each_operation_goes_to_its_group() {
    let pair = Pair::start();
    let [accounts, payments] = [0, 1].map(|index| pair.0[index].address());
    let gate = Gate::builder()
        .groups(&format!(
            "{{rest: {{endpoints: [{{address: '{accounts}'}}]}}, \
               payments: {{endpoints: [{{address: '{payments}'}}], operations: [payments], host: pay.bank.internal}}}}"
        ))
        .start();
    for _ in 0..2 {
        assert_eq!(get(&gate).status, 200);
        assert_eq!(pair.seen(), [1, 0]);
        assert_eq!(pay(&gate).status, 200);
        let seen = pair.0[1].take();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].header("host"), Some("pay.bank.internal"));
        assert_eq!(pair.0[0].take().len(), 0);
    }
}

/// The endpoint that answers nobody shows in the times of endpoints.
#[test]
fn an_endpoint_that_does_not_answer_has_its_time() {
    let pair = Pair::start();
    let gate = pair.gate("read_timeout: 200ms").start();
    pair.0[0].reply(Reply::Silence);
    let endpoint = format!("endpoint=\"{}\"", pair.0[0].address());
    eventually("its time is counted", || {
        get(&gate);
        gate.metric_now("portvakt_upstream_endpoint_seconds_count", &[&endpoint]) > 0.0
    });
    let sum = gate.metric_now("portvakt_upstream_endpoint_seconds_sum", &[&endpoint]);
    assert!(sum >= 0.2, "{sum}");
}

//= FWD-3 accepted
#[test]
fn requests_are_shared_by_weight() {
    let pair = Pair::start();
    let [first, second] = [0, 1].map(|index| pair.0[index].address());
    let gate = Gate::builder()
        .groups(&format!(
            "{{core: {{endpoints: [{{address: '{first}', weight: 3}}, {{address: '{second}'}}]}}}}"
        ))
        .start();
    for _ in 0..40 {
        assert_eq!(get(&gate).status, 200);
    }
    assert_eq!(pair.seen(), [30, 10]);
}

//= FWD-3 accepted
//= FWD-3 refused
#[test]
fn only_a_safe_request_is_sent_to_another_endpoint_after_it_was_sent() {
    for broken in [Reply::Close, Reply::Raw(b"\0\x01".to_vec())] {
        let pair = Pair::start();
        let gate = pair.gate("ejection: off, retry_percent: 100").start();
        pair.0[0].reply(broken.clone());
        for _ in 0..10 {
            let answer = get(&gate);
            let expected = match broken {
                // No byte of an answer came.
                Reply::Close => &[200][..],
                _ => &[200, 502],
            };
            assert!(expected.contains(&answer.status), "{}", answer.reason());
        }
        let seen = pair.seen();
        assert!(seen[0] >= 4, "{seen:?}");
        let answers: Vec<_> = (0..10).map(|_| pay(&gate)).collect();
        let seen = pair.seen();
        assert_eq!(seen[0] + seen[1], 10, "no payment is sent twice");
        let lost = answers.iter().filter(|answer| answer.status == 504);
        for answer in lost.clone() {
            check_error("lost", answer, 504, "SYSTEM_ERROR", "outcome-unknown");
        }
        assert_eq!(lost.count(), seen[0]);
    }
}

/// Both endpoints get the same request, and the caller gets the answer.
//= FWD-3 accepted
#[test]
fn a_get_is_sent_to_another_endpoint_after_silence() {
    let pair = Pair::start();
    let gate = pair
        .gate("ejection: off, retry_percent: 100, read_timeout: 4s, timeout: 60s")
        .start();
    pair.0[0].reply(Reply::Silence);
    eventually("the silent one is asked first", || {
        assert_eq!(get(&gate).status, 200);
        let [silent, other] = [0, 1].map(|index| pair.0[index].take());
        let ids = [&silent, &other].map(|seen| {
            let ids = seen.iter().map(|seen| seen.header("x-request-id").unwrap());
            ids.collect::<Vec<_>>()
        });
        assert_eq!(ids[1].len(), 1);
        assert!(ids[0].is_empty() || ids[0] == ids[1], "{ids:?}");
        !silent.is_empty()
    });
}

/// Each endpoint ends a connection at its second request, and answers the first one.
//= FWD-3 accepted
//= FWD-3 refused
#[test]
fn after_a_kept_connection_that_had_ended_a_request_gets_a_new_one() {
    const AT_ONCE: usize = 8;
    // All cores of a gateway share the number of requests that have come.
    let ended = |come: &Arc<AtomicUsize>| {
        let (known, come) = (Mutex::new(HashSet::new()), Arc::clone(come));
        Reply::play(move |_, stream| {
            let is_first = known.lock().unwrap().insert(stream.peer_addr().unwrap());
            come.fetch_add(1, Ordering::Relaxed);
            // The first ones are there at once, so that each has a connection of its own.
            eventually("the first requests come", || {
                come.load(Ordering::Relaxed) >= AT_ONCE
            });
            is_first && stream.write_all(ANSWER).is_ok()
        })
    };
    let pair = Pair::start();
    let address = pair.0[0].address();
    let one = format!(
        "{{core: {{endpoints: [{{address: '{address}'}}], retry_percent: 100, ejection: off}}}}"
    );
    let two = pair.groups("retry_percent: 100, ejection: off");
    for groups in [one, two] {
        let come = Arc::default();
        pair.0.iter().for_each(|core| core.reply(ended(&come)));
        let gate = Gate::builder().groups(&groups).start();
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| assert_eq!(get(&gate).status, 200));
            }
        });
        kept(&gate, AT_ONCE);
        for _ in 0..6 {
            let answer = get(&gate);
            assert_eq!(answer.status, 200, "{}", answer.reason());
        }
        let sent: usize = pair.seen().iter().sum();
        assert!(sent > 14, "kept connections were used: {sent}");
        // A payment on such a connection is not sent again.
        let answer = pay(&gate);
        check_error("lost", &answer, 504, "SYSTEM_ERROR", "outcome-unknown");
        assert_eq!(pair.seen().iter().sum::<usize>(), 1);
    }
}

//= FWD-3 accepted
#[test]
fn a_payment_is_sent_elsewhere_if_no_connection_was_made() {
    let pair = Pair::start();
    let gate = pair.gate("ejection: off, retry_percent: 100").start();
    pair.0[0].stop();
    for _ in 0..10 {
        assert_eq!(pay(&gate).status, 200);
        assert_eq!(get(&gate).status, 200);
    }
    assert_eq!(pair.seen(), [0, 20]);
}

//= FWD-3 refused
#[test]
fn a_retry_needs_the_budget() {
    let pair = Pair::start();
    let gate = pair.gate("ejection: off, retry_percent: 0").start();
    pair.0[0].reply(Reply::Close);
    let answers: Vec<_> = (0..10).map(|_| get(&gate)).collect();
    let failed = answers.iter().filter(|answer| answer.status == 502).count();
    assert_eq!((failed, pair.seen()), (5, [5, 5]));
}

/// A connection that was idle may have ended for its age. That is no failure of the endpoint where the request is sent again, and one where
/// the reset is the end of the request.
//= FWD-3 accepted
//= FWD-3 refused
#[test]
fn a_reset_of_a_reused_connection_counts_where_it_ends_the_request() {
    for (keys, retries) in [("retry_percent: 20", true), ("retry_percent: 0", false)] {
        let gate = Gate::builder().upstream(keys).start();
        let fails = |reply: Reply, send: fn(&Gate) -> Answer, status: u16| {
            gate.upstream().reply(Reply::json(200, "{}"));
            assert_eq!(get(&gate).status, 200);
            kept(&gate, 1);
            let failures = || gate.metric_at_rest("portvakt_upstream_endpoint_failures_total", &[]);
            let before = failures();
            gate.upstream().reply(reply);
            assert_eq!(send(&gate).status, status);
            failures() - before
        };
        for _ in 0..3 {
            assert!((fails(Reply::Close, pay, 504) - 1.0).abs() < 0.1);
        }
        let first = AtomicBool::new(true);
        let once = Reply::play(move |_, stream| {
            !first.swap(false, Ordering::Relaxed) && stream.write_all(ANSWER).is_ok()
        });
        match retries {
            true => assert!(fails(once, get, 200) < 0.1),
            false => assert!((fails(once, get, 502) - 1.0).abs() < 0.1),
        }
        let reused = gate.metric_at_rest("portvakt_upstream_connections_total", &["reused"]);
        assert!((reused - 4.0).abs() < 0.1, "{reused}");
    }
    // It counts towards the ejection too: each endpoint has one connection, and one payment is reset.
    let pair = Pair::start();
    let gate = pair.gate("ejection: {failures: 1, time: 1h}").start();
    pair.0[0].reply(Reply::Suited(|seen| match seen.method.as_str() {
        "GET" => Reply::json(200, "{}"),
        _ => Reply::Close,
    }));
    for number in 1..=4 {
        assert_eq!(get(&gate).status, 200);
        kept(&gate, number.min(2));
    }
    assert!((0..10).any(|_| {
        kept(&gate, 2);
        pay(&gate).status == 504
    }));
    let new = gate.metric_at_rest("portvakt_upstream_connections_total", &["new"]);
    assert!((new - 2.0).abs() < 0.1, "{new}");
    gate.eventually_metric("portvakt_upstream_ejections_total", &[], 1.0);
}

/// Broken answers count like errors, also on connections that were used before; an answer that does not count, such as one after
/// a connection that had ended for its age, is not the endpoint's fault.
//= FWD-3 accepted
#[test]
fn broken_answers_count_at_their_endpoint() {
    let garbage = |_: &Seen, stream: &mut TcpStream| {
        let _ = stream.write_all(b"garbage\r\n\r\n");
        false
    };
    let cut = Reply::Raw(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{}"
            .to_vec(),
    );
    for (kind, broken) in [("garbage", Reply::play(garbage)), ("truncated", cut)] {
        let gate = Gate::start();
        let counted = |name: &str, label: &str| gate.metric_at_rest(name, &[label]);
        for round in 1..=4 {
            gate.upstream().reply(Reply::json(200, "{}"));
            assert_eq!(get(&gate).status, 200);
            kept(&gate, 1);
            gate.upstream().reply(broken.clone());
            let _ = gate.send_sealed(&gate.seal(&Call::accounts()), Protocol::Http1);
            eventually("it is counted", || {
                let failures = counted("portvakt_upstream_endpoint_failures_total", "");
                (failures - f64::from(round)).abs() < 0.1
            });
        }
        let failures = counted("portvakt_upstream_failures_total", kind);
        assert!((failures - 4.0).abs() < 0.1, "{kind}: {failures}");
        let reused = counted("portvakt_upstream_connections_total", "reused");
        assert!(reused > 3.9, "{reused}");
    }
    // An endpoint whose answers all break off is ejected.
    let pair = Pair::start();
    let gate = pair.gate("ejection: {failures: 2, time: 1h}").start();
    pair.0[0].reply(Reply::Raw(
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}".to_vec(),
    ));
    eventually("it is ejected", || {
        let _ = gate.send_sealed(&gate.seal(&Call::accounts()), Protocol::Http1);
        gate.metric_at_rest("portvakt_upstream_ejections_total", &[]) > 0.9
    });
}

/// Without a further request.
//= FWD-3 accepted
#[test]
fn idle_connections_are_closed() {
    // Long enough for a busy machine to see the connection before it is too old.
    let short = Gate::builder().upstream("idle_timeout: 5s").start();
    assert_eq!(get(&short).status, 200);
    kept(&short, 1);
    kept(&short, 0);
    let long = Gate::builder().upstream("idle_timeout: 1h").start();
    assert_eq!(get(&long).status, 200);
    kept(&long, 1);
    long.upstream().stop();
    kept(&long, 0);
}

/// Healthy, as far as `/health` says.
fn with_health(status: u16) -> Reply {
    match status {
        200 => Reply::Suited(|_| Reply::json(200, "{}")),
        _ => Reply::Suited(|seen| match seen.target.as_str() {
            "/health" => Reply::json(503, "{}"),
            _ => Reply::json(200, "{}"),
        }),
    }
}

//= FWD-3 accepted
//= FWD-3 refused
#[test]
fn only_healthy_endpoints_get_requests() {
    let pair = Pair::start();
    let gate = pair
        .gate("health: {path: /health, interval: 100ms, timeout: 5s, unhealthy_after: 1, healthy_after: 1}")
        .start();
    let requests = |upstream: &Upstream| {
        let seen = upstream.take().into_iter();
        seen.filter(|seen| seen.target != "/health").count()
    };
    pair.0[0].reply(with_health(503));
    eventually("one is unhealthy", || state(&gate, 0)["up"] == 0);
    assert_eq!(gate.control("/readyz").status, 200);
    eventually("the metric says so too", || {
        up(&gate, &pair.0[0]) < 0.1 && up(&gate, &pair.0[1]) > 0.9
    });
    requests(&pair.0[0]);
    for _ in 0..6 {
        assert_eq!(get(&gate).status, 200);
        assert_eq!(pay(&gate).status, 200);
    }
    assert_eq!([0, 1].map(|index| requests(&pair.0[index])), [0, 12]);
    pair.0[1].reply(with_health(503));
    eventually("both are unhealthy", || {
        gate.control("/readyz").status == 503
    });
    let unhealthy = json!(["upstreams: no healthy endpoint in core"]);
    assert_eq!(gate.control("/readyz").json()["notWell"], unhealthy);
    // The core is everybody's: a balancer that asks about this replica alone keeps it.
    let local = gate.control("/readyz?local=1");
    let answer = local.json();
    assert_eq!((local.status, &answer["ready"]), (200, &json!(true)));
    assert_eq!(answer["notWell"], json!([]));
    assert_eq!(answer["local"], json!({"ready": true, "notWell": []}));
    let shared = json!({"ready": false, "notWell": unhealthy});
    assert_eq!(answer["shared"], shared);
    gate.eventually_metric("portvakt_not_ready", &["cause=\"upstreams\""], 1.0);
    for call in [Call::accounts(), Call::payment()] {
        let answer = gate.send(&call, Protocol::Http1);
        check_error("none", &answer, 502, "SYSTEM_ERROR", "upstream-unreachable");
    }
    let unreachable = ["kind=\"unreachable\""];
    gate.eventually_metric("portvakt_upstream_failures_total", &unreachable, 2.0);
    assert_eq!([0, 1].map(|index| requests(&pair.0[index])), [0, 0]);
    pair.0[0].reply(with_health(200));
    eventually("one is healthy again", || {
        gate.control("/readyz").status == 200
    });
    assert_eq!(get(&gate).status, 200);
}

//= CRT-8 accepted
//= FWD-3 accepted
#[test]
fn endpoints_are_reloaded_under_load() {
    const RELOADS: usize = 200;
    let pair = Pair::start();
    let two = pair.groups("connect_timeout: 2s");
    let gate = pair.gate("connect_timeout: 2s").with_a_file().start();
    let one = two.replace(&format!(", {{address: '{}'}}", pair.0[1].address()), "");
    let changed = two.replace(
        "connect_timeout: 2s",
        "connect_timeout: 3s, max_in_flight: 400",
    );
    let heavy = two.replace("'}, {", "', weight: 4}, {");
    let all: Vec<_> = [one, two, changed, heavy]
        .iter()
        .map(|groups| {
            let before = pair.groups("connect_timeout: 2s");
            gate.yaml().replace(&before, groups)
        })
        .collect();
    assert!(all[0] != all[1] && all[1] == gate.yaml() && all[3] != all[1]);
    let (over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let ends = Over(&over);
        for call in [Call::accounts(), Call::payment()] {
            let (gate, over, sent) = (&gate, &over, &sent);
            scope.spawn(move || {
                let mut connection = Connection::open(gate);
                while !over.load(Ordering::Relaxed) {
                    let answer = connection.exchange(&gate.seal(&call)).unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.reason());
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for yaml in all.iter().cycle().take(RELOADS) {
            fs::write(gate.folder().join("gateway.yaml"), yaml).unwrap();
            let answer = gate.tell("/reload", &json!({}));
            assert_eq!(
                answer.json()["needsRestart"],
                json!([]),
                "{:?}",
                answer.json()
            );
        }
        // The reloads met requests.
        eventually("requests go on", || sent.load(Ordering::Relaxed) > 50);
        drop(ends);
    });
    // The endpoint that is always there keeps its connections.
    let connections = pair.0[0].connections();
    assert!(connections < 10, "{connections}");
}
