//! Limits of a connection in size and time: HTTP-9.

use crate::harness::{
    Call, Connection, Frames, Gate, Protocol, Reply, Tls, accepted, block, check_error, eventually,
    field, frame, let_pass, refused, render, string, until_closed,
};
use portvakt::clock::Stopwatch;
use std::{
    io::Write,
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

/// A deadline that is short enough for a test.
const SHORT: Duration = Duration::from_millis(400);

/// Answers that exceed the buffers between the two sides.
const LARGE: &str = "max_answer_size: 64MiB";

/// A gate on which only this deadline is [`SHORT`], and no test reaches another one.
fn hasty(deadline: &str) -> Gate {
    let all = ["handshake", "first_byte", "preface", "head", "write"].map(|kind| {
        let time = if kind == deadline { "400ms" } else { "60s" };
        format!("{kind}_timeout: {time}")
    });
    Gate::builder()
        .listener(&all.join("\n  "))
        .upstream(LARGE)
        .start()
}

/// Asserts that a connection, opened by `until`, does not end before the deadline. `bounds` shows that it ends soon after.
fn not_before(what: &str, until: impl FnOnce()) {
    let watch = Stopwatch::start();
    until();
    let took = watch.elapsed();
    assert!(
        took >= SHORT - Duration::from_millis(50),
        "{what}: {took:?}"
    );
}

//= HTTP-9 refused
//= ERR-8 refused
#[test]
fn a_head_that_does_not_come_in_time() {
    let gate = hasty("head");
    let head = render(&gate.seal(&Call::plain()));
    let half = &head[..head.len() / 2];
    type Drip<'a> = (&'a str, Box<dyn Fn(usize) -> &'a [u8] + 'a>);
    let ways: [Drip<'_>; 4] = [
        (
            "half a head, then nothing",
            Box::new(|at| if at == 0 { half } else { b"" }),
        ),
        ("byte by byte", Box::new(|at| &head[at..=at])),
        ("empty lines", Box::new(|_| b"\r\n")),
        (
            "one byte",
            Box::new(|at| if at == 0 { &head[..1] } else { b"" }),
        ),
    ];
    for (what, next) in &ways {
        let mut connection = Connection::open(&gate);
        not_before(what, || {
            let mut at = 0;
            let begun = Stopwatch::start();
            // The client goes on until shortly before the deadline.
            while begun.elapsed() < Duration::from_millis(380) {
                let part = next(at);
                if !part.is_empty() && connection.send(part).is_err() {
                    break;
                }
                at += 1;
                let_pass(Duration::from_millis(20));
            }
            let answer = connection.answer("GET").unwrap();
            check_error(what, &answer, 408, "BAD_REQUEST", "request-timeout");
            assert_eq!(answer.header("connection"), Some("close"));
            assert_eq!(answer.header("server"), None);
        });
        assert!(connection.rest().is_empty());
    }
    assert!(gate.upstream().saw_nothing());
    // Each is counted as any other refusal.
    let count = ways.len() as f64;
    gate.eventually_metric("portvakt_cut_total", &["cause=\"slow_head\""], count);
    let late = ["reason=\"request-timeout\""];
    gate.eventually_metric("portvakt_refusals_total", &late, count);
}

/// A connection that stays silent after its handshake; and one that has sent a request may be idle for longer.
//= HTTP-9 refused
//= HTTP-9 accepted
#[test]
fn a_first_byte_that_does_not_come_in_time() {
    let gate = hasty("first_byte");
    let mut silent = None;
    not_before("no byte", || {
        let connection = silent.insert(Connection::open(&gate));
        let answer = connection.answer("GET").unwrap();
        check_error("no byte", &answer, 408, "BAD_REQUEST", "request-timeout");
    });
    assert!(silent.unwrap().rest().is_empty());
    assert!(gate.upstream().saw_nothing());
    gate.eventually_metric("portvakt_cut_total", &["cause=\"slow_preface\""], 1.0);
    // The time of a head, and of a pause between two requests, is another one.
    let requests = [(); 2].map(|()| render(&gate.seal(&Call::plain())));
    let mut connection = Connection::open(&gate);
    for (pause, whole) in [SHORT * 2, Duration::ZERO].into_iter().zip(requests) {
        connection.send(&whole[..1]).unwrap();
        let_pass(pause);
        connection.send(&whole[1..]).unwrap();
        assert_eq!(connection.answer("GET").unwrap().status, 200);
        let_pass(pause);
    }
    assert_eq!(gate.upstream().take().len(), 2);
}

