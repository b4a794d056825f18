//! The limits on requests in flight to the core, and on file descriptors of the process: ERR-4, HTTP-9.

use crate::harness::{
    Call, Connection, Frames, Gate, Protocol, Reply, Sealed, block, check_error, render, string,
};
use portvakt::clock::Stopwatch;
use serde_json::json;
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// The delay of the core.
const THINKS: Duration = Duration::from_millis(1_500);

fn busy(limits: &str) -> Gate {
    let gate = Gate::builder().upstream(limits).start();
    gate.upstream().reply(Reply::json(200, "{}").after(THINKS));
    gate
}

//= ERR-4 refused
#[test]
fn a_core_that_has_enough_gets_no_more() {
    for limits in ["max_in_flight_per_tpp: 2", "max_in_flight: 2"] {
        let gate = busy(limits);
        let third = gate.seal(&Call::payment());
        thread::scope(|scope| {
            let first: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| gate.send(&Call::payment(), Protocol::Http1).status))
                .collect();
            while gate.metric("portvakt_upstream_in_flight", &[]) < 2.0 {
                thread::sleep(Duration::from_millis(5));
            }
            let answer = gate.send_sealed(&third, Protocol::Http2).unwrap();
            // A limit of its own is for the TPP to keep: it does not lower the gateway's availability.
            let (reason, fault) = match limits {
                "max_in_flight: 2" => ("overloaded", "fault=\"gateway\""),
                _ => ("too-many-at-once", "fault=\"caller\""),
            };
            check_error(limits, &answer, 503, "SYSTEM_ERROR", reason);
            let refused = ["outcome=\"refused\"", fault];
            assert_eq!(gate.metric("portvakt_requests_total", &refused), 1.0);
            assert_eq!(answer.header("retry-after"), Some("1"));
            for first in first {
                assert_eq!(first.join().unwrap(), 200);
            }
        });
        assert_eq!(gate.upstream().take().len(), 2, "{limits}");
        // A request counts until its connection returns to the pool, a moment after the caller gets the answer.
        let in_flight = || gate.metric("portvakt_upstream_in_flight", &[]);
        for _ in 0..200 {
            if in_flight() == 0.0 {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(in_flight(), 0.0);
        // The request id was not used: the same request passes once there is room.
        let again = gate.send_sealed(&third, Protocol::Http1).unwrap();
        assert_eq!(again.status, 200, "{}", again.reason());
    }
}

/// A group that a reload changes goes on with its counts.
//= ERR-4 refused
#[test]
fn a_reload_gives_a_core_that_has_enough_no_more() {
    let limits = "max_in_flight: 2\n  connect_timeout: 2s";
    let gate = Gate::builder().upstream(limits).with_a_file().start();
    gate.upstream()
        .reply(Reply::json(200, "{}").after(4 * THINKS));
    let third = gate.seal(&Call::payment());
    thread::scope(|scope| {
        let first: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| gate.send(&Call::payment(), Protocol::Http1).status))
            .collect();
        settles_at(&gate, 2.0);
        let changed = gate
            .yaml()
            .replace("connect_timeout: 2s", "connect_timeout: 3s");
        assert_ne!(changed, gate.yaml());
        fs::write(gate.folder().join("gateway.yaml"), changed).unwrap();
        assert_eq!(gate.tell("/reload", &json!({})).status, 200);
        let answer = gate.send_sealed(&third, Protocol::Http2).unwrap();
        check_error("reloaded", &answer, 503, "SYSTEM_ERROR", "overloaded");
        for first in first {
            assert_eq!(first.join().unwrap(), 200);
        }
    });
    assert_eq!(gate.upstream().take().len(), 2);
}

