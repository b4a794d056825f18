//! The characters of paths, and the known paths: HTTP-10, HTTP-11.

use crate::harness::{Call, Connection, Gate, Protocol, accepted, check_error, refused, render};

//= HTTP-10 accepted
#[test]
fn a_target_is_forwarded_byte_for_byte() {
    let gate = Gate::start();
    let targets = [
        "/v1/accounts/a%3Ab/balances",
        "/v1/accounts/a%3ab/balances",
        "/v1/accounts/NO93:x_~.-/balances",
        "/v1/accounts/.../balances",
        "/v1/signing-baskets/a:b@c,(d)!$&'*+=",
        "/v1/signing-baskets/%7Bx%7D%22%3C%40",
        "/v1/accounts?x=%2e%2e/..%3By&&",
        "/v1/accounts?",
        "/v1/accounts?a=b?c",
        "/v1/accounts?q={%zz|\\}",
    ];
    for target in targets {
        // `http::Uri`, which the HTTP/2 client uses, refuses some of these; the gateway accepts them.
        let call = Call::new("GET", target);
        let fits = target
            .parse::<http::uri::PathAndQuery>()
            .is_ok_and(|parsed| parsed.as_str() == target);
        accepted(
            &gate,
            &if fits {
                call
            } else {
                call.only(Protocol::Http1)
            },
        );
    }
}

//= HTTP-10 refused
#[test]
fn targets_that_two_servers_could_read_in_two_ways() {
    let gate = Gate::start();
    let targets = [
        "/v1/accounts/",
        "/v1//accounts",
        "//v1/accounts",
        "/v1/./accounts",
        "/v1/x/../accounts",
        "/v1/accounts/..",
        "/",
        "/v1/accounts/a%2Fb/balances",
        "/v1/accounts/a%2fb/balances",
        "/v1/accounts/a%5Cb/balances",
        "/v1/accounts/a;b/balances",
        "/v1/accounts;x=y",
        "/v1/accounts/a%00/balances",
        "/v1/accounts/a%0a/balances",
        "/v1/accounts/a%7F/balances",
        "/v1/accounts/a%/balances",
        "/v1/accounts/a%4/balances",
        "/v1/accounts/a%zz/balances",
        "/v1/%61ccounts",
        "/v1/%2e%2e/accounts",
        "/v1/accounts/%C3/balances",
        "/v1/accounts/a%2Eb/balances",
        "/v1/accounts/%7E/balances",
        "/v1/accounts/a%20b/balances",
        "/v1/accounts/a%1Fb/balances",
        "/v1/accounts/a%252D9/balances",
        "/v1/accounts/a%3Bx/balances",
        "/v1/accounts/a%3bx/balances",
        "/v1/accounts/a%3Fx/balances",
        "/v1/accounts/a%23x/balances",
        "/v1/accounts/%C3%A6/balances",
        "/v1/signing-baskets/%c3%a6",
        "/v1/signing-baskets/%EF%BB%BF7",
        "/v1/signing-baskets/7%25",
    ];
    for target in targets {
        refused(
            &gate,
            &Call::new("GET", target),
            400,
            "BAD_REQUEST",
            "malformed-request",
        );
    }
}

