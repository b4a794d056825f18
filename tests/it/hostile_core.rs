//! A core that breaks HTTP: bodies where none are allowed, more bytes than announced, answers before the request, endless answers.
//! No caller gets another caller's answer; each gets a 502 or 504, or a closed connection.

/// Chunks that are not exact (FWD-7).
mod chunks;
/// Answers that could reach another caller (FWD-3).
mod crossing;
/// Endless and incomplete answers (FWD-7).
mod limits;
/// Long and slow answers (FWD-7).
mod sizes;

use crate::harness::{
    Call, Connection, Frames, Gate, LIMIT, Protocol, RAN_OUT, Reply, Seen, Tpp, block, check_error,
    field, render, world,
};
use std::{
    io::Write,
    net::TcpStream,
    sync::{
        Arc, Mutex,
        mpsc::{Sender, channel},
    },
    thread,
};

/// A call without a PSU and without a quota, so that it can be repeated without limit.
fn call(tpp: &Arc<Tpp>) -> Call {
    Call::plain().by(tpp)
}

/// A complete answer that contains its recipient.
fn answer_to(seen: &Seen) -> Vec<u8> {
    let tpp = seen.header("gateway-tpp-id").unwrap_or_default();
    let body = format!(r#"{{"for":"{tpp}"}}"#);
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Writes, and returns whether the other side still reads.
fn say(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

/// A core that sends these bytes to every request and closes.
fn sends(gate: &Gate, bytes: Vec<u8>) {
    gate.upstream().reply(Reply::Raw(bytes));
}

fn broken_answers(gate: &Gate) -> f64 {
    gate.metric_at_rest("portvakt_upstream_failures_total", &["garbage"])
}

/// A core that sends the first part of its answer, and the second one at [`ends`].
fn in_two_parts(gate: &Gate, first: &str, second: &str) -> Sender<()> {
    let [first, second] = [first, second].map(str::to_owned);
    let (go_on, told) = channel();
    let told = Mutex::new(told);
    gate.upstream().reply(Reply::play(move |_, stream| {
        let sent = say(stream, first.as_bytes());
        let told = told.lock().unwrap().recv_timeout(LIMIT);
        sent && told.is_ok() && say(stream, second.as_bytes())
    }));
    go_on
}

/// Calls a core of [`in_two_parts`], which goes on once the caller has the head of a 200. Returns whether the caller takes the answer for
/// complete.
fn ends(gate: &Gate, call: &Call, protocol: Protocol, go_on: &Sender<()>) -> bool {
    let sealed = gate.seal(call);
    if protocol == Protocol::Http1 {
        let mut connection = Connection::open(gate);
        connection.send(&render(&sealed)).unwrap();
        connection.begun().unwrap();
        go_on.send(()).unwrap();
        let answer = connection.answer(&sealed.request.method);
        let is_late = answer
            .as_ref()
            .is_err_and(|fault| fault.to_string().contains(RAN_OUT));
        assert!(!is_late, "{answer:?}");
        return answer.is_ok();
    }
    let mut frames = Frames::open(gate);
    let mut head = block(&sealed, &field(":path", sealed.request.target.as_bytes()));
    match &sealed.request.body {
        None => frames.send(1, 0x5, 1, &head).unwrap(),
        Some(body) => {
            head.extend(field("content-length", body.len().to_string().as_bytes()));
            frames.send(1, 0x4, 1, &head).unwrap();
            frames.send(0, 0x1, 1, body).unwrap();
        }
    }
    assert_eq!(frames.outcome(1).unwrap().status(), Some(200));
    go_on.send(()).unwrap();
    loop {
        let frame = frames.next().unwrap();
        match (frame.kind, frame.stream, frame.flags & 1) {
            (0 | 1, 1, 1) => return true,
            (3, 1, _) | (7, ..) => return false,
            _ => {}
        }
    }
}

/// The core's answer cannot be used, and counts as a broken one. Each request was sent once. The core may have executed the payment,
/// whatever is wrong with its answer (ERR-4, FWD-4).
fn is_refused(gate: &Gate, what: &str) {
    for (call, status, reason) in [
        (Call::plain(), 502, "upstream-error"),
        (Call::payment(), 504, "outcome-unknown"),
    ] {
        for protocol in call.protocols() {
            let before = broken_answers(gate);
            gate.upstream().take();
            let answer = gate.send(&call, *protocol);
            check_error(what, &answer, status, "SYSTEM_ERROR", reason);
            assert_eq!(gate.upstream().take().len(), 1, "{what}");
            assert_eq!(broken_answers(gate), before + 1.0, "{what}");
        }
    }
}

/// Two TPPs call this number of times at once, each on its own connection; `judge` gets the caller and the answer.
fn interleave(gate: &Gate, rounds: usize, judge: impl Fn(&str, &crate::harness::Answer) + Sync) {
    thread::scope(|scope| {
        for tpp in [&world().aisp, &world().pisp] {
            let judge = &judge;
            scope.spawn(move || {
                let id = tpp.id().unwrap();
                let mut connection = Connection::open(gate);
                for _ in 0..rounds {
                    let answer = connection.exchange(&gate.seal(&call(tpp))).unwrap();
                    judge(&id, &answer);
                }
            });
        }
    });
}
