use super::*;

#[test]
fn a_payment_needs_somebody_who_pays() {
    let stage = Stage::new();
    let line = format!("POST {DOMESTIC}");
    let body = stage.order("1.00");
    let named = |identity: &str| Caller {
        identity: Some(identity.into()),
        ..tpp()
    };
    let status = |caller| ask(&stage.bank, &line, caller, &body).0;
    assert_eq!(status(tpp()), 401);
    assert_eq!(status(named("1")), 401);
    assert_eq!(status(named(KARI)), 201);
    assert_eq!(status(stage.caller.clone()), 201);
}

#[test]
fn a_payment_from_a_strangers_account_is_refused() {
    let stage = Stage::of(WITH_AGREEMENT, false);
    let stranger = stage.bank.customer(KARI).unwrap();
    let theirs = stage.bank.accounts_of(&stranger.id).unwrap().remove(0).bban;
    let agreement = stage.bank.agreements_of(&stage.psu.id).unwrap().remove(0);
    let corporate = stage
        .bank
        .accounts_of(&agreement.corporation)
        .unwrap()
        .remove(0)
        .bban;
    // Somebody else's, one of another context, a card, and none at all.
    for bban in [theirs, corporate, stage.account(2).bban, ELSEWHERE.into()] {
        let body = with(
            &stage.order("9000000.00"),
            json!({"debtorAccount": {"bban": bban}}),
        );
        let (status, code, at) = stage.refused(DOMESTIC, &body);
        assert_eq!(
            (status, code.as_str(), at.as_str()),
            (404, "RESOURCE_UNKNOWN", "debtorAccount")
        );
    }
    let body = with(
        &stage.order("1.00"),
        json!({"debtorAccount": {"bban": stage.account(0).bban, "currency": "EUR"}}),
    );
    assert_eq!(stage.refused(DOMESTIC, &body).2, "debtorAccount.currency");
}

//= SBX-11 accepted
//= SBX-11 refused
#[test]
fn a_character_that_cannot_be_processed_is_refused() {
    let stage = Stage::new();
    let text = |text: &str| {
        with(
            &stage.order("1.00"),
            json!({"remittanceInformationUnstructured": text}),
        )
    };
    for good in ["Kaffe – takk, Žofie! Áhkku’s “€” …", "a\nb"] {
        stage.initiate(DOMESTIC, &text(good));
    }
    for bad in ["takk 😀", "привет", "支付"] {
        let (status, code, at) = stage.refused(DOMESTIC, &text(bad));
        let expected = (400, "FORMAT_ERROR", "remittanceInformationUnstructured");
        assert_eq!((status, code.as_str(), at.as_str()), expected);
    }
}

//= SBX-12 accepted
//= SBX-12 refused
#[test]
fn references_and_months_are_checked() {
    let stage = Stage::new();
    let creditor = |name: &str| {
        let customers = stage.bank.customers().unwrap();
        let found = customers
            .iter()
            .find(|customer| customer.name == name)
            .unwrap();
        let account = stage.bank.accounts_of(&found.id).unwrap().remove(0);
        json!({"bban": account.bban})
    };
    let (ten, eleven, free) = (
        creditor("Kraftlaget SA"),
        creditor("Bysykkelen AS"),
        json!({"bban": ELSEWHERE}),
    );
    let order = |account: &Value, kid: Value| {
        with(
            &stage.order("1.00"),
            json!({"creditorAccount": account, "remittanceInformationStructured": kid}),
        )
    };
    for (account, kid) in [
        (&ten, json!("79927398713")),
        (
            &ten,
            json!({"reference": "79927398713", "referenceType": "KID"}),
        ),
        (&eleven, json!("123456785")),
        (&free, json!("79927398713")),
        (&free, json!("123456785")),
        (&free, Value::Null),
    ] {
        stage.initiate(DOMESTIC, &order(account, kid));
    }
    for (account, kid, expected) in [
        (&ten, Value::Null, "KID_MISSING"),
        (&eleven, Value::Null, "KID_MISSING"),
        (&ten, json!("79927398714"), "KID_INVALID"),
        (&ten, json!("123456785"), "KID_INVALID"),
        (&eleven, json!("79927398713"), "KID_INVALID"),
        (&free, json!("79927398714"), "KID_INVALID"),
        (&free, json!("x"), "KID_INVALID"),
    ] {
        let (status, code, _) = stage.refused(DOMESTIC, &order(account, kid));
        assert_eq!((status, code.as_str()), (400, expected));
    }
    let monthly = |months: Value| {
        let changes = json!({"frequency": "MonthlyVariable", "startDate": "2026-04-01", "monthsOfExecution": months});
        with(&stage.order("1.00"), changes)
    };
    stage.initiate(DOMESTIC, &monthly(json!(["1", "7", 12])));
    for months in [
        json!(["1", "7", "1"]),
        json!([1, "01"]),
        json!(["13"]),
        json!([]),
        Value::Null,
    ] {
        let (status, code, at) = stage.refused(DOMESTIC, &monthly(months));
        let expected = (400, "FORMAT_ERROR", "monthsOfExecution");
        assert_eq!((status, code.as_str(), at.as_str()), expected);
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let stage = Stage::new();
    let changes = json!({
        "instructedAmount": {"amount": "1.0", "currency": "NOK"},
        "creditorName": "",
        "debtorAccount": {"bban": ELSEWHERE},
        "requestedExecutionDate": "x",
    });
    let line = format!("POST {DOMESTIC}");
    let (_, body) = stage.send(&line, &with(&stage.order("1.00"), changes));
    let messages = body["tppMessages"].as_array().unwrap();
    let paths: Vec<_> = messages
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["debtorAccount", "requestedExecutionDate"]);
    let changes =
        json!({"instructedAmount": {"amount": "1.0", "currency": "NOK"}, "creditorName": ""});
    let (_, body) = stage.send(&line, &with(&stage.order("1.00"), changes));
    assert_eq!(body["tppMessages"].as_array().unwrap().len(), 2);
    for (name, value) in [
        (
            "instructedAmount",
            json!({"amount": "0.00", "currency": "NOK"}),
        ),
        (
            "instructedAmount",
            json!({"amount": "10000000000000000.00", "currency": "NOK"}),
        ),
        (
            "instructedAmount",
            json!({"amount": "1.00", "currency": "XXX"}),
        ),
        (
            "instructedAmount",
            json!({"amount": "1.00", "currency": "EUR"}),
        ),
        ("creditorAccount", json!({"iban": "NO9486011117947"})),
        ("creditorAccount", json!({"iban": "DE89370400440532013000"})),
        ("creditorAccount", json!({"bban": stage.account(0).bban})),
        ("creditorAccount", Value::Null),
    ] {
        let (status, code, at) =
            stage.refused(DOMESTIC, &with(&stage.order("1.00"), json!({name: value})));
        assert_eq!((status, code.as_str()), (400, "FORMAT_ERROR"), "{value}");
        assert!(at.starts_with(name), "{at}");
    }
    assert_eq!(stage.send(&line, &json!([])).0, 400);
}

