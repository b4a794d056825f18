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
    let replies = [
        Reply::Close,
        Reply::Raw(b"220 mail.internal.bank ESMTP\r\n\r\n".to_vec()),
        Reply::Raw(b"HTTP/1.1 200".to_vec()),
        Reply::Raw(b"\0\x01\x02\x03".to_vec()),
    ];
    for reply in replies {
        gate.upstream().reply(reply.clone());
        for call in [Call::accounts(), Call::payment()] {
            for answer in answers(&gate, &call) {
                check_error(
                    &format!("{reply:?}"),
                    &answer,
                    502,
                    "SYSTEM_ERROR",
                    "upstream-unreachable",
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

//= ERR-4 accepted
//= ERR-4 refused
#[test]
fn an_upstream_that_is_too_slow() {
    let gate = Gate::builder().upstream("read_timeout: 300ms").start();
    accepted(&gate, &Call::accounts());
    gate.upstream().reply(Reply::Silence);
    for call in [Call::accounts(), Call::payment()] {
        for answer in answers(&gate, &call) {
            check_error("slow", &answer, 504, "SYSTEM_ERROR", "upstream-timeout");
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
    // A body of the maximum length, in chunks.
    let long = format!(r#"{{"message":"{}"}}"#, "x".repeat(200_000));
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
