//! The limits on requests in flight to the core, and on file descriptors of the process: ERR-4, HTTP-9.

use crate::harness::{
    Call, Connection, Frames, Gate, GateBuilder, Latch, Protocol, Reply, Sealed, block,
    check_error, eventually, render, string, until_closed,
};
use serde_json::json;
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    thread,
};

/// A gateway that gives up no request at the core before the test ends.
fn patient(limits: &str) -> GateBuilder {
    Gate::builder().upstream(&format!("{limits}\n  read_timeout: 300s"))
}

/// The core holds back its answers to later requests.
fn hold(gate: &Gate) -> Latch {
    let (reply, latch) = Reply::json(200, "{}").held();
    gate.upstream().reply(reply);
    latch
}

/// The requests whose heads the gateway has read, and that have not ended.
fn underway(gate: &Gate) -> f64 {
    gate.metric_now("portvakt_requests_in_flight", &[])
}

/// The requests for which there was no room in time.
fn without_room(gate: &Gate) -> f64 {
    ["core_busy", "core_busy_with_tpp"]
        .map(|cause| gate.metric_now("portvakt_cut_total", &[&format!("cause=\"{cause}\"")]))
        .iter()
        .sum()
}

/// Runs `send`, and waits until the gateway has read the head of one request more than `others`. That request waits for room for half a
/// second, which on a busy machine may be over before the test notices.
fn waits(gate: &Gate, others: f64, send: impl FnOnce()) {
    let before = without_room(gate);
    send();
    eventually("a further request waits", || {
        underway(gate) > others || without_room(gate) > before
    });
}

/// Waits until no request is underway, and none at the core.
fn at_rest(gate: &Gate) {
    gate.eventually_metric("portvakt_requests_in_flight", &[], 0.0);
    gate.eventually_metric("portvakt_upstream_in_flight", &[], 0.0);
}

