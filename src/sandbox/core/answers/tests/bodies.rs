//! Members that no operation takes: none is ignored.

use super::*;

/// A refusal of 400 FORMAT_ERROR; returns its sentence.
fn refusal((status, body): &Answer) -> &str {
    let found = (*status, &body["code"]);
    assert_eq!(found, (400, &json!("FORMAT_ERROR")), "{body}");
    let sentence = body["message"].as_str().unwrap();
    match body["tppMessages"][0]["text"].as_str() {
        Some(text) => text,
        None => sentence,
    }
}

/// Each operation with a body, and a body that it takes.
fn bodies(stage: &Stage) -> Vec<(String, Value)> {
    let (payment, _) = stage.initiate(DOMESTIC, &stage.order("1.00"));
    let (signed, _) = stage.initiate(DOMESTIC, &stage.order("2.00"));
    stage.sign(&signed);
    let [account, card] = [stage.account(0).id, stage.account(2).id];
    let change = json!({"remittanceInformationUnstructured": "x"});
    vec![
        ("POST /v1/sandbox/accounts".into(), json!({"name": "Konto"})),
        (
            format!("POST /v1/sandbox/accounts/{account}/transactions"),
            json!({"amount": 100}),
        ),
        (
            format!("PUT /v1/sandbox/accounts/{account}/balances"),
            json!({"balance": "7.00"}),
        ),
        (
            format!("PUT /v1/sandbox/card-accounts/{card}/balances"),
            json!({"amount": "-7.00", "currency": "NOK"}),
        ),
        (
            format!("PUT /v1/sandbox/accounts/{account}/payments"),
            json!({"paymentsAllowed": true}),
        ),
        (
            format!("POST /v1/sandbox/payments/{}/change", id(&signed)),
            change,
        ),
        (
            "PUT /v1/tpp/contact".into(),
            json!({"email": "psd2@tpp.example"}),
        ),
        (
            "POST /v1/signing-baskets".into(),
            json!({"paymentIds": [id(&payment)]}),
        ),
    ]
}

//= SBX-5 accepted
//= SBX-5 refused
//= SBX-13 refused
#[test]
fn every_operation_refuses_a_member_that_it_does_not_take() {
    let stage = Stage::new();
    for (line, body) in bodies(&stage) {
        let before = stage.get("GET /v1/sandbox/customers");
        let foreign = with(&body, json!({"colour": "red"}));
        let answer = stage.send(&line, &foreign);
        let sentence = refusal(&answer);
        assert!(sentence.starts_with("colour: "), "{line}: {sentence}");
        // A name that may be a value is not repeated.
        let secret = with(&body, json!({"01010112345": 1}));
        let answer = stage.send(&line, &secret);
        assert!(refusal(&answer).starts_with("a member: "), "{line}");
        assert_eq!(stage.get("GET /v1/sandbox/customers"), before, "{line}");
        let (status, taken) = stage.send(&line, &body);
        assert!(status < 300, "{line}: {taken}");
    }
}

//= SBX-1 accepted
//= SBX-1 refused
//= SBX-2 refused
#[test]
fn an_operation_without_a_body_refuses_one() {
    let stage = Stage::new();
    let (payment, _) = stage.initiate(DOMESTIC, &stage.order("1.00"));
    let (other, _) = stage.initiate(DOMESTIC, &stage.order("2.00"));
    let basket = json!({"paymentIds": [id(&other)]});
    let (_, basket) = stage.send("POST /v1/signing-baskets", &basket);
    let basket = basket["basketId"].as_str().unwrap();
    for line in [
        format!("POST {payment}/authorisations"),
        format!("POST /v1/signing-baskets/{basket}/authorisations"),
        format!("POST /v1/sandbox/payments/{}/cancellation", id(&payment)),
        "POST /v1/sandbox/batch".into(),
        "POST /v1/sandbox/initialisation".into(),
    ] {
        let answer = stage.send(&line, &json!({"when": "now"}));
        assert!(refusal(&answer).starts_with("when: "), "{line}");
        refusal(&stage.send(&line, &json!([])));
        let (status, body) = stage.send(&line, &json!({}));
        assert!(status < 300, "{line}: {body}");
    }
    stage.get("POST /v1/sandbox/batch");
}

//= SBX-5 refused
#[test]
fn a_body_says_nothing_twice() {
    let stage = Stage::new();
    let line = format!("PUT /v1/sandbox/accounts/{}/balances", stage.account(0).id);
    let opening = "POST /v1/sandbox/accounts";
    let psu = stage.psu.id.clone();
    for (line, body, member) in [
        (
            line.as_str(),
            json!({"balance": "1.00", "amount": "2.00"}),
            "amount: ",
        ),
        (
            line.as_str(),
            json!({"balance": {"amount": "1.00", "currency": "NOK", "sign": "-"}}),
            "balance.sign: ",
        ),
        (
            opening,
            json!({"creditLine": {"amount": "1.00", "x": 1}}),
            "creditLine.x: ",
        ),
        (
            opening,
            json!({"customerId": psu, "customerName": "Per"}),
            "customerName: ",
        ),
    ] {
        let before = stage.get("GET /v1/sandbox/customers");
        let answer = stage.send(line, &body);
        let sentence = refusal(&answer);
        assert!(sentence.starts_with(member), "{sentence}");
        assert_eq!(stage.get("GET /v1/sandbox/customers"), before);
    }
}
