//! Generated payments are all accepted, in any notation; a payment with one fault is refused for that fault.

/// One fault each.
pub(super) mod faults;

use super::changed;
use faults::{CROSS_BORDER, Fault, SHARED, basket_faults, malformed};
use jiff::civil::date;
use portvakt::interface::{Code, FaultPlace, operations::Schema, payload};
use proptest::{
    collection::{btree_set, vec},
    option,
    prelude::{Just, ProptestConfig, Strategy, any},
    prop_oneof,
    sample::select,
    strategy::ValueTree,
    test_runner::{TestCaseError, TestRunner},
};
use serde_json::{Map, Value, json};

/// A text of this number of characters, with every UTF-8 length and with escapes.
fn text(least: usize, most: usize) -> impl Strategy<Value = Value> {
    text_of(
        &['a', 'Z', '0', ' ', '/', '"', '\\', 'æ', '€', '😀'],
        least,
        most,
    )
}

/// The same in several lines (PAY-17).
fn lines(least: usize, most: usize) -> impl Strategy<Value = Value> {
    text_of(
        &['a', 'Z', '"', '\\', '\n', '\r', '\t', 'æ', '😀'],
        least,
        most,
    )
}

fn text_of(characters: &'static [char], least: usize, most: usize) -> impl Strategy<Value = Value> {
    let one = select(characters);
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

/// Any JSON, for members without a rule.
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
    let reported = (option::of(code(&["14", "82"])), option::of(lines(1, 140)));
    let rest = (
        option::of(address()),
        option::of(lines(1, 140)),
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

/// A basket of one to ten payments.
fn basket() -> impl Strategy<Value = Value> {
    let id = text(1, 12).prop_map(|id| id.as_str().unwrap().to_owned());
    let ids = btree_set(id, 1..=10);
    (ids, unknown()).prop_map(|(ids, unknown)| json!({"unknown": unknown, "paymentIds": ids}))
}

/// The paths of the faults of a cross-border payment.
fn paths(body: &str) -> Vec<String> {
    paths_of(body.as_bytes(), Schema::CrossBorderPayment)
}

fn paths_of(body: &[u8], schema: Schema) -> Vec<String> {
    let faults = payload::check(
        body,
        schema,
        &[],
        date(2026, 1, 15),
        &payload::Ibans::default(),
    );
    let shown = faults
        .err()
        .unwrap_or_default()
        .into_iter()
        .map(|fault| match fault.place {
            FaultPlace::Member(path) => {
                let is_date = path == "requestedExecutionDate";
                assert_eq!(fault.code == Some(Code::ExecutionDateInvalid), is_date);
                path
            }
            place => format!("{place:?} {}", fault.text),
        });
    shown.collect()
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(ProptestConfig {
        cases,
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
    let outcome = runner(1_000).run(&payment(), |payment| {
        let compact = payment.to_string();
        let pretty = serde_json::to_string_pretty(&payment).unwrap();
        for body in [&compact, &pretty, &ascii(&compact)] {
            for schema in [Schema::CrossBorderPayment, Schema::Payment, Schema::Any] {
                finds(body.as_bytes(), schema, &[])?;
            }
        }
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
    let outcome = runner(300).run(&basket(), |basket| {
        finds(basket.to_string().as_bytes(), Schema::Basket, &[])
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// Asserts that a body has faults at exactly these paths.
fn finds(body: &[u8], schema: Schema, expected: &[&str]) -> Result<(), TestCaseError> {
    let found = paths_of(body, schema);
    if found == expected {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(body);
    let text = format!("{found:?}, expected {expected:?}: {shown}");
    Err(TestCaseError::fail(text))
}

/// The number of payments for each fault.
const EACH: u32 = 24;

#[test]
fn one_fault_is_refused_for_itself() {
    for fault in SHARED.iter().chain(CROSS_BORDER) {
        let outcome = runner(EACH).run(&payment(), |mut payment| {
            (fault.make)(&mut payment);
            let body = payment.to_string();
            finds(body.as_bytes(), Schema::CrossBorderPayment, &[fault.path])
        });
        assert!(
            outcome.is_ok(),
            "{} {}: {outcome:?}",
            fault.rule,
            fault.name
        );
    }
    for (fault, path) in basket_faults() {
        let outcome = runner(EACH).run(&basket(), |mut basket| {
            fault(&mut basket);
            finds(basket.to_string().as_bytes(), Schema::Basket, &[path])
        });
        assert!(outcome.is_ok(), "PAY-13: {outcome:?}");
    }
}

/// PAY-14: the other products have only the faults of the common members.
#[test]
fn other_products_are_refused_for_what_all_share() {
    for fault in SHARED.iter().chain(CROSS_BORDER) {
        let shared = SHARED.iter().any(|shared| shared.name == fault.name);
        let expected: &[&str] = if shared { &[fault.path] } else { &[] };
        let outcome = runner(EACH / 4).run(&payment(), |mut payment| {
            (fault.make)(&mut payment);
            finds(payment.to_string().as_bytes(), Schema::Payment, expected)
        });
        assert!(
            outcome.is_ok(),
            "{} {}: {outcome:?}",
            fault.rule,
            fault.name
        );
    }
}

/// PAY-2: two faults in two members are two in the answer.
#[test]
fn two_faults_are_refused_for_both() {
    let alone: Vec<_> = SHARED.iter().chain(CROSS_BORDER).collect();
    // Faults that involve several members would cancel each other.
    let alone =
        || select(alone.clone()).prop_filter("one member", |fault| fault.is_of_one_member());
    let apart = (alone(), alone())
        .prop_filter("two members", |(one, other)| one.member() != other.member());
    let outcome = runner(1_000).run(&(payment(), apart), |(mut payment, (one, other))| {
        (one.make)(&mut payment);
        (other.make)(&mut payment);
        let mut found = paths(&payment.to_string());
        let mut expected = [one.path, other.path];
        found.sort_unstable();
        expected.sort_unstable();
        if found == expected {
            Ok(())
        } else {
            let text = format!("{} and {}: {found:?}: {payment}", one.name, other.name);
            Err(TestCaseError::fail(text))
        }
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// PAY-1: if a payment is not JSON, the answer names only that, whatever other faults it has.
#[test]
fn what_is_malformed_is_refused_for_that() {
    let inputs = (payment(), select(SHARED));
    for (name, make, why) in malformed() {
        let outcome = runner(EACH).run(&inputs, |(mut payment, fault)| {
            let whole = payment.to_string();
            (fault.make)(&mut payment);
            for body in [whole, payment.to_string()] {
                for (_, schema) in Schema::NAMES {
                    let found = paths_of(&make(&body), *schema);
                    let said = found.len() == 1 && found[0].starts_with("Body ");
                    if !said || !found[0].contains(why) {
                        return Err(TestCaseError::fail(format!("{found:?}: {body}")));
                    }
                }
            }
            Ok(())
        });
        assert!(outcome.is_ok(), "{name}: {outcome:?}");
    }
}

#[test]
fn every_rule_of_members_has_its_faults() {
    for rule in 3..=12 {
        let rule = format!("PAY-{rule}");
        let mut all = SHARED.iter().chain(CROSS_BORDER);
        assert!(all.any(|fault| fault.rule == rule), "{rule}");
    }
    let mut names: Vec<_> = SHARED
        .iter()
        .chain(CROSS_BORDER)
        .map(|fault| fault.name)
        .collect();
    names.sort_unstable();
    assert!(
        names.is_sorted_by(|one, other| one != other),
        "a name stands twice"
    );
}

/// The same number of valid and of faulty bodies of each schema, one fault each, with the gateway's judgement: one line of JSON
/// per body. Faults that JSON Schema cannot express are left out.
pub(crate) fn judged(count: usize) -> String {
    let said = |faults: &[&'static [Fault]]| {
        let all = faults.iter().flat_map(|faults| faults.iter());
        let said: Vec<_> = all
            .filter(|fault| !fault.is_unsaid())
            .map(|fault| fault.make)
            .collect();
        select(said)
    };
    let of_basket: Vec<_> = basket_faults().iter().map(|(make, _)| *make).collect();
    let cross_border = said(&[SHARED, CROSS_BORDER]);
    let mut lines = judged_as(
        "CrossBorderPayment",
        Schema::CrossBorderPayment,
        (payment(), cross_border),
        count,
    );
    lines += &judged_as(
        "Payment",
        Schema::Payment,
        (payment(), said(&[SHARED])),
        count,
    );
    lines
        + &judged_as(
            "SigningBasket",
            Schema::Basket,
            (basket(), select(of_basket)),
            count / 4,
        )
}

fn judged_as(
    name: &str,
    schema: Schema,
    inputs: (
        impl Strategy<Value = Value>,
        impl Strategy<Value = fn(&mut Value)>,
    ),
    count: usize,
) -> String {
    let mut runner = runner(1);
    let mut lines = String::new();
    for _ in 0..count {
        let (body, make) = inputs.new_tree(&mut runner).unwrap().current();
        let mut other = body.clone();
        make(&mut other);
        for body in [body, other] {
            let passes = paths_of(body.to_string().as_bytes(), schema).is_empty();
            let line = json!({ "schema": name, "body": body, "passes": passes });
            lines.push_str(&format!("{line}\n"));
        }
    }
    lines
}

/// Changing, adding or removing one byte gives invalid JSON or another payment; the reader never panics.
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
