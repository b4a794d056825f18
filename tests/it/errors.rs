//! The form of error answers: ERR-1, ERR-3, ERR-5, ERR-7.

/// ERR-6: errors of the core in a content coding.
mod coded;
/// ERR-10: the page of a reason.
mod documentation;
/// ERR-10: one cause in each sentence.
mod sentences;
/// ERR-4, ERR-6.
mod upstream;

use crate::harness::{Answer, Call, Connection, Gate, Protocol, Reply, check_error, refused};
use portvakt::interface::{Code, headers::date};
use std::collections::HashSet;

/// Sends an admitted call over each protocol, and returns the gateway's answers.
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
    // The first rule in the order of rules decides: HTTP-4 is before HDR-1.
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

//= ERR-1 accepted
#[test]
fn an_unknown_product_has_tpp_messages() {
    let gate = Gate::start();
    let call = Call::new("POST", "/v1/payments/foo");
    let body = refused(&gate, &call, 404, "PRODUCT_UNKNOWN", "product-unknown").json();
    let messages = body["tppMessages"].as_array().unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["category"], "ERROR");
    assert_eq!(messages[0]["code"], "PRODUCT_UNKNOWN");
    assert_eq!(messages[0]["text"], body["faults"][0]["text"]);
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

/// The upstream's answer that requires SCA is forwarded.
//= ERR-2 accepted
#[test]
fn an_answer_that_asks_for_sca_has_links_and_no_code() {
    let gate = Gate::start();
    let body = r#"{"_links":{"scaRedirect":{"href":"https://bank.example/sca?request=x","verbs":["GET"]}}}"#;
    gate.upstream().reply(Reply::json(401, body));
    for protocol in Protocol::ALL {
        let answer = gate.send(&Call::accounts(), protocol);
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (401, body.as_bytes())
        );
    }
}

//= ERR-4 accepted
//= ERR-4 refused
#[test]
fn a_connection_too_many_is_told_to_come_back() {
    let gate = Gate::builder().listener("max_connections: 1").start();
    let mut first = Connection::open(&gate);
    let sealed = gate.seal(&Call::accounts());
    assert_eq!(first.exchange(&sealed).unwrap().status, 200);
    gate.upstream().take();
    for protocol in Protocol::ALL {
        let answer = gate.send(&Call::accounts(), protocol);
        check_error(
            "the second connection",
            &answer,
            503,
            "SYSTEM_ERROR",
            "overloaded",
        );
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    assert!(gate.upstream().take().is_empty());
    let sealed = gate.seal(&Call::accounts());
    assert_eq!(
        first.exchange(&sealed).unwrap().status,
        200,
        "the first goes on"
    );
    gate.eventually_metric_is(
        "portvakt_connections_turned_away_total",
        &[],
        "is 2 or more",
        |count| count >= 2.0,
    );
}