/// A slow head is accepted within the deadline, and a connection may be idle between requests.
//= HTTP-9 accepted
#[test]
fn a_head_in_parts() {
    let gate = Gate::builder().listener("head_timeout: 60s").start();
    let mut connection = Connection::open(&gate);
    for size in [1, 7, 100, 4_096] {
        let sealed = gate.seal(&Call::payment());
        for part in render(&sealed).chunks(size) {
            connection.send(part).unwrap();
        }
        assert_eq!(connection.answer("POST").unwrap().status, 200, "{size}");
    }
    assert_eq!(gate.upstream().take().len(), 4);
    // A whole head comes at once; between two of them passes more than a head may take.
    let gate = hasty("head");
    let mut connection = Connection::open(&gate);
    for _ in 0..2 {
        let sealed = gate.seal(&Call::plain());
        assert_eq!(connection.exchange(&sealed).unwrap().status, 200);
        let_pass(3 * SHORT);
    }
    let sealed = gate.seal(&Call::plain());
    assert_eq!(connection.exchange(&sealed).unwrap().status, 200);
    assert_eq!(gate.upstream().take().len(), 3);
}

//= HTTP-9 refused
#[test]
fn frames_that_do_not_come_in_time() {
    let (gate, slow_heads) = (hasty("preface"), hasty("head"));
    let sealed = gate.seal(&Call::plain());
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    let whole = block(&sealed, &path);
    // No preface, an incomplete preface, no SETTINGS.
    for sent in [0, 10, 24] {
        not_before("no preface", || {
            let mut frames = Frames::silent(&gate);
            let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
            frames.bytes(&preface[..sent]).unwrap();
            assert!(matches!(frames.goaway(), Some(4)), "{sent}");
        });
    }
    // A header block without an end, a frame without its last byte, an incomplete frame header.
    let mut lacking = frame(1, 0x5, 1, &whole);
    lacking.pop();
    for sent in [frame(1, 0x1, 1, &whole), lacking, vec![0, 0]] {
        not_before("half a head", || {
            let mut frames = Frames::open(&slow_heads);
            frames.bytes(&sent).unwrap();
            assert_eq!(frames.goaway(), Some(11));
        });
    }
    for (gate, cause) in [(&gate, "slow_preface"), (&slow_heads, "slow_head")] {
        let cause = format!("cause=\"{cause}\"");
        gate.eventually_metric("portvakt_cut_total", &[&cause], 3.0);
        assert!(gate.upstream().saw_nothing());
    }
}

