//! Payments that a generator makes all pass, however they are written; one fault in one of them is refused for that fault.

use super::changed;
use jiff::civil::date;
use portvakt::interface::{Code, Place, operations::Schema, payload};
use proptest::{
    collection::vec,
    option,
    prelude::{Just, ProptestConfig, Strategy, any},
    prop_oneof,
    sample::select,
    strategy::ValueTree,
    test_runner::{TestCaseError, TestRunner},
};
use serde_json::{Map, Value, json};

/// So many characters of every width, escapes among them.
fn text(least: usize, most: usize) -> impl Strategy<Value = Value> {
    let one = select(vec![
        'a', 'Z', '0', ' ', '/', '"', '\\', '\n', 'æ', '€', '😀', '\u{7f}',
    ]);
    vec(one, least..=most).prop_map(|text| json!(text.into_iter().collect::<String>()))
}

fn code(codes: &'static [&'static str]) -> impl Strategy<Value = Value> {
    select(codes).prop_map(|code| json!(code))
}

fn amount() -> impl Strategy<Value = Value> {
    let currency = select(
        &[
            ("NOK", 2),
            ("JPY", 0),
            ("KWD", 3),
            ("EUR", 2),
            ("BYR", 0),
            ("XDR", 4),
        ][..],
    );
    (currency, 1..=1_000_000_000_u64).prop_map(|((currency, digits), units)| {
        let padded = format!("{units:0>width$}", width = digits + 1);
        let (whole, fraction) = padded.split_at(padded.len() - digits);
        let point = if digits == 0 { "" } else { "." };
        json!({"amount": format!("{whole}{point}{fraction}"), "currency": currency})
    })
}

const IBANS: &[&str] = &[
    "NO9386011117947",
    "DE89370400440532013000",
    "GB82WEST12345698765432",
    "BE68539007547034",
];

fn account() -> impl Strategy<Value = Value> {
    let currency = || code(&["NOK", "SEK", "USD"]);
    let iban = (code(IBANS), currency())
        .prop_map(|(iban, currency)| json!({"iban": iban, "currency": currency}));
    let bban = (text(1, 30), currency())
        .prop_map(|(bban, currency)| json!({"bban": bban, "currency": currency}));
    prop_oneof![iban, bban]
}

fn address() -> impl Strategy<Value = Value> {
    let members = (
        code(&["NO", "SE", "ZW"]),
        option::of(text(0, 70)),
        option::of(text(0, 9)),
    );
    members.prop_map(|(country, street, city)| {
        object([
            ("country", Some(country)),
            ("street", street),
            ("city", city),
        ])
    })
}

fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let stand = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(stand.collect())
}

/// Any JSON, for members that no rule knows.
fn unknown() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|b| json!(b)),
        any::<f64>().prop_map(|n| json!(n)),
        text(0, 9)
    ];
    leaf.prop_recursive(4, 20, 4, |inner| {
        let members = vec((text(0, 4), inner.clone()), 0..4);
        let members = members.prop_map(|members| {
            let named = members
                .into_iter()
                .map(|(name, value)| (name.as_str().unwrap().to_owned(), value));
            Value::Object(named.collect::<Map<_, _>>())
        });
        prop_oneof![vec(inner, 0..4).prop_map(Value::Array), members]
    })
}

fn payment() -> impl Strategy<Value = Value> {
    let required = (amount(), text(1, 70), account(), account());
    let agent = option::of(code(&["DNBANOKK", "COBADEFFXXX"]));
    let date = option::of(code(&["2026-01-15", "2026-12-31"]));
    let reported = (option::of(code(&["14", "82"])), option::of(text(1, 140)));
    let rest = (
        option::of(address()),
        option::of(text(1, 140)),
        option::of(code(&["INVS", "OTHR"])),
    );
    (required, agent, date, reported, rest, unknown()).prop_map(
        |(required, agent, date, reported, rest, unknown)| {
            let has_bban = required.2.get("bban").is_some();
            let is_large = required.0["currency"] == "NOK"
                && required.0["amount"].as_str().unwrap().len() >= 9;
            object([
                ("unknown", Some(unknown)),
                ("instructedAmount", Some(required.0)),
                ("creditorName", Some(required.1)),
                ("creditorAccount", Some(required.2)),
                ("debtorAccount", Some(required.3)),
                (
                    "creditorAgent",
                    agent.or_else(|| has_bban.then(|| json!("CHASUS33"))),
                ),
                ("requestedExecutionDate", date),
                (
                    "regulatoryReportingCode",
                    reported.0.or_else(|| is_large.then(|| json!("26"))),
                ),
                (
                    "regulatoryReportingInformation",
                    reported.1.or_else(|| is_large.then(|| json!("x"))),
                ),
                ("creditorAddress", rest.0),
                ("remittanceInformationUnstructured", rest.1),
                ("purposeCode", rest.2),
            ])
        },
    )
}

fn paths(body: &str) -> Vec<String> {
    let faults = payload::check(
        body.as_bytes(),
        Schema::CrossBorderPayment,
        date(2026, 1, 15),
    );
    let shown = faults
        .err()
        .unwrap_or_default()
        .into_iter()
        .map(|fault| match fault.place {
            Place::Member(path) => {
                let is_date = path == "requestedExecutionDate";
                assert_eq!(fault.code == Some(Code::ExecutionDateInvalid), is_date);
                path
            }
            place => format!("{place:?} {}", fault.text),
        });
    shown.collect()
}

