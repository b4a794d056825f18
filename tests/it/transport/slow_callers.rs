//! Callers who take their answers slowly do not keep the core busy: HTTP-9.

use super::acknowledged;
use crate::harness::{
    Call, Connection, Dice, Frames, Gate, Protocol, Reply, Seen, block, check_error, eventually,
    let_pass, render, string,
};
use std::{collections::BTreeMap, io::Write, net::TcpStream, time::Duration};

/// No write to a caller who takes nothing ends before the test does.
const PATIENT: &str = "write_timeout: 300s";

/// What an HTTP/2 caller takes of an answer without a WINDOW_UPDATE.
const WINDOW: usize = 65_535;

const MIB: usize = 1 << 20;

/// The most that a part of the core's answer takes.
const PART: usize = 64 * 1024 + 128;

/// A body that tells where a byte is missing.
fn body(length: usize) -> String {
    let numbers: String = (0..length / 8)
        .map(|number| format!("{number:08}"))
        .collect();
    format!("\"{}\"", &numbers[..length - 2])
}

fn at_core(gate: &Gate) -> f64 {
    gate.metric_now("portvakt_upstream_in_flight", &[])
}

fn read_ahead(gate: &Gate) -> f64 {
    gate.metric_now("portvakt_read_ahead_bytes", &[])
}

/// Sends a GET over HTTP/2, and takes no more of the answer than the first window.
fn ask(gate: &Gate) -> Frames {
    let sealed = gate.seal(&Call::plain());
    let path = [&[0x04][..], &string(sealed.request.target.as_bytes())].concat();
    let mut frames = Frames::open(gate);
    frames.send(1, 0x5, 1, &block(&sealed, &path)).unwrap();
    frames
}

/// Takes what the first window lets through.
fn first_window(frames: &mut Frames) -> Vec<u8> {
    let mut taken = Vec::new();
    while taken.len() < WINDOW {
        let frame = frames.next().unwrap();
        assert!(!matches!(frame.kind, 3 | 7), "{frame:?}");
        if frame.kind == 0 {
            taken.extend(&frame.payload);
        }
    }
    taken
}

/// Takes the answer to its end: its body, and whether it is whole.
fn take(frames: &mut Frames) -> (Vec<u8>, bool) {
    take_after(frames, Vec::new())
}

/// The same after the bytes that were taken before, which are acknowledged now.
fn take_after(frames: &mut Frames, mut taken: Vec<u8>) -> (Vec<u8>, bool) {
    if !taken.is_empty() {
        let granted = (taken.len() as u32).to_be_bytes();
        for stream in [0, 1] {
            frames.send(8, 0, stream, &granted).unwrap();
        }
    }
    loop {
        let frame = frames.next().unwrap();
        match (frame.kind, frame.stream) {
            (0, 1) => taken.extend(&frame.payload),
            (3, 1) => return (taken, false),
            _ => continue,
        }
        if frame.flags & 1 == 1 {
            return (taken, true);
        }
        let granted = (frame.payload.len() as u32).to_be_bytes();
        for stream in [0, 1] {
            frames.send(8, 0, stream, &granted).unwrap();
        }
    }
}

/// The core is done before the caller takes the answer, which then is whole. Until then the request keeps its place.
//= HTTP-9 accepted
#[test]
fn the_core_does_not_wait_for_a_slow_caller() {
    let gate = Gate::builder()
        .listener(PATIENT)
        .upstream("max_in_flight_per_tpp: 1")
        .start();
    let big = body(MIB);
    gate.upstream().reply(Reply::json(200, &big));
    let mut frames = ask(&gate);
    eventually("read ahead", || {
        at_core(&gate) == 0.0 && read_ahead(&gate) > 0.0
    });
    let ahead = read_ahead(&gate) as usize;
    assert!((MIB - 2 * PART..=MIB + PART).contains(&ahead), "{ahead}");
    let another = gate.send(&Call::plain(), Protocol::Http1);
    check_error(
        "its place",
        &another,
        503,
        "SYSTEM_ERROR",
        "too-many-at-once",
    );
    let (taken, is_whole) = take(&mut frames);
    assert!(is_whole && taken == big.as_bytes(), "{}", taken.len());
    eventually("taken", || read_ahead(&gate) == 0.0);
    gate.upstream().reply(Reply::json(200, "{}"));
    assert_eq!(gate.send(&Call::plain(), Protocol::Http1).status, 200);
}