/// On connections whose TPP is known, requests beyond the limit wait for a moment instead of being refused after their checks.
//= ERR-4 accepted
#[test]
fn requests_of_known_tpps_wait_for_room() {
    let gate = Gate::builder().upstream("max_in_flight_per_tpp: 1").start();
    let mut connections: Vec<_> = (0..4).map(|_| Connection::open(&gate)).collect();
    let sealed = || gate.seal(&Call::plain().only(Protocol::Http1));
    for connection in &mut connections {
        assert_eq!(connection.exchange(&sealed()).unwrap().status, 200);
    }
    gate.upstream()
        .reply(Reply::json(200, "{}").after(Duration::from_millis(5)));
    thread::scope(|scope| {
        for mut connection in connections {
            let sealed = &sealed;
            scope.spawn(move || {
                for _ in 0..10 {
                    let answer = connection.exchange(&sealed()).unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.reason());
                }
            });
        }
    });
    assert_eq!(gate.upstream().take().len(), 44);
    // Not for ever: the core is slower than a request may wait.
    let [mut first, mut second] = [(); 2].map(|()| Connection::open(&gate));
    gate.upstream().reply(Reply::json(200, "{}"));
    for connection in [&mut first, &mut second] {
        assert_eq!(connection.exchange(&sealed()).unwrap().status, 200);
    }
    gate.upstream().reply(Reply::json(200, "{}").after(THINKS));
    first.send(&render(&sealed())).unwrap();
    while gate.metric("portvakt_upstream_in_flight", &[]) < 1.0 {
        thread::sleep(Duration::from_millis(5));
    }
    let answer = second.exchange(&sealed()).unwrap();
    check_error("full", &answer, 503, "SYSTEM_ERROR", "too-many-at-once");
    let refused = [
        "operation=\"tpp-contact-read\"",
        "reason=\"too-many-at-once\"",
    ];
    assert_eq!(gate.metric("portvakt_refusals_total", &refused), 1.0);
    // Another TPP on that connection does not wait for this one's requests.
    let other = Call::plain().by(&gate.world().aisp).only(Protocol::Http1);
    assert_eq!(second.exchange(&gate.seal(&other)).unwrap().status, 200);
    assert_eq!(first.answer("GET").unwrap().status, 200);
    let cause = "cause=\"core_busy_with_tpp\"";
    assert_eq!(gate.metric("portvakt_cut_total", &[cause]), 1.0);
}

/// A request that waits for room is not sent once its caller has left: its id stays unused, and its call stays free.
//= FWD-4 refused
//= QUO-5 accepted
#[test]
fn a_waiting_request_ends_with_its_caller() {
    let gate = Gate::builder().upstream("max_in_flight_per_tpp: 1").start();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        for call in [Call::balances(), Call::payment()] {
            let slow = Reply::json(200, "{}").after(Duration::from_millis(400));
            gate.upstream().reply(slow);
            let sealed = gate.seal(&call);
            thread::scope(|scope| {
                let first = scope.spawn(|| gate.send(&Call::plain(), Protocol::Http1).status);
                settles_at(&gate, 1.0);
                leave_waiting(&gate, &sealed, protocol);
                assert_eq!(first.join().unwrap(), 200);
            });
            thread::sleep(Duration::from_millis(200));
            settles_at(&gate, 0.0);
            assert_eq!(gate.upstream().take().len(), 1, "{protocol:?}");
            gate.upstream().reply(Reply::json(200, "{}"));
            let again = gate.send_sealed(&sealed, protocol).unwrap();
            assert_eq!(again.status, 200, "{protocol:?} {}", again.reason());
            gate.upstream().take();
        }
    }
    // Two of four calls were made.
    for status in [200, 200, 429] {
        let answer = gate.send(&Call::balances(), Protocol::Http1);
        assert_eq!(answer.status, status);
    }
}

/// Sends a request and leaves after a moment, without an answer.
fn leave_waiting(gate: &Gate, sealed: &Sealed, protocol: Protocol) {
    let moment = Duration::from_millis(60);
    if protocol == Protocol::Http1 {
        let mut connection = Connection::open(gate);
        connection.send(&render(sealed)).unwrap();
        thread::sleep(moment);
        return;
    }
    let mut frames = Frames::open(gate);
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    let mut head = block(sealed, &path);
    let body = sealed.request.body.clone().unwrap_or_default();
    if body.is_empty() {
        frames.send(1, 0x5, 1, &head).unwrap();
    } else {
        let length = body.len().to_string();
        head.extend(crate::harness::field("content-length", length.as_bytes()));
        frames.send(1, 0x4, 1, &head).unwrap();
        frames.send(0, 0x1, 1, &body).unwrap();
    }
    thread::sleep(moment);
    frames.send(3, 0, 1, &[0, 0, 0, 8]).unwrap();
    // The connection stays for the others.
    thread::sleep(moment);
}

