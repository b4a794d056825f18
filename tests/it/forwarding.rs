//! The headers that reach the upstream in addition to the request, and those that do not: FWD-1, FWD-2.

/// FWD-7.
mod cleaned;
/// FWD-5.
mod deprecation;
/// FWD-2: Host.
mod host;

use crate::harness::{
    Call, Connection, Gate, Protocol, accepted, pki::LeafSpec, refused, render, render_head, world,
};

//= FWD-1 accepted
#[test]
fn what_the_gateway_established() {
    let gate = Gate::start();
    let table = [
        (Call::accounts(), "account-list", "no"),
        (
            Call::accounts().with("PSU-IP-Address", "2001:db8::7"),
            "account-list",
            "yes",
        ),
        (Call::payment(), "payment-create", "yes"),
        (Call::cross_border(), "cross-border-payment-create", "yes"),
        (Call::basket(), "basket-create", "yes"),
        (
            Call::sandbox_transactions(),
            "sandbox-transaction-list",
            "no",
        ),
    ];
    for (call, operation, present) in table {
        for passage in accepted(&gate, &call) {
            let seen = &passage.seen;
            let expected = [
                ("gateway-tpp-id", "PSDNO-FSA-123456"),
                ("gateway-tpp-name", "Eksempel Betaling AS"),
                ("gateway-tpp-roles", "PSP_PI,PSP_AI"),
                ("gateway-environment", "sandbox"),
                ("gateway-operation", operation),
                (
                    "gateway-request-id",
                    passage.request.header("x-request-id").unwrap(),
                ),
                ("gateway-psu-present", present),
            ];
            for (name, value) in expected {
                let values: Vec<_> = seen
                    .headers
                    .iter()
                    .filter(|(known, _)| known.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.as_str())
                    .collect();
                assert_eq!(values, [value], "{name} on {operation}");
            }
            // SIG-15.
            let signed = seen.header("gateway-signed-headers").unwrap();
            assert!(signed.starts_with("(request-target) date "), "{signed}");
            let established = seen
                .names()
                .iter()
                .filter(|name| name.starts_with("gateway-") && !name.starts_with("gateway-sca"))
                .count();
            assert_eq!(established, expected.len() + 1, "{:?}", seen.names());
        }
    }
}

//= FWD-1 accepted
#[test]
fn each_tpp_is_told_by_its_own_name() {
    let gate = Gate::start();
    let roles = [
        (&world().aisp, "PSDNO-FSA-111111", "PSP_AI"),
        (&world().pisp, "PSDNO-FSA-222222", "PSP_PI"),
    ];
    // The same on one connection: nothing of one request stays for the next one.
    let mut connection = Connection::open(&gate);
    for (tpp, id, roles) in roles.into_iter().chain(roles) {
        let call = Call::sandbox_transactions().by(tpp);
        assert_eq!(connection.exchange(&gate.seal(&call)).unwrap().status, 200);
        let seen = gate.upstream().take().remove(0);
        assert_eq!(
            (
                seen.header("gateway-tpp-id"),
                seen.header("gateway-tpp-roles")
            ),
            (Some(id), Some(roles))
        );
    }
    // A name outside ASCII becomes a header value that decodes to the same name.
    let spec = LeafSpec {
        organization: "Kj\u{f8}p 100% AS".into(),
        ..world().leaf()
    };
    for passage in accepted(&gate, &Call::accounts().by(&world().issue(&spec))) {
        assert_eq!(
            passage.seen.header("gateway-tpp-name"),
            Some("Kj%C3%B8p 100%25 AS")
        );
    }
}

/// The headers that may reach the upstream: the interface's table, content headers, the gateway's own, traceparent and Forwarded.
const TABLE: [&str; 36] = [
    "x-accept-fix",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "host",
    "x-request-id",
    "tpp-session-id",
    "tpp-redirect-uri",
    "tpp-redirect-preferred",
    "tpp-brand-logging-information",
    "date",
    "digest",
    "tpp-signature-certificate",
    "signature",
    "psu-id",
    "x-psu-identity",
    "psu-corporate-id",
    "psu-context",
    "psu-ip-address",
    "psu-ip-port",
    "psu-user-agent",
    "psu-accept",
    "psu-accept-charset",
    "psu-accept-encoding",
    "psu-accept-language",
    "psu-http-method",
    "psu-device-id",
    "psu-geo-location",
    "content-type",
    "content-encoding",
    "content-language",
    "content-length",
    "traceparent",
    "forwarded",
    "gateway-",
];

