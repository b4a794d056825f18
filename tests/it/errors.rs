//! What an error looks like, whoever made it: ERR-1, ERR-3 to ERR-7.

use crate::harness::{Answer, Call, Gate, Protocol, Reply, accepted, check_error, refused};
use portvakt::interface::{Code, headers::date};
use std::collections::HashSet;

/// Sends a call that is admitted, and gives what the gateway made of the upstream's answer over each protocol.
fn answers(gate: &Gate, call: &Call) -> Vec<Answer> {
    call.protocols()
        .iter()
        .map(|protocol| {
            let sealed = gate.seal(call);
            let answer = gate.send_sealed(&sealed, *protocol).unwrap();
            assert_eq!(
                answer.header("x-request-id"),
                sealed.request.header("x-request-id"),
                "ERR-5"
            );
            answer
        })
        .collect()
}

//= ERR-1 accepted
#[test]
fn an_error_body() {
    let gate = Gate::builder().line("system: psd2-gateway").start();
    let mut ids = HashSet::new();
    for call in [
        Call::accounts().off_by(600),
        Call::accounts().off_by(600),
        Call::new("GET", "/v1/nothing"),
        Call::sandbox_transactions().without("X-Request-ID"),
    ] {
        for protocol in Protocol::ALL {
            let body = gate.send(&call, protocol).json();
            assert_eq!(body["system"], "psd2-gateway");
            assert!(
                ids.insert(body["id"].as_str().unwrap().to_owned()),
                "an id stands for one occurrence"
            );
            assert!(
                body.get("tppMessages").is_none(),
                "only payments and baskets have tppMessages"
            );
        }
    }
    let default = refused(
        &Gate::start(),
        &Call::new("GET", "/v1/nothing"),
        404,
        "NOT_FOUND",
        "operation-unknown",
    );
    assert_eq!(default.json()["system"], "portvakt");
}