/// A core's answer in chunks of all sizes, whose body repeats the path and a counter.
fn answer_in_chunks(seen: &Seen, stream: &mut TcpStream) -> bool {
    let body = body_of(&seen.target);
    let mut sent =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec();
    let mut dice = Dice(body.len() as u64);
    let mut left = body.as_bytes();
    while !left.is_empty() {
        let most = if dice.one_in(2) { 9 } else { 30_000 };
        let (chunk, rest) = left.split_at(left.len().min(1 + dice.below(most) as usize));
        sent.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
        sent.extend(chunk);
        sent.extend(b"\r\n");
        left = rest;
    }
    sent.extend(b"0\r\n\r\n");
    stream.write_all(&sent).is_ok()
}

fn body_of(path: &str) -> String {
    let lines: String = (0..3_000 + path.len() * 100)
        .map(|number| format!("{path} {number:08} "))
        .collect();
    format!("\"{lines}\"")
}

/// Callers who take a few bytes now and then are slow, too. Answers of one connection arrive whole, in whatever order they are taken.
//= HTTP-9 accepted
#[test]
fn answers_that_are_taken_in_turns() {
    let gate = Gate::builder().listener(PATIENT).start();
    gate.upstream().reply(Reply::play(answer_in_chunks));
    let mut frames = Frames::silent(&gate);
    frames.preface();
    // SETTINGS_INITIAL_WINDOW_SIZE of 1, and the largest window of the connection.
    frames.send(4, 0, 0, &[0, 4, 0, 0, 0, 1]).unwrap();
    frames.send(8, 0, 0, &[0x7f, 0, 0, 0]).unwrap();
    let mut open = BTreeMap::new();
    for at in 0..12 {
        let path = format!("/v1/signing-baskets/{}", "b".repeat(1 + at));
        let stream = 2 * at as u32 + 1;
        acknowledged::request(&gate, &mut frames, stream, &Call::new("GET", &path));
        open.insert(stream, (path, Vec::<u8>::new(), 1_usize));
    }
    let mut dice = Dice(7);
    let mut rounds = 0;
    while !open.is_empty() {
        // All windows are used up, or their answers have ended.
        while open.values().any(|(_, _, window)| *window > 0) {
            let frame = frames.next().unwrap();
            assert!(!matches!(frame.kind, 3 | 7), "{frame:?}");
            let Some((path, taken, window)) = open.get_mut(&frame.stream) else {
                continue;
            };
            if frame.kind == 0 {
                *window -= frame.payload.len();
                taken.extend(&frame.payload);
            }
            if frame.flags & 1 == 1 {
                assert!(taken == body_of(path).as_bytes(), "{path}");
                open.remove(&frame.stream);
            }
        }
        rounds += 1;
        let trickle = rounds <= 10;
        if trickle {
            // These callers are slow on purpose.
            let_pass(Duration::from_millis(50));
        }
        if rounds == 10 {
            gate.eventually_metric("portvakt_upstream_in_flight", &[], 0.0);
        }
        for (stream, (_, _, window)) in &mut open {
            if trickle || dice.one_in(2) {
                let more = if trickle {
                    1
                } else {
                    1 + dice.below(40_000) as u32
                };
                *window += more as usize;
                frames.send(8, 0, *stream, &more.to_be_bytes()).unwrap();
            }
        }
    }
    eventually("taken", || read_ahead(&gate) == 0.0);
}

/// Many small chunks take no more memory than their bytes.
//= HTTP-9 accepted
#[test]
fn an_answer_in_chunks_of_one_byte() {
    const LENGTH: usize = 200_000;
    let gate = Gate::builder().listener(PATIENT).start();
    gate.upstream().reply(Reply::play(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunks: String = body(LENGTH).chars().map(|byte| format!("1\r\n{byte}\r\n")).collect();
        let sent = format!("{head}{chunks}0\r\n\r\n");
        stream.write_all(sent.as_bytes()).is_ok()
    }));
    let mut frames = ask(&gate);
    eventually("read ahead", || {
        at_core(&gate) == 0.0 && read_ahead(&gate) > 0.0
    });
    let ahead = read_ahead(&gate) as usize;
    assert!(ahead <= LENGTH + PART, "{ahead}");
    let (taken, is_whole) = take(&mut frames);
    assert!(is_whole && taken == body(LENGTH).as_bytes());
    eventually("taken", || read_ahead(&gate) == 0.0);
}

/// An answer that found the memory used up is read on when there is some again.
//= HTTP-9 accepted
#[test]
fn memory_that_is_free_again_is_used() {
    let gate = Gate::builder()
        .listener(PATIENT)
        .listener("read_ahead: 1MiB")
        .start();
    let big = body(MIB + 3 * PART);
    gate.upstream().reply(Reply::json(200, &big));
    let first = ask(&gate);
    eventually("used up", || read_ahead(&gate) as usize >= MIB);
    gate.upstream().reply(Reply::json(200, &body(MIB / 2)));
    let second = ask(&gate);
    eventually("second", || at_core(&gate) >= 1.0);
    drop(first);
    eventually("read on", || {
        at_core(&gate) == 0.0 && read_ahead(&gate) > 0.0
    });
    drop(second);
    eventually("left", || read_ahead(&gate) == 0.0);
}

