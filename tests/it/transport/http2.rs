//! HTTP/2 connections in time and size: slow heads and bodies, ordinary clients that the library's own limits would end, and the end
//! of idle connections (HTTP-9).

use crate::harness::{
    Call, Connection, Frames, Gate, Protocol, Sealed, accepted, block, eventually, field, frame,
    let_pass, render_head, string,
};
use portvakt::clock::Stopwatch;
use std::time::Duration;

/// END_STREAM, END_HEADERS, and both.
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const WHOLE: u8 = 0x5;

/// The header block of a request.
fn head(sealed: &Sealed) -> Vec<u8> {
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    block(sealed, &path)
}

/// The header block of a request with a body of this length.
fn head_with(sealed: &Sealed, length: usize) -> Vec<u8> {
    let mut block = head(sealed);
    block.extend(field("content-length", length.to_string().as_bytes()));
    block
}

/// Reads the answer of a stream to its end, and returns the body.
fn body_of(frames: &mut Frames, stream: u32) -> String {
    let mut body = Vec::new();
    loop {
        let frame = frames.next().unwrap();
        assert!(frame.kind != 7 && (frame.kind, frame.stream) != (3, stream));
        if frame.stream == stream && frame.kind == 0 {
            body.extend_from_slice(&frame.payload);
        }
        if frame.stream == stream && frame.flags & END_STREAM != 0 {
            return String::from_utf8(body).unwrap();
        }
    }
}

/// The deadline of a head counts from its first byte to its last one, over all of its frames.
//= HTTP-9 refused
#[test]
fn a_head_in_slow_frames() {
    let deadline = Duration::from_secs(1);
    let gate = Gate::builder().listener("head_timeout: 1s").start();
    let whole = head(&gate.seal(&Call::plain()));
    let (first, rest) = whole.split_at(20);
    let empty: Vec<_> = (0..5).map(|_| frame(9, 0, 1, &[])).collect();
    let bytes = rest
        .iter()
        .take(3)
        .flat_map(|byte| frame(9, 0, 1, &[*byte]));
    let bytes: Vec<_> = bytes.map(|byte| vec![byte]).collect();
    let ways = [
        ("empty frames", &empty, 250),
        ("one byte at a time", &bytes, 45),
    ];
    for (what, parts, pause) in ways {
        let mut frames = Frames::open(&gate);
        let watch = Stopwatch::start();
        frames.send(1, 0, 1, first).unwrap();
        for part in parts {
            if watch.elapsed() > deadline || frames.bytes(part).is_err() {
                break;
            }
            // This client is slow on purpose.
            let_pass(Duration::from_millis(pause));
        }
        assert!(matches!(frames.goaway(), Some(11) | None), "{what}");
        let took = watch.elapsed();
        let early = deadline - Duration::from_millis(50);
        assert!(took >= early, "{what}: {took:?}");
    }
    let slow = ["cause=\"slow_head\""];
    gate.eventually_metric("portvakt_cut_total", &slow, ways.len() as f64);
    assert!(gate.upstream().saw_nothing());
}

/// A head within the limits may have several CONTINUATION frames.
//= HTTP-9 accepted
#[test]
fn a_head_in_eight_frames() {
    let gate = Gate::start();
    let sealed = gate.seal(&Call::plain().with("X-Long", &"x".repeat(24 * 1024)));
    let whole = head(&sealed);
    let parts: Vec<_> = whole.chunks(whole.len().div_ceil(8)).collect();
    assert_eq!(parts.len(), 8);
    let mut frames = Frames::open(&gate);
    for (at, part) in parts.iter().enumerate() {
        let end = if at == 7 { END_HEADERS } else { 0 };
        match at {
            0 => frames.send(1, END_STREAM, 1, part).unwrap(),
            _ => frames.send(9, end, 1, part).unwrap(),
        }
    }
    assert_eq!(frames.outcome(1).unwrap().status(), Some(200));
}

