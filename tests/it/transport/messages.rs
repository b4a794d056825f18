//! Messages of HTTP/1.1 and 1.0 by the letter of RFC 9110 and 9112: chunks, expectations, the end of a connection (HTTP-7, ERR-8).

use crate::harness::{
    Answer, Call, Connection, Gate, Protocol, Reply, accepted, check_error, refused, render,
    render_head,
};

/// Sends a payment with these bytes as its chunked body, in one part or byte by byte.
fn sends(gate: &Gate, body: &[u8], size: usize) -> (Answer, Connection) {
    let head = render_head(&gate.seal(&Call::payment().json("{}").chunked()));
    let mut connection = Connection::open(gate);
    if size > body.len() {
        connection.send(&[&head, body].concat()).unwrap();
    } else {
        connection.send(&head).unwrap();
        for part in body.chunks(size) {
            // The gateway may have closed already.
            let _ = connection.send(part);
        }
    }
    (connection.answer("POST").unwrap(), connection)
}

//= HTTP-7 accepted
#[test]
fn exact_chunks() {
    let gate = Gate::start();
    for body in [
        "2\r\n{}\r\n0\r\n\r\n",
        "1\r\n{\r\n01\r\n}\r\n00\r\n\r\n",
        "2;name=\"a b\"\r\n{}\r\n0;x\r\n\r\n",
        "2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n",
    ] {
        for size in [1, 3, 100] {
            let (answer, mut connection) = sends(&gate, body.as_bytes(), size);
            assert_eq!(answer.status, 200, "{body:?}: {answer:?}");
            assert_eq!(gate.upstream().take()[0].body, b"{}");
            let next = connection.exchange(&gate.seal(&Call::payment().chunked()));
            assert_eq!(next.unwrap().status, 200, "the connection goes on");
            gate.upstream().take();
        }
    }
}

//= HTTP-7 refused
//= ERR-8 refused
#[test]
fn chunks_that_two_servers_could_read_in_two_ways() {
    let gate = Gate::start();
    for body in [
        "2\r\n{}\r\n\r\n\r\n",
        "2 \r\n{}\r\n0\r\n\r\n",
        "2\t\r\n{}\r\n0\r\n\r\n",
        "2 ;x\r\n{}\r\n0\r\n\r\n",
        "2;a\0b\r\n{}\r\n0\r\n\r\n",
        "2;a\rb\r\n{}\r\n0\r\n\r\n",
        "2;a\nb\r\n{}\r\n0\r\n\r\n",
        "2;\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}\r\n0 \r\n\r\n",
        "2\r\n{}\r\n0\r\nX-Sum : 1\r\n\r\n",
        "2\r\n{}\r\n0\r\nX-Sum: 1\r\n x\r\n\r\n",
        "2\n{}\r\n0\r\n\r\n",
    ] {
        for size in [1, 100] {
            let (answer, mut connection) = sends(&gate, body.as_bytes(), size);
            check_error(body, &answer, 400, "BAD_REQUEST", "malformed-request");
            assert_eq!(answer.header("connection"), Some("close"), "{body:?}");
            assert!(connection.rest().is_empty(), "{body:?}");
        }
    }
    assert!(gate.upstream().saw_nothing());
}

//= HTTP-7 accepted
#[test]
fn an_expectation_that_is_met() {
    let gate = Gate::start();
    accepted(&gate, &Call::payment().with("Expect", "100-continue"));
    accepted(&gate, &Call::payment().with("Expect", "100-Continue"));
    // HTTP/1.0 has no expectations: nothing precedes the answer.
    let call = Call::payment().with("Expect", "100-continue");
    let request = String::from_utf8(render(&gate.seal(&call))).unwrap();
    let mut connection = Connection::open(&gate);
    let request = request.replacen("HTTP/1.1", "HTTP/1.0", 1);
    connection.send(request.as_bytes()).unwrap();
    let answer = connection.rest();
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "{}",
        answer.escape_ascii()
    );
}

//= HTTP-7 refused
#[test]
fn other_expectations() {
    let gate = Gate::start();
    for value in ["200-ok", "100-continue, x", "", "100-continue=1"] {
        for call in [Call::payment(), Call::plain()] {
            let call = call.with("Expect", value);
            refused(&gate, &call, 417, "BAD_REQUEST", "expectation-failed");
        }
    }
}

