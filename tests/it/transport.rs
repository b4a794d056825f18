//! TLS, and refusals because of method, path and content headers: TLS-1, TLS-2, HTTP-1 to HTTP-5.

/// HTTP-9: acknowledgements of answers over HTTP/2.
mod acknowledged;
/// HTTP-6, HTTP-8.
mod bodies;
/// Upper bounds on times: `make bounds`.
mod bounds;
/// TLS-3.
pub(crate) mod client_auth;
/// ERR-8: answers that are not delivered.
mod cut;
/// HTTP-9: floods over HTTP/2.
mod floods;
/// HTTP-7, HTTP-9: HTTP/2 frame by frame.
mod frames;
/// HTTP-7.
mod framing;
/// HTTP-11 and the properties that do not depend on the group.
mod groups;
/// HTTP-9: HTTP/2 connections in time and size.
mod http2;
/// HTTP-9: HTTP/1.1 connections that wait for a request.
mod idle;
/// ERR-4: the core, and descriptors.
mod in_flight;
/// ERR-8: refusals by the HTTP/2 library.
mod library;
/// HTTP-9.
mod limits;
/// HTTP-9: memory.
mod memory;
/// HTTP-7: chunks, expectations, versions of HTTP, requests behind one another.
mod messages;
/// Ids by their names.
mod named_ids;
/// HTTP-10, HTTP-11.
mod paths;
/// HTTP-9, QUO-12, FWD-2: the client's address behind a proxy.
mod proxies;
/// A client that asks for another handshake.
mod renegotiation;
/// TLS-1, CRT-8: certificates by name, OCSP responses, ciphers and groups.
mod server_certificates;
/// HTTP-9: callers who take their answers slowly.
mod slow_callers;
/// TLS-3: tickets that replicas share.
mod tickets;

use crate::harness::{Call, Connection, Gate, Protocol, Tls, accepted, refused};
use openssl::ssl::SslVersion;
use portvakt::clock::{Clock, Timestamp};

//= TLS-1 accepted
#[test]
fn tls_1_2_and_1_3_are_served() {
    let gate = Gate::start();
    for (version, name) in [
        (SslVersion::TLS1_2, "TLSv1.2"),
        (SslVersion::TLS1_3, "TLSv1.3"),
    ] {
        let tls = Tls {
            only: Some(version),
            ..Tls::default()
        };
        let mut connection = Connection::shake(gate.address(), gate.world(), tls).unwrap();
        assert_eq!(connection.version(), name);
        assert_eq!(
            connection
                .exchange(&gate.seal(&Call::accounts()))
                .unwrap()
                .status,
            200
        );
    }
    assert_eq!(gate.upstream().take().len(), 2);
}

//= TLS-1 refused
#[test]
fn older_tls_does_not_shake_hands() {
    let gate = Gate::start();
    for version in [SslVersion::TLS1, SslVersion::TLS1_1] {
        let tls = Tls {
            only: Some(version),
            ..Tls::default()
        };
        let fault = Connection::shake(gate.address(), gate.world(), tls)
            .err()
            .expect("a handshake that fails");
        // The alert shows that the gateway refused, and not this client's OpenSSL.
        assert!(fault.contains("alert"), "{version:?}: {fault}");
    }
    assert!(gate.upstream().saw_nothing());
}

//= TLS-2 accepted
#[test]
fn alpn_chooses_the_protocol() {
    let gate = Gate::start();
    let table: [(&[u8], Option<&[u8]>); 4] = [
        (b"\x02h2", Some(b"h2")),
        (b"\x08http/1.1", Some(b"http/1.1")),
        (b"\x08http/1.1\x02h2", Some(b"h2")),
        (b"", None),
    ];
    for (offered, chosen) in table {
        let tls = Tls {
            alpn: offered,
            ..Tls::default()
        };
        let mut connection = Connection::shake(gate.address(), gate.world(), tls).unwrap();
        assert_eq!(connection.alpn(), chosen);
        if chosen != Some(b"h2") {
            assert_eq!(
                connection
                    .exchange(&gate.seal(&Call::accounts()))
                    .unwrap()
                    .status,
                200
            );
        }
    }
}

/// The headers to the core whose values are random.
const OF_ONE_REQUEST: [&str; 2] = ["gateway-sca-redirect", "traceparent"];

