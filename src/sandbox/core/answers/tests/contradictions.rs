//! Members that contradict each other, and resources of another PSU of the same TPP.

use super::*;

/// The account of a customer beside the PSU of the stage.
fn theirs(stage: &Stage) -> String {
    let other = stage.bank.customer(WITH_AGREEMENT).unwrap();
    stage.bank.accounts_of(&other.id).unwrap().remove(0).bban
}

//= SBX-6 accepted
//= SBX-6 refused
#[test]
fn a_part_of_a_bulk_says_nothing_that_is_ignored() {
    let stage = Stage::new();
    let order = stage.order("1.00");
    let own = order["debtorAccount"].clone();
    let bulk = |part: &Value, whole: Value| {
        with(&json!({"payments": [part], "debtorAccount": own}), whole)
    };
    let day = json!({"requestedExecutionDate": "2026-03-04"});
    stage.initiate(DOMESTIC, &bulk(&order, json!({})));
    stage.initiate(DOMESTIC, &bulk(&with(&order, day.clone()), day.clone()));
    let currency = json!({"bban": stage.account(1).bban, "currency": "EUR"});
    let both = json!({"bban": ELSEWHERE, "iban": "NO9386011117947"});
    for (name, value, path) in [
        (
            "requestedExecutionDate",
            json!("2026-03-04"),
            "requestedExecutionDate",
        ),
        (
            "debtorAccount",
            json!({"bban": stage.account(1).bban}),
            "debtorAccount",
        ),
        (
            "debtorAccount",
            json!({"bban": theirs(&stage)}),
            "debtorAccount",
        ),
        ("frequency", json!("Monthly"), "frequency"),
        ("startDate", json!("2026-04-01"), "startDate"),
        ("payments", json!([]), "payments"),
        ("creditorAccount", currency, "creditorAccount.currency"),
        ("creditorAccount", both, "creditorAccount"),
        (
            "remittanceInformationStructuredArray",
            json!(["79927398713", "79927398713"]),
            "remittanceInformationStructuredArray",
        ),
    ] {
        let part = with(&order, json!({ name: value }));
        let expected = (
            400,
            "FORMAT_ERROR".to_owned(),
            format!("payments[0].{path}"),
        );
        let refused = stage.refused(DOMESTIC, &bulk(&part, json!({})));
        assert_eq!(refused, expected, "{name}");
    }
    for (name, value) in [
        ("frequency", json!("Monthly")),
        ("creditorName", json!("Bakeriet")),
        ("instructedAmount", order["instructedAmount"].clone()),
    ] {
        let refused = stage.refused(DOMESTIC, &bulk(&order, json!({ name: value })));
        let expected = (400, "FORMAT_ERROR".to_owned(), name.to_owned());
        assert_eq!(refused, expected);
    }
}

//= SBX-17 refused
#[test]
fn a_periodic_payment_has_no_member_of_another_form() {
    let stage = Stage::new();
    let periodic = json!({"frequency": "Monthly", "startDate": "2026-04-01"});
    let periodic = with(&stage.order("1.00"), periodic);
    for (name, value) in [
        ("requestedExecutionDate", json!("2026-03-04")),
        ("monthsOfExecution", json!(["1"])),
    ] {
        let refused = stage.refused(DOMESTIC, &with(&periodic, json!({ name: value })));
        let expected = (400, "FORMAT_ERROR".to_owned(), name.to_owned());
        assert_eq!(refused, expected);
    }
}

//= SBX-7 refused
#[test]
fn a_basket_ignores_no_member() {
    let stage = Stage::new();
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("1.00"));
    let body = json!({"paymentIds": [id(&path)], "consentIds": ["x"]});
    let (status, refused) = stage.send("POST /v1/signing-baskets", &body);
    assert_eq!((status, &refused["code"]), (400, &json!("FORMAT_ERROR")));
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("consentIds: "), "{message}");
}

