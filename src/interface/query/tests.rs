//! Queries by the parameters of the transaction list, and of an operator's operation.

use super::*;
use crate::operations::{Role, builtin};
use http::Method;

fn operation(name: &str) -> Operation {
    let mut all = builtin().into_iter();
    all.find(|operation| operation.name == name).unwrap()
}

/// What is found wrong, as `reason name`.
fn found(query: &str, operation: &Operation, psu_present: bool) -> Vec<String> {
    let shown = |fault: &Fault| match &fault.place {
        crate::FaultPlace::Query(name) => format!("{} {name}", fault.reason.slug()),
        other => panic!("{other:?}"),
    };
    match Query::read(Some(query), operation, psu_present) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(shown).collect(),
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table is as long as its cases")]
fn values() {
    let list = operation("transaction-list");
    for good in [
        "",
        "&&",
        "dateFrom=2026-01-01&dateTo=2026-01-01",
        "%64ateFrom=2026%2d01%2D01",
        "offset=0&limit=1",
        "offset=2147483647&limit=2147483647",
        "bookingStatus=booked",
        "bookingStatus=pending",
        "bookingStatus=both",
        "bookingStatus=all",
        "page=7&x=%C3%A6&y",
        "x=%3B%26%3F&z=a?b",
    ] {
        assert_eq!(found(good, &list, true), Vec::<String>::new(), "{good}");
    }
    let table = [
        (
            "dateFrom",
            vec![
                "",
                "2026-02-30",
                "2026-1-1",
                "20260101",
                "01.01.2026",
                "2026-01-01%3Bx",
                "%zz",
                "2026-01-01T00:00:00Z",
            ],
        ),
        ("dateTo", vec!["today", "2025-02-29"]),
        (
            "offset",
            vec![
                "",
                "-1",
                "-0",
                "+1",
                "1.0",
                "2147483648",
                "1e3",
                "%2B1",
                "+1",
                "0x1",
            ],
        ),
        ("limit", vec!["0", "-1", "2147483648", "ten", " 1"]),
        (
            "bookingStatus",
            vec!["", "BOOKED", "booked,pending", "none"],
        ),
    ];
    for (name, values) in table {
        for value in values {
            let expected = format!("query-malformed {name}");
            assert_eq!(
                found(&format!("{name}={value}"), &list, true),
                [expected],
                "{value}"
            );
        }
    }
    let payment = operation("cross-border-payment-create");
    for value in ["TRUE", "1", "", "yes"] {
        let query = format!("allowLogicalDuplicate={value}");
        assert_eq!(
            found(&query, &payment, true),
            ["query-malformed allowLogicalDuplicate"]
        );
    }
    assert!(found("allowLogicalDuplicate=false", &payment, true).is_empty());
}

#[test]
fn periods() {
    let list = operation("transaction-list");
    let inverted = found("dateTo=2026-01-01&dateFrom=2026-01-02", &list, true);
    assert_eq!(inverted, ["period-inverted dateFrom"]);
    let mock = operation("sandbox-transaction-list");
    let inverted = found("fromDate=2026-01-02&toDate=2026-01-01", &mock, false);
    assert_eq!(inverted, ["period-inverted fromDate"]);
    assert!(
        found("dateFrom=2026-01-02&dateTo=2026-01-01", &mock, false).is_empty(),
        "they are strangers there"
    );
}

#[test]
fn names() {
    let list = operation("transaction-list");
    let table = [
        ("limit=1&limit=1", vec!["limit"]),
        ("limit=1&%6cimit=1&limit=1", vec!["limit"]),
        ("x=1&x=2", vec!["x"]),
        ("a+b=1&a%20b=2", vec!["parameter 2"]),
        ("01010112345&x&01010112345", vec!["parameter 3"]),
        ("Limit=1", vec!["Limit"]),
        ("limit%5B%5D=1", vec!["limit[]"]),
        ("limit%00=1", vec!["parameter 1"]),
        ("x=1;y", vec!["x"]),
        ("x=1;dateFrom=2000-01-01", vec!["x", "x"]),
        ("limit=1;x", vec!["limit", "limit"]),
        ("x=1%26dateFrom=2000-01-01", vec!["x"]),
        ("date_from=2000-01-01", vec!["date_from"]),
        ("date+From=2000-01-01", vec!["parameter 1"]),
        ("request.dateFrom=2000-01-01", vec!["request.dateFrom"]),
        ("?dateFrom=2000-01-01", vec!["parameter 1"]),
        (
            "%zz=1&%zz=1",
            vec!["parameter 1", "parameter 2", "parameter 2"],
        ),
    ];
    for (query, names) in table {
        let expected: Vec<_> = names
            .iter()
            .map(|name| format!("query-malformed {name}"))
            .collect();
        assert_eq!(found(query, &list, true), expected, "{query}");
    }
    for query in [
        "withBalance=true",
        "withBalance",
        "WITHBALANCE=1",
        "withBalance[]=x",
        "with_balance=true",
        "x=1%26withBalance=true",
    ] {
        assert!(found(query, &list, true).is_empty(), "{query}");
        assert_eq!(
            found(query, &list, false),
            ["query-malformed withBalance"],
            "{query}"
        );
    }
    let semicolon = "x=1;withBalance=true";
    let expected = ["query-malformed x", "query-malformed withBalance"];
    assert_eq!(found(semicolon, &list, false), expected);
}

#[test]
fn an_operators_own_parameters() {
    let mut cards = Operation::added("cards", Method::GET, "/v1/cards", "cards", Role::Either);
    cards.query = vec![
        Parameter::new("day", ParameterKind::Date),
        Parameter::new("kind", ParameterKind::Text).required(),
    ];
    assert_eq!(
        found("day=x", &cards, true),
        ["query-malformed day", "query-missing kind"]
    );
    for good in ["kind=&day=2026-01-01", "kind=a%26b%3Bc%3Fd%3De"] {
        assert_eq!(found(good, &cards, true), Vec::<String>::new());
    }
    assert_eq!(
        found("kind=a%26day=x", &cards, true),
        ["query-malformed kind"]
    );
    assert_eq!(
        found("kind=a%26kind", &cards, true),
        ["query-malformed kind"]
    );
}

#[test]
fn everything_at_once_in_the_order_of_the_rules() {
    let list = operation("transaction-list");
    let query = "Limit=5&withBalance&dateTo=2026-01-01&dateFrom=2026-01-02&offset=-1&x&x";
    let expected = [
        "query-malformed offset",
        "period-inverted dateFrom",
        "query-malformed Limit",
        "query-malformed withBalance",
        "query-malformed x",
    ];
    assert_eq!(found(query, &list, false), expected);
}

#[test]
fn what_later_stages_read() {
    let list = operation("transaction-list");
    let read = |query| Query::read(Some(query), &list, true).unwrap();
    let first = read("dateFrom=2026-01-02&dateTo=2026-01-03&limit=5&x=1");
    let second = read("x=1&limit=7&offset=0200&dateTo=2026-01-03&dateFrom=2026-01-02");
    assert_eq!(first.date_from().unwrap().to_string(), "2026-01-02");
    assert_eq!(first.date_to().unwrap().to_string(), "2026-01-03");
    assert_eq!((first.offset(), second.offset()), (None, Some(200)));
    assert_eq!((first.limit(), second.limit()), (Some(5), Some(7)));
    assert_eq!(first.without_page(&list), second.without_page(&list));
    assert_eq!(read("offset=3&limit=1").without_page(&list), "");
    assert_eq!(
        read("bookingStatus=booked&offset=3").without_page(&list),
        ""
    );
    let both = read("bookingStatus=both&offset=3");
    assert_eq!(both.without_page(&list), "bookingStatus=both");
}

/// A line of 16 KiB (HTTP-9) can hold eight thousand names.
#[test]
fn a_query_of_nothing_but_names() {
    let list = operation("transaction-list");
    assert_eq!(
        found(&"a&".repeat(8 * 1024), &list, true),
        ["query-malformed a"]
    );
    let different: String = (0..2_000).map(|n| format!("{n:x}&")).collect();
    assert!(found(&different, &list, true).is_empty());
}
