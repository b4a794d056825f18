//! Endless, incomplete and wrongly framed answers: FWD-7, ERR-4.

use super::{answer_to, is_refused, say, sends};
use crate::harness::{
    Call, Connection, Dice, Gate, Program, Protocol, Reply, accepted, check_error, eventually,
    render,
};
use std::{
    fs,
    io::Write,
    net::TcpStream,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::net::TcpSocket;

/// A head with this number of fields, Content-Length among them.
fn fields(count: usize) -> Vec<u8> {
    let mut head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".to_owned();
    for number in 1..count {
        head.push_str(&format!("X-Field-{number}: 1\r\n"));
    }
    head.push_str("\r\n{}");
    head.into_bytes()
}

/// A head of this number of bytes.
fn bytes(count: usize) -> Vec<u8> {
    let start = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Long: ";
    let filler = "x".repeat(count - start.len() - 4);
    format!("{start}{filler}\r\n\r\n{{}}").into_bytes()
}

//= FWD-7 accepted
//= FWD-7 refused
#[test]
fn the_head_of_an_answer_has_limits() {
    let gate = Gate::start();
    for good in [fields(100), bytes(64 * 1024)] {
        sends(&gate, good);
        accepted(&gate, &Call::plain());
        accepted(&gate, &Call::payment());
    }
    for bad in [
        fields(101),
        fields(256),
        fields(257),
        fields(4_000),
        bytes(64 * 1024 + 1),
        bytes(100_000),
        bytes(3_000_000),
    ] {
        let what = format!("{} bytes", bad.len());
        sends(&gate, bad);
        is_refused(&gate, &what);
    }
    // The call is given back to the quota (QUO-5): no fifth call is refused.
    sends(&gate, fields(101));
    for _ in 0..6 {
        let answer = gate.send(&Call::balances(), Protocol::Http1);
        assert_eq!(answer.status, 502);
    }
}

//= FWD-7 refused
#[test]
fn headers_without_end() {
    let gate = Gate::start();
    gate.upstream().reply(Reply::play(|_, stream| {
        let mut goes_on = say(stream, b"HTTP/1.1 200 OK\r\n");
        while goes_on {
            goes_on = say(stream, b"X-Field: value\r\n");
        }
        false
    }));
    is_refused(&gate, "headers without end");
}

//= FWD-7 accepted
//= FWD-7 refused
#[test]
fn informational_answers() {
    let gate = Gate::start();
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
    let end = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    sends(&gate, [early.repeat(8).as_str(), end].concat().into_bytes());
    accepted(&gate, &Call::plain());
    sends(&gate, [early.repeat(9).as_str(), end].concat().into_bytes());
    is_refused(&gate, "nine");
    for interim in [early, "HTTP/1.1 100 Continue\r\n\r\n"] {
        gate.upstream().reply(Reply::play(move |_, stream| {
            while say(stream, interim.as_bytes()) {}
            false
        }));
        is_refused(&gate, "without end");
    }
    let upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";
    sends(&gate, [upgrade, end].concat().into_bytes());
    is_refused(&gate, "101");
}

//= FWD-7 refused
#[test]
fn codings_that_nobody_undoes() {
    let gate = Gate::start();
    for coding in [
        "gzip",
        "gzip, chunked",
        "identity",
        "chunked, gzip",
        "x",
        "chunked\r\nTransfer-Encoding: x",
    ] {
        let head =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n");
        sends(&gate, head.into_bytes());
        is_refused(&gate, coding);
    }
    // RFC 9112, section 6.1: HTTP/1.0 has none.
    let old = b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    sends(&gate, old.to_vec());
    is_refused(&gate, "HTTP/1.0");
}

/// Lengths and a version that nobody can rely on.
//= FWD-7 refused
#[test]
fn heads_that_are_not_http() {
    let gate = Gate::start();
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: +2",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3",
        "HTTP/1.2 200 OK\r\nContent-Length: 2",
        "HTTP/1.1 200 OK\r\nContent-Length: 17000000",
        "220 mail.internal.bank ESMTP",
    ] {
        sends(&gate, format!("{head}\r\n\r\n{{}}").into_bytes());
        is_refused(&gate, head);
    }
}

/// RFC 9110, section 15: there are five classes.
//= FWD-7 accepted
//= FWD-7 refused
#[test]
fn statuses_that_http_does_not_have() {
    let gate = Gate::start();
    for status in [600, 700, 999, 1000, 99, 0] {
        let head = format!("HTTP/1.1 {status:03} X\r\nContent-Type: application/json");
        sends(
            &gate,
            format!("{head}\r\nContent-Length: 2\r\n\r\n{{}}").into_bytes(),
        );
        is_refused(&gate, &head);
    }
    for status in [599, 200] {
        gate.upstream().reply(Reply::json(status, "{}"));
        assert_eq!(gate.send(&Call::plain(), Protocol::Http1).status, status);
    }
}

/// The head was already forwarded: the answer is truncated, and no client accepts it as complete.
//= ERR-4 refused
#[test]
fn a_body_that_is_shorter_than_it_says() {
    let gate = Gate::start();
    let short = "upstream-unreachable";
    let malformed = "upstream-error";
    let bodies = [
        ("Content-Length: 11\r\n\r\n{\"a\":", short),
        ("Transfer-Encoding: chunked\r\n\r\nb\r\n{\"a\":", short),
        ("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", short),
        ("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", short),
        (
            "Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n",
            malformed,
        ),
        (
            "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
            malformed,
        ),
    ];
    for (body, reason) in bodies {
        sends(&gate, format!("HTTP/1.1 200 OK\r\n{body}").into_bytes());
        for call in [Call::plain(), Call::payment()] {
            for protocol in Protocol::ALL {
                is_no_answer(&gate, &call, protocol, (body, reason));
            }
        }
    }
}