//= SBX-5 accepted
//= SBX-5 refused
#[test]
fn a_transaction_by_hand_is_of_one_account() {
    let stage = Stage::new();
    let [own, savings] = [stage.account(0), stage.account(1)];
    let line = format!("POST /v1/sandbox/accounts/{}/transactions", own.id);
    let elsewhere = json!({"bban": ELSEWHERE, "iban": "NO9386011117947"});
    let own = json!({"bban": own.bban, "currency": "NOK"});
    let (mine, paid) = ("creditorAccount", "debtorAccount");
    let good = json!({"amount": 100, mine: own, paid: elsewhere});
    assert_eq!(stage.send(&line, &good).0, 201);
    let good = json!({"amount": -100, mine: elsewhere, paid: own});
    assert_eq!(stage.send(&line, &good).0, 201);
    let two = json!({"bban": "86011130005", "iban": "NO9386011117947"});
    let before = stage.booked(&stage.account(0));
    for (amount, name, account) in [
        (100, mine, elsewhere.clone()),
        (-100, paid, elsewhere),
        (100, mine, json!({"bban": theirs(&stage)})),
        (100, mine, json!({"bban": savings.bban})),
        (100, paid, json!({"bban": theirs(&stage)})),
        (100, paid, own.clone()),
        (-100, mine, own.clone()),
        (100, mine, with(&own, json!({"currency": "EUR"}))),
        (100, paid, two),
    ] {
        let body = json!({"amount": amount, name: account});
        let (status, refused) = stage.send(&line, &body);
        assert_eq!(
            (status, &refused["code"]),
            (400, &json!("FORMAT_ERROR")),
            "{body}"
        );
        let message = refused["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{name}: ")), "{message}");
    }
    for (name, value) in [
        ("endToEndId", json!("E-1")),
        ("debtorAccount", json!({"bban": own["bban"], "holder": "A"})),
    ] {
        let body = json!({"amount": -100, name: value});
        let (status, refused) = stage.send(&line, &body);
        let message = refused["message"].as_str().unwrap();
        assert!(status == 400 && message.starts_with(name), "{message}");
    }
    assert_eq!(stage.booked(&stage.account(0)), before);
}

//= SBX-6 refused
//= SBX-7 refused
#[test]
fn another_psu_of_the_tpp_reaches_no_payment_and_no_basket() {
    let stage = Stage::new();
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("1.00"));
    let body = json!({"paymentIds": [id(&path)]});
    let (_, created) = stage.send("POST /v1/signing-baskets", &body);
    let basket = created["_links"]["self"]["href"].as_str().unwrap();
    let other = stage.bank.customer(WITH_AGREEMENT).unwrap();
    let psu = Some(stage.bank.psu_id(TPP, &other).unwrap());
    let status =
        |caller: &Caller, line: &str| ask(&stage.bank, line, caller.clone(), &Value::Null).0;
    let by = |psu, identity: Option<&str>| Caller {
        psu,
        identity: identity.map(str::to_owned),
        ..stage.caller.clone()
    };
    let own = stage.caller.psu;
    let strangers = [
        by(psu, None),
        by(Some(Uuid::new_v4()), None),
        by(None, Some(WITH_AGREEMENT)),
        by(own, Some(WITH_AGREEMENT)),
    ];
    for at in [path.as_str(), basket] {
        let line = format!("POST {at}/authorisations");
        for stranger in &strangers {
            assert_eq!(status(stranger, &line), 404, "{line}");
        }
    }
    stage.sign(&path);
    for at in [path.as_str(), basket] {
        for rest in ["", "/status"] {
            let line = format!("GET {at}{rest}");
            for stranger in &strangers {
                assert_eq!(status(stranger, &line), 404, "{line}");
            }
            // Without a PSU it is the TPP's own.
            for caller in [
                by(own, None),
                by(own, Some(KARI)),
                by(None, Some(KARI)),
                by(None, None),
            ] {
                assert_eq!(status(&caller, &line), 200, "{line}");
            }
        }
    }
}