/// A TPP that has to wait sends the same change again on its connection, also if that had a body.
//= ERR-4 accepted
#[test]
fn a_refused_change_keeps_its_connection() {
    let gate = Gate::builder().upstream("max_in_flight_per_tpp: 1").start();
    let plain = || gate.seal(&Call::plain());
    for chunked in [false, true] {
        gate.upstream().reply(Reply::json(200, "{}"));
        let [mut first, mut second] = [(); 2].map(|()| Connection::open(&gate));
        for connection in [&mut first, &mut second] {
            assert_eq!(connection.exchange(&plain()).unwrap().status, 200);
        }
        gate.upstream().reply(Reply::json(200, "{}").after(THINKS));
        first.send(&render(&plain())).unwrap();
        while gate.metric("portvakt_upstream_in_flight", &[]) < 1.0 {
            thread::sleep(Duration::from_millis(5));
        }
        let call = Call::payment().only(Protocol::Http1);
        let call = if chunked { call.chunked() } else { call };
        let sealed = gate.seal(&call);
        let answer = second.exchange(&sealed).unwrap();
        check_error("full", &answer, 503, "SYSTEM_ERROR", "too-many-at-once");
        assert_ne!(answer.header("connection"), Some("close"));
        assert_eq!(first.answer("GET").unwrap().status, 200);
        gate.upstream().reply(Reply::json(200, "{}"));
        assert_eq!(second.exchange(&sealed).unwrap().status, 200);
    }
}

/// A payment whose caller resets the stream still counts: the core is still working on it.
//= ERR-4 refused
#[test]
fn a_request_that_is_reset_counts() {
    let gate = busy("max_in_flight_per_tpp: 3");
    let mut frames = Frames::open(&gate);
    for request in 0..8 {
        let stream = 2 * request + 1;
        let sealed = gate.seal(&Call::payment());
        let body = sealed.request.body.clone().unwrap();
        let mut head = block(
            &sealed,
            &[&[0x04][..], &string(sealed.request.target.as_bytes())].concat(),
        );
        head.extend(crate::harness::field(
            "content-length",
            body.len().to_string().as_bytes(),
        ));
        frames.send(1, 0x4, stream, &head).unwrap();
        frames.send(0, 0x1, stream, &body).unwrap();
        thread::sleep(Duration::from_millis(60));
        let _ = frames.send(3, 0, stream, &[0, 0, 0, 8]);
    }
    thread::sleep(THINKS);
    assert_eq!(gate.upstream().take().len(), 3);
}