//= TLS-2 accepted
#[test]
fn both_protocols_have_the_same_outcome() {
    for call in [
        Call::accounts(),
        Call::payment(),
        Call::sandbox_transactions(),
        Call::details(),
    ] {
        let sorted = Protocol::ALL.map(|protocol| {
            // A gate for each, since a request id is used once.
            let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
            let gate = Gate::builder().clock(&clock).upstream("host: core").start();
            let call = call.clone().with("X-Request-ID", "one-and-the-same");
            let seen = accepted(&gate, &call.only(protocol)).remove(0).seen;
            let headers = seen.headers.into_iter();
            let mut headers: Vec<_> = headers
                .filter(|(name, _)| !OF_ONE_REQUEST.contains(&&*name.to_ascii_lowercase()))
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect();
            headers.sort();
            headers
        });
        assert_eq!(sorted[0], sorted[1], "the upstream sees the same headers");
    }
    let gate = Gate::start();
    // `refused` compares the two answers.
    refused(
        &gate,
        &Call::accounts().without("TPP-Redirect-URI"),
        400,
        "HTTP_HEADER_REQUIRED",
        "header-missing",
    );
}

//= TLS-2 accepted
#[test]
fn a_connection_serves_one_request_after_another() {
    let gate = Gate::start();
    let mut connection = Connection::open(&gate);
    for call in [
        Call::accounts(),
        Call::payment(),
        Call::accounts().without("TPP-Redirect-URI"),
        Call::payment().chunked(),
        Call::accounts(),
    ] {
        let sealed = gate.seal(&call);
        let answer = connection.exchange(&sealed).unwrap();
        assert_eq!(
            answer.header("x-request-id"),
            sealed.request.header("x-request-id")
        );
        assert!(matches!(answer.status, 200 | 400));
    }
    assert_eq!(gate.upstream().take().len(), 4);
}

//= HTTP-1 accepted
#[test]
fn operations_of_the_sandbox_exist_in_the_sandbox() {
    let gate = Gate::start();
    accepted(&gate, &Call::accounts());
    accepted(&gate, &Call::sandbox_transactions());
}

/// The tests of the catalogue show that production has no sandbox paths (CRT-9).
//= HTTP-1 refused
#[test]
fn a_path_that_is_no_operation() {
    let gate = Gate::start();
    for target in [
        "/v1/unknown",
        "/v2/accounts",
        "/v1",
        "/v1/Accounts",
        "/v1/accounts/1",
        "/v1/accounts/1/balances/2",
        "/v1/sandbox",
        "/metrics",
        "/livez",
    ] {
        refused(
            &gate,
            &Call::new("GET", target),
            404,
            "NOT_FOUND",
            "operation-unknown",
        );
    }
    let unsigned =
        Call::new("GET", "/v1/unknown").altered(|request| request.remove_header("signature"));
    refused(&gate, &unsigned, 404, "NOT_FOUND", "operation-unknown");
}

