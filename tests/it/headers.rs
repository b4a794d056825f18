//! Which headers an operation requires: HDR-1 to HDR-5.

/// HDR-5 to HDR-7, HDR-15.
mod form;

use crate::harness::{Answer, Call, Gate, accepted, refused};

/// A well-formed UUID that names nobody.
const UUID: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";

/// The headers that the faults of an answer name, in their order.
fn named(answer: &Answer, reason: &str) -> Vec<String> {
    let json = answer.json();
    let faults = json["faults"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|fault| fault["reason"] == reason);
    faults
        .map(|fault| fault["header"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// A request without this header, or with an empty one, is refused, and the answer names the header. Over HTTP/2 too, signed or not.
fn required(gate: &Gate, call: &Call, header: &str) {
    let empty = call.clone().altered({
        let header = header.to_owned();
        move |request| request.set_header(&header, " ")
    });
    let absent = call.clone().altered({
        let header = header.to_owned();
        move |request| request.remove_header(&header)
    });
    for call in [absent, empty] {
        let answer = refused(gate, &call, 400, "HTTP_HEADER_REQUIRED", "header-missing");
        assert_eq!(named(&answer, "header-missing"), [header]);
    }
}

//= HDR-1 accepted
#[test]
fn what_a_and_b_require_is_enough() {
    let gate = Gate::start();
    accepted(&gate, &Call::basket());
    accepted(&gate, &Call::cross_border());
    // On B X-PSU-IDENTITY may stand for PSU-ID.
    accepted(
        &gate,
        &Call::cross_border()
            .without("PSU-ID")
            .with("X-PSU-IDENTITY", "01010112345")
            .with("PSU-Context", "PRIVATE"),
    );
}

//= HDR-1 refused
#[test]
fn each_header_that_a_and_b_require() {
    let gate = Gate::start();
    let headers = [
        "x-accept-fix",
        "X-Request-ID",
        "TPP-Session-ID",
        "TPP-Redirect-URI",
        "TPP-Signature-Certificate",
        "PSU-IP-Address",
        "PSU-ID",
    ];
    for call in [Call::basket(), Call::cross_border()] {
        for header in headers {
            required(&gate, &call, header);
        }
        let unsigned = call.altered(|request| request.remove_header("Signature"));
        let answer = refused(
            &gate,
            &unsigned,
            400,
            "HTTP_HEADER_REQUIRED",
            "signature-missing",
        );
        assert_eq!(named(&answer, "signature-missing"), ["Signature"]);
    }
    // On A it may not.
    let identity = Call::basket()
        .without("PSU-ID")
        .with("X-PSU-IDENTITY", "01010112345");
    refused(
        &gate,
        &identity,
        400,
        "HTTP_HEADER_REQUIRED",
        "header-missing",
    );
}

//= HDR-2 accepted
//= HDR-2 refused
#[test]
fn b_requires_digest() {
    let gate = Gate::start();
    accepted(&gate, &Call::cross_border());
    required(&gate, &Call::cross_border(), "Digest");
    // Not because of the body: also without a body.
    let empty = Call::cross_border().altered(|request| {
        request.body = None;
        request.remove_header("Digest");
    });
    refused(&gate, &empty, 400, "HTTP_HEADER_REQUIRED", "header-missing");
}

//= HDR-3 accepted
#[test]
fn d_takes_no_other_header() {
    let gate = Gate::start();
    accepted(&gate, &Call::sandbox_transactions());
    let dropped = [
        ("x-accept-fix", "amount-as-string"),
        ("TPP-Session-ID", "a session with spaces"),
        ("TPP-Redirect-URI", ""),
        ("TPP-Redirect-Preferred", "maybe"),
        ("TPP-Brand-Logging-Information", "brand"),
        ("PSU-ID", "nobody"),
        ("X-PSU-IDENTITY", "01010112345"),
        ("PSU-Corporate-ID", UUID),
        ("PSU-Context", "PRIVATE"),
        ("PSU-IP-Address", "192.0.2.7"),
        ("PSU-IP-Port", "70000"),
        ("PSU-User-Agent", "agent"),
        ("PSU-Accept", "a"),
        ("PSU-Accept-Charset", "a"),
        ("PSU-Accept-Encoding", "a"),
        ("PSU-Accept-Language", "a"),
        ("PSU-HTTP-Method", "a"),
        ("PSU-Device-ID", "a"),
        ("PSU-Geo-Location", "a"),
    ];
    // Each header twice: removed headers are not judged.
    let call = dropped
        .iter()
        .fold(Call::sandbox_transactions(), |call, (name, value)| {
            call.also(name, value).also(name, value)
        });
    for passage in accepted(&gate, &call.with("Accept-Language", "nb")) {
        for (name, _) in dropped {
            assert_eq!(passage.seen.header(name), None);
        }
        for kept in [
            "accept-language",
            "x-request-id",
            "tpp-signature-certificate",
            "signature",
            "date",
            "host",
        ] {
            assert!(passage.seen.header(kept).is_some(), "{kept}");
        }
        assert_eq!(
            passage.seen.header("gateway-psu-present"),
            Some("no"),
            "nothing is established from a header that was dropped"
        );
    }
}

//= HDR-3 refused
#[test]
fn each_header_that_d_requires() {
    let gate = Gate::start();
    required(&gate, &Call::sandbox_transactions(), "X-Request-ID");
    required(
        &gate,
        &Call::sandbox_transactions(),
        "TPP-Signature-Certificate",
    );
    let unsigned =
        Call::sandbox_transactions().altered(|request| request.remove_header("Signature"));
    refused(
        &gate,
        &unsigned,
        400,
        "HTTP_HEADER_REQUIRED",
        "signature-missing",
    );
}

//= HDR-4 accepted
#[test]
fn c_requires_nothing_but_a_signature() {
    let gate = Gate::start();
    for passage in accepted(&gate, &Call::details()) {
        assert_eq!(passage.request.header("x-request-id"), None);
        assert_eq!(passage.seen.header("x-request-id"), None);
    }
    required(&gate, &Call::details(), "TPP-Signature-Certificate");
    required(&gate, &Call::details(), "Date");
    let unsigned = Call::details().altered(|request| request.remove_header("Signature"));
    refused(
        &gate,
        &unsigned,
        400,
        "HTTP_HEADER_REQUIRED",
        "signature-missing",
    );
}

/// Every operation outside A to D: method, target, whether it initiates a payment, and its body.
const OTHERS: [(&str, &str, bool, Option<&str>); 19] = [
    ("GET", "/v1/accounts", false, None),
    ("GET", "/v1/accounts/42/balances", false, None),
    ("GET", "/v1/accounts/42/transactions", false, None),
    (
        "POST",
        "/v1/payments/norwegian-domestic-credit-transfers",
        true,
        Some("{}"),
    ),
    (
        "POST",
        "/v1/payments/instant-norwegian-credit-transfers-straks",
        true,
        Some("{}"),
    ),
    (
        "GET",
        "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information",
        false,
        None,
    ),
    (
        "GET",
        "/v1/payments/norwegian-cross-border-credit-transfers/7",
        false,
        None,
    ),
    (
        "GET",
        "/v1/payments/norwegian-cross-border-credit-transfers/7/status",
        false,
        None,
    ),
    (
        "POST",
        "/v1/payments/norwegian-cross-border-credit-transfers/7/authorisations",
        false,
        None,
    ),
    ("GET", "/v1/signing-baskets/7", false, None),
    ("GET", "/v1/signing-baskets/7/status", false, None),
    ("POST", "/v1/signing-baskets/7/authorisations", false, None),
    ("GET", "/v1/users", false, None),
    ("GET", "/v1/agreements", false, None),
    ("POST", "/v1/consents", false, None),
    ("POST", "/v1/bank-offered-consents", false, None),
    ("GET", "/v1/tpp/contact", false, None),
    ("PUT", "/v1/tpp/contact", false, Some("{}")),
    ("GET", "/v1/accounts/42/balances?x=y", false, None),
];

/// The sandbox's own, D apart.
const SANDBOX: [(&str, &str, Option<&str>); 6] = [
    ("POST", "/v1/sandbox/initialisation", None),
    ("GET", "/v1/sandbox/customers", None),
    ("POST", "/v1/sandbox/accounts", Some("{}")),
    ("POST", "/v1/sandbox/accounts/42/transactions", Some("{}")),
    ("PUT", "/v1/sandbox/accounts/42/balances", Some("{}")),
    ("PUT", "/v1/sandbox/card-accounts/42/balances", Some("{}")),
];

fn other((method, target, initiation, body): (&str, &str, bool, Option<&str>)) -> Call {
    let call = body.into_iter().fold(Call::new(method, target), Call::json);
    if initiation {
        call.with("PSU-IP-Address", "192.0.2.7")
            .with("PSU-ID", UUID)
    } else {
        call
    }
}

//= HDR-5 accepted
#[test]
fn what_every_other_operation_requires_is_enough() {
    let gate = Gate::builder().core_answers().start();
    for case in OTHERS {
        accepted(&gate, &other(case));
    }
    for (method, target, body) in SANDBOX {
        accepted(
            &gate,
            &body
                .into_iter()
                .fold(Call::bare(method, target), Call::json),
        );
    }
    let identity = Call::payment()
        .without("PSU-ID")
        .with("X-PSU-IDENTITY", "01010112345")
        .with("PSU-Context", "PRIVATE");
    accepted(&gate, &identity);
}

//= HDR-5 refused
#[test]
fn each_header_that_every_other_operation_requires() {
    let gate = Gate::start();
    for case in OTHERS {
        required(&gate, &other(case), "X-Request-ID");
        required(&gate, &other(case), "TPP-Redirect-URI");
        if case.2 {
            required(&gate, &other(case), "PSU-IP-Address");
            required(&gate, &other(case), "PSU-ID");
        }
    }
    for (method, target, body) in SANDBOX {
        required(
            &gate,
            &body
                .into_iter()
                .fold(Call::bare(method, target), Call::json),
            "X-Request-ID",
        );
    }
}
