//! Bytes that the core sends after an answer, or before a request, never reach another caller: FWD-3.

use super::{answer_to, call, interleave, say};
use crate::harness::{
    Call, Connection, Gate, LIMIT, Protocol, RAN_OUT, Reply, Seen, TlsFront, Upstream, accepted,
    ca, client_certificate, let_pass, render, tls_server, world,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

/// 0 to 3 ms, in rotation.
fn a_moment() -> Duration {
    static TURN: AtomicU64 = AtomicU64::new(0);
    Duration::from_millis(TURN.fetch_add(1, Ordering::Relaxed) % 4)
}

//= FWD-3 accepted
#[test]
fn a_body_behind_an_answer_without_one() {
    for head in [
        "204 No Content\r\n\r\n",
        "204 No Content\r\nContent-Length: 300\r\n\r\n",
        "204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        "304 Not Modified\r\n\r\n",
    ] {
        let gate = Gate::builder().threads(2).start();
        gate.upstream().reply(Reply::play(move |seen, stream| {
            if !say(stream, format!("HTTP/1.1 {head}").as_bytes()) {
                return false;
            }
            let_pass(a_moment());
            say(stream, &answer_to(seen))
        }));
        let status: u16 = head[..3].parse().unwrap();
        // The core sends a 200 only behind another answer.
        interleave(&gate, 100, |_, answer| {
            assert_eq!((answer.status, answer.body.len()), (status, 0), "{head}");
        });
    }
}

/// The same with as many bytes as one read takes: with TLS, further bytes of its record are then decrypted and not read.
fn padded(seen: &Seen) -> Vec<u8> {
    const READ: usize = 4096;
    let tpp = seen.header("gateway-tpp-id").unwrap_or_default();
    let whole = |pad: usize| {
        let body = format!(r#"{{"for":"{tpp}","pad":"{}"}}"#, "x".repeat(pad));
        let length = body.len();
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    let pad = READ - (whole(1_000).len() - 1_000);
    assert_eq!(whole(pad).len(), READ);
    whole(pad)
}

/// Bytes that come together with an answer make the connection unusable: more bytes may follow.
//= FWD-3 accepted
#[test]
fn more_than_the_answer() {
    let chunked = |seen: &Seen| {
        let whole = String::from_utf8(answer_to(seen)).unwrap();
        let (_, body) = whole.split_once("\r\n\r\n").unwrap();
        let length = body.len();
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
        )
        .into_bytes()
    };
    let answers: [fn(&Seen) -> Vec<u8>; 3] = [answer_to, chunked, padded];
    let [own, clients] = ["The CA", "Clients"].map(ca);
    let shown = client_certificate(&clients);
    for (answer, with_tls) in answers
        .into_iter()
        .flat_map(|one| [(one, false), (one, true)])
    {
        let core = Upstream::start();
        let front = TlsFront::start(tls_server(&own, &clients), core.address());
        let gate = Gate::builder().threads(2);
        let gate = match with_tls {
            false => gate.core(core.address()).start(),
            true => gate
                .core(front.address())
                .upstream("tls: {ca: core.pem, name: localhost, certificate: client.pem, key: client.key}")
                .file("core.pem", own.pem())
                .file("client.pem", shown.pem.clone())
                .private_file("client.key", shown.key_pem.clone())
                .start(),
        };
        core.reply(Reply::play(move |seen, stream| {
            let surplus = b"HTTP/1.1 200 OK\r\n".as_slice();
            if !say(stream, &[answer(seen).as_slice(), surplus].concat()) {
                return false;
            }
            let_pass(a_moment());
            say(stream, b"Content-Length: 2\r\n\r\n{}")
        }));
        interleave(&gate, 100, |tpp, answer| {
            assert_eq!((answer.status, &answer.json()["for"]), (200, &tpp.into()));
        });
    }
}

/// A pooled connection is closed when the core sends bytes without a request: the next request would read them as its answer.
//= FWD-3 accepted
#[test]
fn an_answer_that_nobody_asked_for_on_a_kept_connection() {
    let gate = Gate::builder().threads(2).start();
    let (said, hear) = mpsc::channel();
    let said = Mutex::new(said);
    gate.upstream().reply(Reply::play(move |seen, stream| {
        if !say(stream, &answer_to(seen)) {
            return false;
        }
        // Mostly, the gateway has returned the connection to the pool by then; it need not.
        let_pass(Duration::from_millis(2));
        let more = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"for\":\"none\"}";
        let goes_on = say(stream, more);
        said.lock().unwrap().send(()).unwrap();
        goes_on
    }));
    let mut connections = [(); 2].map(|()| Connection::open(&gate));
    for _ in 0..100 {
        for (tpp, connection) in [&world().aisp, &world().pisp].iter().zip(&mut connections) {
            let sealed = gate.seal(&call(tpp));
            let answer = connection.exchange(&sealed).unwrap();
            assert_eq!(answer.status, 200);
            assert_eq!(answer.json()["for"], tpp.id().unwrap());
            hear.recv_timeout(LIMIT)
                .unwrap_or_else(|_| panic!("{RAN_OUT}: the core says more than was asked"));
        }
    }
}

/// Bytes that arrive after the next request was sent are taken as its answer: only one connection per request prevents this.
//= FWD-3 accepted
#[test]
fn without_reuse_nothing_is_left_for_the_next() {
    let gate = Gate::builder().threads(2).upstream("reuse: off").start();
    gate.upstream().reply(Reply::play(|seen, stream| {
        if !say(stream, &answer_to(seen)) {
            return false;
        }
        let_pass(a_moment());
        say(stream, &answer_to(seen))
    }));
    interleave(&gate, 100, |tpp, answer| {
        assert_eq!((answer.status, &answer.json()["for"]), (200, &tpp.into()));
    });
    assert_eq!(gate.upstream().connections(), 200);
}

//= FWD-3 accepted
#[test]
fn a_connection_is_used_again() {
    let gate = Gate::start();
    for _ in 0..5 {
        accepted(&gate, &Call::payment());
        accepted(&gate, &Call::plain());
    }
    assert_eq!(gate.upstream().connections(), 1);
}

/// Bytes before the request are no answer. If they arrive late, they belong to this caller.
//= FWD-3 accepted
#[test]
fn an_answer_before_the_request() {
    let gate = Gate::builder().threads(2).upstream("reuse: off").start();
    let greeting = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\ngreeting";
    gate.upstream().greet(greeting);
    let heard = Arc::new(Mutex::new(0_usize));
    gate.upstream()
        .reply(Reply::play(|seen, stream| say(stream, &answer_to(seen))));
    for _ in 0..50 {
        let answer = gate.send(&Call::plain(), Protocol::Http1);
        match answer.status {
            200 => assert_eq!(answer.body, b"greeting"),
            502 => *heard.lock().unwrap() += 1,
            other => panic!("{other}"),
        }
    }
    gate.upstream().greet(b"");
    // The core may record a request after its caller got the greeting: until it has seen the end of each connection.
    gate.upstream().eventually_idle();
    accepted(&gate, &Call::plain());
}

/// FWD-3: after the first byte of the answer, the core has received the request.
//= FWD-3 accepted
#[test]
fn a_request_is_not_sent_again_once_the_answer_has_begun() {
    for begun in [1, 12, 40] {
        let gate = Gate::start();
        let get = Call::accounts();
        // A pooled connection: if the core closed it unnoticed, a safe request may be repeated.
        accepted(&gate, &get);
        gate.upstream().take();
        gate.upstream().reply(Reply::play(move |seen, stream| {
            say(stream, &answer_to(seen)[..begun]);
            false
        }));
        for protocol in Protocol::ALL {
            let answer = gate.send(&get, protocol);
            assert_eq!(answer.status, 502, "after {begun} bytes");
            assert_eq!(gate.upstream().take().len(), 1, "after {begun} bytes");
        }
    }
}

/// RFC 9112, sections 2.2 and 9.3.2: an empty line or the next request, sent while the core works, does not affect the first request.
//= FWD-4 accepted
#[test]
fn bytes_behind_a_request_do_not_cost_its_answer() {
    for behind in ["\r\n", "GET /v1/accounts HTTP/1.1\r\n"] {
        let gate = Gate::start();
        let get = gate.seal(&Call::accounts());
        let (reply, latch) = Reply::json(200, "{}").held();
        gate.upstream().reply(reply);
        let mut connection = Connection::open(&gate);
        connection.send(&render(&get)).unwrap();
        latch.arrived(1);
        // The gateway watches the caller only after a moment, and nobody can see that it does.
        let_pass(Duration::from_millis(250));
        connection.send(behind.as_bytes()).unwrap();
        // The thread that serves this has read these bytes, which came before.
        assert!(gate.send(&Call::bare("GET", "/"), Protocol::Http1).status >= 400);
        latch.release();
        let answer = connection.answer("GET").unwrap();
        assert_eq!(answer.status, 200, "{behind:?}");
        assert_eq!(answer.header("connection"), Some("close"));
    }
}
