//! Errors of the upstream: ERR-4, ERR-6.

use super::answers;
use crate::harness::{Answer, Call, Gate, Protocol, Reply, accepted, check_error};

/// An answer discloses nothing about the upstream.
fn leaks_nothing(gate: &Gate, answer: &Answer) {
    let shown = format!(
        "{:?} {}",
        answer.headers,
        String::from_utf8_lossy(&answer.body)
    )
    .to_lowercase();
    let port = format!(":{}", gate.upstream().address().port());
    for secret in [
        "127.0.0.1",
        &port,
        "pingora",
        "rustls",
        "src/",
        "panicked",
        "connection refused",
        "os error",
    ] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

//= ERR-4 refused
#[test]
fn an_upstream_that_is_down() {
    let gate = Gate::start();
    gate.upstream().stop();
    for call in [Call::accounts(), Call::payment()] {
        for answer in answers(&gate, &call) {
            check_error("down", &answer, 502, "SYSTEM_ERROR", "upstream-unreachable");
            leaks_nothing(&gate, &answer);
        }
    }
}

//= ERR-4 accepted
//= ERR-4 refused
#[test]
fn an_upstream_that_goes_down_while_it_is_connected() {
    let gate = Gate::start();
    accepted(&gate, &Call::accounts());
    accepted(&gate, &Call::payment());
    gate.upstream().stop();
    for call in [Call::payment(), Call::accounts()] {
        for answer in answers(&gate, &call) {
            check_error("gone", &answer, 502, "SYSTEM_ERROR", "upstream-unreachable");
        }
    }
}

//= ERR-4 refused
#[test]
fn an_upstream_that_answers_nothing_or_nonsense() {
    let gate = Gate::start();
    let raw = |bytes: &[u8]| Reply::Raw(bytes.to_vec());
    let replies = [
        (Reply::Close, "upstream-unreachable"),
        (raw(b"HTTP/1.1 200"), "upstream-unreachable"),
        // The core was reached: this is its answer.
        (
            raw(b"220 mail.internal.bank ESMTP\r\n\r\n"),
            "upstream-error",
        ),
        (raw(b"\0\x01\x02\x03"), "upstream-error"),
        (
            raw(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
            "upstream-error",
        ),
        (raw(b"HTTP/1.1 200 OK\r\n: x\r\n\r\n"), "upstream-error"),
        (
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            "upstream-error",
        ),
    ];
    for (reply, reason) in replies {
        gate.upstream().reply(reply.clone());
        for (call, status, reason) in [
            (Call::accounts(), 502, reason),
            (Call::payment(), 504, "outcome-unknown"),
        ] {
            for answer in answers(&gate, &call) {
                check_error(
                    &format!("{reply:?}"),
                    &answer,
                    status,
                    "SYSTEM_ERROR",
                    reason,
                );
                leaks_nothing(&gate, &answer);
                assert!(
                    !String::from_utf8_lossy(&answer.body).contains("mail"),
                    "nothing of the upstream's words"
                );
            }
        }
    }
    // A payment is sent upstream once, even after a failure (FWD-3).
    gate.upstream().take();
    gate.upstream().reply(Reply::Close);
    gate.send(&Call::payment(), Protocol::Http1);
    assert_eq!(gate.upstream().take().len(), 1);
}

//= ERR-4 refused
#[test]
fn an_upstream_that_is_too_slow() {
    let gate = Gate::builder().upstream("read_timeout: 1s").start();
    gate.upstream().reply(Reply::Silence);
    for (call, reason) in [
        (Call::accounts(), "upstream-timeout"),
        (Call::payment(), "outcome-unknown"),
    ] {
        for answer in answers(&gate, &call) {
            check_error("slow", &answer, 504, "SYSTEM_ERROR", reason);
            leaks_nothing(&gate, &answer);
        }
    }
    gate.upstream().take();
    gate.send(&Call::payment(), Protocol::Http1);
    assert_eq!(
        gate.upstream().take().len(),
        1,
        "a payment is not sent twice"
    );
}

//= ERR-6 accepted
#[test]
fn json_errors_of_the_upstream_pass_unchanged() {
    let gate = Gate::start();
    let kinds = [
        "application/json",
        "application/json; charset=utf-8",
        "Application/Problem+JSON",
    ];
    let body = "{ \"code\":\"RESOURCE_UNKNOWN\",\r\n \"message\":\"K\u{f8}b\" }\n";
    // A 401 gets a link (SCA-14).
    for (status, kind) in [400, 403, 404, 409, 422, 429, 500, 503]
        .into_iter()
        .zip(kinds.iter().cycle())
    {
        gate.upstream().reply(Reply::Answer(
            status,
            vec![
                ("Content-Type".into(), (*kind).into()),
                ("Retry-After".into(), "7".into()),
            ],
            body.into(),
        ));
        for answer in answers(&gate, &Call::accounts()) {
            assert_eq!(
                (
                    answer.status,
                    answer.header("content-type"),
                    answer.header("retry-after")
                ),
                (status, Some(*kind), Some("7"))
            );
            assert_eq!(answer.body, body.as_bytes());
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
    }
    // A body of the maximum length.
    let long = format!(r#"{{"message":"{}"}}"#, "x".repeat(256 * 1024 - 14));
    assert_eq!(long.len(), 256 * 1024);
    gate.upstream().reply(Reply::json(400, &long));
    assert!(
        answers(&gate, &Call::payment())
            .iter()
            .all(|answer| answer.body == long.as_bytes())
    );
    gate.upstream().reply(Reply::Raw(b"HTTP/1.1 409 C\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n".to_vec()));
    assert!(
        answers(&gate, &Call::payment())
            .iter()
            .all(|answer| answer.status == 409 && answer.body == b"{}")
    );
}

//= ERR-6 accepted
#[test]
fn other_errors_of_the_upstream_are_replaced() {
    let gate = Gate::start();
    let html =
        b"<html><h1>core-7.bank.internal</h1><pre>java.lang.NullPointerException</pre></html>";
    let table = [
        (400, "BAD_REQUEST"),
        (403, "FORBIDDEN"),
        (404, "RESOURCE_UNKNOWN"),
        (409, "CONFLICT"),
        (418, "BAD_REQUEST"),
        (500, "SYSTEM_ERROR"),
        (503, "SYSTEM_ERROR"),
    ];
    for (status, code) in table {
        for kind in [
            Some("text/html"),
            Some("text/plain; charset=utf-8"),
            Some("application/jsonp"),
            // Two Content-Type headers: clients disagree on which one counts.
            Some("application/json|text/html"),
            None,
        ] {
            let headers = kind
                .iter()
                .flat_map(|kinds| kinds.split('|'))
                .map(|kind| ("Content-Type".to_owned(), kind.to_owned()))
                .collect();
            gate.upstream().reply(
                Reply::Answer(status, headers, html.to_vec())
                    .with("Server", "Tomcat")
                    .with("Set-Cookie", "a=b"),
            );
            for call in [Call::accounts(), Call::payment()] {
                for answer in answers(&gate, &call) {
                    check_error(
                        &format!("{status} {kind:?}"),
                        &answer,
                        status,
                        code,
                        "upstream-error",
                    );
                    leaks_nothing(&gate, &answer);
                    let shown = String::from_utf8_lossy(&answer.body).into_owned();
                    assert!(
                        !shown.contains("bank.internal") && !shown.contains("java"),
                        "{shown}"
                    );
                    assert_eq!(answer.header("server"), None);
                    assert_eq!(answer.header("set-cookie"), None);
                }
            }
        }
    }
    // The connection is reused, and answers that are not errors are forwarded unchanged.
    gate.upstream().reply(Reply::Answer(
        200,
        vec![("Content-Type".into(), "text/html".into())],
        html.to_vec(),
    ));
    for passage in accepted(&gate, &Call::accounts()) {
        assert_eq!(passage.answer.body, html);
    }
}

/// The body decides, and not what the head says of it.
//= ERR-6 accepted
#[test]
fn errors_that_only_say_that_they_are_json_are_replaced() {
    let gate = Gate::start();
    let long = format!(r#"{{"message":"{}"}}"#, "x".repeat(256 * 1024 - 13));
    let bodies = [
        "<html><h1>core-7.bank.internal</h1><pre>java.lang.NullPointerException</pre></html>"
            .into(),
        "{\"message\":\"x\"}java.lang.NullPointerException".into(),
        "{\"message\":\"java".into(),
        String::new(),
        long,
    ];
    let head = |status: u16, more: &str| {
        format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{more}\r\n")
    };
    for body in &bodies {
        let length = body.len();
        let framed = [
            head(403, &format!("Content-Length: {length}\r\n")) + body,
            head(502, "Transfer-Encoding: chunked\r\n")
                + &match length {
                    0 => "0\r\n\r\n".into(),
                    _ => format!("{length:x}\r\n{body}\r\n0\r\n\r\n"),
                },
        ];
        for (answer, (status, code)) in framed
            .into_iter()
            .zip([(403, "FORBIDDEN"), (502, "SYSTEM_ERROR")])
        {
            gate.upstream().reply(Reply::Raw(answer.into_bytes()));
            for call in [Call::accounts(), Call::payment()] {
                for answer in answers(&gate, &call) {
                    check_error(
                        &body[..length.min(40)],
                        &answer,
                        status,
                        code,
                        "upstream-error",
                    );
                    assert!(!String::from_utf8_lossy(&answer.body).contains("java"));
                }
            }
        }
    }
    // A body that cannot be read, and one that is not text.
    for reply in [
        Reply::json(500, "{}").with("Content-Encoding", "gzip"),
        Reply::Answer(
            500,
            vec![("Content-Type".into(), "application/json".into())],
            b"\"K\xf8b\"".to_vec(),
        ),
    ] {
        gate.upstream().reply(reply);
        for answer in answers(&gate, &Call::accounts()) {
            check_error("unread", &answer, 500, "SYSTEM_ERROR", "upstream-error");
        }
    }
    // An error that breaks off was not answered.
    let cut = head(500, "Content-Length: 20\r\n") + "{}";
    gate.upstream().reply(Reply::Raw(cut.into_bytes()));
    for (call, status, reason) in [
        (Call::accounts(), 502, "upstream-unreachable"),
        (Call::payment(), 504, "outcome-unknown"),
    ] {
        for answer in answers(&gate, &call) {
            check_error("cut", &answer, status, "SYSTEM_ERROR", reason);
        }
    }
}

//= ERR-6 accepted
#[test]
fn what_runs_behind_the_gateway_is_not_told() {
    let gate = Gate::start();
    for status in [200, 404] {
        gate.upstream().reply(
            Reply::json(status, "{}")
                .with("Server", "Tomcat/9")
                .with("X-Powered-By", "Servlet")
                .with("Via", "1.1 core-7")
                .with("ETag", "\"7\""),
        );
        for answer in answers(&gate, &Call::accounts()) {
            for name in ["server", "x-powered-by", "via"] {
                assert_eq!(answer.header(name), None, "{name}");
            }
            assert_eq!(answer.header("etag"), Some("\"7\""));
        }
    }
}

//= ERR-9 accepted
//= ERR-9 refused
#[test]
fn the_language_of_answers() {
    let gate = Gate::start();
    gate.upstream()
        .reply(Reply::json(200, "{}").with("Content-Language", "nb"));
    for answer in answers(&gate, &Call::accounts()) {
        assert_eq!(answer.header("content-language"), Some("nb"));
    }
    gate.upstream().reply(Reply::json(200, "{}"));
    for answer in answers(&gate, &Call::accounts()) {
        assert_eq!(answer.header("content-language"), None);
    }
    gate.upstream().take();
    for answer in answers(&gate, &Call::new("GET", "/v1/nowhere")) {
        assert_eq!(answer.status, 404);
        assert_eq!(answer.header("content-language"), Some("en"));
    }
    assert!(gate.upstream().take().is_empty());
}
