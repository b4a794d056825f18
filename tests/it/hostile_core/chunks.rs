//! Chunked answers (RFC 9112, section 7.1): FWD-7, ERR-4.

use super::{broken_answers, ends, in_two_parts, is_refused, say, sends};
use crate::harness::{Call, Gate, Protocol, Reply, accepted, let_pass};
use std::time::Duration;

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Chunks that are not exact. Most look complete to a reader that is less strict.
const BROKEN: [&str; 18] = [
    "\r\n\r\n",
    "2\r\n{}\r\n\r\n\r\n",
    "2\r\n{}\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "2\r\n{}\r\n;x\r\n\r\n",
    "2 \r\n{}\r\n0\r\n\r\n",
    " 2\r\n{}\r\n0\r\n\r\n",
    "2;a\0b\r\n{}\r\n0\r\n\r\n",
    "2;\r\n{}\r\n0\r\n\r\n",
    "2\n{}\n0\n\n",
    "2\r{}\r0\r\r",
    "+2\r\n{}\r\n0\r\n\r\n",
    "0_2\r\n{}\r\n0\r\n\r\n",
    "00000000000000002\r\n{}\r\n0\r\n\r\n",
    "2\r\n{}0\r\n\r\n",
    "2\r\n{}xx0\r\n\r\n",
    "2\r\n{}\r\n0\r\nX-Sum\r\n\r\n",
    "2\r\n{}\r\n0\r\n: 1\r\n\r\n",
    "zz\r\n{}\r\n0\r\n\r\n",
];

/// Nothing of it is passed on.
//= FWD-7 refused
//= ERR-4 refused
#[test]
fn an_answer_whose_chunks_are_not_exact() {
    let gate = Gate::start();
    for body in BROKEN {
        sends(&gate, format!("{HEAD}{body}").into_bytes());
        is_refused(&gate, body);
    }
    // The same of an error, which is read before it is passed on (ERR-6).
    let error = HEAD.replace("200 OK", "400 Bad Request");
    sends(&gate, format!("{error}{}", BROKEN[1]).into_bytes());
    is_refused(&gate, "an error");
}

/// The head has gone out: the answer has no end, and no caller takes it for complete.
//= FWD-7 refused
#[test]
fn an_answer_that_began_well() {
    let gate = Gate::start();
    let failed = || {
        let labels = ["outcome=\"failed\"", "fault=\"core\""];
        gate.metric_at_rest("portvakt_requests_total", &labels)
    };
    let mut count = 0.0;
    for rest in [
        "\r\n\r\n",
        ";x\r\n\r\n",
        "1 \r\n \r\n0\r\n\r\n",
        "1;a\0\r\n \r\n0\r\n\r\n",
        "0\r\n: 1\r\n\r\n",
    ] {
        let go_on = in_two_parts(&gate, &format!("{HEAD}2\r\n{{}}\r\n"), rest);
        for call in [Call::plain(), Call::payment()] {
            for protocol in Protocol::ALL {
                let is_whole = ends(&gate, &call, protocol, &go_on);
                assert!(!is_whole, "{rest:?} {protocol:?}");
                count += 1.0;
            }
        }
        assert_eq!(
            (failed(), broken_answers(&gate)),
            (count, count),
            "{rest:?}"
        );
    }
}

/// Wherever the reads of the connection end, and with informational answers before.
//= FWD-7 accepted
#[test]
fn exact_chunks_in_any_parts() {
    let gate = Gate::start();
    for body in [
        "2\r\n{}\r\n0\r\n\r\n",
        "1;name=\"a b\"\r\n{\r\n001\r\n}\r\n00;x\r\nX-Sum: 1\r\n\r\n",
    ] {
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        for before in ["", interim] {
            let whole = format!("{before}{HEAD}{body}");
            for at in 0..whole.len() {
                let (first, second) = whole.split_at(at);
                let [first, second] = [first, second].map(str::to_owned);
                gate.upstream().reply(Reply::play(move |_, stream| {
                    let sent = say(stream, first.as_bytes());
                    // Mostly, the two parts are read apart; they need not be.
                    let_pass(Duration::from_millis(2));
                    sent && say(stream, second.as_bytes())
                }));
                let answer = gate.send(&Call::plain(), Protocol::Http1);
                assert_eq!((answer.status, &*answer.body), (200, &b"{}"[..]), "{at}");
            }
        }
        gate.upstream().reply(Reply::play(move |_, stream| {
            let whole = format!("{HEAD}{body}");
            let mut bytes = whole.as_bytes().chunks(1);
            bytes.all(|byte| say(stream, byte))
        }));
        for call in [Call::plain(), Call::payment()] {
            accepted(&gate, &call);
        }
    }
    assert_eq!(broken_answers(&gate), 0.0);
}