/// Either an error, or an incomplete answer.
fn is_no_answer(gate: &Gate, call: &Call, protocol: Protocol, (what, reason): (&str, &str)) {
    let sealed = gate.seal(call);
    let is_safe = sealed.request.method == "GET";
    match gate.send_sealed(&sealed, protocol) {
        Err(_) => {}
        Ok(answer) if !is_safe && answer.status == 504 => {
            check_error(what, &answer, 504, "SYSTEM_ERROR", "outcome-unknown");
        }
        Ok(answer) => check_error(what, &answer, 502, "SYSTEM_ERROR", reason),
    }
}

//= ERR-4 accepted
//= ERR-4 refused
#[test]
fn a_reset_at_each_byte() {
    let gate = Gate::start();
    for body in [
        "Content-Length: 2\r\n\r\n{}",
        "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ] {
        let whole =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{body}").into_bytes();
        for end in 0..=whole.len() {
            let part = whole[..end].to_vec();
            gate.upstream().reply(Reply::play(move |_, stream| {
                let _ = stream.write_all(&part);
                reset(stream);
                false
            }));
            let call = if end % 2 == 0 {
                Call::plain()
            } else {
                Call::payment()
            };
            if end < whole.len() {
                let expected = (&*format!("at {end}"), "upstream-unreachable");
                is_no_answer(&gate, &call, Protocol::Http1, expected);
                continue;
            }
            // The last byte may be lost with the reset.
            if let Ok(answer) = gate.send_sealed(&gate.seal(&call), Protocol::Http1) {
                assert!(matches!(answer.status, 200 | 502), "{}", answer.status);
            }
        }
    }
    // The gateway keeps nothing of the answer.
    gate.upstream().reply(Reply::json(200, "{}"));
    accepted(&gate, &Call::plain());
    accepted(&gate, &Call::payment());
}

/// The connection ends with a reset.
fn reset(stream: &TcpStream) {
    let stream = TcpSocket::from_std_stream(stream.try_clone().unwrap());
    stream.set_zero_linger().unwrap();
}

/// Random bytes that partly resemble an answer.
//= ERR-4 refused
#[test]
fn noise() {
    let gate = Gate::start();
    let words: [&[u8]; 16] = [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200\r\n",
        b"\r\n",
        b"\n",
        b"\0",
        b" ",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: content-length\r\n",
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
        b"ffffffffffffffff\r\n",
        b"8000000000000000;x=y\r\n",
        b"{}",
        b"X: \xff\xfe\r\n",
        b": x\r\n",
    ];
    let mut dice = Dice(7);
    let mut connection = Connection::open(&gate);
    for _ in 0..600 {
        let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
        for _ in 0..dice.below(9) {
            bytes.extend_from_slice(words[dice.below(16) as usize]);
        }
        sends(&gate, bytes);
        if connection.exchange(&gate.seal(&Call::plain())).is_err() {
            connection = Connection::open(&gate);
        }
    }
    gate.upstream()
        .reply(Reply::play(|seen, stream| say(stream, &answer_to(seen))));
    accepted(&gate, &Call::plain());
}

/// The resident memory of a process, in MiB.
fn resident(program: &Program) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", program.0.id())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kibibytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes / 1024
}

/// Eight answers of 100 MB at once, to callers that do not read them, and endless heads: the gateway buffers only a bounded part.
//= FWD-7 accepted
#[test]
fn a_hundred_megabytes_are_not_held() {
    const BODY: usize = 100_000_000;
    let gate = Gate::builder()
        .strangers()
        .listener("write_timeout: 300s\n  answer_timeout: 600s")
        .upstream("max_answer_size: 128MiB")
        .for_program();
    let mut command = gate.program();
    let program = gate.run(command.stdout(Stdio::null()).stderr(Stdio::null()));
    accepted(&gate, &Call::plain());
    let before = resident(&program);
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    gate.upstream().reply(Reply::play(move |_, stream| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n");
        let part = vec![b'x'; 100_000];
        let mut goes_on = say(stream, head.as_bytes());
        for _ in 0..1_000 {
            goes_on = goes_on && say(stream, &part);
            count.fetch_add(1, Ordering::Relaxed);
        }
        goes_on
    }));
    let mut callers: Vec<_> = (0..8)
        .map(|_| {
            let mut connection = Connection::open(&gate);
            let request = render(&gate.seal(&Call::plain()));
            connection.send(&request).unwrap();
            connection
        })
        .collect();
    // Until the core can send no more: every buffer on the way is full.
    let (mut most, mut before_this, mut times) = (0, 0, 0);
    eventually("the core can send no more", || {
        most = most.max(resident(&program));
        let now = sent.load(Ordering::Relaxed);
        times = if now == before_this { times + 1 } else { 0 };
        before_this = now;
        (now > 0 && times >= 20).then_some(()).ok_or(now)
    });
    let mut reader = callers.pop().unwrap();
    let answer = reader.answer("GET").unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, BODY));
    most = most.max(resident(&program));
    drop(callers);
    gate.upstream().reply(Reply::play(|_, stream| {
        let mut goes_on = say(stream, b"HTTP/1.1 200 OK\r\n");
        while goes_on {
            goes_on = say(
                stream,
                &[b"X: ".as_slice(), &[b'x'; 60_000], b"\r\n"].concat(),
            );
        }
        false
    }));
    for _ in 0..50 {
        assert_eq!(gate.send(&Call::plain(), Protocol::Http1).status, 502);
    }
    most = most.max(resident(&program));
    println!("resident: from {before} to at most {most} MiB");
    assert!(most < before + 48, "from {before} to {most} MiB");
}
