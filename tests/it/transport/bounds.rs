//! Upper bounds on times, which hold only on a machine that does nothing else: `make bounds` runs these tests one after the other.

use super::in_flight::probe_beside_silent_callers;
use crate::harness::{Call, Connection, Frames, Gate, Reply, block, render, string, until_closed};
use portvakt::clock::Stopwatch;
use std::{net::TcpStream, time::Duration};

/// The longest that a connection stays open after its deadline (docs/edge.md).
const LATER: Duration = Duration::from_secs(2);

/// docs/edge.md: a probe takes 100 ms at most beside slow connections to the control listener. One in five may be delayed.
//= ERR-4 accepted
#[test]
#[ignore = "a bound on a time: make bounds"]
fn probes_beside_silent_callers() {
    let mut took = Vec::new();
    probe_beside_silent_callers(|probe| {
        let watch = Stopwatch::start();
        probe();
        took.push(watch.elapsed());
    });
    for five in took.chunks_mut(5) {
        five.sort();
        println!("five probes took {five:?}");
        assert!(five[2] < Duration::from_millis(100), "{five:?}");
        assert!(five[4] < Duration::from_secs(1), "{five:?}");
    }
}

/// Each deadline of a connection, at 400 ms: the connection has ended 2 s later.
//= HTTP-9 refused
#[test]
#[ignore = "a bound on a time: make bounds"]
fn connections_end_at_their_deadlines() {
    let gate = Gate::builder()
        .listener("handshake_timeout: 400ms")
        .listener("first_byte_timeout: 400ms")
        .listener("preface_timeout: 400ms")
        .listener("head_timeout: 400ms")
        .listener("answer_timeout: 400ms")
        .start();
    let soon = |what: &str, end: &mut dyn FnMut()| {
        let watch = Stopwatch::start();
        end();
        let took = watch.elapsed();
        println!("{what} took {took:?}");
        assert!(took <= LATER + Duration::from_millis(400), "{what}");
    };
    soon("a silent connection", &mut || {
        until_closed(&mut TcpStream::connect(gate.address()).unwrap());
    });
    soon("no byte after the handshake", &mut || {
        Connection::open(&gate).rest();
    });
    soon("half a head", &mut || {
        let mut connection = Connection::open(&gate);
        connection.send(b"GET /v1").unwrap();
        connection.rest();
    });
    soon("no preface", &mut || {
        assert_eq!(Frames::silent(&gate).goaway(), Some(4));
    });
    let sealed = gate.seal(&Call::plain());
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    soon("half a header block", &mut || {
        let mut frames = Frames::open(&gate);
        frames.send(1, 0x1, 1, &block(&sealed, &path)).unwrap();
        assert_eq!(frames.goaway(), Some(11));
    });
    gate.upstream()
        .reply(Reply::json(200, &format!("\"{}\"", "x".repeat(4 << 20))));
    soon("an answer that nobody takes", &mut || {
        let mut frames = Frames::open(&gate);
        let sealed = gate.seal(&Call::plain());
        let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
        frames.send(1, 0x5, 1, &block(&sealed, &path)).unwrap();
        while frames.next().unwrap().kind != 3 {}
    });
}

/// Forty answers that no window lets through are given up together after the time for a blocked write, and not one after the other.
//= HTTP-9 refused
#[test]
#[ignore = "a bound on a time: make bounds"]
fn blocked_answers_end_together() {
    let gate = Gate::builder().listener("write_timeout: 400ms").start();
    let mut frames = Frames::silent(&gate);
    frames.preface();
    // SETTINGS_INITIAL_WINDOW_SIZE.
    frames.send(4, 0, 0, &[0, 4, 0, 0, 0, 0]).unwrap();
    let watch = Stopwatch::start();
    for at in 0..40 {
        let sealed = gate.seal(&Call::plain());
        let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
        let head = block(&sealed, &path);
        frames.send(1, 0x5, 2 * at + 1, &head).unwrap();
    }
    let mut resets = 0;
    while resets < 40 {
        resets += u32::from(frames.next().unwrap().kind == 3);
    }
    let took = watch.elapsed();
    assert!(took <= LATER + Duration::from_millis(400), "{took:?}");
}

/// A body that is slower than the least rate is refused once the second after the free one has ended, long before `body_timeout`.
//= HTTP-9 refused
#[test]
#[ignore = "a bound on a time: make bounds"]
fn a_body_that_is_too_slow_ends_soon() {
    let gate = Gate::start();
    let watch = Stopwatch::start();
    let sealed = gate.seal(&Call::payment());
    let mut connection = Connection::open(&gate);
    let whole = render(&sealed);
    let body = sealed.request.body.as_ref().unwrap().len();
    connection.send(&whole[..whole.len() - body + 1]).unwrap();
    assert_eq!(connection.answer("POST").unwrap().status, 408);
    let took = watch.elapsed();
    assert!(took <= LATER + Duration::from_secs(2), "{took:?}");
}
