//! Limits of a connection in size and time: HTTP-9.

use crate::harness::{
    Call, Connection, Frames, Gate, Protocol, Reply, Tls, accepted, block, check_error, field,
    frame, refused, render, string,
};
use portvakt::clock::Stopwatch;
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    thread,
    time::Duration,
};

/// Deadlines that are short enough for a test.
const SHORT: &str = "handshake_timeout: 400ms\n  preface_timeout: 400ms\n  head_timeout: 400ms\n  write_timeout: 400ms";

/// Answers that exceed the buffers between the two sides.
const LARGE: &str = "max_answer_size: 64MiB";

/// The tolerance after a deadline. The rule's own limit is 2 s.
const LATER: Duration = Duration::from_secs(8);

/// A gate whose deadlines are [`SHORT`].
fn hasty() -> Gate {
    Gate::builder().listener(SHORT).start()
}

/// Asserts that a connection ends neither before the deadline nor long after.
fn in_time(what: &str, until: impl FnOnce()) {
    let watch = Stopwatch::start();
    until();
    let took = watch.elapsed();
    let deadline = Duration::from_millis(400);
    assert!(
        took >= deadline - Duration::from_millis(50) && took <= deadline + LATER,
        "{what}: {took:?}"
    );
}

//= HTTP-9 refused
//= ERR-8 refused
#[test]
fn a_head_that_does_not_come_in_time() {
    let gate = hasty();
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
        in_time(what, || {
            let mut at = 0;
            let begun = Stopwatch::start();
            while begun.elapsed() < Duration::from_millis(380) {
                let part = next(at);
                if !part.is_empty() && connection.send(part).is_err() {
                    break;
                }
                at += 1;
                thread::sleep(Duration::from_millis(20));
            }
            let answer = connection.answer("GET").unwrap();
            check_error(what, &answer, 408, "BAD_REQUEST", "request-timeout");
            assert_eq!(answer.header("connection"), Some("close"));
            assert_eq!(answer.header("server"), None);
        });
        assert!(connection.rest().is_empty());
    }
    assert!(gate.upstream().saw_nothing());
    let cut = gate.metric("portvakt_cut_total", &["cause=\"slow_head\""]);
    assert_eq!(cut, ways.len() as f64);
    let lines = gate.metric("portvakt_refusals_total", &["reason=\"request-timeout\""]);
    assert_eq!(
        lines,
        ways.len() as f64,
        "each is counted as any other refusal"
    );
}

/// A slow head is accepted within the deadline, and a connection may be idle between requests.
//= HTTP-9 accepted
#[test]
fn a_head_in_parts() {
    let gate = Gate::builder().listener("head_timeout: 2s").start();
    let mut connection = Connection::open(&gate);
    for size in [1, 7, 100, 4_096] {
        let sealed = gate.seal(&Call::payment());
        for part in render(&sealed).chunks(size) {
            connection.send(part).unwrap();
        }
        assert_eq!(connection.answer("POST").unwrap().status, 200, "{size}");
    }
    thread::sleep(Duration::from_millis(2_200));
    let sealed = gate.seal(&Call::plain());
    assert_eq!(connection.exchange(&sealed).unwrap().status, 200);
    assert_eq!(gate.upstream().take().len(), 5);
}

//= HTTP-9 refused
#[test]
fn frames_that_do_not_come_in_time() {
    let gate = hasty();
    let sealed = gate.seal(&Call::plain());
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    let whole = block(&sealed, &path);
    // No preface, an incomplete preface, no SETTINGS.
    for sent in [0, 10, 24] {
        let mut frames = Frames::silent(&gate);
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        frames.bytes(&preface[..sent]).unwrap();
        in_time("no preface", || {
            assert!(matches!(frames.goaway(), Some(4)), "{sent}");
        });
    }
    // A header block without an end, a frame without its last byte, an incomplete frame header.
    let mut lacking = frame(1, 0x5, 1, &whole);
    lacking.pop();
    for sent in [frame(1, 0x1, 1, &whole), lacking, vec![0, 0]] {
        let mut frames = Frames::open(&gate);
        frames.bytes(&sent).unwrap();
        in_time("half a head", || assert_eq!(frames.goaway(), Some(11)));
    }
    let cut = |cause| gate.metric("portvakt_cut_total", &[cause]);
    assert_eq!(
        (cut("cause=\"slow_preface\""), cut("cause=\"slow_head\"")),
        (3.0, 3.0)
    );
    assert!(gate.upstream().saw_nothing());
}