/// Values for the headers of the table that [`Call::cross_border`] leaves out.
const MORE: [(&str, &str); 20] = [
    ("Accept", "application/json"),
    ("Accept-Charset", "utf-8"),
    ("Accept-Encoding", "gzip"),
    ("Accept-Language", "nb, en;q=0.5"),
    ("TPP-Redirect-Preferred", "false"),
    ("TPP-Brand-Logging-Information", "Bl\u{e5} Bank"),
    ("X-PSU-IDENTITY", "01010112345"),
    ("PSU-Corporate-ID", "3F2504E0-4F89-41D3-9A0C-0305E82C3301"),
    ("PSU-Context", "CORPORATE"),
    ("PSU-IP-Port", "44321"),
    ("PSU-User-Agent", "Mozilla/5.0  (\"x\"; \u{1f600})"),
    ("PSU-Accept", "text/html"),
    ("PSU-Accept-Charset", "utf-8"),
    ("PSU-Accept-Encoding", "br"),
    ("PSU-Accept-Language", "nb"),
    ("PSU-HTTP-Method", "POST"),
    ("PSU-Device-ID", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
    ("PSU-Geo-Location", "GEO:59.913,10.752"),
    ("Content-Encoding", "identity"),
    ("Content-Language", "nb"),
];

//= FWD-2 accepted
#[test]
fn the_headers_of_the_table_reach_the_upstream_as_they_were() {
    let gate = Gate::start();
    let call = MORE
        .iter()
        .fold(Call::cross_border(), |call, (name, value)| {
            call.with(name, value)
        });
    for passage in accepted(&gate, &call) {
        for (name, value) in &passage.request.headers {
            // HDR-16 completes the list of fixed headers; the gateway sets Host to the core's name.
            if name != "x-accept-fix" && name != "Host" {
                assert_eq!(passage.seen.header(name), Some(value.as_str()), "{name}");
            }
        }
        assert_eq!(
            passage.seen.header("content-length"),
            Some(
                passage
                    .request
                    .body
                    .as_ref()
                    .unwrap()
                    .len()
                    .to_string()
                    .as_str()
            )
        );
        let strange: Vec<_> = passage
            .seen
            .names()
            .into_iter()
            .filter(|name| {
                !TABLE
                    .iter()
                    .any(|known| name == known || *known == "gateway-" && name.starts_with(known))
            })
            .collect();
        assert!(strange.is_empty(), "{strange:?}");
    }
}

//= FWD-2 accepted
#[test]
fn other_headers_are_dropped() {
    let gate = Gate::start();
    let others = [
        ("X-Other", "x"),
        ("Cookie", "session=1"),
        ("Authorization", "Bearer x"),
        ("X-Forwarded-For", "10.0.0.1"),
        ("X-Forwarded-Host", "core"),
        ("X-Real-IP", "10.0.0.1"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("X-Original-URL", "/v1/admin"),
        ("Forwarded", "for=10.0.0.1"),
        ("Via", "1.1 x"),
        ("Range", "bytes=0-1"),
        ("If-None-Match", "*"),
        ("Proxy", "http://evil.example"),
        ("Max-Forwards", "1"),
        ("psu_id", "x"),
        ("PSU_ID", "x"),
        ("X_Request_ID", "x"),
        ("tpp.redirect.uri", "x"),
        ("psu-id~", "x"),
        ("Gateway-Tpp-Id", "PSDNO-FSA-999999"),
        ("gateway-tpp-roles", "PSP_AS"),
        ("GATEWAY-SCA", "valid"),
        ("Gateway_Tpp_Id", "PSDNO-FSA-999999"),
        ("Gateway-Psu-Bound", "yes"),
        ("Gateway-Psu-Corporate-Bound", "yes"),
        ("Gateway", "x"),
    ];
    for call in [
        Call::accounts(),
        Call::payment(),
        Call::sandbox_transactions(),
    ] {
        let call = others
            .iter()
            .fold(call, |call, (name, value)| call.also(name, value));
        for passage in accepted(&gate, &call) {
            for (name, value) in others {
                let passed = passage
                    .seen
                    .headers
                    .iter()
                    .any(|(known, found)| known.eq_ignore_ascii_case(name) && found == value);
                assert!(!passed, "{name} over {:?}", passage.protocol);
            }
            assert_eq!(
                passage.seen.header("gateway-tpp-id"),
                Some("PSDNO-FSA-123456")
            );
            assert_eq!(
                passage.seen.header("forwarded"),
                Some("for=127.0.0.1;host=localhost;proto=https"),
                "the gateway's own"
            );
            let names = passage.seen.names();
            let odd = |name: &&String| {
                !name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            };
            assert_eq!(names.iter().find(odd), None);
        }
    }
}

//= FWD-2 accepted
#[test]
fn hop_by_hop_headers_end_at_the_gateway() {
    let gate = Gate::start();
    for connection in ["keep-alive", "close", "close, TE", "x-something"] {
        let call = Call::payment()
            .with("Connection", connection)
            .with("Keep-Alive", "timeout=5")
            .with("TE", "trailers")
            .with("X-Something", "x")
            .only(Protocol::Http1);
        for passage in accepted(&gate, &call) {
            for name in [
                "connection",
                "keep-alive",
                "te",
                "x-something",
                "transfer-encoding",
                "upgrade",
            ] {
                assert_eq!(
                    passage.seen.header(name),
                    None,
                    "{name} with Connection: {connection}"
                );
            }
        }
    }
    // A chunked body is forwarded with Content-Length, and the gateway answers Expect itself.
    for passage in accepted(
        &gate,
        &Call::payment()
            .chunked()
            .with("Expect", "100-continue")
            .only(Protocol::Http1),
    ) {
        assert_eq!(passage.seen.header("content-length"), Some("55"));
        assert_eq!(
            (
                passage.seen.header("transfer-encoding"),
                passage.seen.header("expect")
            ),
            (None, None)
        );
    }
    let sealed = gate.seal(&Call::payment().with("Expect", "100-continue"));
    let mut connection = Connection::open(&gate);
    connection.send(&render_head(&sealed)).unwrap();
    connection
        .send(sealed.request.body.as_deref().unwrap())
        .unwrap();
    assert_eq!(connection.answer("POST").unwrap().status, 200);
}

//= FWD-2 refused
#[test]
fn a_nomination_of_what_must_reach_the_upstream() {
    let gate = Gate::start();
    let nominations = [
        "psu-id",
        "PSU-IP-Address",
        "close, Digest",
        "keep-alive,Signature",
        "Content-Type",
        "content-length",
        "Gateway-Tpp-Id",
        "gateway-anything",
        "Date ",
        "TPP-Signature-Certificate",
        "x-request-id",
        "host",
    ];
    for nomination in nominations {
        let call = Call::payment()
            .with("Connection", nomination)
            .only(Protocol::Http1);
        let answer = refused(&gate, &call, 400, "BAD_REQUEST", "malformed-request");
        assert_eq!(
            answer.json()["faults"][0]["header"],
            "Connection",
            "{nomination}"
        );
    }
    let twice = Call::payment()
        .also("Connection", "close")
        .also("Connection", "psu-id")
        .only(Protocol::Http1);
    refused(&gate, &twice, 400, "BAD_REQUEST", "malformed-request");
}

/// Two pipelined requests on one connection are never mixed. Pingora aborts the first one if the second one comes too early; the
/// upstream then receives an incomplete request, as if the client had disconnected.
//= FWD-2 accepted
#[test]
fn pipelined_requests() {
    let gate = Gate::start();
    let (first, second) = (gate.seal(&Call::payment()), gate.seal(&Call::accounts()));
    let mut connection = Connection::open(&gate);
    connection
        .send(&[render(&first), render(&second)].concat())
        .unwrap();
    for sealed in [&first, &second] {
        let Ok(answer) = connection.answer("GET") else {
            break;
        };
        assert_eq!(
            answer.header("x-request-id"),
            sealed.request.header("x-request-id")
        );
    }
    for seen in gate.upstream().take().iter().filter(|seen| seen.whole) {
        let sealed = if seen.method == "GET" {
            &second
        } else {
            &first
        };
        assert_eq!(seen.body, sealed.request.body.clone().unwrap_or_default());
        assert_eq!(
            seen.header("x-request-id"),
            sealed.request.header("x-request-id")
        );
    }
}
