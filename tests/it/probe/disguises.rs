//! A core that takes a fact from a header is found, however it reads the header and whatever its answers look like. A core with the same
//! answers that takes facts from the claims passes.

use super::{found, found_with, probe, to_mend};
use crate::bank::{Bank, parameter, request, unknown};
use serde_json::json;

const PSU: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c33ff";

/// The TPP of the gateway in tests, and a customer of the simulated bank.
const TPP: &str = "PSDNO-FSA-123456";
const IDENTITY: &str = "01010112345";

/// A payment as the operation that writes.
const PAYMENT: [&str; 6] = [
    "--psu",
    PSU,
    "--write",
    "POST /v1/payments/norwegian-domestic-credit-transfers",
    "--body",
    r#"{"instructedAmount": {"amount": "10.50", "currency": "NOK"}, "creditorName": "Bakeriet"}"#,
];

/// The TPP, in every read and change.
const BOTH: &[&str] = &["facts", "facts-of-change"];

#[test]
fn a_core_that_answers_by_headers_is_found_in_each_disguise() {
    found(&[
        // The assertion is verified, the TPP is the header's, and the answers are new each time.
        ("fresh", BOTH, &[]),
        ("wraps", BOTH, &[]),
        ("pads", BOTH, &[]),
        // The header counts only where the claim is missing.
        ("fallback", BOTH, &[]),
        ("fallback-psu", &["psu-header"], &[]),
        // It counts under another spelling of its name.
        ("lower-cases", BOTH, &[]),
        ("underscore", BOTH, &[]),
        ("psu-by-another-header", &["psu-header"], &[]),
        // One of two headers is compared with the claim, and the other one is used.
        ("second-header", BOTH, &[]),
        ("first-header", BOTH, &[]),
        // It counts for some operations.
        ("reads-by-header", &["facts"], &[]),
        ("writes-by-header", &["facts-of-change"], &[]),
    ]);
    found_with(
        &PAYMENT,
        &[
            ("payments-by-header", &["facts-of-change"], &[]),
            ("psu-of-payments", &["psu-header"], &[]),
            ("psu-header", &["psu-header"], &[]),
        ],
    );
}

#[test]
fn a_core_with_the_same_answers_passes_that_takes_facts_from_the_claims() {
    let cases: [(&str, &[&str], &[&str]); 3] = [
        ("none-fresh", &[], &[]),
        ("none-wraps", &[], &[]),
        ("none-pads", &[], &[]),
    ];
    found(&cases);
    found_with(&PAYMENT, &cases);
    found_with(&PAYMENT, &[("none", &[], &[])]);
}

/// With a PSU, payments, bulks and periodic payments.
#[test]
fn it_finds_nothing_in_the_payments_of_the_simulated_core() {
    let (gate, bank) = Bank::behind_a_gate();
    let users = request(&gate, &unknown("GET", "/v1/users"));
    let back = bank.submit(&bank.last_page(&users, IDENTITY));
    let psu = parameter(&back, "psu-id");
    let html = String::from_utf8(bank.ask("GET", "/console", "", "").body).unwrap();
    let own = html.split("data-identity=\"01010112345\"").nth(1).unwrap();
    let bban = own.split("data-bban=\"").nth(1).unwrap();
    let body = json!({
        "instructedAmount": {"amount": "12.00", "currency": "NOK"},
        "creditorName": "Bakeriet",
        "creditorAccount": {"bban": "86011117947", "currency": "NOK"},
        "debtorAccount": {"bban": bban.split('"').next().unwrap(), "currency": "NOK"},
    })
    .to_string();
    let key = gate.folder().join("state/assertion.key");
    let core = format!("http://{}", bank.address);
    let [_, _, write, post, as_body, _] = PAYMENT;
    let arguments = [
        "--json", "--tpp", TPP, "--psu", &psu, write, post, as_body, &body,
    ];
    let (names, report) = to_mend(&probe(&core, &key, &arguments));
    assert!(names.is_empty(), "{report:#}");
    let checks = report["checks"].as_array().unwrap();
    let found = |name: &str| {
        let mut checks = checks.iter().filter(|check| check["name"] == name);
        checks.next().unwrap()["found"].as_str().unwrap().to_owned()
    };
    // Each of these was really tested.
    assert_eq!(found("facts"), "the claim decides");
    assert_eq!(found("psu-header"), "the claim decides");
    assert_eq!(
        found("facts-of-change"),
        "a change belongs to the TPP of the claim"
    );
    assert!(found("bulk-amounts").ends_with("refused"), "{report:#}");
}