//= ERR-1 accepted
#[test]
fn faults_name_where_they_are() {
    let gate = Gate::start();
    let call = Call::cross_border().altered(|request| {
        request.remove_header("X-Request-ID");
        request.set_header("TPP-Session-ID", "a b");
        request.set_header("Content-Type", "text/xml");
        request.set_header("Accept", "text/xml");
    });
    // The first in the order of the rules decides: HTTP-4 stands before HDR-1.
    let answer = refused(&gate, &call, 415, "FORMAT_ERROR", "media-type-unsupported");
    let body = answer.json();
    let found: Vec<_> = body["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| {
            (
                fault["reason"].as_str().unwrap(),
                fault["header"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("media-type-unsupported", "Content-Type"),
        ("not-acceptable", "Accept"),
        ("header-missing", "X-Request-ID"),
        ("header-malformed", "TPP-Session-ID"),
    ];
    assert_eq!(found, expected);
}

//= ERR-1 accepted
#[test]
fn payments_and_baskets_have_tpp_messages() {
    let gate = Gate::start();
    let status = Call::new(
        "GET",
        "/v1/payments/norwegian-domestic-credit-transfers/7/status",
    );
    for call in [
        Call::payment(),
        Call::cross_border(),
        Call::basket(),
        status,
    ] {
        let call = call.altered(|request| {
            request.remove_header("TPP-Redirect-URI");
            request.remove_header("Signature");
        });
        let body = refused(&gate, &call, 400, "HTTP_HEADER_REQUIRED", "header-missing").json();
        let messages = body["tppMessages"].as_array().unwrap();
        assert_eq!(messages.len(), 2);
        for message in messages {
            assert_eq!(message["category"], "ERROR");
            assert_eq!(message["code"], "HTTP_HEADER_REQUIRED");
            assert!(
                message["text"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty() && text.chars().count() <= 512)
            );
        }
    }
}

//= ERR-3 accepted
#[test]
fn codes_are_the_interfaces() {
    let gate = Gate::start();
    gate.upstream()
        .reply(Reply::Answer(418, Vec::new(), Vec::new()));
    let calls = [
        Call::new("GET", "/v1/nothing"),
        Call::new("DELETE", "/v1/accounts"),
        Call::payment().at("/v1/payments/gold-bars"),
        Call::payment().with("Content-Type", "text/xml"),
        Call::accounts().with("Accept", "text/xml"),
        Call::payment().body(&vec![b' '; 70_000]),
        Call::new("GET", "/v1//accounts"),
        Call::accounts().json("[]"),
        Call::accounts().without("TPP-Redirect-URI"),
        Call::accounts().off_by(600),
        Call::accounts().by(&gate.world().pisp),
        Call::accounts(),
    ];
    for call in calls {
        for answer in answers(&gate, &call) {
            let body = answer.json();
            let code = body["code"].as_str().unwrap();
            assert!(
                Code::ALL.iter().any(|known| known.as_str() == code),
                "{code}"
            );
            assert!(
                !body["reason"].as_str().unwrap().is_empty(),
                "what the code cannot say is said by the reason"
            );
        }
    }
}

/// No answer tells of the upstream.
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

//= ERR-4 accepted
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

//= ERR-4 accepted
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
    // A payment goes upstream once, whatever comes back (FWD-3).
    gate.upstream().take();
    gate.upstream().reply(Reply::Close);
    gate.send(&Call::payment(), Protocol::Http1);
    assert_eq!(gate.upstream().take().len(), 1);
}

//= ERR-4 accepted
#[test]
fn an_upstream_that_is_too_slow() {
    let gate = Gate::builder().upstream("read_timeout: 300ms").start();
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

//= ERR-5 accepted
#[test]
fn every_answer_carries_its_request_id_and_a_date() {
    let gate = Gate::start();
    let replies = [
        Reply::json(200, "{}"),
        Reply::json(200, "{}")
            .with("X-Request-ID", "the-upstreams")
            .with("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        Reply::Answer(204, Vec::new(), Vec::new()),
        Reply::json(404, r#"{"code":"RESOURCE_UNKNOWN"}"#).with("X-Request-ID", "the-upstreams"),
        Reply::Answer(500, Vec::new(), b"stack".to_vec()),
        Reply::Close,
    ];
    let calls = [
        Call::accounts(),
        Call::payment(),
        Call::accounts().off_by(600),
        Call::accounts().with("X-Request-ID", "one:of/my-own"),
        Call::new("GET", "/nothing"),
    ];
    for reply in replies {
        gate.upstream().reply(reply);
        for call in &calls {
            for answer in answers(&gate, call) {
                assert!(date::parse(answer.header("date").unwrap().as_bytes()).is_some());
                let count = |name: &str| {
                    answer
                        .headers
                        .iter()
                        .filter(|(known, _)| known.eq_ignore_ascii_case(name))
                        .count()
                };
                assert_eq!((count("x-request-id"), count("date")), (1, 1));
            }
        }
    }
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
    for (status, kind) in [400, 401, 403, 404, 409, 422, 429, 500, 503]
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
    // As long as it may be, and in chunks.
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
            None,
        ] {
            let headers = kind
                .iter()
                .map(|kind| ("Content-Type".to_owned(), (*kind).to_owned()))
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
    // The connection can be used again, and what is no error passes, whatever it is.
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

//= ERR-7 accepted
#[test]
fn no_answer_is_stored() {
    let gate = Gate::start();
    for reply in [
        Reply::json(200, "{}")
            .with("Cache-Control", "public, max-age=60")
            .with("Cache-Control", "immutable"),
        Reply::json(404, "{}"),
        Reply::Close,
    ] {
        gate.upstream().reply(reply);
        for call in [
            Call::accounts(),
            Call::accounts().off_by(600),
            Call::new("GET", "/nothing"),
        ] {
            for answer in answers(&gate, &call) {
                let values: Vec<_> = answer
                    .headers
                    .iter()
                    .filter(|(name, _)| name.eq_ignore_ascii_case("cache-control"))
                    .map(|(_, value)| value.as_str())
                    .collect();
                assert_eq!(values, ["no-store"]);
            }
        }
    }
}
