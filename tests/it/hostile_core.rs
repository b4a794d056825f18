//! A core that breaks HTTP: bodies where none are allowed, more bytes than announced, answers before the request, endless answers.
//! No caller gets another caller's answer; each gets a 502 or 504, or a closed connection.

/// Answers that could reach another caller (FWD-3).
mod crossing;
/// Endless and incomplete answers (FWD-7).
mod limits;
/// Long and slow answers (FWD-7).
mod sizes;

use crate::harness::{Call, Gate, Seen, Tpp, world};
use std::{io::Write, net::TcpStream, sync::Arc, thread};

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

/// Two TPPs call this number of times at once, each on its own connection; `judge` gets the caller and the answer.
fn interleave(gate: &Gate, rounds: usize, judge: impl Fn(&str, &crate::harness::Answer) + Sync) {
    thread::scope(|scope| {
        for tpp in [&world().aisp, &world().pisp] {
            let judge = &judge;
            scope.spawn(move || {
                let id = tpp.id().unwrap();
                let mut connection = crate::harness::Connection::open(gate);
                for _ in 0..rounds {
                    let answer = connection.exchange(&gate.seal(&call(tpp))).unwrap();
                    judge(&id, &answer);
                }
            });
        }
    });
}