//= ERR-4 refused
#[test]
fn a_core_that_has_enough_gets_no_more() {
    for limits in ["max_in_flight_per_tpp: 2", "max_in_flight: 2"] {
        let gate = patient(limits).start();
        let latch = hold(&gate);
        let third = gate.seal(&Call::payment());
        thread::scope(|scope| {
            let first: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| gate.send(&Call::payment(), Protocol::Http1).status))
                .collect();
            latch.arrived(2);
            let answer = gate.send_sealed(&third, Protocol::Http2).unwrap();
            // A limit of its own is for the TPP to keep: it does not lower the gateway's availability.
            let (reason, fault) = match limits {
                "max_in_flight: 2" => ("overloaded", "fault=\"gateway\""),
                _ => ("too-many-at-once", "fault=\"caller\""),
            };
            check_error(limits, &answer, 503, "SYSTEM_ERROR", reason);
            let refused = ["outcome=\"refused\"", fault];
            gate.eventually_metric("portvakt_requests_total", &refused, 1.0);
            assert_eq!(answer.header("retry-after"), Some("1"));
            latch.release();
            for first in first {
                assert_eq!(first.join().unwrap(), 200);
            }
        });
        assert_eq!(gate.upstream().take().len(), 2, "{limits}");
        // A request counts until its connection returns to the pool, a moment after the caller gets the answer.
        at_rest(&gate);
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
    let gate = patient(limits).with_a_file().start();
    let latch = hold(&gate);
    let third = gate.seal(&Call::payment());
    thread::scope(|scope| {
        let first: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| gate.send(&Call::payment(), Protocol::Http1).status))
            .collect();
        latch.arrived(2);
        let changed = gate
            .yaml()
            .replace("connect_timeout: 2s", "connect_timeout: 3s");
        assert_ne!(changed, gate.yaml());
        fs::write(gate.folder().join("gateway.yaml"), changed).unwrap();
        assert_eq!(gate.tell("/reload", &json!({})).status, 200);
        let answer = gate.send_sealed(&third, Protocol::Http2).unwrap();
        check_error("reloaded", &answer, 503, "SYSTEM_ERROR", "overloaded");
        latch.release();
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
    let gate = patient("max_in_flight_per_tpp: 1").start();
    let mut connections: Vec<_> = (0..4).map(|_| Connection::open(&gate)).collect();
    let sealed = || gate.seal(&Call::plain().only(Protocol::Http1));
    for connection in &mut connections {
        assert_eq!(connection.exchange(&sealed()).unwrap().status, 200);
    }
    // Half a second may be over before a busy machine makes room: then this begins again.
    eventually("three requests that wait get room in turn", || {
        at_rest(&gate);
        gate.upstream().take();
        let (latch, before) = (hold(&gate), without_room(&gate));
        connections[0].send(&render(&sealed())).unwrap();
        latch.arrived(1);
        for (at, connection) in connections.iter_mut().enumerate().skip(1) {
            let sealed = render(&sealed());
            waits(&gate, at as f64, || connection.send(&sealed).unwrap());
        }
        let at_core = latch.count();
        latch.release();
        let mut answers = connections.iter_mut().map(|one| one.answer("GET").unwrap());
        assert_eq!(answers.next().unwrap().status, 200);
        let served = answers.filter(|answer| match answer.status {
            200 => true,
            _ => {
                check_error("late", answer, 503, "SYSTEM_ERROR", "too-many-at-once");
                false
            }
        });
        let served = served.count();
        assert_eq!(at_core, 1, "no more than may be at the core");
        assert_eq!(gate.upstream().take().len(), 1 + served);
        let refused = without_room(&gate) - before;
        assert_eq!(served as f64 + refused, 3.0);
        (served == 3).then_some(()).ok_or(served)
    });
    // Not for ever: the core is slower than a request may wait.
    let [mut first, mut second] = [(); 2].map(|()| Connection::open(&gate));
    gate.upstream().reply(Reply::json(200, "{}"));
    for connection in [&mut first, &mut second] {
        at_rest(&gate);
        assert_eq!(connection.exchange(&sealed()).unwrap().status, 200);
    }
    at_rest(&gate);
    let refused = [
        "operation=\"tpp-contact-read\"",
        "reason=\"too-many-at-once\"",
    ];
    let count = || gate.metric_now("portvakt_operation_refusals_total", &refused);
    let (before, cut_before) = (count(), without_room(&gate));
    let latch = hold(&gate);
    first.send(&render(&sealed())).unwrap();
    latch.arrived(1);
    let answer = second.exchange(&sealed()).unwrap();
    check_error("full", &answer, 503, "SYSTEM_ERROR", "too-many-at-once");
    gate.eventually_metric("portvakt_operation_refusals_total", &refused, before + 1.0);
    // Another TPP on that connection does not wait for this one's requests.
    gate.upstream().reply(Reply::json(200, "{}"));
    let other = Call::plain().by(&gate.world().aisp).only(Protocol::Http1);
    assert_eq!(second.exchange(&gate.seal(&other)).unwrap().status, 200);
    latch.release();
    assert_eq!(first.answer("GET").unwrap().status, 200);
    let cause = "cause=\"core_busy_with_tpp\"";
    let cut = gate.metric_at_rest("portvakt_cut_total", &[cause]);
    assert_eq!(cut, cut_before + 1.0);
}

/// A request that waits for room is not sent once its caller has left: its id stays unused, and its call stays free.
//= FWD-4 refused
//= QUO-5 accepted
#[test]
fn a_waiting_request_ends_with_its_caller() {
    let gate = patient("max_in_flight_per_tpp: 1").start();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        for call in [Call::balances(), Call::payment()] {
            // If the wait was over before there was room, nothing is shown, and this begins again.
            let sealed = eventually("a request waits when its caller leaves", || {
                let sealed = gate.seal(&call);
                left_waiting(&gate, &sealed, protocol).then_some(sealed)
            });
            gate.upstream().reply(Reply::json(200, "{}"));
            let again = gate.send_sealed(&sealed, protocol).unwrap();
            assert_eq!(again.status, 200, "{protocol:?} {}", again.reason());
            at_rest(&gate);
            gate.upstream().take();
        }
    }
    // Two of four calls were made.
    for status in [200, 200, 429] {
        let answer = gate.send(&Call::balances(), Protocol::Http1);
        assert_eq!(answer.status, status);
        at_rest(&gate);
    }
}

/// A connection of a caller whose TPP is known: its requests wait for room as soon as their heads are read. Others wait after their checks,
/// and one whose checks take longer than the core's answer does not wait at all.
enum Caller {
    Http1(Connection),
    Http2(Frames),
}