fn runner() -> TestRunner {
    TestRunner::new(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

fn ascii(body: &str) -> String {
    let mut units = [0; 2];
    let shown = |c: char, units: &mut [u16; 2]| {
        let escapes = c.encode_utf16(units).iter();
        escapes.map(|unit| format!("\\u{unit:04x}")).collect()
    };
    body.chars()
        .map(|c| {
            if c.is_ascii() {
                c.to_string()
            } else {
                shown(c, &mut units)
            }
        })
        .collect()
}

#[test]
fn generated_payments_pass_however_they_are_written() {
    let outcome = runner().run(&payment(), |payment| {
        let compact = payment.to_string();
        let pretty = serde_json::to_string_pretty(&payment).unwrap();
        for body in [&compact, &pretty, &ascii(&compact)] {
            let found = paths(body);
            if !found.is_empty() {
                return Err(TestCaseError::fail(format!("{found:?}: {body}")));
            }
        }
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// A fault, and where it is found.
type Mutation = (&'static str, fn(&mut Value), &'static str);

const MUTATIONS: &[Mutation] = &[
    (
        "no name",
        |p| drop(p.as_object_mut().unwrap().shift_remove("creditorName")),
        "creditorName",
    ),
    (
        "no amount",
        |p| drop(p.as_object_mut().unwrap().shift_remove("instructedAmount")),
        "instructedAmount",
    ),
    (
        "no debtor",
        |p| drop(p.as_object_mut().unwrap().shift_remove("debtorAccount")),
        "debtorAccount",
    ),
    (
        "a number",
        |p| p["instructedAmount"]["amount"] = json!(1),
        "instructedAmount.amount",
    ),
    (
        "a sign",
        |p| p["instructedAmount"] = json!({"amount": "-1.00", "currency": "NOK"}),
        "instructedAmount.amount",
    ),
    (
        "one digit too few",
        |p| p["instructedAmount"] = json!({"amount": "1.0", "currency": "NOK"}),
        "instructedAmount.amount",
    ),
    (
        "a stranger's currency",
        |p| p["instructedAmount"]["currency"] = json!("VES"),
        "instructedAmount.currency",
    ),
    (
        "no currency",
        |p| p["debtorAccount"] = json!({"bban": "1"}),
        "debtorAccount.currency",
    ),
    (
        "no number",
        |p| p["debtorAccount"] = json!({"currency": "NOK"}),
        "debtorAccount",
    ),
    (
        "a wrong check",
        |p| p["debtorAccount"] = json!({"iban": "NO9386011117946", "currency": "NOK"}),
        "debtorAccount.iban",
    ),
    (
        "a long bban",
        |p| p["debtorAccount"] = json!({"bban": "æ".repeat(31), "currency": "NOK"}),
        "debtorAccount.bban",
    ),
    (
        "no BIC",
        |p| p["creditorAgent"] = json!("DNBANOK"),
        "creditorAgent",
    ),
    (
        "a long name",
        |p| p["creditorName"] = json!("😀".repeat(71)),
        "creditorName",
    ),
    (
        "no country",
        |p| p["creditorAddress"] = json!({}),
        "creditorAddress.country",
    ),
    (
        "an empty text",
        |p| p["remittanceInformationUnstructured"] = json!(""),
        "remittanceInformationUnstructured",
    ),
    (
        "no purpose",
        |p| p["purposeCode"] = json!("XXXX"),
        "purposeCode",
    ),
    (
        "no report",
        |p| p["regulatoryReportingCode"] = json!("15"),
        "regulatoryReportingCode",
    ),
    (
        "a long report",
        |p| p["regulatoryReportingInformation"] = json!("x".repeat(141)),
        "regulatoryReportingInformation",
    ),
    (
        "yesterday",
        |p| p["requestedExecutionDate"] = json!("2026-01-14"),
        "requestedExecutionDate",
    ),
];

/// What JSON Schema cannot say: check digits, and what day it is.
const UNSAID: &[&str] = &["a wrong check", "yesterday"];

/// So many payments that pass, and as many with one fault, each with the gateway's judgement: a line of JSON for each.
pub(crate) fn judged(count: usize) -> String {
    let said: Vec<_> = MUTATIONS
        .iter()
        .filter(|(name, ..)| !UNSAID.contains(name))
        .copied()
        .collect();
    let inputs = (payment(), select(said));
    let mut runner = runner();
    let mut lines = String::new();
    for _ in 0..count {
        let (payment, (_, mutate, _)) = inputs.new_tree(&mut runner).unwrap().current();
        let mut other = payment.clone();
        mutate(&mut other);
        for body in [payment, other] {
            let passes = paths(&body.to_string()).is_empty();
            let line = json!({ "schema": "CrossBorderPayment", "body": body, "passes": passes });
            lines.push_str(&format!("{line}\n"));
        }
    }
    lines
}

#[test]
fn one_fault_is_refused_for_itself() {
    let inputs = (payment(), select(MUTATIONS));
    let outcome = runner().run(&inputs, |(mut payment, (name, mutate, path))| {
        mutate(&mut payment);
        let found = paths(&payment.to_string());
        if found == [path] {
            Ok(())
        } else {
            Err(TestCaseError::fail(format!("{name}: {found:?}: {payment}")))
        }
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// One byte more or less makes no JSON of a payment, or another payment: it never breaks the reader.
#[test]
fn every_cut_of_a_payment_is_malformed() {
    let body = changed("unknown", json!(["\u{1f600}\\", {"a": -1.5e-7}])).to_string();
    for (at, _) in body.char_indices() {
        let found = paths(&body[..at]);
        assert!(
            found.len() == 1 && found[0].starts_with("Body "),
            "{at}: {found:?}"
        );
    }
}
