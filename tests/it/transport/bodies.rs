//! The size of bodies, and operations without one: HTTP-6, HTTP-8.

use crate::harness::{Call, Connection, Gate, Protocol, accepted, chunk, refused, render_head};

/// A JSON body of exactly `length` bytes.
fn body(length: usize) -> String {
    format!(r#"{{"a":"{}"}}"#, "x".repeat(length - 8))
}

//= HTTP-6 accepted
#[test]
fn bodies_up_to_the_limit() {
    let gate = Gate::start();
    for length in [8, 16 * 1024, 65_535, 65_536] {
        accepted(&gate, &Call::payment().json(&body(length)));
        accepted(&gate, &Call::payment().json(&body(length)).chunked());
    }
}

//= HTTP-6 refused
#[test]
fn a_body_over_the_limit() {
    let gate = Gate::start();
    for length in [65_537, 100_000, 200_000] {
        refused(
            &gate,
            &Call::payment().json(&body(length)),
            413,
            "BAD_REQUEST",
            "body-too-large",
        );
        refused(
            &gate,
            &Call::payment().json(&body(length)).chunked(),
            413,
            "BAD_REQUEST",
            "body-too-large",
        );
    }
}

//= HTTP-6 accepted
//= HTTP-6 refused
#[test]
fn the_limit_is_configured() {
    let gate = Gate::builder().line("body_limit: 1KiB").start();
    for call in [Call::payment(), Call::payment().chunked()] {
        accepted(&gate, &call.clone().json(&body(1_024)));
        refused(
            &gate,
            &call.json(&body(1_025)),
            413,
            "BAD_REQUEST",
            "body-too-large",
        );
    }
    let beyond = Gate::builder()
        .line("body_limit: 65KiB")
        .try_start()
        .err()
        .expect("a limit that is refused");
    assert!(beyond.contains("body_limit"), "{beyond}");
}

//= HTTP-6 refused
#[test]
fn a_body_over_the_limit_is_not_waited_for() {
    let gate = Gate::start();
    let sealed =
        gate.seal(&Call::payment().altered(|request| request.body = Some(vec![b' '; 10_000_000])));
    let mut connection = Connection::open(&gate);
    connection.send(&render_head(&sealed)).unwrap();
    assert_eq!(
        connection.answer("POST").unwrap().reason(),
        "body-too-large"
    );
    assert!(connection.rest().is_empty(), "the connection is closed");

    let sealed = gate.seal(&Call::payment().json(&body(65_537)).chunked());
    let mut connection = Connection::open(&gate);
    connection.send(&render_head(&sealed)).unwrap();
    for part in body(65_537).as_bytes().chunks(8_192) {
        connection.send(&chunk(part)).unwrap();
    }
    // The last chunk is missing.
    assert_eq!(
        connection.answer("POST").unwrap().reason(),
        "body-too-large"
    );
    assert!(gate.upstream().saw_nothing());
}

//= HTTP-8 accepted
#[test]
fn an_empty_body_where_none_is_taken() {
    let gate = Gate::start();
    let authorise = Call::new(
        "POST",
        "/v1/payments/norwegian-domestic-credit-transfers/7/authorisations",
    );
    accepted(&gate, &authorise);
    for call in [Call::accounts(), Call::sandbox_transactions(), authorise] {
        for empty in ["", "{}", "{ }", " {\r\n}\n"] {
            accepted(&gate, &call.clone().json(empty));
            accepted(&gate, &call.clone().json(empty).chunked());
        }
    }
}

/// A proxy that terminates the TPP's TLS could add a body: nobody signed the body, so the core does not get it.
//= HTTP-8 accepted
//= DIG-2 accepted
#[test]
fn an_empty_body_that_no_digest_vouches_for_stays_here() {
    let gate = Gate::start();
    let authorise = Call::new("POST", "/v1/signing-baskets/7/authorisations");
    for call in [Call::accounts(), Call::sandbox_transactions(), authorise] {
        let padded = format!("{{{}}}", " ".repeat(30_000));
        for body in ["{}", &padded] {
            let body = body.as_bytes().to_vec();
            let call = call.clone().altered(move |request| {
                request.body = Some(body.clone());
                request.set_header("Content-Type", "application/json");
            });
            for protocol in Protocol::ALL {
                gate.upstream().take();
                let answer = gate.send(&call, protocol);
                assert_eq!(answer.status, 200, "{}", answer.reason());
                let seen = gate.upstream().take();
                assert_eq!(seen.len(), 1);
                assert!(seen[0].whole && seen[0].body.is_empty());
                for header in ["content-type", "transfer-encoding"] {
                    assert_eq!(seen[0].header(header), None);
                }
            }
        }
    }
}

//= HTTP-8 refused
#[test]
fn a_body_where_none_is_taken() {
    let gate = Gate::start();
    let authorise = Call::new("POST", "/v1/signing-baskets/7/authorisations");
    for call in [
        Call::accounts(),
        Call::details(),
        Call::sandbox_transactions(),
        authorise,
    ] {
        for body in [r#"{"a":1}"#, "[]", "null", " ", "{}{}", "x"] {
            refused(
                &gate,
                &call.clone().json(body),
                400,
                "FORMAT_ERROR",
                "body-unexpected",
            );
        }
        refused(
            &gate,
            &call.json(r#"{"a":1}"#).chunked(),
            400,
            "FORMAT_ERROR",
            "body-unexpected",
        );
    }
}

//= HTTP-8 accepted
#[test]
fn the_body_of_a_consent_is_ignored() {
    let gate = Gate::start();
    let consent = Call::new("POST", "/v1/consents");
    for call in [
        consent.clone(),
        consent.clone().json(r#"{"access":{}}"#),
        consent.clone().json("not json"),
        consent.with("Content-Type", "text/plain").body(b"x"),
    ] {
        for protocol in Protocol::ALL {
            assert_eq!(gate.send(&call, protocol).status, 200);
        }
    }
}