impl Caller {
    fn known(gate: &Gate, protocol: Protocol) -> Self {
        gate.upstream().reply(Reply::json(200, "{}"));
        let plain = gate.seal(&Call::plain());
        let caller = if protocol == Protocol::Http1 {
            let mut connection = Connection::open(gate);
            assert_eq!(connection.exchange(&plain).unwrap().status, 200);
            Self::Http1(connection)
        } else {
            let mut frames = Frames::open(gate);
            request(&mut frames, 1, &plain);
            assert_eq!(frames.outcome(1).unwrap().status(), Some(200));
            Self::Http2(frames)
        };
        at_rest(gate);
        gate.upstream().take();
        caller
    }
}

/// The core has one request, another one waits, and the caller of that one leaves before there is room. It must not reach the core.
/// Returns whether it was still waiting then.
fn left_waiting(gate: &Gate, sealed: &Sealed, protocol: Protocol) -> bool {
    let caller = Caller::known(gate, protocol);
    let (latch, before) = (hold(gate), without_room(gate));
    thread::scope(|scope| {
        let first = scope.spawn(|| gate.send(&Call::plain(), Protocol::Http1).status);
        latch.arrived(1);
        // An HTTP/2 connection stays for the others.
        let open = leave_waiting(gate, sealed, caller);
        latch.release();
        assert_eq!(first.join().unwrap(), 200);
        at_rest(gate);
        drop(open);
    });
    assert_eq!(gate.upstream().take().len(), 1, "{protocol:?}");
    without_room(gate) == before
}

/// Sends a request and leaves once it waits, without an answer. Returns the connection if it is still open.
fn leave_waiting(gate: &Gate, sealed: &Sealed, caller: Caller) -> Option<Frames> {
    match caller {
        Caller::Http1(mut connection) => {
            waits(gate, 1.0, || connection.send(&render(sealed)).unwrap());
            drop(connection);
            // The thread that serves this has noticed that the connection before has ended.
            let mut later = Connection::open(gate);
            later
                .send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .unwrap();
            assert!(later.answer("GET").unwrap().status >= 400);
            None
        }
        Caller::Http2(mut frames) => {
            waits(gate, 1.0, || request(&mut frames, 3, sealed));
            frames.send(3, 0, 3, &[0, 0, 0, 8]).unwrap();
            frames.processed();
            Some(frames)
        }
    }
}

/// Sends a request over HTTP/2.
fn request(frames: &mut Frames, stream: u32, sealed: &Sealed) {
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    let mut head = block(sealed, &path);
    let body = sealed.request.body.clone().unwrap_or_default();
    if body.is_empty() {
        frames.send(1, 0x5, stream, &head).unwrap();
        return;
    }
    let length = body.len().to_string();
    head.extend(crate::harness::field("content-length", length.as_bytes()));
    frames.send(1, 0x4, stream, &head).unwrap();
    frames.send(0, 0x1, stream, &body).unwrap();
}

/// A TPP that has to wait sends the same change again on its connection, also if that had a body.
//= ERR-4 accepted
#[test]
fn a_refused_change_keeps_its_connection() {
    let gate = patient("max_in_flight_per_tpp: 1").start();
    let plain = || gate.seal(&Call::plain());
    for chunked in [false, true] {
        gate.upstream().reply(Reply::json(200, "{}"));
        let [mut first, mut second] = [(); 2].map(|()| Connection::open(&gate));
        for connection in [&mut first, &mut second] {
            assert_eq!(connection.exchange(&plain()).unwrap().status, 200);
            at_rest(&gate);
        }
        let latch = hold(&gate);
        first.send(&render(&plain())).unwrap();
        latch.arrived(1);
        let call = Call::payment().only(Protocol::Http1);
        let call = if chunked { call.chunked() } else { call };
        let sealed = gate.seal(&call);
        let answer = second.exchange(&sealed).unwrap();
        check_error("full", &answer, 503, "SYSTEM_ERROR", "too-many-at-once");
        assert_ne!(answer.header("connection"), Some("close"));
        latch.release();
        assert_eq!(first.answer("GET").unwrap().status, 200);
        at_rest(&gate);
        gate.upstream().reply(Reply::json(200, "{}"));
        assert_eq!(second.exchange(&sealed).unwrap().status, 200);
        at_rest(&gate);
    }
}

