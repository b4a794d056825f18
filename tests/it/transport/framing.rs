//! Ambiguous requests, which two servers could parse differently, never reach an upstream: HTTP-7.

use crate::harness::{
    Call, Connection, Gate, Manner, Protocol, accepted, check_error, chunked, eventually,
    exchange_as, render, render_head,
};

//= HTTP-7 accepted
#[test]
fn plain_framing() {
    let gate = Gate::start();
    accepted(&gate, &Call::payment());
    accepted(&gate, &Call::payment().chunked());
    // Names and the coding in any letter case, and white space around a value.
    let shouted = |head: &str| {
        head.replace(
            "Transfer-Encoding: chunked",
            "TRANSFER-ENCODING:   Chunked  ",
        )
    };
    let sealed = gate.seal(&Call::payment().chunked());
    let mut connection = Connection::open(&gate);
    connection
        .send(shouted(&text(render_head(&sealed))).as_bytes())
        .unwrap();
    connection
        .send(&chunked(sealed.request.body.as_deref().unwrap()))
        .unwrap();
    assert_eq!(connection.answer("POST").unwrap().status, 200);
}

/// pingora refuses some of them, the gateway the others; the answers are the same.
//= HTTP-7 refused
//= ERR-8 refused
#[test]
fn ambiguous_heads() {
    let gate = Gate::start();
    type Edit = fn(&str) -> String;
    let table: [(&str, Edit); 19] = [
        ("Content-Length beside Transfer-Encoding", |head| {
            after_line(head, "Transfer-Encoding: chunked")
        }),
        ("Transfer-Encoding before Content-Length", |head| {
            before_headers(head, "Transfer-Encoding: chunked")
        }),
        ("differing Content-Lengths", |head| {
            after_line(head, "Content-Length: 7")
        }),
        ("the same Content-Length twice", |head| {
            after_line(head, &line(head, "Content-Length"))
        }),
        ("a Content-Length with a sign", |head| {
            head.replace("Content-Length: ", "Content-Length: +")
        }),
        ("a list of Content-Lengths", |head| {
            head.replace(&line(head, "Content-Length"), "Content-Length: 55, 55")
        }),
        ("Transfer-Encoding: identity", |head| {
            head.replace(&line(head, "Content-Length"), "Transfer-Encoding: identity")
        }),
        ("Transfer-Encoding: gzip, chunked", |head| {
            head.replace(
                &line(head, "Content-Length"),
                "Transfer-Encoding: gzip, chunked",
            )
        }),
        ("Transfer-Encoding: chunked, chunked", |head| {
            head.replace(
                &line(head, "Content-Length"),
                "Transfer-Encoding: chunked, chunked",
            )
        }),
        ("Transfer-Encoding: xchunked", |head| {
            head.replace(&line(head, "Content-Length"), "Transfer-Encoding: xchunked")
        }),
        ("two Transfer-Encodings", |head| {
            head.replace(
                &line(head, "Content-Length"),
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            )
        }),
        ("a folded header", |head| {
            after_line(head, "X-Folded: a\r\n b")
        }),
        ("a bare LF", |head| {
            head.replacen("\r\nTPP-Redirect-URI", "\nTPP-Redirect-URI", 1)
        }),
        ("a bare CR in a value", |head| {
            after_line(head, "X-Bare: a\rb")
        }),
        ("space before a colon", |head| {
            head.replacen("PSU-ID:", "PSU-ID :", 1)
        }),
        ("no Host", |head| {
            head.replacen("Host: localhost\r\n", "", 1)
        }),
        ("an empty Host", |head| {
            head.replacen("Host: localhost\r\n", "Host: \r\n", 1)
        }),
        ("two Hosts", |head| {
            head.replacen(
                "Host: localhost\r\n",
                "Host: localhost\r\nHost: other\r\n",
                1,
            )
        }),
        ("the same Host twice", |head| {
            head.replacen(
                "Host: localhost\r\n",
                "Host: localhost\r\nHost: localhost\r\n",
                1,
            )
        }),
    ];
    let mut wrong = Vec::new();
    for (what, edit) in table {
        let counted = counted(&gate);
        let sealed = gate.seal(&Call::payment());
        let head = text(render_head(&sealed));
        let edited = edit(&head);
        assert_ne!(edited, head, "{what}");
        let mut connection = Connection::open(&gate);
        connection
            .send(
                &[
                    edited.as_bytes(),
                    &chunked(sealed.request.body.as_deref().unwrap()),
                ]
                .concat(),
            )
            .unwrap();
        let answer = match connection.answer("POST") {
            Ok(answer) => answer,
            Err(fault) => {
                wrong.push(format!("{what}: {fault}"));
                continue;
            }
        };
        check_error(what, &answer, 400, "BAD_REQUEST", "malformed-request");
        assert_eq!(answer.header("server"), None, "{what}");
        if !connection.rest().is_empty() {
            wrong.push(format!("{what}: more than one answer"));
        }
        // The gateway counts a request after it has sent the answer.
        let times = eventually(what, || {
            let times = self::counted(&gate) - counted;
            (times > 0.0).then_some(times)
        });
        if times != 1.0 {
            wrong.push(format!("{what}: counted {times} times"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(gate.upstream().saw_nothing());
}

//= HTTP-7 refused
#[test]
fn a_smuggled_request_is_not_a_second_one() {
    let gate = Gate::start();
    let smuggled = render(&gate.seal(&Call::accounts()));
    let sealed = gate.seal(&Call::payment().json(""));
    let head = after_line(&text(render_head(&sealed)), "Transfer-Encoding: chunked");
    let mut connection = Connection::open(&gate);
    connection
        .send(&[head.as_bytes(), b"0\r\n\r\n", &smuggled].concat())
        .unwrap();
    check_error(
        "the first request",
        &connection.answer("POST").unwrap(),
        400,
        "BAD_REQUEST",
        "malformed-request",
    );
    assert!(
        connection.rest().is_empty(),
        "the connection is closed and the second request unanswered"
    );
    assert!(gate.upstream().saw_nothing());
}

//= HTTP-7 refused
#[test]
fn bodies_that_break_off() {
    let gate = Gate::start();
    for body in [
        "zz\r\n{}\r\n0\r\n\r\n",
        "-2\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}0\r\n\r\n",
        "2\r\n{}xx0\r\n\r\n",
        "fffffffffffffffff\r\n",
    ] {
        let head = render_head(&gate.seal(&Call::payment().chunked()));
        let mut connection = Connection::open(&gate);
        connection.send(&[&head, body.as_bytes()].concat()).unwrap();
        check_error(
            body,
            &connection.answer("POST").unwrap(),
            400,
            "BAD_REQUEST",
            "malformed-request",
        );
        assert!(
            connection.rest().is_empty(),
            "{body:?}: the connection is closed"
        );
    }
    assert!(gate.upstream().saw_nothing());
}

/// Over HTTP/2, frames delimit a request, so few ambiguities remain.
//= HTTP-7 refused
#[test]
fn ambiguous_frames() {
    let gate = Gate::start();
    // The HTTP library answers these requests.
    for call in [
        Call::accounts().also_host("other.example"),
        Call::accounts()
            .also_host("localhost")
            .also_host("localhost"),
    ] {
        assert_eq!(gate.send(&call, Protocol::Http2).status, 400);
    }
    // Content-Length differs from the DATA frames: the HTTP/2 library resets the stream (RFC 9113, section 8.1.1).
    for length in ["3", "99"] {
        let call = Call::payment().chunked().with("Content-Length", length);
        let outcome = gate.send_sealed(&gate.seal(&call), Protocol::Http2);
        assert!(
            outcome.as_ref().is_err() || outcome.as_ref().is_ok_and(|answer| answer.status == 400),
            "{outcome:?}"
        );
    }
    assert!(gate.upstream().saw_nothing());
}

/// A Host header equal to `:authority` is redundant and allowed.
/// The connection is TLS: a request with the scheme http comes from a client or proxy that interprets the connection differently.
//= HTTP-7 refused
#[test]
fn another_scheme_than_https() {
    let gate = Gate::start();
    for (scheme, status) in [("http", 400), ("coap", 400), ("https", 200)] {
        let manner = Manner {
            scheme,
            ..Manner::default()
        };
        let answer = exchange_as(&gate, &gate.seal(&Call::plain()), manner).unwrap();
        assert_eq!(answer.status, status, "{scheme}");
        if status == 400 {
            check_error(scheme, &answer, 400, "BAD_REQUEST", "malformed-request");
            assert!(gate.upstream().saw_nothing());
        }
    }
}

//= HTTP-7 accepted
#[test]
fn a_host_beside_the_same_authority() {
    accepted(&Gate::start(), &Call::accounts().also_host("localhost"));
}

//= HTTP-7 refused
#[test]
fn a_slow_body_is_cut_off() {
    let gate = Gate::builder().listener("body_timeout: 300ms").start();
    let sealed = gate.seal(&Call::payment());
    let mut connection = Connection::open(&gate);
    connection.send(&render_head(&sealed)).unwrap();
    connection.send(b"{").unwrap();
    check_error(
        "a slow body",
        &connection.answer("POST").unwrap(),
        408,
        "BAD_REQUEST",
        "request-timeout",
    );
    assert!(gate.upstream().saw_nothing());
}

/// Requests counted as malformed, whether pingora or the gateway refused them.
fn counted(gate: &Gate) -> f64 {
    gate.metric_at_rest("portvakt_refusals_total", &["reason=\"malformed-request\""])
}

fn text(head: Vec<u8>) -> String {
    String::from_utf8(head).unwrap()
}

/// The line of a header.
fn line(head: &str, name: &str) -> String {
    head.split("\r\n")
        .find(|line| line.starts_with(name))
        .unwrap()
        .to_owned()
}

/// One more header at the end.
fn after_line(head: &str, added: &str) -> String {
    format!("{}{added}\r\n\r\n", head.strip_suffix("\r\n").unwrap())
}

/// One more header at the beginning.
fn before_headers(head: &str, added: &str) -> String {
    head.replacen("\r\n", &format!("\r\n{added}\r\n"), 1)
}
