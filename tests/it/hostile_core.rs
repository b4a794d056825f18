//! A core that answers what no core should: bodies where there are none, more than it announced, before it was asked, without
//! end. Whatever it does, no caller gets what was meant for another, and each gets a clear 502 or 504, or a connection that is cut.

/// One caller gets another's answer (FWD-3).
mod crossing;
/// Answers without end, or that break off (FWD-7).
mod limits;

use crate::harness::{Call, Gate, Seen, Tpp, world};
use std::{io::Write, net::TcpStream, sync::Arc, thread};

/// A call that needs nothing of the PSU and no quota, so that it can be made without end.
fn call(tpp: &Arc<Tpp>) -> Call {
    Call::plain().by(tpp)
}

/// A whole answer that says for whom it is.
fn answer_to(seen: &Seen) -> Vec<u8> {
    let tpp = seen.header("gateway-tpp-id").unwrap_or_default();
    let body = format!(r#"{{"for":"{tpp}"}}"#);
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Writes, and says whether the other side still takes it.
fn say(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

/// Two TPPs call at once, each on a connection of its own, so many times; `judge` is told who asked and what came.
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