/// A core that trims, decodes twice or drops parameters would read the same account in all of these, so each must not have its own quota.
//= HTTP-10 refused
#[test]
fn spellings_of_one_account() {
    let gate = Gate::start();
    let stops = |id: &str| {
        let target = format!("/v1/accounts/{id}/balances");
        let call = Call::new("GET", &target);
        refused(&gate, &call, 400, "BAD_REQUEST", "malformed-request");
    };
    accepted(&gate, &Call::new("GET", "/v1/accounts/acc-9/balances"));
    for id in [
        "acc-9%20",
        "acc%252D9",
        "acc-9%3Bx",
        "acc-9%EF%BB%BF",
        "acc-9@",
        "acc-9+",
        "acc-9%22",
        "acc-9,",
    ] {
        stops(id);
    }
    accepted(
        &gate,
        &Call::new("GET", &format!("/v1/accounts/{}/balances", "x".repeat(128))),
    );
    stops(&"x".repeat(129));
    stops(&"%3A".repeat(129));
    let basket = |length| {
        Call::new(
            "GET",
            &format!("/v1/signing-baskets/{}", "@".repeat(length)),
        )
    };
    accepted(&gate, &basket(256));
    refused(&gate, &basket(257), 400, "BAD_REQUEST", "malformed-request");
    // Ids other than account ids have the wider character class.
    accepted(
        &gate,
        &Call::new("GET", "/v1/accounts/acc-9/transactions/a@+,7"),
    );
    let transaction = format!("/v1/accounts/acc-9/transactions/{}", "7".repeat(257));
    refused(
        &gate,
        &Call::new("GET", &transaction),
        400,
        "BAD_REQUEST",
        "malformed-request",
    );
    let mock = Call::sandbox_transactions().at("/v1/sandbox/accounts/a@b/transactions");
    refused(&gate, &mock, 400, "BAD_REQUEST", "malformed-request");
}

//= HTTP-10 accepted
//= HTTP-10 refused
#[test]
fn a_bank_says_what_its_account_ids_are_made_of() {
    let gate = Gate::builder().line("bank: {account_ids: 0-9@}").start();
    accepted(&gate, &Call::new("GET", "/v1/accounts/12@/balances"));
    accepted(&gate, &Call::new("GET", "/v1/accounts/12%40/balances"));
    for (id, character) in [("acc-9", "'a'"), ("12-3", "'-'"), ("1.2", "'.'")] {
        let call = Call::new("GET", &format!("/v1/accounts/{id}/balances"));
        let answer = refused(&gate, &call, 400, "BAD_REQUEST", "malformed-request");
        let said = answer.json().to_string();
        assert!(said.contains(character) && !said.contains(id), "{said}");
    }
    let gate = Gate::builder()
        .line("bank: {account_ids: 'A-Za-z0-9._~:!=-'}")
        .start();
    accepted(&gate, &Call::new("GET", "/v1/accounts/enc!!9f==/balances"));
}

/// The signer cannot sign these bytes as they are.
//= HTTP-10 refused
#[test]
fn targets_of_odd_bytes() {
    let gate = Gate::start();
    let targets: [&[u8]; 10] = [
        b"/v1/accounts/a\\b/balances",
        b"/v1/accounts/\xc3\xa6/balances",
        b"/v1/accounts/\xff/balances",
        b"/v1/accounts/a\x7fb/balances",
        b"/v1/accounts/a b/balances",
        b"/v1/accounts#x",
        b"/v1/accounts?a b",
        b"https://localhost/v1/accounts",
        b"/v1/<accounts>",
        b"/v1/accounts?\xc3\xa6",
    ];
    for target in targets {
        let what = String::from_utf8_lossy(target);
        let request = String::from_utf8(render(&gate.seal(&Call::accounts()))).unwrap();
        let (_, rest) = request.split_once(" HTTP/1.1").unwrap();
        let mut connection = Connection::open(&gate);
        connection
            .send(&[b"GET ", target, b" HTTP/1.1", rest.as_bytes()].concat())
            .unwrap();
        let answer = connection
            .answer("GET")
            .unwrap_or_else(|fault| panic!("{what}: {fault}"));
        assert_eq!(answer.status, 400, "{what}: {:?}", gate.upstream().take());
        if !answer.body.is_empty() {
            check_error(&what, &answer, 400, "BAD_REQUEST", "malformed-request");
        }
    }
    assert!(gate.upstream().saw_nothing());
}

