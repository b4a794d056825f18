//! The bank's own channel: a payment that its customer changes, and an account that the bank permits no payments from.

use super::*;

fn change(stage: &Stage, path: &str, body: &Value) -> Answer {
    let line = format!("POST /v1/sandbox/payments/{}/change", id(path));
    stage.send(&line, body)
}

fn in_nok(amount: &str) -> Value {
    json!({"instructedAmount": {"amount": amount, "currency": "NOK"}})
}

//= SBX-17 accepted
//= SBX-14 accepted
#[test]
fn a_payment_that_is_changed_elsewhere_keeps_its_id() {
    let stage = Stage::new();
    let account = stage.account(0);
    let before = stage.booked(&account);
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("100.00"));
    stage.sign(&path);
    assert_eq!(stage.status(&path), "ACTC");
    let changes = with(
        &in_nok("75.00"),
        json!({"requestedExecutionDate": "2026-03-07", "remittanceInformationUnstructured": "Mindre"}),
    );
    let (status, changed) = change(&stage, &path, &changes);
    assert_eq!(status, 200, "{changed}");
    let expected = json!({"paymentId": id(&path), "transactionStatus": "ACWC"});
    assert_eq!(changed, expected);
    assert_eq!(stage.status(&path), "ACWC");
    let read = stage.get(&format!("GET {path}"));
    assert_eq!(read["paymentId"], id(&path));
    assert_eq!(read["instructedAmount"]["amount"], "75.00");
    assert_eq!(read["requestedExecutionDate"], "2026-03-07");
    assert_eq!(read["remittanceInformationUnstructured"], "Mindre");
    assert_eq!(read["creditorName"], "Bakeriet");

    // More than there is, by the bank's own channel, which names no TPP.
    let changes = with(
        &in_nok("9000000.00"),
        json!({"requestedExecutionDate": "2026-03-02"}),
    );
    let line = format!("POST /v1/sandbox/payments/{}/change", id(&path));
    let (_, changed) = ask(&stage.bank, &line, Caller::default(), &changes);
    assert_eq!(changed["transactionStatus"], "ACCP");
    // Null removes the day.
    let mut changes = in_nok("75.00");
    changes["requestedExecutionDate"] = Value::Null;
    assert_eq!(change(&stage, &path, &changes).0, 200);
    assert_eq!(stage.status(&path), "ACTC");
    let read = stage.get(&format!("GET {path}"));
    assert_eq!(read.get("requestedExecutionDate"), None);
    stage.run();
    assert_eq!(stage.status(&path), "ACSP");
    assert_eq!(stage.booked(&account), before - 7_500);
    let line = format!("GET /v1/accounts/{}/transactions?limit=1", account.id);
    let list = stage.get(&line);
    let booked = &list["transactions"]["booked"][0];
    assert_eq!(booked["remittanceInformationUnstructured"], "Mindre");
}

//= SBX-17 refused
#[test]
fn what_is_no_change_leaves_the_payment_as_it_was() {
    let stage = Stage::new();
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("100.00"));
    // The PSU could be reading an unsigned payment.
    assert_eq!(change(&stage, &path, &in_nok("75.00")).0, 409);
    stage.sign(&path);
    let read = || stage.get(&format!("GET {path}"));
    let before = read();
    for (changes, at) in [
        (json!({}), Value::Null),
        (json!({"debtorAccount": {"bban": ELSEWHERE}}), Value::Null),
        (
            with(&in_nok("75.00"), json!({"creditorName": "x"})),
            Value::Null,
        ),
        (in_nok("75.0"), json!("instructedAmount.amount")),
        (json!({"instructedAmount": null}), json!("instructedAmount")),
        (
            json!({"instructedAmount": {"amount": "75.00"}}),
            json!("instructedAmount.currency"),
        ),
        (
            json!({"requestedExecutionDate": "2026-03-01"}),
            json!("requestedExecutionDate"),
        ),
    ] {
        let (status, refused) = change(&stage, &path, &changes);
        assert_eq!(status, 400, "{changes}");
        assert_eq!(refused["tppMessages"][0]["path"], at, "{changes}");
        assert_eq!(read(), before);
    }
    let mut other = stage.caller.clone();
    other.tpp = "PSDNO-FSA-2".into();
    let line = format!("POST /v1/sandbox/payments/{}/change", id(&path));
    assert_eq!(ask(&stage.bank, &line, other, &in_nok("75.00")).0, 404);
    assert_eq!(change(&stage, "x", &in_nok("75.00")).0, 404);
    assert_eq!(read(), before);

    stage.run();
    assert_eq!(change(&stage, &path, &in_nok("75.00")).0, 409);
    let monthly = json!({"frequency": "Monthly", "startDate": "2026-03-02"});
    let (periodic, _) = stage.initiate(DOMESTIC, &with(&stage.order("1.00"), monthly));
    stage.sign(&periodic);
    assert_eq!(change(&stage, &periodic, &in_nok("2.00")).0, 409);
}