//= HTTP-9 refused
#[test]
fn a_handshake_that_does_not_come_in_time() {
    let gate = hasty("handshake");
    not_before("a silent connection", || {
        until_closed(&mut TcpStream::connect(gate.address()).unwrap());
    });
    // The connection ends a moment before it is counted.
    let outcomes = |outcome: &str, count: f64| {
        let label = format!("outcome=\"{outcome}\"");
        gate.eventually_metric("portvakt_handshakes_total", &[&label], count);
    };
    outcomes("too_slow", 1.0);
    // A client that speaks HTTP without TLS gets no answer, and is counted.
    let mut stream = TcpStream::connect(gate.address()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    until_closed(&mut stream);
    outcomes("failed", 1.0);
    outcomes("too_slow", 1.0);
}

//= HTTP-9 refused
#[test]
fn heads_that_are_too_large() {
    let gate = Gate::start();
    let long = "x".repeat(33 * 1024);
    let fields = |count: usize| {
        (0..count).fold(Call::plain(), |call, at| {
            call.with(&format!("X-Field-{at}"), "1")
        })
    };
    let over_http2 = Call::plain().with("X-Long", &long).only(Protocol::Http2);
    // A certificate that is too large comes before other faults of the head, and before the path.
    let certificate = "x".repeat(16 * 1024 + 1);
    let certified = |target: &str| {
        let call = Call::bare("GET", target);
        call.with("TPP-Signature-Certificate", &certificate)
    };
    let many = [certified("/v1/accounts"), certified("/v1/nothing")];
    for call in many.into_iter().chain([over_http2, fields(101)]) {
        refused(&gate, &call, 431, "BAD_REQUEST", "headers-too-large");
    }
    // The connection is closed, also where the head was read to its end, and where the parser could not read so many fields.
    for count in [101, 257, 300] {
        let sealed = gate.seal(&fields(count));
        let mut connection = Connection::open(&gate);
        let answer = connection.exchange(&sealed).unwrap();
        check_error("fields", &answer, 431, "BAD_REQUEST", "headers-too-large");
        assert_eq!(answer.header("connection"), Some("close"), "{count}");
        assert!(connection.rest().is_empty(), "{count}");
    }
    // The answer survives further bytes of the caller, and the gateway discards those bytes.
    let mut connection = Connection::open(&gate);
    let mut head = b"GET /v1/accounts HTTP/1.1\r\nHost: localhost\r\nX-Long: ".to_vec();
    head.resize(200_000, b'x');
    connection.send(&head).unwrap();
    let answer = connection.answer("GET").unwrap();
    check_error(
        "200 000 bytes",
        &answer,
        431,
        "BAD_REQUEST",
        "headers-too-large",
    );
    // Over HTTP/2, the library itself answers beyond a further 48 KiB.
    let mut frames = Frames::open(&gate);
    let sealed = gate.seal(&Call::plain());
    let mut whole = block(
        &sealed,
        &[&[0x04][..], &string(b"/v1/tpp/contact")].concat(),
    );
    for at in 0..11 {
        whole.extend(field(&format!("x-long-{at}"), &[b'x'; 8_000]));
    }
    let (first, rest) = whole.split_at(16_000);
    let mut sent = frame(1, 0x1, 1, first);
    let parts: Vec<_> = rest.chunks(16_000).collect();
    for (at, part) in parts.iter().enumerate() {
        let flags = if at + 1 == parts.len() { 0x4 } else { 0 };
        sent.extend(frame(9, flags, 1, part));
    }
    let _ = frames.bytes(&sent);
    let outcome = frames.outcome(1);
    assert!(outcome.is_err() || outcome.is_ok_and(|frame| frame.status() != Some(200)));
    assert!(gate.upstream().saw_nothing());
}

//= HTTP-9 accepted
#[test]
fn heads_that_are_large_enough() {
    let gate = Gate::start();
    accepted(&gate, &Call::plain().with("X-Long", &"x".repeat(24 * 1024)));
    let many = (0..80).fold(Call::plain(), |call, at| {
        call.with(&format!("X-Field-{at}"), "1")
    });
    accepted(&gate, &many);
}

/// A caller that does not read an answer is disconnected.
//= HTTP-9 refused
#[test]
fn an_answer_that_nobody_takes() {
    let gate = hasty("write");
    let big = format!("\"{}\"", "x".repeat(40 << 20));
    gate.upstream().reply(Reply::json(200, &big));
    let mut connection = Connection::open(&gate);
    let blocked = ["cause=\"blocked_write\""];
    not_before("blocked", || {
        connection
            .send(&render(&gate.seal(&Call::plain())))
            .unwrap();
        gate.eventually_metric("portvakt_cut_total", &blocked, 1.0);
        gate.eventually_metric("portvakt_open_connections", &[], 0.0);
    });
    // Over HTTP/2, a window that never opens.
    let sealed = gate.seal(&Call::plain());
    let mut frames = Frames::open(&gate);
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    not_before("no window", || {
        frames.send(1, 0x5, 1, &block(&sealed, &path)).unwrap();
        while frames.next().unwrap().kind != 3 {}
    });
    gate.eventually_metric("portvakt_cut_total", &blocked, 2.0);
}

/// A slow reader never blocks one write for long: the time-out of the whole answer ends the connection.
//= HTTP-9 refused
#[test]
fn an_answer_that_is_taken_slowly() {
    const WHOLE: Duration = Duration::from_millis(1_500);
    let gate = Gate::builder()
        .listener("answer_timeout: 1500ms\n  write_timeout: 300s")
        .upstream(LARGE)
        .start();
    let cut = |cause: &str| gate.metric_now("portvakt_cut_total", &[&format!("cause=\"{cause}\"")]);
    let not_before = |took: Duration| {
        println!("a whole answer that may take {WHOLE:?} ended after {took:?}");
        assert!(took >= WHOLE, "{took:?}");
    };
    // More than the buffers between the two sides.
    let big = format!("\"{}\"", "x".repeat(40 << 20));
    gate.upstream().reply(Reply::json(200, &big));

    let mut slow = Connection::open(&gate);
    let watch = Stopwatch::start();
    slow.send(&render(&gate.seal(&Call::plain()))).unwrap();
    let mut taken = 0;
    // It takes a little at each probe, until the connection has ended on both sides.
    eventually("the connection ends", || {
        let part = slow.exactly(16 * 1024);
        taken += part.as_ref().map_or(0, Vec::len);
        let is_cut = cut("slow_answer") > 0.0;
        part.is_err() || is_cut && gate.metric_now("portvakt_open_connections", &[]) == 0.0
    });
    gate.eventually_metric("portvakt_cut_total", &["cause=\"slow_answer\""], 1.0);
    not_before(watch.elapsed());
    taken += slow.rest().len();
    assert!(taken < big.len(), "{taken}");

    // Over HTTP/2 the stream is reset, and the connection goes on.
    let mut frames = Frames::open(&gate);
    let ask = || {
        let sealed = gate.seal(&Call::plain());
        let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
        block(&sealed, &path)
    };
    let watch = Stopwatch::start();
    frames.send(1, 0x5, 1, &ask()).unwrap();
    loop {
        let frame = frames.next().unwrap();
        if (frame.kind, frame.stream) == (3, 1) {
            break;
        }
        if frame.kind == 0 && !frame.payload.is_empty() {
            // This caller is slow on purpose.
            let_pass(Duration::from_millis(20));
            let granted = (frame.payload.len() as u32).to_be_bytes();
            for stream in [0, 1] {
                frames.send(8, 0, stream, &granted).unwrap();
            }
        }
    }
    not_before(watch.elapsed());
    gate.upstream().reply(Reply::json(200, "{}"));
    frames.send(1, 0x5, 3, &ask()).unwrap();
    assert_eq!(frames.outcome(3).unwrap().status(), Some(200));
    assert_eq!((cut("slow_answer"), cut("blocked_write")), (2.0, 0.0));
    // The gateway waited for the callers.
    let cut = ["outcome=\"cut\"", "fault=\"caller\""];
    gate.eventually_metric("portvakt_requests_total", &cut, 2.0);
}

//= HTTP-9 accepted
#[test]
fn an_answer_that_is_taken_slowly_and_in_time() {
    let gate = Gate::builder()
        .listener("write_timeout: 5s")
        .upstream(LARGE)
        .start();
    let big = format!("\"{}\"", "x".repeat(20 << 20));
    gate.upstream().reply(Reply::json(200, &big));
    let mut slow = Connection::open(&gate);
    slow.send(&render(&gate.seal(&Call::plain()))).unwrap();
    // Longer than one write may be blocked.
    let watch = Stopwatch::start();
    let mut taken = Vec::new();
    while watch.elapsed() < Duration::from_secs(6) {
        taken.extend(slow.exactly(64 * 1024).unwrap());
        let_pass(Duration::from_millis(25));
    }
    let head = taken
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    assert!(taken.starts_with(b"HTTP/1.1 200"));
    let left = head + 4 + big.len() - taken.len();
    taken.extend(slow.exactly(left).unwrap());
    assert!(taken.ends_with(big.as_bytes()));
    for cause in ["slow_answer", "blocked_write"] {
        let cause = format!("cause=\"{cause}\"");
        assert_eq!(gate.metric_at_rest("portvakt_cut_total", &[&cause]), 0.0);
    }
}

//= ERR-4 refused
//= HTTP-9 refused
#[test]
fn connections_from_one_address() {
    let gate = Gate::builder()
        .listener("max_connections_per_address: 2\n  first_byte_timeout: 60s")
        .start();
    let connector = Tls::default().connector(gate.world());
    let from = |last| Connection::from(Ipv4Addr::new(127, 0, 0, last), gate.address(), &connector);
    let mut held = [from(7).unwrap(), from(7).unwrap()];
    let mut third = from(7).unwrap();
    let sealed = gate.seal(&Call::plain());
    let answer = third.exchange(&sealed).unwrap();
    check_error(
        "the third",
        &answer,
        503,
        "SYSTEM_ERROR",
        "too-many-at-once",
    );
    gate.eventually_metric("portvakt_requests_total", &["fault=\"caller\""], 1.0);
    assert!(gate.upstream().saw_nothing());
    // Another address is served, and so are these two connections.
    assert_eq!(
        from(8)
            .unwrap()
            .exchange(&gate.seal(&Call::plain()))
            .unwrap()
            .status,
        200
    );
    for connection in &mut held {
        assert_eq!(
            connection
                .exchange(&gate.seal(&Call::plain()))
                .unwrap()
                .status,
            200
        );
    }
    drop(held);
    drop(third);
    gate.eventually_metric("portvakt_open_connections", &[], 0.0);
    assert_eq!(
        from(7)
            .unwrap()
            .exchange(&gate.seal(&Call::plain()))
            .unwrap()
            .status,
        200
    );
}

/// A connection counts from its acceptance, before it sends anything.
//= ERR-4 refused
#[test]
fn silent_connections_count() {
    let gate = Gate::builder()
        .listener("max_connections: 3\n  handshake_timeout: 60s")
        .start();
    let silent: Vec<_> = (0..3)
        .map(|_| TcpStream::connect(gate.address()).unwrap())
        .collect();
    for protocol in Protocol::ALL {
        let answer = gate.send(&Call::plain(), protocol);
        check_error("the fourth", &answer, 503, "SYSTEM_ERROR", "overloaded");
    }
    assert!(gate.upstream().saw_nothing());
    drop(silent);
    gate.eventually_metric("portvakt_open_connections", &[], 0.0);
    assert_eq!(gate.send(&Call::plain(), Protocol::Http1).status, 200);
}