/// A payment whose caller resets the stream still counts: the core is still working on it.
//= ERR-4 refused
#[test]
fn a_request_that_is_reset_counts() {
    let gate = patient("max_in_flight_per_tpp: 3").start();
    let latch = hold(&gate);
    let mut frames = Frames::open(&gate);
    let reset = |frames: &mut Frames, stream| frames.send(3, 0, stream, &[0, 0, 0, 8]).unwrap();
    let mut streams = (0..8).map(|number| 2 * number + 1);
    for (number, stream) in streams.by_ref().take(3).enumerate() {
        request(&mut frames, stream, &gate.seal(&Call::payment()));
        latch.arrived(number + 1);
        reset(&mut frames, stream);
    }
    for stream in streams {
        let sealed = gate.seal(&Call::payment());
        waits(&gate, 3.0, || request(&mut frames, stream, &sealed));
        reset(&mut frames, stream);
        // It has ended, without room.
        gate.eventually_metric("portvakt_requests_in_flight", &[], 3.0);
    }
    assert_eq!(latch.count(), 3);
    latch.release();
    at_rest(&gate);
    assert_eq!(gate.upstream().take().len(), 3);
}

/// The same for a GET, which ends with its caller: a core that does not watch its connections still works on it.
//= ERR-4 refused
//= FWD-4 refused
#[test]
fn a_read_that_is_reset_counts() {
    let gate = patient("max_in_flight_per_tpp: 3").start();
    let latch = hold(&gate);
    let mut frames = Frames::open(&gate);
    let has_ended = || gate.eventually_metric("portvakt_requests_in_flight", &[], 0.0);
    for number in 0..8 {
        let stream = 2 * number + 1;
        let sealed = gate.seal(&Call::plain());
        waits(&gate, 0.0, || request(&mut frames, stream, &sealed));
        latch.arrived(3.min(number as usize + 1));
        frames.send(3, 0, stream, &[0, 0, 0, 8]).unwrap();
        has_ended();
    }
    // Those of closed connections too.
    for _ in 0..3 {
        let mut connection = Connection::open(&gate);
        let sealed = gate.seal(&Call::plain().only(Protocol::Http1));
        waits(&gate, 0.0, || connection.send(&render(&sealed)).unwrap());
        drop(connection);
        has_ended();
    }
    assert_eq!(gate.metric_now("portvakt_upstream_in_flight", &[]), 3.0);
    assert_eq!(latch.count(), 3);
    latch.release();
    at_rest(&gate);
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
    // The caller leaves once the core has the request, or once the caller has the head of the answer.
    for (timeout, reply, is_answered) in [
        ("300s", notices(b""), false),
        ("300s", notices(b"HTTP/1.1 103 Early Hints\r\n\r\n"), false),
        ("300s", notices(begun), true),
        ("2s", Reply::Silence, false),
    ] {
        let gate = patient(&format!("max_in_flight: 1\n  timeout: {timeout}")).start();
        gate.upstream().reply(reply);
        let mut connection = Connection::open(&gate);
        let sealed = gate.seal(&Call::plain().only(Protocol::Http1));
        connection.send(&render(&sealed)).unwrap();
        eventually("the core has it", || !gate.upstream().take().is_empty());
        if is_answered {
            connection.exactly(12).unwrap();
        }
        drop(connection);
        at_rest(&gate);
    }
}

/// A probe is answered, even while other clients hold idle connections to the control listener, or read no answer of /metrics.
/// `bounds` shows that it is answered at once.
//= ERR-4 accepted
#[test]
fn probes_do_not_wait_for_silent_callers() {
    probe_beside_silent_callers(|probe| probe());
}

/// Calls `judge` with a probe, five times beside each kind of silent callers.
pub(super) fn probe_beside_silent_callers(mut judge: impl FnMut(&dyn Fn())) {
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
        for _ in 0..5 {
            judge(&|| assert_eq!(gate.control("/readyz").status, 200));
            silent.push(connect());
        }
        if sent == all_sent[0] || sent == all_sent[1] {
            // The oldest connection was closed.
            assert!(until_closed(&mut silent[0]).is_empty());
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
