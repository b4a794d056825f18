//! The body as a whole: PAY-1, PAY-2, PAY-15, PAY-16.

use super::{basket, changed, cross_border, payment};
use crate::harness::{Call, Gate, accepted, refused};
use serde_json::json;

//= PAY-1 accepted
#[test]
fn one_json_value() {
    let gate = Gate::start();
    let deepest = format!("{{\"a\":{}{}}}", "[".repeat(31), "]".repeat(31));
    let digits = format!("{{\"a\":{}}}", "9".repeat(10_000));
    let names: Vec<_> = (0..2_000).map(|n| format!("\"{n}\":0")).collect();
    let many = format!("{{{}}}", names.join(","));
    for body in [
        "{}",
        " {\r\n}\n",
        r#"{"a":"\ud83d\ude00"}"#,
        &deepest,
        &digits,
        &many,
    ] {
        accepted(&gate, &Call::payment().json(body));
    }
    // The interface does not specify the bodies of these operations: any JSON is accepted.
    accepted(
        &gate,
        &Call::new("PUT", "/v1/tpp/contact").json("[1, \"x\"]"),
    );
}

//= PAY-1 refused
#[test]
fn what_is_not_one_json_value() {
    let gate = Gate::start();
    let deep = "[".repeat(33);
    let hostile = "[".repeat(64 * 1024);
    let bodies: [&[u8]; 15] = [
        b"{",
        b"{} {}",
        b"<payment/>",
        b"{'a':1}",
        b"{\"a\":1,\"a\":1}",
        b"{\"a\":{\"b\":1,\"\\u0062\":2}}",
        b"{\"creditorName\":\"B\xe6r\"}",
        b"\xef\xbb\xbf{}",
        b"{\"a\":\"\\ud800\"}",
        b"{\"a\":01}",
        b"{\"creditor\xe6Name\":\"M\"}",
        b"{\"creditorName\":\"M\xc3\"}",
        GZIP,
        deep.as_bytes(),
        hostile.as_bytes(),
    ];
    for body in bodies {
        for call in [
            Call::payment(),
            Call::cross_border(),
            Call::basket(),
            Call::new("PUT", "/v1/tpp/contact").json(""),
        ] {
            let answer = refused(
                &gate,
                &call.body(body),
                400,
                "FORMAT_ERROR",
                "payload-malformed",
            );
            let text = answer.json()["faults"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned();
            assert!(text.starts_with("line 1, column "), "{text}");
        }
    }
    refused(
        &gate,
        &Call::payment().json(""),
        400,
        "FORMAT_ERROR",
        "payload-malformed",
    );
}

/// `{}`, compressed.
const GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xab\xae\x05\0\x43\xbf\xa6\xa3\x02\0\0\0";

/// A body that is not JSON by its headers is refused earlier (HTTP-4).
#[test]
fn other_media_types_and_codings() {
    let gate = Gate::start();
    let body = payment().to_string();
    let latin1: Vec<u8> = body.chars().filter_map(|c| u8::try_from(c).ok()).collect();
    let table: [(&str, &str, &[u8]); 6] = [
        ("Content-Type", "application/xml", body.as_bytes()),
        ("Content-Type", "application/xml", b"<Document/>"),
        ("Content-Type", "application/json; charset=latin1", &latin1),
        (
            "Content-Type",
            "application/json; charset=ISO-8859-1",
            b"{}",
        ),
        ("Content-Encoding", "gzip", body.as_bytes()),
        ("Content-Encoding", "gzip", GZIP),
    ];
    for (name, value, body) in table {
        for call in [Call::cross_border(), Call::payment(), Call::basket()] {
            let call = call.with(name, value).body(body);
            refused(&gate, &call, 415, "FORMAT_ERROR", "media-type-unsupported");
        }
    }
}

//= PAY-2 accepted
#[test]
fn a_payment_with_nothing_wrong() {
    let gate = Gate::start();
    accepted(&gate, &cross_border(&payment()));
}

//= PAY-2 refused
#[test]
fn every_violation_at_once() {
    let gate = Gate::start();
    let mut wrong = changed("creditorName", json!(""));
    wrong["instructedAmount"] = json!({"amount": "100", "currency": "NOK"});
    wrong["debtorAccount"] = json!({"iban": "NO9386011117948", "currency": "EEK"});
    wrong["purposeCode"] = json!("GIFT");
    wrong["requestedExecutionDate"] = json!("2020-01-01");
    let paths = [
        "instructedAmount.amount",
        "debtorAccount.currency",
        "debtorAccount.iban",
        "creditorName",
        "purposeCode",
        "requestedExecutionDate",
    ];
    let answer = super::refused_for(&gate, &cross_border(&wrong), "FORMAT_ERROR", &paths);
    let messages = answer.json()["tppMessages"].as_array().unwrap().clone();
    assert_eq!(
        messages[0],
        json!({"category": "ERROR", "code": "FORMAT_ERROR", "path": "instructedAmount.amount", "text": "NOK has 2 fraction digits: 100.00"})
    );
    assert_eq!(messages[5]["code"], "EXECUTION_DATE_INVALID");
    assert!(
        messages
            .iter()
            .all(|message| message["text"].as_str().unwrap().chars().count() <= 512)
    );
    let shown = String::from_utf8(answer.body).unwrap();
    assert!(
        !shown.contains("9386011117948") && !shown.contains("GIFT"),
        "{shown}"
    );
}

//= PAY-15 accepted
#[test]
fn the_core_gets_the_bytes_that_were_signed() {
    let gate = Gate::start();
    let compact = payment().to_string();
    let pretty = serde_json::to_string_pretty(&payment()).unwrap();
    let escaped = compact.replace('ü', "\\u00fc").replace('/', "\\/");
    let spaced = format!("\r\n\t{} \n\n", pretty.replace('\n', "\r\n"));
    for body in [&compact, &pretty, &escaped, &spaced] {
        for call in [
            Call::cross_border().json(body),
            Call::cross_border().json(body).chunked(),
        ] {
            for passage in accepted(&gate, &call) {
                assert_eq!(passage.seen.body, body.as_bytes());
                let digest = portvakt::interface::headers::digest::sha256(&passage.seen.body);
                assert_eq!(passage.seen.header("digest"), Some(digest.as_str()));
            }
        }
    }
    accepted(&gate, &basket(&json!(["b", "a"])));
}

/// A link to start an authorisation.
fn authorise() -> [Call; 2] {
    [
        Call::new(
            "POST",
            "/v1/payments/norwegian-cross-border-credit-transfers/7/authorisations",
        ),
        Call::new("POST", "/v1/signing-baskets/7/authorisations"),
    ]
}

//= PAY-16 accepted
#[test]
fn an_authorisation_without_a_body() {
    let gate = Gate::start();
    for call in authorise() {
        accepted(&gate, &call);
        accepted(&gate, &call.json("{}"));
    }
}

//= PAY-16 refused
#[test]
fn an_authorisation_with_a_body() {
    let gate = Gate::start();
    for call in authorise() {
        let call = call.json(&payment().to_string());
        refused(&gate, &call, 400, "FORMAT_ERROR", "body-unexpected");
    }
}