#[test]
fn a_logical_duplicate_is_refused_where_the_tpp_says_so() {
    let stage = Stage::new();
    let body = stage.order("1.00");
    let line = |query: &str| format!("POST {CROSS_BORDER}{query}");
    let status = |query: &str| stage.send(&line(query), &body).0;
    assert_eq!(status("?allowLogicalDuplicate=false"), 201);
    assert_eq!(status("?allowLogicalDuplicate=false"), 409);
    assert_eq!(
        (status(""), status("?allowLogicalDuplicate=true")),
        (201, 201)
    );
}

//= SBX-17 accepted
//= SBX-17 refused
#[test]
fn whether_duplicates_are_allowed_is_true_or_false_for_every_product() {
    let stage = Stage::new();
    let body = stage.order("1.00");
    for product in [DOMESTIC, INSTANT, CROSS_BORDER] {
        let send = |value: &str| {
            let line = format!("POST {product}?allowLogicalDuplicate={value}");
            stage.send(&line, &body)
        };
        for value in ["perhaps", "TRUE", "1", ""] {
            let (status, refused) = send(value);
            assert_eq!(status, 400, "{value}");
            assert_eq!(refused["code"], "FORMAT_ERROR");
            let text = refused["tppMessages"][0]["text"].as_str().unwrap();
            assert!(text.contains("true or false"), "{text}");
        }
        // Nothing was stored of these.
        assert_eq!(send("false").0, 201);
        assert_eq!((send("false").0, send("true").0), (409, 201));
    }
}

//= SBX-17 accepted
//= SBX-17 refused
#[test]
fn a_periodic_payment_has_days_that_hold() {
    let stage = Stage::new();
    let periodic = |start: &str, end: Value| {
        let changes = json!({"frequency": "Monthly", "startDate": start, "endDate": end});
        with(&stage.order("1.00"), changes)
    };
    for (start, end) in [
        ("2026-03-02", Value::Null),
        ("2026-03-02", json!("2026-03-02")),
        ("2026-04-01", json!("2027-04-01")),
    ] {
        stage.initiate(DOMESTIC, &periodic(start, end));
    }
    // Without a frequency it would be carried out once, and today.
    for (name, value) in [
        ("startDate", json!("2026-04-01")),
        ("endDate", json!("2027-04-01")),
        ("monthsOfExecution", json!(["1"])),
    ] {
        let body = with(&stage.order("1.00"), json!({ name: value }));
        let (status, code, path) = stage.refused(DOMESTIC, &body);
        let expected = (400, "FORMAT_ERROR", "frequency");
        assert_eq!((status, code.as_str(), path.as_str()), expected, "{name}");
    }
    for (start, end, at, advice) in [
        (
            "2020-01-31",
            Value::Null,
            "startDate",
            "2026-03-02 or later",
        ),
        (
            "2026-03-01",
            Value::Null,
            "startDate",
            "2026-03-02 or later",
        ),
        ("20260401", Value::Null, "startDate", "as in 2027-01-31"),
        (
            "2026-04-01",
            json!("2026-03-31"),
            "endDate",
            "2026-04-01 or later",
        ),
        ("2026-04-01", json!("soon"), "endDate", "as in 2027-01-31"),
        (
            "2026-04-01",
            json!(20_270_401),
            "endDate",
            "as in 2027-01-31",
        ),
    ] {
        let body = periodic(start, end);
        let (status, code, path) = stage.refused(DOMESTIC, &body);
        let expected = (400, "FORMAT_ERROR", at);
        assert_eq!((status, code.as_str(), path.as_str()), expected, "{start}");
        let (_, refused) = stage.send(&format!("POST {DOMESTIC}"), &body);
        let messages = refused["tppMessages"].as_array().unwrap();
        assert_eq!(messages.len(), 1);
        let text = messages[0]["text"].as_str().unwrap();
        assert!(text.contains(advice), "{text}");
    }
    // Both at once, and the end that is proposed has not passed either.
    let (_, refused) = stage.send(
        &format!("POST {DOMESTIC}"),
        &periodic("2020-01-31", json!("2019-01-31")),
    );
    let messages = refused["tppMessages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    let text = messages[1]["text"].as_str().unwrap();
    assert!(text.contains("2026-03-02 or later"), "{text}");
}