/// RFC 9112, section 9.3: HTTP/1.0 keeps a connection open only if the client asks for it.
//= HTTP-7 accepted
#[test]
fn http_1_0() {
    let gate = Gate::start();
    let ask = |with: &str| {
        let request = String::from_utf8(render(&gate.seal(&Call::plain()))).unwrap();
        let request = request.replacen("HTTP/1.1\r\n", &format!("HTTP/1.0\r\n{with}"), 1);
        let mut connection = Connection::open(&gate);
        connection.send(request.as_bytes()).unwrap();
        (connection.answer("GET").unwrap(), connection)
    };
    let (answer, mut connection) = ask("");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(connection.rest().is_empty());
    let (answer, mut connection) = ask("Connection: keep-alive\r\n");
    assert_eq!(answer.header("connection"), Some("keep-alive"));
    let next = connection.exchange(&gate.seal(&Call::plain())).unwrap();
    assert_eq!(next.status, 200);
    // An answer without a length ends with the connection: HTTP/1.0 has no chunks.
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    gate.upstream().reply(Reply::Raw(chunked.into()));
    let (answer, _) = ask("Connection: keep-alive\r\n");
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(answer.body, b"{}");
}

/// Requests that arrive together with the one before them are not served. The answer announces that, so that a client sends them
/// again (RFC 9112, sections 9.3.2 and 9.6).
//= HTTP-7 accepted
#[test]
fn requests_behind_one_another() {
    let gate = Gate::start();
    for call in [
        Call::plain(),
        Call::payment(),
        Call::payment().chunked(),
        Call::plain().off_by(600),
    ] {
        let mut connection = Connection::open(&gate);
        let sealed = gate.seal(&call);
        let two = [render(&sealed), render(&gate.seal(&Call::plain()))].concat();
        connection.send(&two).unwrap();
        let answer = connection.answer(&sealed.request.method).unwrap();
        assert!(matches!(answer.status, 200 | 400));
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(connection.rest().is_empty());
    }
    assert_eq!(gate.upstream().take().len(), 3);
}

//= ERR-8 accepted
#[test]
fn every_answer_demands_tls() {
    const NAME: &str = "strict-transport-security";
    let gate = Gate::start();
    let reply = Reply::json(200, "{}").with("Strict-Transport-Security", "max-age=0");
    gate.upstream().reply(reply);
    for protocol in Protocol::ALL {
        for call in [Call::plain(), Call::plain().off_by(600)] {
            let answer = gate.send(&call, protocol);
            let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(NAME);
            assert_eq!(answer.headers.iter().filter(named).count(), 1);
            assert_eq!(answer.header(NAME), Some("max-age=31536000"));
        }
    }
    let mut connection = Connection::open(&gate);
    connection.send(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let answer = connection.answer("GET").unwrap();
    assert_eq!(answer.header(NAME), Some("max-age=31536000"));
    for (hsts, expected) in [("1h", Some("max-age=3600")), ("off", None)] {
        let gate = Gate::builder().listener(&format!("hsts: {hsts}")).start();
        let answer = gate.send(&Call::plain(), Protocol::Http1);
        assert_eq!(answer.header(NAME), expected);
    }
}

/// Each record costs a system call, and a system call costs as much as most checks.
#[test]
fn an_answer_is_one_record() {
    let gate = Gate::start();
    let mut connection = Connection::open(&gate);
    let other = render(&gate.seal(&Call::plain().off_by(600)));
    for (request, status, end) in [
        (render(&gate.seal(&Call::plain())), "200", "tail\"}"),
        (other, "400", "}"),
        (render(&gate.seal(&Call::payment())), "200", "tail\"}"),
    ] {
        gate.upstream().reply(Reply::json(200, "{\"a\":\"tail\"}"));
        connection.send(&request).unwrap();
        let record = String::from_utf8(connection.record().unwrap()).unwrap();
        let is_whole = record.starts_with(&format!("HTTP/1.1 {status}")) && record.ends_with(end);
        assert!(is_whole, "{record}");
    }
    // Long answers arrive whole too, and a head without a body does not wait.
    let long = format!("{{\"a\":\"{}\"}}", "b".repeat(100_000));
    gate.upstream().reply(Reply::json(200, &long));
    let answer = connection.exchange(&gate.seal(&Call::plain())).unwrap();
    assert_eq!(answer.body, long.as_bytes());
    for raw in [
        "204 No Content\r\n\r\n",
        "200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        gate.upstream()
            .reply(Reply::Raw(format!("HTTP/1.1 {raw}").into()));
        let answer = connection.exchange(&gate.seal(&Call::plain())).unwrap();
        assert!(answer.body.is_empty());
    }
}
