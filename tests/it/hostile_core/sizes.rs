//! The size and the time of an answer's body: FWD-7, HTTP-9.

use super::{ends, in_two_parts, say};
use crate::harness::{
    Call, Gate, LIMIT, Protocol, Reply, accepted, check_error, let_pass, until_closed,
};
use portvakt::clock::Stopwatch;
use std::time::Duration;

/// An answer with a body of this size: with its length, or in two chunks; in two halves.
fn halves(size: usize, has_length: bool) -> (String, String) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let text = format!("\"{}\"", "x".repeat(size - 2));
    let (first, second) = text.split_at(size / 2);
    let bytes = match has_length {
        true => format!("{head}Content-Length: {size}\r\n\r\n{text}"),
        false => format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
            first.len(),
            second.len()
        ),
    };
    let (early, late) = bytes.split_at(bytes.len() / 2);
    (early.to_owned(), late.to_owned())
}

fn body(size: usize, has_length: bool) -> Reply {
    let (early, late) = halves(size, has_length);
    Reply::play(move |_, stream| {
        let sent = say(stream, early.as_bytes());
        // The head goes to the caller before the rest of the body arrives, on most machines; it need not.
        let_pass(Duration::from_millis(30));
        sent && say(stream, late.as_bytes())
    })
}

fn cuts(gate: &Gate, cause: &str) -> f64 {
    gate.metric_at_rest("portvakt_cut_total", &[&format!("cause=\"{cause}\"")])
}

//= FWD-7 accepted
//= FWD-7 refused
#[test]
fn the_body_of_an_answer_has_a_limit() {
    let gate = Gate::builder()
        .upstream("max_answer_size: 4KiB")
        .upstream("max_answer_size_by_group: {accounts: 8KiB}")
        .start();
    let limits = [(Call::plain(), 4096), (Call::accounts(), 8192)];
    for (call, limit) in &limits {
        for has_length in [true, false] {
            gate.upstream().reply(body(*limit, has_length));
            for passage in accepted(&gate, call) {
                assert_eq!(passage.answer.body.len(), *limit);
            }
        }
    }
    assert_eq!(cuts(&gate, "large_answer"), 0.0);
    for (call, limit) in &limits {
        for protocol in Protocol::ALL {
            gate.upstream().reply(body(limit + 1, true));
            let answer = gate.send(call, protocol);
            check_error("too long", &answer, 502, "SYSTEM_ERROR", "upstream-error");
            // The head has gone out: the answer has no end, and no caller takes it for complete.
            let (early, late) = halves(limit + 1, false);
            let go_on = in_two_parts(&gate, &early, &late);
            assert!(!ends(&gate, call, protocol, &go_on), "{protocol:?}");
        }
    }
    assert_eq!(cuts(&gate, "large_answer"), 8.0);
    let failed = ["reason=\"upstream-error\""];
    gate.eventually_metric("portvakt_refusals_total", &failed, 8.0);
    // The quota gets back a call whose answer was refused (QUO-5).
    gate.upstream().reply(body(8193, true));
    for _ in 0..6 {
        let answer = gate.send(&Call::balances(), Protocol::Http1);
        assert_eq!(answer.status, 502);
    }
}

//= FWD-7 refused
//= HTTP-9 refused
#[test]
fn the_body_of_an_answer_that_does_not_end() {
    let slow = || {
        Reply::play(|_, stream| {
            let mut goes_on = say(
                stream,
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            );
            // A gateway that does not end this one does not keep the test for ever.
            let begun = Stopwatch::start();
            while goes_on && begun.elapsed() < LIMIT {
                goes_on = say(stream, b"1\r\nx\r\n");
                // This core is slow on purpose.
                let_pass(Duration::from_millis(20));
            }
            false
        })
    };
    let gate = Gate::builder()
        .listener("answer_timeout: 400ms")
        .upstream("read_timeout: 300s")
        .start();
    gate.upstream().reply(slow());
    for protocol in Protocol::ALL {
        let watch = Stopwatch::start();
        let answer = gate.send_sealed(&gate.seal(&Call::plain()), protocol);
        assert!(answer.is_err(), "{protocol:?}: {answer:?}");
        let took = watch.elapsed().as_millis();
        assert!(took >= 350, "{protocol:?}: {took} ms");
    }
    assert_eq!(cuts(&gate, "slow_answer"), 2.0);
    // The gateway waited for the core, so its callers did not go away.
    let failed = ["outcome=\"failed\"", "fault=\"core\""];
    gate.eventually_metric("portvakt_requests_total", &failed, 2.0);
    // A pause has a limit of its own: the core waits until the gateway leaves, which no other deadline makes it do.
    let gate = Gate::builder()
        .listener("answer_timeout: 300s")
        .upstream("read_timeout: 4s\n  timeout: 300s")
        .start();
    gate.upstream().reply(Reply::play(|_, stream| {
        say(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{");
        until_closed(stream);
        false
    }));
    for protocol in Protocol::ALL {
        let watch = Stopwatch::start();
        let answer = gate.send_sealed(&gate.seal(&Call::plain()), protocol);
        assert!(answer.is_err(), "{protocol:?}: {answer:?}");
        assert!(watch.elapsed() >= Duration::from_millis(3_950));
    }
    assert_eq!(cuts(&gate, "slow_answer"), 0.0);
    let timeouts = ["kind=\"timeout\""];
    gate.eventually_metric("portvakt_upstream_failures_total", &timeouts, 2.0);
}
