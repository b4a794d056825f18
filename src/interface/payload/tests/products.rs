//! Products that a deployment configures: their own members, and those of the interface that they list.

use super::*;
use crate::operations::MemberKind;

fn member(name: &str, required: bool, kind: MemberKind) -> Member {
    Member {
        name: name.to_owned(),
        required,
        kind,
    }
}

fn members() -> Vec<Member> {
    let text = |least, most, one_of: &[&str]| MemberKind::Text {
        least,
        most,
        one_of: one_of.iter().map(|word| (*word).to_owned()).collect(),
    };
    vec![
        member("instructedAmount", true, MemberKind::Interface),
        member("creditorAddress", false, MemberKind::Interface),
        member("requestedExecutionDate", false, MemberKind::Interface),
        member("endToEndIdentification", true, text(1, 35, &[])),
        member("chargeBearer", false, text(1, 0, &["SLEV", "SHAR"])),
        member("startDate", false, MemberKind::Date),
        member("batchBooking", false, MemberKind::Boolean),
        member("ceiling", false, MemberKind::Amount),
        member("feeAccount", false, MemberKind::Account),
        member("payments", false, MemberKind::Payments),
    ]
}

/// The least payment of the product, with one more member or another value.
fn with(name: &str, value: Value) -> Value {
    let mut least = json!({
        "instructedAmount": {"amount": "1.00", "currency": "NOK"},
        "endToEndIdentification": "E-1",
    });
    least[name] = value;
    least
}

fn paths_of(value: &Value, schema: Schema) -> Vec<String> {
    let wrong = wrong_of(value.to_string().as_bytes(), schema, &members());
    let path = |text: String| text.split(':').next().unwrap().to_owned();
    wrong.into_iter().map(path).collect()
}

#[test]
fn accepted_values_of_each_kind() {
    let entry = json!({"instructedAmount": {"amount": "1.00", "currency": "NOK"}, "more": null});
    for (name, value) in [
        ("x", json!(null)),
        ("purposeCode", json!("NONE")),
        ("endToEndIdentification", json!("æ".repeat(35))),
        ("chargeBearer", json!("SHAR")),
        ("startDate", json!("2020-02-29")),
        ("batchBooking", json!(false)),
        ("ceiling", json!({"amount": "100", "currency": "JPY"})),
        (
            "feeAccount",
            json!({"bban": "86011117947", "currency": "NOK"}),
        ),
        ("creditorAddress", json!({"country": "NO"})),
        ("requestedExecutionDate", json!("2026-01-15")),
        ("payments", json!([entry, {}])),
    ] {
        let body = with(name, value);
        assert_eq!(paths_of(&body, Schema::Payment), [""; 0], "{body}");
    }
}

#[test]
fn refused_values_of_each_kind() {
    for (name, value, path) in [
        (
            "endToEndIdentification",
            json!("æ".repeat(36)),
            "endToEndIdentification",
        ),
        (
            "endToEndIdentification",
            json!(""),
            "endToEndIdentification",
        ),
        (
            "endToEndIdentification",
            json!(null),
            "endToEndIdentification",
        ),
        ("chargeBearer", json!("shar"), "chargeBearer"),
        ("chargeBearer", json!(["SHAR"]), "chargeBearer"),
        ("startDate", json!("2026-02-29"), "startDate"),
        ("startDate", json!(20_260_115), "startDate"),
        ("batchBooking", json!("true"), "batchBooking"),
        (
            "ceiling",
            json!({"amount": "1.00", "currency": "JPY"}),
            "ceiling.amount",
        ),
        (
            "ceiling",
            json!({"amount": "1", "currency": "EEK"}),
            "ceiling.currency",
        ),
        ("ceiling", json!("1.00"), "ceiling"),
        (
            "feeAccount",
            json!({"iban": "NO9386011117948", "currency": "NOK"}),
            "feeAccount.iban",
        ),
        ("feeAccount", json!({"bban": "1"}), "feeAccount.currency"),
        ("feeAccount", json!({"currency": "NOK"}), "feeAccount"),
        (
            "creditorAddress",
            json!({"country": "no"}),
            "creditorAddress.country",
        ),
        (
            "requestedExecutionDate",
            json!("2026-01-14"),
            "requestedExecutionDate",
        ),
        ("payments", json!([]), "payments"),
        ("payments", json!({}), "payments"),
        ("payments", json!([{}, 7]), "payments[1]"),
        (
            "payments",
            json!([{"creditorName": ""}]),
            "payments[0].creditorName",
        ),
        (
            "payments",
            json!([{}, {"instructedAmount": {"amount": "1", "currency": "NOK"}}]),
            "payments[1].instructedAmount.amount",
        ),
    ] {
        let body = with(name, value);
        assert_eq!(paths_of(&body, Schema::Payment), [path], "{body}");
    }
}