//= HTTP-2 accepted
#[test]
fn methods_that_operations_have() {
    let gate = Gate::start();
    accepted(&gate, &Call::new("GET", "/v1/tpp/contact"));
    accepted(
        &gate,
        &Call::new("PUT", "/v1/tpp/contact").json(r#"{"email":"psd2@tpp.example"}"#),
    );
}

//= HTTP-2 refused
#[test]
fn methods_that_operations_do_not_have() {
    let gate = Gate::start();
    let table = [
        ("DELETE", "/v1/accounts", "GET"),
        ("POST", "/v1/accounts", "GET"),
        ("OPTIONS", "/v1/accounts", "GET"),
        ("PATCH", "/v1/tpp/contact", "GET, PUT"),
        ("GET", "/v1/signing-baskets", "POST"),
        ("PUT", "/v1/sandbox/accounts/1/transactions", "GET, POST"),
        ("get", "/v1/accounts", "GET"),
    ];
    for (method, target, allow) in table {
        let answer = refused(
            &gate,
            &Call::new(method, target),
            405,
            "BAD_REQUEST",
            "method-not-allowed",
        );
        assert_eq!(answer.header("allow"), Some(allow), "{method} {target}");
    }
    // An answer to HEAD has no body to look at.
    for protocol in Protocol::ALL {
        let answer = gate.send(&Call::new("HEAD", "/v1/accounts"), protocol);
        assert_eq!(
            (answer.status, answer.header("allow"), answer.body.len()),
            (405, Some("GET"), 0),
            "{protocol:?}"
        );
    }
    assert!(gate.upstream().saw_nothing());
}

//= HTTP-3 accepted
#[test]
fn payment_products() {
    let gate = Gate::start();
    accepted(&gate, &Call::cross_border());
    for product in [
        "norwegian-domestic-credit-transfers",
        "instant-norwegian-credit-transfers-straks",
    ] {
        accepted(
            &gate,
            &Call::payment().at(&format!("/v1/payments/{product}")),
        );
    }
    accepted(
        &gate,
        &Call::new(
            "GET",
            "/v1/payments/norwegian-domestic-credit-transfers/7/status",
        ),
    );
}

//= HTTP-3 refused
#[test]
fn unknown_payment_products() {
    let gate = Gate::start();
    for product in [
        "gold-bars",
        "Norwegian-domestic-credit-transfers",
        "norwegian-domestic-credit-transfers2",
    ] {
        refused(
            &gate,
            &Call::payment().at(&format!("/v1/payments/{product}")),
            404,
            "PRODUCT_UNKNOWN",
            "product-unknown",
        );
        refused(
            &gate,
            &Call::new("GET", &format!("/v1/payments/{product}/7/status")),
            404,
            "PRODUCT_UNKNOWN",
            "product-unknown",
        );
    }
}

//= HTTP-4 accepted
#[test]
fn bodies_that_are_json() {
    let gate = Gate::start();
    for kind in [
        "application/json",
        "Application/JSON; Charset=UTF-8",
        "application/json;charset=\"utf-8\"",
        "application/vnd.bank+json",
        "application/json; version=1; profile=\"https://bank.example/p\"",
    ] {
        accepted(&gate, &Call::payment().with("Content-Type", kind));
    }
    accepted(&gate, &Call::payment().with("Content-Encoding", "identity"));
    // Without a body, Content-Type is not judged.
    accepted(&gate, &Call::accounts().with("Content-Type", "text/plain"));
}

//= HTTP-4 refused
#[test]
fn bodies_that_are_not() {
    let gate = Gate::start();
    let types = [
        "application/xml",
        "text/plain",
        "text/json",
        "application/json; charset=iso-8859-1",
        "application/json; charset=utf-16",
        "application/+json",
        "application/json, text/xml",
        "application/json; charset*=utf-8''utf-7",
        "application/json; charset*0=utf-7",
        "application/json; charset=utf-8; charset=utf-8",
        "application/json; char_set=utf-7",
        "application/json; x=\"; charset=utf-7\"",
    ];
    for kind in types {
        refused(
            &gate,
            &Call::payment().with("Content-Type", kind),
            415,
            "FORMAT_ERROR",
            "media-type-unsupported",
        );
        refused(
            &gate,
            &Call::payment().with("Content-Type", kind).chunked(),
            415,
            "FORMAT_ERROR",
            "media-type-unsupported",
        );
    }
    for coding in ["gzip", "br", "identity, gzip"] {
        refused(
            &gate,
            &Call::payment().with("Content-Encoding", coding),
            415,
            "FORMAT_ERROR",
            "media-type-unsupported",
        );
    }
}

//= HTTP-5 accepted
#[test]
fn accept_that_allows_json() {
    let gate = Gate::start();
    for accept in [
        "application/json",
        "*/*",
        "application/*;q=0.1",
        "text/html, application/json;q=0.5",
        "application/problem+json",
        "*/*;q=0, application/json",
    ] {
        accepted(&gate, &Call::accounts().with("Accept", accept));
    }
    accepted(
        &gate,
        &Call::accounts()
            .with("Accept", "text/html")
            .also("Accept", "application/json"),
    );
}

//= HTTP-5 refused
#[test]
fn accept_that_excludes_json() {
    let gate = Gate::start();
    for accept in [
        "text/html",
        "application/xml",
        "application/json;q=0",
        "*/*;q=0.0",
        "application/json;q=0, text/*",
    ] {
        refused(
            &gate,
            &Call::accounts().with("Accept", accept),
            406,
            "FORMAT_ERROR",
            "not-acceptable",
        );
    }
    refused(
        &gate,
        &Call::sandbox_transactions().with("Accept", "text/html"),
        406,
        "FORMAT_ERROR",
        "not-acceptable",
    );
}
