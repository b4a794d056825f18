//! ERR-10: `documentation` in error bodies.

use crate::harness::{Call, Connection, Gate, Protocol, Reply, refused};
use std::collections::BTreeSet;

/// Whatever the gateway refuses, and wherever.
//= ERR-10 accepted
#[test]
fn every_error_leads_to_the_page_of_its_reason() {
    const BASE: &str = "https://bank.example/errors.html#";
    let gate = Gate::builder()
        .listener(&format!("documentation: '{BASE}'"))
        .listener("head_timeout: 400ms")
        .line("rates: {per_tpp: 1}")
        .start();
    gate.upstream()
        .reply(Reply::Answer(500, Vec::new(), b"stack".to_vec()));
    let mut answers = vec![];
    for protocol in Protocol::ALL {
        for call in [
            Call::new("GET", "/v1/nothing"),
            Call::accounts().off_by(600),
            Call::payment().json("{"),
            Call::accounts(),
            Call::accounts().with("X-Large", &"a".repeat(40 * 1024)),
        ] {
            answers.push(gate.send(&call, protocol));
        }
    }
    answers.push(gate.exceed(Call::accounts));
    for head in [&b"GET / HTTP/7.7\r\n\r\n"[..], b"GET /v1/acc"] {
        let mut connection = Connection::open(&gate);
        connection.send(head).unwrap();
        answers.push(connection.answer("GET").unwrap());
    }
    let mut reasons = BTreeSet::new();
    for answer in answers {
        let json = answer.json();
        let reason = json["reason"].as_str().unwrap().to_owned();
        assert_eq!(json["documentation"], format!("{BASE}{reason}"), "{json}");
        reasons.insert(reason);
    }
    for reason in [
        "operation-unknown",
        "date-skewed",
        "rate-limited",
        "headers-too-large",
        "malformed-request",
        "request-timeout",
    ] {
        assert!(reasons.contains(reason), "{reason}: {reasons:?}");
    }
    // An error of the core that is JSON, and the control listener's own errors, are not the gateway's about the interface.
    let control = gate.control("/nothing").json();
    assert_eq!(control.get("documentation"), None, "{control}");
}

//= ERR-10 accepted
#[test]
fn without_a_base_no_error_has_a_page() {
    let gate = Gate::start();
    let body = refused(
        &gate,
        &Call::new("GET", "/v1/nothing"),
        404,
        "NOT_FOUND",
        "operation-unknown",
    );
    assert_eq!(body.json().get("documentation"), None);
    let gate = Gate::builder()
        .listener("documentation: 'https://bank.example/errors'")
        .start();
    let body = refused(
        &gate,
        &Call::new("GET", "/v1/nothing"),
        404,
        "NOT_FOUND",
        "operation-unknown",
    );
    let page = "https://bank.example/errors/operation-unknown";
    assert_eq!(body.json()["documentation"], page);
    let reply = r#"{"code":"RESOURCE_UNKNOWN","reason":"x"}"#;
    gate.upstream().reply(Reply::json(404, reply));
    let answer = gate.send(&Call::accounts(), Protocol::Http1);
    assert_eq!(
        answer.body,
        reply.as_bytes(),
        "the core's own error passes unchanged"
    );
}