//= HTTP-9 refused
#[test]
fn a_handshake_that_does_not_come_in_time() {
    let gate = hasty();
    let mut stream = TcpStream::connect(gate.address()).unwrap();
    in_time("a silent connection", || {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let slow = || gate.metric("portvakt_handshakes_total", &["outcome=\"too_slow\""]);
    // The connection ends a moment before it is counted.
    let watch = Stopwatch::start();
    while slow() < 0.5 {
        assert!(watch.elapsed() < LATER, "it is not counted");
    }
    // A client that speaks HTTP without TLS gets no answer, and is counted.
    let mut stream = TcpStream::connect(gate.address()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    let failed = || gate.metric("portvakt_handshakes_total", &["outcome=\"failed\""]);
    let watch = Stopwatch::start();
    while failed() < 0.5 {
        assert!(watch.elapsed() < LATER, "it is not counted");
    }
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
    let gate = Gate::builder().listener(SHORT).upstream(LARGE).start();
    let big = format!("\"{}\"", "x".repeat(40 << 20));
    gate.upstream().reply(Reply::json(200, &big));
    let mut connection = Connection::open(&gate);
    connection
        .send(&render(&gate.seal(&Call::plain())))
        .unwrap();
    let cuts = || gate.metric("portvakt_cut_total", &["cause=\"blocked_write\""]);
    in_time("blocked", || {
        while cuts() < 1.0 || gate.metric("portvakt_open_connections", &[]) > 0.0 {
            thread::sleep(Duration::from_millis(20));
        }
    });
    // Over HTTP/2, a window that never opens.
    let sealed = gate.seal(&Call::plain());
    let mut frames = Frames::open(&gate);
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    frames.send(1, 0x5, 1, &block(&sealed, &path)).unwrap();
    in_time("no window", || while frames.next().unwrap().kind != 3 {});
}

/// A slow reader never blocks one write for long: the time-out of the whole answer ends the connection.
//= HTTP-9 refused
#[test]
fn an_answer_that_is_taken_slowly() {
    const WHOLE: Duration = Duration::from_millis(1_500);
    let gate = Gate::builder()
        .listener("answer_timeout: 1500ms")
        .upstream(LARGE)
        .start();
    let cut = |cause: &str| gate.metric("portvakt_cut_total", &[&format!("cause=\"{cause}\"")]);
    let on_time = |took: Duration| {
        println!("a whole answer that may take {WHOLE:?} ended after {took:?}");
        assert!(took >= WHOLE && took <= WHOLE + LATER, "{took:?}");
    };
    // More than the buffers between the two sides.
    let big = format!("\"{}\"", "x".repeat(40 << 20));
    gate.upstream().reply(Reply::json(200, &big));

    let mut slow = Connection::open(&gate);
    let watch = Stopwatch::start();
    slow.send(&render(&gate.seal(&Call::plain()))).unwrap();
    let mut taken = 0;
    while cut("slow_answer") == 0.0 || gate.metric("portvakt_open_connections", &[]) > 0.0 {
        assert!(watch.elapsed() <= WHOLE + LATER, "it stays open");
        taken += slow.exactly(16 * 1024).unwrap().len();
        thread::sleep(Duration::from_millis(20));
    }
    on_time(watch.elapsed());
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
            thread::sleep(Duration::from_millis(20));
            let granted = (frame.payload.len() as u32).to_be_bytes();
            for stream in [0, 1] {
                frames.send(8, 0, stream, &granted).unwrap();
            }
        }
    }
    on_time(watch.elapsed());
    gate.upstream().reply(Reply::json(200, "{}"));
    frames.send(1, 0x5, 3, &ask()).unwrap();
    assert_eq!(frames.outcome(3).unwrap().status(), Some(200));
    assert_eq!((cut("slow_answer"), cut("blocked_write")), (2.0, 0.0));
    // The gateway waited for the callers.
    let cut = ["outcome=\"cut\"", "fault=\"caller\""];
    assert_eq!(gate.metric("portvakt_requests_total", &cut), 2.0);
}

//= HTTP-9 accepted
#[test]
fn an_answer_that_is_taken_slowly_and_in_time() {
    let gate = Gate::builder()
        .listener("write_timeout: 2s")
        .upstream(LARGE)
        .start();
    let big = format!("\"{}\"", "x".repeat(20 << 20));
    gate.upstream().reply(Reply::json(200, &big));
    let mut slow = Connection::open(&gate);
    slow.send(&render(&gate.seal(&Call::plain()))).unwrap();
    // Three times as long as one write may be blocked.
    let watch = Stopwatch::start();
    let mut taken = Vec::new();
    while watch.elapsed() < Duration::from_secs(6) {
        taken.extend(slow.exactly(64 * 1024).unwrap());
        thread::sleep(Duration::from_millis(25));
    }
    let head = taken
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    assert!(taken.starts_with(b"HTTP/1.1 200"));
    let left = head + 4 + big.len() - taken.len();
    taken.extend(slow.exactly(left).unwrap());
    assert!(taken.ends_with(big.as_bytes()));
    assert_eq!(
        gate.metric("portvakt_cut_total", &["cause=\"slow_answer\""]),
        0.0
    );
}

//= ERR-4 refused
//= HTTP-9 refused
#[test]
fn connections_from_one_address() {
    let gate = Gate::builder()
        .listener("max_connections_per_address: 2")
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
    let by_callers = gate.metric("portvakt_requests_total", &["fault=\"caller\""]);
    assert_eq!(by_callers, 1.0);
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
    for _ in 0..200 {
        if gate.metric("portvakt_open_connections", &[]) == 0.0 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
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
    let gate = Gate::builder().listener("max_connections: 3").start();
    let silent: Vec<_> = (0..3)
        .map(|_| TcpStream::connect(gate.address()).unwrap())
        .collect();
    for protocol in Protocol::ALL {
        let answer = gate.send(&Call::plain(), protocol);
        check_error("the fourth", &answer, 503, "SYSTEM_ERROR", "overloaded");
    }
    assert!(gate.upstream().saw_nothing());
    drop(silent);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(gate.send(&Call::plain(), Protocol::Http1).status, 200);
}