/// Over HTTP/1.1, and with more than is read ahead of one answer: the rest waits with the core.
//= HTTP-9 accepted
#[test]
fn the_rest_of_a_large_answer_waits_with_the_core() {
    let gate = Gate::builder()
        .listener(PATIENT)
        .upstream("max_answer_size: 64MiB")
        .start();
    let big = body(40 * MIB);
    gate.upstream().reply(Reply::json(200, &big));
    let mut slow = Connection::open(&gate);
    slow.send(&render(&gate.seal(&Call::plain()))).unwrap();
    eventually("read ahead", || read_ahead(&gate) as usize >= 2 * MIB);
    let first = slow.exactly(1024).unwrap();
    assert!(first.starts_with(b"HTTP/1.1 200"));
    assert!(read_ahead(&gate) as usize <= 2 * MIB + PART);
    assert_eq!(at_core(&gate), 1.0);
    let head = first.windows(4).position(|four| four == b"\r\n\r\n");
    let head = head.unwrap() + 4;
    let mut taken = first[head..].to_vec();
    taken.extend(slow.exactly(big.len() - taken.len()).unwrap());
    assert!(taken == big.as_bytes());
    eventually("taken", || {
        read_ahead(&gate) == 0.0 && at_core(&gate) == 0.0
    });
}

//= HTTP-9 accepted
#[test]
fn all_answers_share_the_memory() {
    for (listener, most) in [("read_ahead: 1MiB", MIB + 3 * PART), ("read_ahead: off", 0)] {
        let gate = Gate::builder().listener(PATIENT).listener(listener).start();
        let big = body(MIB);
        gate.upstream().reply(Reply::json(200, &big));
        let mut asked: Vec<_> = (0..3).map(|_| ask(&gate)).collect();
        // All three answers have begun, and their callers take no more.
        let begun: Vec<_> = asked.iter_mut().map(first_window).collect();
        eventually("as much is read ahead as may be", || {
            let ahead = read_ahead(&gate) as usize;
            assert!(ahead <= most, "{listener}: {ahead}");
            let is_full = ahead >= most.saturating_sub(4 * PART);
            is_full.then_some(()).ok_or(ahead)
        });
        assert!(at_core(&gate) >= 2.0, "{listener}");
        for (frames, begun) in asked.iter_mut().zip(begun) {
            let (taken, is_whole) = take_after(frames, begun);
            assert!(is_whole && taken == big.as_bytes(), "{listener}");
        }
        eventually("taken", || {
            read_ahead(&gate) == 0.0 && at_core(&gate) == 0.0
        });
    }
}

/// An answer that the core breaks off does not look whole, and one that nobody takes leaves nothing.
//= HTTP-9 refused
#[test]
fn what_is_read_ahead_ends_with_its_answer() {
    let gate = Gate::builder().listener(PATIENT).start();
    let big = body(MIB);
    let half = big[..MIB / 2].to_owned();
    gate.upstream().reply(Reply::play(move |_, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {MIB}\r\n\r\n"
        );
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(half.as_bytes());
        false
    }));
    let (taken, is_whole) = take(&mut ask(&gate));
    assert!(!is_whole && taken.len() < MIB, "{}", taken.len());
    assert!(big.as_bytes().starts_with(&taken));
    eventually("broken off", || {
        read_ahead(&gate) == 0.0 && at_core(&gate) == 0.0
    });

    gate.upstream().reply(Reply::json(200, &big));
    let leaving = ask(&gate);
    eventually("read ahead", || read_ahead(&gate) > 0.0);
    drop(leaving);
    eventually("left", || read_ahead(&gate) == 0.0);

    let gate = Gate::builder().listener("write_timeout: 700ms").start();
    gate.upstream().reply(Reply::json(200, &big));
    let mut asked = ask(&gate);
    let cut = || gate.metric_now("portvakt_cut_total", &["cause=\"blocked_write\""]);
    eventually("read ahead, or cut since", || {
        read_ahead(&gate) > 0.0 || cut() > 0.0
    });
    eventually("cut", || cut() > 0.0 && read_ahead(&gate) == 0.0);
    let mut taken = 0;
    loop {
        let frame = asked.next().unwrap();
        match frame.kind {
            0 => taken += frame.payload.len(),
            3 => break,
            _ => {}
        }
    }
    assert_eq!(taken, WINDOW);
    assert_eq!(cut(), 1.0);
}
