//! The Host of a request: FWD-2.

use crate::harness::{Call, Gate, Protocol, accepted, check_error, refused};

fn to(host: &str) -> Call {
    Call::payment().with("Host", host)
}

/// The core gets its own name in Host, and the caller's Host in Forwarded.
//= FWD-2 accepted
#[test]
fn the_core_gets_its_own_name() {
    let gate = Gate::start();
    let address = gate.upstream().address().to_string();
    let named = Gate::builder()
        .upstream("host: core.bank.internal:8080")
        .start();
    for (gate, expected) in [
        (&gate, address.as_str()),
        (&named, "core.bank.internal:8080"),
    ] {
        for (host, forwarded) in [
            ("localhost", "localhost"),
            ("API.bank.example", "API.bank.example"),
            ("evil.example", "evil.example"),
            ("api.bank.example:8443", "\"api.bank.example:8443\""),
            ("[2001:db8::7]", "\"[2001:db8::7]\""),
        ] {
            for passage in accepted(gate, &to(host)) {
                assert_eq!(passage.seen.header("host"), Some(expected));
                let forwarded = format!("for=127.0.0.1;host={forwarded};proto=https");
                assert_eq!(passage.seen.header("forwarded"), Some(forwarded.as_str()));
            }
        }
        let call = to("localhost").also_host("localhost");
        for passage in accepted(gate, &call) {
            assert_eq!(passage.seen.header("host"), Some(expected));
        }
    }
}

//= FWD-2 refused
#[test]
fn what_is_no_authority() {
    let gate = Gate::start();
    let mut of_http = 0;
    for host in [
        "a b",
        "a/b",
        "a,b",
        "a;b",
        "a\"b",
        "a\\b",
        "a\tb",
        "user@a",
        "a:",
        "a:b",
        "a:65536",
        "a:0",
        "127.1",
        "[::1",
        "a?b",
        "a#b",
        "a%2eb",
        "https://a",
    ] {
        let call = Call::payment()
            .altered(move |request| request.set_header("Host", host))
            .only(Protocol::Http1);
        let answer = gate.send(&call, Protocol::Http1);
        assert!(gate.upstream().saw_nothing(), "{host}");
        check_error(host, &answer, 400, "BAD_REQUEST", "malformed-request");
        // The HTTP library itself refuses a target that is not a URI, without naming a member.
        if answer.json()["faults"][0]["header"].is_null() {
            of_http += 1;
            continue;
        }
        assert_eq!(answer.json()["faults"][0]["header"], "Host", "{host}");
    }
    assert!(of_http < 9, "{of_http}");
    // Over HTTP/2, as far as a client can send such values.
    for authority in ["a:65536", "127.1"] {
        let call = to(authority).only(Protocol::Http2);
        refused(&gate, &call, 400, "BAD_REQUEST", "malformed-request");
    }
}

//= FWD-2 accepted
//= FWD-2 refused
#[test]
fn the_hosts_that_are_served() {
    let gate = Gate::builder()
        .listener("hosts: [api.bank.example, localhost:8443]")
        .start();
    for host in ["api.bank.example", "API.BANK.example:443", "localhost:8443"] {
        accepted(&gate, &to(host));
    }
    for host in [
        "localhost",
        "api.bank.example:8443",
        "api.bank.example.",
        "evil.example",
        "127.0.0.1",
    ] {
        refused(&gate, &to(host), 400, "BAD_REQUEST", "malformed-request");
    }
}