/// PAY-14: also by a name that a server may read as it.
#[test]
fn members_of_the_interface_by_name() {
    for (name, known) in [
        ("creditorName", Some("creditorName")),
        ("CREDITORNAME", Some("creditorName")),
        ("creditorNames", None),
    ] {
        assert_eq!(interface_member(name), known, "{name}");
    }
}

/// Each member of the interface can be required of a product's payments.
#[test]
fn a_required_member_of_the_interface_is_missed() {
    for name in payment().as_object().unwrap().keys() {
        let own = [member(name, true, MemberKind::Interface)];
        let missed = |payment: &Value| {
            let body = payment.to_string();
            let missing = format!("{name}: missing: every payment of this product has it");
            wrong_of(body.as_bytes(), Schema::Payment, &own).contains(&missing)
        };
        assert!(!missed(&payment()), "{name}");
        assert!(missed(&changed(name, None)), "{name}");
    }
}

/// A cross-border product has the rules of cross-border payments and its own members.
#[test]
fn a_cross_border_payment_of_a_product() {
    let own = [member("startDate", true, MemberKind::Date)];
    let wrong = |payment: &Value| {
        let body = payment.to_string();
        let wrong = wrong_of(body.as_bytes(), Schema::CrossBorderPayment, &own).into_iter();
        let path = |text: String| text.split(':').next().unwrap().to_owned();
        wrong.map(path).collect::<Vec<_>>()
    };
    let mut payment = payment();
    payment["startDate"] = json!("2026-01-16");
    assert_eq!(wrong(&payment), [""; 0]);
    payment["startDate"] = json!("tomorrow");
    let members = payment.as_object_mut().unwrap();
    members.remove("creditorName");
    assert_eq!(wrong(&payment), ["creditorName", "startDate"]);
}

#[test]
fn what_is_required_comes_first_and_own_members_last() {
    let body =
        json!({"creditorName": "", "startDate": "soon", "requestedExecutionDate": "2020-01-01"});
    let expected = [
        "instructedAmount",
        "endToEndIdentification",
        "creditorName",
        "requestedExecutionDate",
        "startDate",
    ];
    assert_eq!(paths_of(&body, Schema::Payment), expected);
    assert_eq!(paths_of(&json!([]), Schema::Payment), ["$"]);
    let mut payment = payment();
    payment["endToEndIdentification"] = json!("E-1");
    assert_eq!(paths_of(&payment, Schema::CrossBorderPayment), [""; 0]);
    payment["debtorAccount"] = json!(7);
    payment["batchBooking"] = json!(7);
    let expected = ["debtorAccount", "batchBooking"];
    assert_eq!(paths_of(&payment, Schema::CrossBorderPayment), expected);
}

/// A name that some servers read as an own member is refused, and so is a second one (PAY-1, PAY-14, PAY-17).
#[test]
fn own_members_are_protected_like_the_interfaces() {
    for (name, known) in [
        ("CHARGEBEARER", "chargeBearer"),
        ("charge\u{200b}Bearer", "chargeBearer"),
        ("ſtartDate", "startDate"),
        ("InstructedAmount", "instructedAmount"),
    ] {
        let body = format!(
            r#"{{"instructedAmount":{{"amount":"1.00","currency":"NOK"}},"endToEndIdentification":"x","{name}":"SHAR"}}"#
        );
        let wrong = wrong_of(body.as_bytes(), Schema::Payment, &members()).join(" ");
        assert!(
            wrong.contains(&format!("read this name as {known}")),
            "{name}: {wrong}"
        );
    }
    let twice = br#"{"chargeBearer":"SHAR","chargeBearer":"SLEV"}"#;
    let wrong = wrong_of(twice, Schema::Payment, &members()).join(" ");
    assert!(wrong.starts_with("payload-malformed"), "{wrong}");
    let odd = with("endToEndIdentification", json!("a\nb"));
    assert_eq!(paths_of(&odd, Schema::Payment), ["endToEndIdentification"]);
    let entry = with("payments", json!([{"CreditorName": "x"}]));
    assert_eq!(
        paths_of(&entry, Schema::Payment),
        ["payments[0].CreditorName"]
    );
}

/// A bulk with thousands of wrong payments gets a short answer.
#[test]
fn the_answer_is_bounded() {
    let entries: Vec<_> = (0..5000).map(|_| json!({"creditorName": 7})).collect();
    let wrong = paths_of(&with("payments", json!(entries)), Schema::Payment);
    assert_eq!(wrong.len(), 16);
}
