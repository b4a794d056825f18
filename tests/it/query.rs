//! Query parameters: QRY-1 to QRY-4.

use crate::harness::{Answer, Call, Gate, accepted, refused};
use portvakt::clock::{Clock, Timestamp};

/// The parameters that an answer names with this reason.
fn named(answer: &Answer, reason: &str) -> Vec<String> {
    let json = answer.json();
    let faults = json["faults"].as_array().unwrap().iter();
    let faults = faults.filter(|fault| fault["reason"] == reason);
    faults
        .map(|fault| fault["query"].as_str().unwrap().to_owned())
        .collect()
}

/// A gate on a day on which all these dates are recent or in the future: SCA-8 has further conditions for old ones.
fn gate() -> Gate {
    // 2024-03-15T10:53:20Z
    let clock = Clock::standing(Timestamp::from_unix(1_710_500_000));
    Gate::builder().clock(&clock).start()
}

/// The transaction list, with the PSU there.
fn list(query: &str) -> Call {
    Call::new("GET", &format!("/v1/accounts/42/transactions?{query}"))
        .with("PSU-IP-Address", "192.0.2.7")
}

fn cross_border(query: &str) -> Call {
    let product = "norwegian-cross-border-credit-transfers";
    Call::cross_border().at(&format!("/v1/payments/{product}?{query}"))
}

fn mock(query: &str) -> Call {
    Call::sandbox_transactions().at(&format!("/v1/sandbox/accounts/42/transactions?{query}"))
}

fn stops(gate: &Gate, call: &Call, code: &str, reason: &str, parameter: &str) {
    let answer = refused(gate, call, 400, code, reason);
    assert_eq!(named(&answer, reason), [parameter]);
}

//= QRY-1 accepted
#[test]
fn parameters_with_their_values() {
    let gate = gate();
    for query in [
        "dateFrom=2026-01-01&dateTo=2026-12-31&offset=0&limit=1&bookingStatus=both",
        "dateFrom=2024-02-29",
        "offset=2147483647&limit=2147483647",
        "bookingStatus=all",
        "bookingStatus=booked",
        "%64ateFrom=2026%2D01-01",
    ] {
        accepted(&gate, &list(query));
    }
    for query in ["allowLogicalDuplicate=true", "allowLogicalDuplicate=false"] {
        accepted(&gate, &cross_border(query));
    }
    accepted(
        &gate,
        &mock("fromDate=2026-01-01&toDate=2026-01-02&offset=5&limit=10"),
    );
}

//= QRY-1 refused
#[test]
fn parameters_with_other_values() {
    let gate = Gate::start();
    let table = [
        (list("dateFrom=2026-02-29"), "dateFrom"),
        (list("dateTo=31.12.2026"), "dateTo"),
        (list("offset=-1"), "offset"),
        (list("offset=2147483648"), "offset"),
        (list("limit=0"), "limit"),
        (list("limit="), "limit"),
        (list("bookingStatus=Booked"), "bookingStatus"),
        (
            cross_border("allowLogicalDuplicate=1"),
            "allowLogicalDuplicate",
        ),
        (mock("fromDate=2026-1-1"), "fromDate"),
        (mock("limit=0"), "limit"),
    ];
    for (call, parameter) in table {
        stops(&gate, &call, "FORMAT_ERROR", "query-malformed", parameter);
    }
}

//= QRY-2 accepted
#[test]
fn a_period_of_one_day() {
    let gate = gate();
    accepted(&gate, &list("dateTo=2026-01-01&dateFrom=2026-01-01"));
    accepted(&gate, &mock("fromDate=2026-01-01&toDate=2026-01-01"));
}

//= QRY-2 refused
#[test]
fn a_period_that_ends_before_it_begins() {
    let gate = Gate::start();
    let inverted = list("dateTo=2026-01-01&dateFrom=2026-01-02");
    stops(
        &gate,
        &inverted,
        "PERIOD_INVALID",
        "period-inverted",
        "dateFrom",
    );
    let inverted = mock("fromDate=2026-01-02&toDate=2026-01-01");
    stops(
        &gate,
        &inverted,
        "PERIOD_INVALID",
        "period-inverted",
        "fromDate",
    );
}

//= QRY-3 accepted
#[test]
fn names_that_the_interface_does_not_have() {
    let gate = Gate::start();
    for query in [
        "page=2&x=%C3%A6&y",
        "q=a%3Bb%26c",
        "withBalance=true",
        "&&limit=5&",
    ] {
        accepted(&gate, &list(query));
    }
    // An operation refuses the parameters of another one.
    accepted(&gate, &Call::new("GET", "/v1/accounts?dateFrom=yesterday"));
}

