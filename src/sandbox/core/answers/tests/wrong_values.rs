//! Wrong values: each is refused by name. No default takes its place unseen, and no part of it is left out.

use super::*;

const BOOKED_BY_HAND: &str = "Kaffe – takk, Žofie! Áhkku’s “€” …";

/// A refusal of 400 FORMAT_ERROR; returns its sentence.
fn refusal((status, body): &Answer) -> &str {
    assert_eq!(
        (*status, &body["code"]),
        (400, &json!("FORMAT_ERROR")),
        "{body}"
    );
    body["message"].as_str().unwrap()
}

//= SBX-5 refused
#[test]
fn a_wrong_member_of_a_new_account_is_named() {
    let stage = Stage::new();
    let line = "POST /v1/sandbox/accounts";
    let customers = || stage.bank.customers().unwrap().len();
    let before = customers();
    for (member, value) in [
        ("creditLine", json!("-1.00")),
        ("creditLine", json!(-100)),
        ("creditLine", json!({"amount": "-0.01", "currency": "NOK"})),
        ("creditLine", json!("1")),
        ("balance", json!("1")),
        ("customerId", json!(7)),
        ("accountType", json!(["CARD"])),
        ("currency", json!(578)),
        ("kid", json!(10)),
        ("name", json!("Konto 😀")),
        ("customerName", json!("Иван")),
    ] {
        let answer = stage.send(line, &json!({ member: value }));
        let sentence = refusal(&answer);
        assert!(sentence.starts_with(&format!("{member}: ")), "{sentence}");
    }
    assert_eq!(customers(), before);
    // Null says nothing, and a line of 0 is one.
    let body = json!({"customerId": stage.psu.id, "accountType": null, "currency": null, "kid": null, "creditLine": "0.00"});
    let (status, opened) = stage.send(line, &body);
    assert_eq!(status, 201, "{opened}");
    assert_eq!(opened["creditLine"]["amount"], "0.00");
}

//= SBX-8 accepted
//= SBX-8 refused
//= SBX-11 refused
#[test]
fn a_character_that_cannot_be_processed_is_not_booked_by_hand() {
    let stage = Stage::new();
    let card = stage.account(2);
    let line = format!("POST /v1/sandbox/accounts/{}/transactions", card.id);
    let before = stage.booked(&card);
    for (path, bad) in [
        ("creditorName", json!("Kiosk 😀")),
        ("debtorName", json!("Иван")),
        ("ultimateCreditor", json!("支付")),
        ("ultimateDebtor", json!("支付")),
        ("remittanceInformationUnstructured", json!("takk 😀")),
        ("bankTransactionCode", json!("😀😀😀😀")),
        ("purposeCode", json!("😀")),
        ("additionalInformationProprietary1", json!("привет")),
        ("creditorAccount.bban", json!({"bban": "7😀"})),
        ("debtorAccount.bban", json!({"bban": "😀"})),
    ] {
        let name = path.split('.').next().unwrap();
        let answer = stage.send(&line, &json!({"amount": -100, name: bad}));
        let sentence = refusal(&answer);
        let expected = format!("{path}: It holds a character");
        assert!(sentence.starts_with(&expected), "{sentence}");
    }
    assert_eq!(stage.booked(&card), before);
    let good = json!({"amount": -100, "creditorName": BOOKED_BY_HAND});
    let (status, booked) = stage.send(&line, &good);
    assert_eq!(
        (status, &booked["creditorName"]),
        (201, &json!(BOOKED_BY_HAND))
    );
}

/// The value of a parameter is empty where it is left out, and no default then.
//= SBX-17 refused
//= SBX-10 refused
#[test]
fn a_parameter_without_a_value_is_refused() {
    let stage = Stage::new();
    let body = stage.order("1.00");
    for product in [DOMESTIC, INSTANT, CROSS_BORDER] {
        for query in [
            "allowLogicalDuplicate",
            "x=1&allowLogicalDuplicate",
            "%61llowLogicalDuplicate",
        ] {
            let answer = stage.send(&format!("POST {product}?{query}"), &body);
            refusal(&answer);
            let text = answer.1["tppMessages"][0]["text"].as_str().unwrap();
            assert!(text.contains("true or false"), "{text}");
        }
    }
    let list = format!("GET /v1/accounts/{}/transactions", stage.account(0).id);
    for query in ["bookingStatus", "bookingStatus=", "bookingStatus=BOOKED"] {
        let answer = stage.ask(&format!("{list}?{query}"));
        let sentence = refusal(&answer);
        assert!(sentence.contains("booked, pending, both or all"), "{query}");
    }
    stage.get(&format!("{list}?bookingStatus=all"));
}