/// Waits until the core has this many requests.
fn settles_at(gate: &Gate, count: f64) {
    let in_flight = || gate.metric("portvakt_upstream_in_flight", &[]);
    for _ in 0..500 {
        if in_flight() == count {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(in_flight(), count);
}

/// The same for a GET, which ends with its caller: a core that does not watch its connections still works on it.
//= ERR-4 refused
//= FWD-4 refused
#[test]
fn a_read_that_is_reset_counts() {
    let gate = busy("max_in_flight_per_tpp: 3");
    let mut frames = Frames::open(&gate);
    for request in 0..8 {
        let stream = 2 * request + 1;
        let sealed = gate.seal(&Call::plain());
        let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
        frames.send(1, 0x5, stream, &block(&sealed, &path)).unwrap();
        thread::sleep(Duration::from_millis(60));
        frames.send(3, 0, stream, &[0, 0, 0, 8]).unwrap();
    }
    // Those of closed connections too.
    for _ in 0..3 {
        let mut connection = Connection::open(&gate);
        let sealed = gate.seal(&Call::plain().only(Protocol::Http1));
        connection.send(&render(&sealed)).unwrap();
        thread::sleep(Duration::from_millis(60));
    }
    assert_eq!(gate.metric("portvakt_upstream_in_flight", &[]), 3.0);
    settles_at(&gate, 0.0);
    assert_eq!(gate.upstream().take().len(), 3);
    assert_eq!(gate.send(&Call::plain(), Protocol::Http1).status, 200);
}

/// The place of a read whose caller has left is free once the core has noticed, before or within its answer, and in any case after the
/// group's timeout.
//= ERR-4 accepted
//= FWD-4 accepted
#[test]
fn the_place_of_an_abandoned_read_is_freed() {
    let notices = |sent: &'static [u8]| {
        Reply::play(move |_, core| {
            core.write_all(sent).unwrap();
            assert_eq!(core.read(&mut [0]).unwrap(), 0);
            false
        })
    };
    let begun = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    for (timeout, reply) in [
        ("60s", notices(b"")),
        ("60s", notices(b"HTTP/1.1 103 Early Hints\r\n\r\n")),
        ("60s", notices(begun)),
        ("2s", Reply::Silence),
    ] {
        let limits = format!("max_in_flight: 1\n  timeout: {timeout}");
        let gate = Gate::builder().upstream(&limits).start();
        gate.upstream().reply(reply);
        let mut connection = Connection::open(&gate);
        let sealed = gate.seal(&Call::plain().only(Protocol::Http1));
        connection.send(&render(&sealed)).unwrap();
        settles_at(&gate, 1.0);
        thread::sleep(Duration::from_millis(200));
        drop(connection);
        settles_at(&gate, 0.0);
    }
}

/// A probe is answered at once, even while other clients hold idle connections to the control listener, or read no answer of /metrics.
//= ERR-4 accepted
#[test]
fn probes_do_not_wait_for_silent_callers() {
    let gate = Gate::start();
    let metrics = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(30);
    let all_sent: [&[u8]; 4] = [
        b"",
        b"GET /readyz HTTP/1.1\r\nHost: ",
        b"POST /psu/read HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
        &metrics,
    ];
    for sent in all_sent {
        let connect = || {
            let mut stream = TcpStream::connect(gate.control_address()).unwrap();
            stream.write_all(sent).unwrap();
            stream
        };
        let count = if sent.is_empty() { 2_000 } else { 300 };
        let mut silent: Vec<_> = (0..count).map(|_| connect()).collect();
        let mut took = Vec::new();
        for _ in 0..5 {
            let watch = Stopwatch::start();
            assert_eq!(gate.control("/readyz").status, 200);
            took.push(watch.elapsed());
            silent.push(connect());
        }
        took.sort();
        println!("probes beside {count} connections took {took:?}");
        // On a loaded machine, a probe may be delayed.
        let (median, longest) = (took[2], took[4]);
        assert!(median < Duration::from_millis(100), "{took:?}");
        assert!(longest < Duration::from_secs(1), "{took:?}");
        if sent == all_sent[0] || sent == all_sent[1] {
            // The oldest connection was closed.
            let mut first = silent.remove(0);
            let patience = Some(Duration::from_secs(5));
            first.set_read_timeout(patience).unwrap();
            assert!(matches!(first.read(&mut [0]), Ok(0) | Err(_)));
        }
    }
}

/// A process with too low a descriptor limit does not start, and reports the required number.
//= ERR-4 refused
#[test]
fn too_few_descriptors() {
    let gate = Gate::builder()
        .listener("max_connections: 1000")
        .for_program();
    let start = |limit: u32| {
        let program = gate.program();
        let arguments: Vec<_> = program.get_args().collect();
        Command::new("sh")
            .args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")])
            .arg(program.get_program())
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let refused = start(1_500).wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(
        text.contains("1832 file descriptors are needed") && text.contains("may have 1500"),
        "{text}"
    );
    let mut started = crate::harness::Program(start(1_900));
    assert!(gate.is_up(&mut started.0));
}