/// A pipelined request is checked in the same way.
//= HTTP-10 refused
#[test]
fn odd_bytes_in_a_pipelined_target() {
    let gate = Gate::start();
    for (signed, sent) in [
        ("/v1/accounts", "/v1/accounts#x"),
        ("/v1/accounts/ae/balances", "/v1/accounts/\u{e6}/balances"),
        ("/v1/accounts/a-b/balances", "/v1/accounts/a b/balances"),
    ] {
        let first = render(&gate.seal(&Call::new("GET", "/v1/nothing")));
        let second = String::from_utf8(render(&gate.seal(&Call::new("GET", signed)))).unwrap();
        let second = second.replacen(signed, sent, 1);
        let mut connection = Connection::open(&gate);
        connection
            .send(&[&first, second.as_bytes()].concat())
            .unwrap();
        assert_eq!(connection.answer("GET").unwrap().status, 404);
        if let Ok(answer) = connection.answer("GET") {
            assert_eq!(answer.status, 400, "{sent}: {:?}", gate.upstream().take());
        }
    }
    assert!(gate.upstream().saw_nothing());
}

//= HTTP-11 accepted
#[test]
fn paths_that_the_interface_does_not_show() {
    let gate = Gate::start();
    accepted(&gate, &Call::basket());
    let table = [
        (
            "POST",
            "/v1/payments/norwegian-domestic-credit-transfers/7/authorisations",
        ),
        ("POST", "/v1/signing-baskets/7/authorisations"),
        (
            "GET",
            "/v1/payments/norwegian-cross-border-credit-transfers/7",
        ),
        (
            "GET",
            "/v1/payments/norwegian-cross-border-credit-transfers/7/status",
        ),
        ("GET", "/v1/signing-baskets/7"),
        ("GET", "/v1/signing-baskets/7/status"),
    ];
    for (method, target) in table {
        accepted(&gate, &Call::new(method, target));
    }
}

const OPERATIONS: &str = "
operations:
  - {name: basket-create, path: /v1/baskets}
  - {name: card-list, method: GET, path: /v1/cards, role: PSP_AI, group: cards}
  - {name: card-block, method: PUT, path: '/v1/cards/{id}/block', role: either, body: json}
";

//= HTTP-11 accepted
#[test]
fn a_deployment_changes_paths_and_adds_operations() {
    let gate = Gate::builder()
        .line("operations: operations.yaml")
        .file("operations.yaml", OPERATIONS)
        .start();
    accepted(&gate, &Call::basket().at("/v1/baskets"));
    refused(
        &gate,
        &Call::basket(),
        404,
        "NOT_FOUND",
        "operation-unknown",
    );
    for passage in accepted(&gate, &Call::new("GET", "/v1/cards")) {
        assert_eq!(passage.seen.header("gateway-operation"), Some("card-list"));
    }
    let block = Call::new("PUT", "/v1/cards/7/block").json("{}");
    accepted(&gate, &block);
    // HDR-5 and SIG-1 apply to an added operation, and cannot be disabled.
    refused(
        &gate,
        &block.clone().without("X-Request-ID"),
        400,
        "HTTP_HEADER_REQUIRED",
        "header-missing",
    );
    refused(
        &gate,
        &block.clone().without("TPP-Redirect-URI"),
        400,
        "HTTP_HEADER_REQUIRED",
        "header-missing",
    );
    refused(
        &gate,
        &block.altered(|request| request.remove_header("signature")),
        400,
        "HTTP_HEADER_REQUIRED",
        "signature-missing",
    );
    refused(
        &gate,
        &Call::new("GET", "/v1/cards").by(&gate.world().pisp),
        403,
        "FORBIDDEN",
        "role-missing",
    );
    for switch in ["signed: false", "required: []"] {
        let file = format!(
            "operations:\n  - {{name: open, method: GET, path: /v1/open, role: either, {switch}}}\n"
        );
        let fault = Gate::builder()
            .line("operations: operations.yaml")
            .file("operations.yaml", file)
            .try_start();
        assert!(fault.err().expect("a fault").contains("SIG-1"), "{switch}");
    }
}