//= SBX-12 accepted
//= SBX-12 refused
#[test]
fn a_payment_reference_of_another_form_is_not_lost() {
    let stage = Stage::new();
    let order = |name: &str, value: &Value| with(&stage.order("1.00"), json!({ name: value }));
    let [one, several] = [
        "remittanceInformationStructured",
        "remittanceInformationStructuredArray",
    ];
    for (name, value) in [
        (one, json!(79_927_398_713_i64)),
        (one, json!({"referenceType": "KID"})),
        (one, json!({"reference": 7})),
        (several, json!("79927398713")),
        (several, json!([79_927_398_713_i64])),
        (several, json!(["79927398713", 7])),
    ] {
        let expected = (400, "FORMAT_ERROR".to_owned(), name.to_owned());
        let refused = stage.refused(DOMESTIC, &order(name, &value));
        assert_eq!(refused, expected, "{value}");
    }
    for value in [
        json!([]),
        json!(["79927398713"]),
        json!([{"reference": "79927398713", "referenceType": "KID"}]),
    ] {
        stage.initiate(DOMESTIC, &order(several, &value));
    }
}

/// PAY-6: also in the parts of a bulk, which the gateway does not judge.
//= SBX-8 refused
#[test]
fn a_member_of_an_account_that_is_no_text_is_refused() {
    let stage = Stage::new();
    for (path, account) in [
        (
            "creditorAccount.currency",
            json!({"bban": ELSEWHERE, "currency": 578}),
        ),
        (
            "creditorAccount.iban",
            json!({"bban": ELSEWHERE, "iban": 7}),
        ),
        ("creditorAccount.bban", json!({"bban": 86_011_117_947_i64})),
    ] {
        let order = with(&stage.order("1.00"), json!({"creditorAccount": account}));
        let bulk = json!({"payments": [order], "debtorAccount": {"bban": stage.account(0).bban}});
        let refused = |body: &Value, path: &str| {
            let expected = (400, "FORMAT_ERROR".to_owned(), path.to_owned());
            assert_eq!(stage.refused(DOMESTIC, body), expected);
        };
        refused(&order, path);
        refused(&bulk, &format!("payments[0].{path}"));
    }
}

//= SBX-7 refused
#[test]
fn an_id_that_is_no_text_is_not_left_out_of_a_basket() {
    let stage = Stage::new();
    let line = "POST /v1/signing-baskets";
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("1.00"));
    for ids in [
        json!([id(&path), 7]),
        json!([null, id(&path)]),
        json!(id(&path)),
    ] {
        let answer = stage.send(line, &json!({"paymentIds": ids}));
        assert!(refusal(&answer).starts_with("paymentIds: "), "{ids}");
    }
    let body = json!({"paymentIds": [id(&path)]});
    assert_eq!(stage.send(line, &body).0, 201);
}

//= SBX-13 refused
#[test]
fn an_organisation_number_that_is_no_text_is_refused() {
    let stage = Stage::new();
    let body = json!({"email": "psd2@tpp.example", "organisationNumber": 7});
    let answer = stage.send("PUT /v1/tpp/contact", &body);
    assert!(refusal(&answer).starts_with("organisationNumber: "));
    assert_eq!(stage.ask("GET /v1/tpp/contact").0, 404);
}

/// HDR-12: the gateway forwards X-PSU-IDENTITY beside a PSU-ID, and only the bank knows whether they are of one person.
#[test]
fn a_psu_id_beside_the_number_of_another_person_is_refused() {
    let stage = Stage::new();
    let named = |identity: &str| Caller {
        identity: Some(identity.into()),
        ..stage.caller.clone()
    };
    let post = format!("POST {DOMESTIC}");
    let order = stage.order("1.00");
    let customers = || stage.bank.customers().unwrap().len();
    let before = customers();
    for (line, body, ok) in [
        (post.as_str(), &order, 201),
        ("GET /v1/accounts", &Value::Null, 200),
    ] {
        for other in ["01010112346", WITH_AGREEMENT] {
            let (status, refused) = ask(&stage.bank, line, named(other), body);
            assert_eq!(
                (status, &refused["code"]),
                (400, &json!("PSU_CREDENTIALS_INVALID")),
                "{line}"
            );
            assert!(!refused.to_string().contains(other));
        }
        assert_eq!(ask(&stage.bank, line, named(KARI), body).0, ok, "{line}");
    }
    // The number of a person unknown to the bank opens no accounts.
    assert_eq!(customers(), before);
}