/// Null removes an optional member. An amount is none, and no currency is unknown.
//= SBX-17 refused
#[test]
fn an_amount_cannot_be_removed() {
    let stage = Stage::new();
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("100.00"));
    stage.sign(&path);
    for amount in [Value::Null, json!("75.00"), json!([])] {
        let (status, refused) = change(&stage, &path, &json!({"instructedAmount": amount}));
        assert_eq!(status, 400, "{amount}");
        let messages = refused["tppMessages"].as_array().unwrap();
        assert_eq!(messages.len(), 1, "{refused}");
        let text = messages[0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("Required: an amount and its currency"),
            "{text}"
        );
    }
    let read = stage.get(&format!("GET {path}"));
    assert_eq!(read["instructedAmount"]["amount"], "100.00");
}

/// Permits payments from the PSU's first account, or does not.
fn permit(stage: &Stage, permitted: bool) {
    let line = format!("PUT /v1/sandbox/accounts/{}/payments", stage.account(0).id);
    let (status, body) = stage.send(&line, &json!({"paymentsAllowed": permitted}));
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["paymentsAllowed"], permitted);
}

//= SBX-17 refused
#[test]
fn without_the_permission_an_account_pays_nothing_and_is_still_read() {
    let stage = Stage::of(WITH_AGREEMENT, false);
    let [account, savings] = [stage.account(0), stage.account(1)];
    let order = stage.order("1.00");
    let (signed, _) = stage.initiate(DOMESTIC, &order);
    stage.sign(&signed);
    let (unsigned, _) = stage.initiate(DOMESTIC, &order);
    permit(&stage, false);
    let forbidden = (403, "FORBIDDEN".to_owned(), "debtorAccount".to_owned());
    for product in [DOMESTIC, CROSS_BORDER, INSTANT] {
        assert_eq!(stage.refused(product, &order), forbidden);
    }
    // Account information goes on.
    for rest in ["/balances", "/transactions"] {
        stage.get(&format!("GET /v1/accounts/{}{rest}", account.id));
    }
    let accounts = stage.get("GET /v1/accounts");
    assert_eq!(accounts["accounts"][0]["resourceId"], account.id);
    // What was signed before is carried out, and nothing else is signed.
    stage.sign(&unsigned);
    assert_eq!(stage.status(&unsigned), "RJCT");
    stage.run();
    assert_eq!(stage.status(&signed), "ACSP");
    // Another account of the same PSU pays as before.
    let from = json!({"debtorAccount": {"bban": savings.bban}});
    stage.initiate(DOMESTIC, &with(&order, from));

    permit(&stage, true);
    stage.initiate(DOMESTIC, &order);
    permit(&stage, false);
    stage.get("POST /v1/sandbox/initialisation");
    stage.initiate(DOMESTIC, &order);
}

//= SBX-17 accepted
#[test]
fn an_account_can_be_opened_without_the_permission() {
    let stage = Stage::new();
    let line = "POST /v1/sandbox/accounts";
    let open = |allowed: Value| {
        let body = json!({"customerId": stage.psu.id, "balance": "100.00"});
        stage.send(line, &with(&body, json!({"paymentsAllowed": allowed})))
    };
    let pay = |opened: &Value| {
        let from = json!({"debtorAccount": {"bban": opened["bban"]}});
        let body = with(&stage.order("1.00"), from);
        stage.send(&format!("POST {DOMESTIC}"), &body).0
    };
    for (allowed, expected) in [
        (json!(false), (false, 403)),
        (json!(true), (true, 201)),
        // Without the member.
        (Value::Null, (true, 201)),
    ] {
        let (status, opened) = open(allowed);
        assert_eq!(status, 201, "{opened}");
        let shown = opened["paymentsAllowed"].as_bool().unwrap();
        assert_eq!((shown, pay(&opened)), expected);
    }
    assert_eq!(open(json!("no")).0, 400);
    let permission = format!("PUT /v1/sandbox/accounts/{}/payments", stage.account(0).id);
    assert_eq!(stage.send(&permission, &json!({})).0, 400);
    assert_eq!(stage.ask("PUT /v1/sandbox/accounts/x/payments").0, 404);
}