/// A body in many small DATA frames that arrive at once.
//= HTTP-9 accepted
#[test]
fn a_body_in_many_frames() {
    let gate = Gate::start();
    let json = format!(r#"{{"a":"{}"}}"#, "x".repeat(6_000));
    let sealed = gate.seal(&Call::payment().json(&json));
    let body = sealed.request.body.clone().unwrap();
    let mut sent = frame(1, END_HEADERS, 1, &head_with(&sealed, body.len()));
    let parts: Vec<_> = body.chunks(body.len().div_ceil(150)).collect();
    for (at, part) in parts.iter().enumerate() {
        let end = if at + 1 == parts.len() { END_STREAM } else { 0 };
        sent.extend(frame(0, end, 1, part));
    }
    assert_eq!(parts.len(), 147, "of 41 bytes");
    let mut frames = Frames::open(&gate);
    frames.bytes(&sent).unwrap();
    assert_eq!(frames.outcome(1).unwrap().status(), Some(200));
    assert_eq!(gate.upstream().take().len(), 1);
}

/// A client that cancels all its requests at once, and goes on.
//= HTTP-9 accepted
#[test]
fn requests_that_are_cancelled() {
    let gate = Gate::start();
    let mut frames = Frames::open(&gate);
    let mut sent = Vec::new();
    let streams = (0..50).map(|at| 2 * at + 1);
    for stream in streams.clone() {
        let sealed = gate.seal(&Call::plain());
        sent.extend(frame(1, WHOLE, stream, &head(&sealed)));
    }
    for stream in streams {
        sent.extend(frame(3, 0, stream, &[0, 0, 0, 8]));
    }
    frames.bytes(&sent).unwrap();
    let sealed = gate.seal(&Call::plain());
    frames.send(1, WHOLE, 101, &head(&sealed)).unwrap();
    assert_eq!(frames.outcome(101).unwrap().status(), Some(200));
}

/// RFC 9113, section 6.8: the end of an idle connection is announced.
//= HTTP-9 accepted
#[test]
fn the_end_of_an_idle_connection() {
    let gate = Gate::builder().listener("keepalive: 1s").start();
    let sealed = gate.seal(&Call::plain());
    let mut frames = Frames::open(&gate);
    frames.send(1, WHOLE, 1, &head(&sealed)).unwrap();
    assert_eq!(frames.outcome(1).unwrap().status(), Some(200));
    let goaway = loop {
        let frame = frames.next().unwrap();
        if frame.kind == 7 {
            break frame;
        }
    };
    // Stream 1 was processed; NO_ERROR.
    assert_eq!(goaway.payload, [0, 0, 0, 1, 0, 0, 0, 0]);
    assert!(frames.next().is_err(), "the connection is closed");
}

/// The least rate of a body, over both protocols, long before `body_timeout`. Over HTTP/2, the other requests of the connection go on.
//= HTTP-9 refused
//= ERR-8 refused
#[test]
fn a_body_that_is_slower_than_the_least_rate() {
    let gate = Gate::builder().listener("body_timeout: 60s").start();
    let sealed = gate.seal(&Call::payment());
    let watch = Stopwatch::start();
    let mut connection = Connection::open(&gate);
    connection.send(&render_head(&sealed)).unwrap();
    connection.send(b"{").unwrap();
    let answer = connection.answer("POST").unwrap();
    assert_eq!(
        (answer.status, answer.reason()),
        (408, "request-timeout".into())
    );
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(connection.rest().is_empty(), "the connection is closed");
    not_before(&watch);

    let mut frames = Frames::open(&gate);
    let watch = Stopwatch::start();
    let sealed = gate.seal(&Call::payment());
    let length = sealed.request.body.as_ref().unwrap().len();
    let head_of_body = head_with(&sealed, length);
    frames.send(1, END_HEADERS, 1, &head_of_body).unwrap();
    frames.send(0, 0, 1, b"{").unwrap();
    assert!(body_of(&mut frames, 1).contains("request-timeout"));
    not_before(&watch);
    assert!(gate.upstream().saw_nothing());
    let sealed = gate.seal(&Call::plain());
    frames.send(1, WHOLE, 3, &head(&sealed)).unwrap();
    assert_eq!(frames.outcome(3).unwrap().status(), Some(200));
    let late = ["reason=\"request-timeout\""];
    gate.eventually_metric("portvakt_refusals_total", &late, 2.0);
}

/// The first second is free, and the second one needs its bytes.
fn not_before(watch: &Stopwatch) {
    let took = watch.elapsed();
    assert!(took >= Duration::from_millis(1_950), "{took:?}");
}

/// A body above the least rate, and any rate where none is configured.
//= HTTP-9 accepted
#[test]
fn a_body_that_is_fast_enough() {
    let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(6_000));
    let call = Call::payment().json(&text);
    let gate = Gate::start();
    accepted(&gate, &call);
    // A small body that comes late in the second second; a busy machine may send it even later, and then this begins again.
    eventually("a body within two seconds", || {
        let mut connection = Connection::open(&gate);
        let sealed = gate.seal(&call.clone().only(Protocol::Http1));
        let watch = Stopwatch::start();
        connection.send(&render_head(&sealed)).unwrap();
        let_pass(Duration::from_millis(1_300));
        let sent = connection.send(text.as_bytes());
        let is_in_time = sent.is_ok() && watch.elapsed() < Duration::from_millis(1_900);
        let answer = connection.answer("POST");
        let status = answer.as_ref().map(|answer| answer.status);
        assert!(!is_in_time || matches!(status, Ok(200)), "{answer:?}");
        is_in_time
    });
    // 6 KB in 2 s, of which the least rate takes a fraction, so that a pause of a busy machine does not matter; and one byte in 2.5 s.
    let slow = Gate::builder()
        .listener("min_body_rate: 64\n  body_timeout: 60s")
        .start();
    let off = Gate::builder()
        .listener("min_body_rate: off\n  body_timeout: 60s")
        .start();
    for (gate, first, pauses) in [(&slow, 750, 8), (&off, 1, 6)] {
        let sealed = gate.seal(&call.clone().only(Protocol::Http2));
        let mut frames = Frames::open(gate);
        let head = head_with(&sealed, text.len());
        frames.send(1, END_HEADERS, 1, &head).unwrap();
        let (early, late) = text.as_bytes().split_at(first);
        frames.send(0, 0, 1, early).unwrap();
        let parts: Vec<_> = late.chunks(late.len().div_ceil(pauses)).collect();
        if first == 1 {
            // More than the time in which a least rate would need more bytes.
            let_pass(Duration::from_millis(2_500));
        }
        for part in parts {
            if first > 1 {
                // This client is slow on purpose.
                let_pass(Duration::from_millis(250));
            }
            frames.send(0, 0, 1, part).unwrap();
        }
        frames.send(0, END_STREAM, 1, &[]).unwrap();
        assert_eq!(frames.outcome(1).unwrap().status(), Some(200));
    }
}
