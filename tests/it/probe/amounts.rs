//! A core that takes or shows a malformed amount in a part of a bulk is found, and so is one that shows it in a periodic payment.

use super::found_with;

/// The probe with a payment as the operation that writes, and this body.
fn paying(body: &str, cases: &[(&str, &[&str], &[&str])]) {
    let arguments = [
        "--psu",
        "3f2504e0-4f89-41d3-9a0c-0305e82c33ff",
        "--write",
        "POST /v1/payments/norwegian-domestic-credit-transfers",
        "--body",
        body,
    ];
    found_with(&arguments, cases);
}

/// The probe makes a bulk and a periodic payment of a single one. A core that takes a malformed amount also shows it.
#[test]
fn it_finds_malformed_amounts_in_the_parts_of_a_bulk() {
    const TAKEN: &[&str] = &["bulk-amounts", "amounts"];
    let body =
        r#"{"instructedAmount": {"amount": "10.50", "currency": "NOK"}, "creditorName": "A"}"#;
    paying(
        body,
        &[
            ("none", &[], &[]),
            ("any-amounts", TAKEN, &[]),
            ("amount-of-the-first-part", TAKEN, &[]),
            ("amounts-as-numbers", TAKEN, &[]),
            ("short-amounts", TAKEN, &[]),
            ("shows-short-amounts", &["amounts"], &[]),
            ("shows-numbers", &["amounts"], &[]),
        ],
    );
}

/// A bank's own bulk, of three parts.
#[test]
fn it_tries_each_part_of_a_bulk_in_the_body() {
    let part = r#"{"instructedAmount": {"amount": "1.00", "currency": "NOK"}}"#;
    let body = format!(r#"{{"payments": [{part}, {part}, {part}]}}"#);
    let taken: &[&str] = &["bulk-amounts", "amounts"];
    paying(
        &body,
        &[
            ("none", &[], &[]),
            ("any-amounts", taken, &[]),
            ("amount-of-the-first-part", taken, &[]),
            ("shows-short-amounts", &["amounts"], &[]),
        ],
    );
}