//= QRY-3 refused
#[test]
fn names_that_could_be_read_in_two_ways() {
    let gate = Gate::start();
    let table = [
        ("limit=1&limit=1", "limit"),
        ("limit=1&%6c%69mit=2", "limit"),
        ("page=1&page=2", "page"),
        ("datefrom=2026-01-01", "datefrom"),
        ("dateFrom[]=2026-01-01", "dateFrom[]"),
        ("dateFrom%5B%5D=2026-01-01", "dateFrom[]"),
        ("dateFrom%00=2026-01-01", "parameter 1"),
        ("date_from=2026-01-01", "date_from"),
        ("date-From=2026-01-01", "date-From"),
        ("Date.From=2026-01-01", "Date.From"),
        ("date+From=2026-01-01", "parameter 1"),
        ("%20dateFrom=2026-01-01", "parameter 1"),
        ("date%E2%80%8BFrom=2026-01-01", "parameter 1"),
        ("x=1;y", "x"),
        ("x=1%26dateFrom=2026-01-01", "x"),
    ];
    for (query, parameter) in table {
        stops(
            &gate,
            &list(query),
            "FORMAT_ERROR",
            "query-malformed",
            parameter,
        );
    }
    let without_psu = Call::new("GET", "/v1/accounts?withBalance=true");
    stops(
        &gate,
        &without_psu,
        "FORMAT_ERROR",
        "query-malformed",
        "withBalance",
    );
}

/// Netty, Vert.x and older versions of Python and Rack split at `;`: they would see parameters that QUO-8 and the deny list forbid.
//= QRY-3 refused
#[test]
fn names_behind_a_semicolon() {
    let gate = gate();
    let old = "x=1;dateFrom=2000-01-01&dateFrom=2024-03-01";
    let answer = refused(&gate, &list(old), 400, "FORMAT_ERROR", "query-malformed");
    assert_eq!(named(&answer, "query-malformed"), ["x", "x"]);
    for query in [
        "x=1;withBalance=true",
        "x=1%26withBalance=true",
        "with_balance=true",
        "with-balance",
        "WITH.BALANCE=1",
        "with+balance=1",
    ] {
        let without_psu = Call::new("GET", &format!("/v1/accounts?{query}"));
        let answer = refused(&gate, &without_psu, 400, "FORMAT_ERROR", "query-malformed");
        let names = named(&answer, "query-malformed");
        assert!(
            names.contains(&"withBalance".to_owned()),
            "{query}: {names:?}"
        );
    }
}

/// A parameter name may contain a person's number, so answers do not repeat it.
#[test]
fn a_stranger_is_not_repeated() {
    let gate = Gate::start();
    let call = list("NO9386011117947&NO9386011117947");
    let answer = refused(&gate, &call, 400, "FORMAT_ERROR", "query-malformed");
    assert!(!String::from_utf8(answer.body).unwrap().contains("11117947"));
}

const CARDS: &str = "operations:\n- {name: cards, method: GET, path: /v1/cards, role: PSP_AI, query: [{name: day, kind: date}, {name: kind, kind: text, required: true}]}\n";

fn with_cards() -> Gate {
    let builder = Gate::builder().file("operations.yaml", CARDS);
    builder.line("operations: operations.yaml").start()
}

//= QRY-4 accepted
#[test]
fn what_a_bank_requires_for_its_own_operation() {
    let gate = with_cards();
    accepted(&gate, &Call::new("GET", "/v1/cards?kind=debit"));
    accepted(&gate, &Call::new("GET", "/v1/cards?day=2026-01-01&kind="));
    // The interface requires no parameter.
    accepted(&gate, &Call::new("GET", "/v1/accounts/42/transactions"));
}

//= QRY-4 refused
#[test]
fn what_a_bank_requires_is_missing() {
    let gate = with_cards();
    for target in ["/v1/cards", "/v1/cards?", "/v1/cards?day=2026-01-01"] {
        let call = Call::new("GET", target);
        stops(
            &gate,
            &call,
            "QUERY_PARAMETER_REQUIRED",
            "query-missing",
            "kind",
        );
    }
}

#[test]
fn everything_that_is_wrong_with_a_query_comes_in_one_answer() {
    let gate = Gate::start();
    let call = list("Limit=5&dateTo=2026-01-01&dateFrom=2026-01-02&offset=x&z&z");
    let answer = refused(&gate, &call, 400, "FORMAT_ERROR", "query-malformed");
    assert_eq!(named(&answer, "query-malformed"), ["offset", "Limit", "z"]);
    assert_eq!(named(&answer, "period-inverted"), ["dateFrom"]);
}
