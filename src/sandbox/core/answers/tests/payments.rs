use super::*;

//= SBX-6 accepted
#[test]
fn a_domestic_payment_is_followed_to_its_end() {
    let stage = Stage::new();
    let account = stage.account(0);
    let before = stage.booked(&account);
    let (path, created) = stage.initiate(DOMESTIC, &stage.order("249.50"));
    assert_eq!(created["transactionStatus"], "RCVD");
    assert_eq!(created["transactionFeeIndicator"], false);
    assert_eq!(created.get("transactionFees"), None);
    assert!(created["psuMessage"].as_str().unwrap().len() <= 512);
    let links = &created["_links"];
    assert_eq!(links["startAuthorisation"]["verbs"], json!(["POST"]));
    let link = stage.get(&format!("POST {path}/authorisations"));
    assert_eq!(
        link["_links"]["scaRedirect"]["href"],
        "https://b.example/sca?request=t"
    );

    stage.sign(&path);
    // Reading changes no status, and a signed payment is not booked yet.
    for _ in 0..3 {
        assert_eq!(stage.status(&path), "ACTC");
    }
    assert_eq!(stage.booked(&account), before);
    assert_eq!(stage.ask(&format!("POST {path}/authorisations")).0, 409);
    stage.run();
    assert_eq!(stage.status(&path), "ACSP");
    assert_eq!(stage.booked(&account), before - 24_950);
    stage.run();
    assert_eq!(stage.status(&path), "ACSC");
    stage.run();
    assert_eq!(stage.booked(&account), before - 24_950);
    let read = stage.get(&format!("GET {path}"));
    assert_eq!(
        (&read["creditorName"], &read["fundsAvailable"]),
        (&json!("Bakeriet"), &json!(true))
    );
}

//= SBX-2 accepted
#[test]
fn what_is_booked_shows_in_both_accounts() {
    let stage = Stage::new();
    let [from, to] = [stage.account(0), stage.account(1)];
    let (path, _) = stage.initiate(
        DOMESTIC,
        &with(
            &stage.order("10.00"),
            json!({"creditorAccount": {"bban": to.bban}}),
        ),
    );
    stage.sign(&path);
    let first = |account: &Account| {
        let line = format!("GET /v1/accounts/{}/transactions?limit=1", account.id);
        let body = stage.get(&line);
        body["transactions"]["booked"][0]["transactionAmount"]["amount"].clone()
    };
    stage.run();
    assert_eq!(stage.status(&path), "ACSC");
    assert_eq!(
        (first(&from), first(&to)),
        (json!("-10.00"), json!("10.00"))
    );
}

//= SBX-2 accepted
#[test]
fn the_batch_runs_five_times_a_day_and_leaves_periodic_payments_alone() {
    let stage = Stage::new();
    let run = || stage.bank.atomically(Bank::run_if_due).unwrap();
    let changes = json!({"frequency": "Monthly", "startDate": "2026-03-02"});
    let (periodic, _) = stage.initiate(DOMESTIC, &with(&stage.order("1.00"), changes));
    let (single, _) = stage.initiate(DOMESTIC, &stage.order("1.00"));
    stage.sign(&periodic);
    stage.sign(&single);
    // At noon, the first check only plans the run of 13:30.
    assert_eq!(run(), None);
    stage.pass_hours(1);
    assert_eq!(run(), None);
    stage.pass_hours(1);
    assert_eq!(run().unwrap().booked, 1);
    assert_eq!(
        (stage.status(&single), stage.status(&periodic)),
        ("ACSP".into(), "ACTC".into())
    );
    let mut runs = 0;
    for _ in 0..48 {
        stage.pass_hours(1);
        runs += u32::from(run().is_some());
    }
    // 15:30, the five of Tuesday, and those of Wednesday until 13:30.
    assert_eq!(runs, 10);
    assert_eq!(
        (stage.status(&single), stage.status(&periodic)),
        ("ACSC".into(), "ACTC".into())
    );
}

//= SBX-6 accepted
#[test]
fn without_funds_it_waits_and_is_refused_in_the_end() {
    let stage = Stage::new();
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("9000000.00"));
    stage.sign(&path);
    let state = || {
        let state = stage.get(&format!("GET {path}/status"));
        (
            state["transactionStatus"].clone(),
            state["fundsAvailable"].clone(),
        )
    };
    for _ in 0..5 {
        assert_eq!(state(), (json!("ACCP"), json!(false)));
        stage.run();
    }
    assert_eq!(state(), (json!("RJCT"), json!(false)));

    // Money that arrives in time funds the payment.
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("100000.00"));
    stage.sign(&path);
    assert_eq!(stage.status(&path), "ACCP");
    let account = stage.account(0);
    let line = format!("PUT /v1/sandbox/accounts/{}/balances", account.id);
    assert_eq!(stage.send(&line, &json!({"balance": "100000.00"})).0, 200);
    stage.run();
    assert_eq!(stage.status(&path), "ACSP");
    assert_eq!(stage.booked(&account), 0);
}

#[test]
fn an_instant_payment_is_booked_at_once_and_costs_two_kroner() {
    let stage = Stage::new();
    let account = stage.account(0);
    let before = stage.booked(&account);
    let (path, created) = stage.initiate(INSTANT, &stage.order("10.00"));
    assert_eq!(
        created["transactionFees"],
        json!({"amount": "2.00", "currency": "NOK"})
    );
    let information = stage.get(&format!("GET {INSTANT}/fee-information"));
    assert_eq!(information["transactionFees"], created["transactionFees"]);
    assert_eq!(stage.status(&path), "RCVD");
    stage.sign(&path);
    assert_eq!(
        (stage.status(&path), stage.booked(&account)),
        ("ACWP".into(), before - 1_200)
    );
    stage.run();
    assert_eq!(stage.status(&path), "ACSC");
    // Between accounts of the bank, no settlement is needed.
    let own = json!({"creditorAccount": {"bban": stage.account(1).bban}});
    let (path, _) = stage.initiate(INSTANT, &with(&stage.order("10.00"), own));
    stage.sign(&path);
    assert_eq!(stage.status(&path), "ACSC");
    // Without funds, an instant payment cannot wait either.
    let (path, _) = stage.initiate(INSTANT, &stage.order("9000000.00"));
    stage.sign(&path);
    let state = stage.get(&format!("GET {path}/status"));
    assert_eq!(
        (&state["transactionStatus"], &state["fundsAvailable"]),
        (&json!("RJCT"), &json!(false))
    );
}

#[test]
fn an_exchange_is_booked_by_the_rate_and_raises_the_fee() {
    let stage = Stage::new();
    let account = stage.account(0);
    let before = stage.booked(&account);
    let changes = json!({
        "instructedAmount": {"amount": "100.00", "currency": "EUR"},
        "creditorAccount": {"iban": "DE89370400440532013000"},
    });
    let body = with(&stage.order("1.00"), changes);
    let (path, created) = stage.initiate(CROSS_BORDER, &body);
    assert_eq!(created["transactionFeeIndicator"], true);
    // 25 NOK for EUR, and at least 10 NOK for the exchange.
    assert_eq!(
        created["transactionFees"],
        json!({"amount": "35.00", "currency": "NOK"})
    );
    stage.sign(&path);
    stage.run();
    assert_eq!(stage.booked(&account), before - 116_240 - 3_500);
    let line = format!("GET /v1/accounts/{}/transactions?limit=2", account.id);
    let list = stage.get(&line);
    let [fee, payment] = [0, 1].map(|at| list["transactions"]["booked"][at].clone());
    assert_eq!(fee["remittanceInformationUnstructured"], "Gebyr");
    let href = payment["_links"]["transactionDetails"]["href"].as_str();
    let details = stage.get(&format!("GET {}", href.unwrap()));
    let exchange = &details["transactionsDetails"]["currencyExchange"];
    assert_eq!(exchange["exchangeRate"], "11.624000");

    // From 100 000 NOK on, it needs reporting data (PAY-11), and is reviewed until the next run.
    let amount = json!({"instructedAmount": {"amount": "9000.00", "currency": "EUR"}});
    let body = with(&body, amount);
    let (status, code, at) = stage.refused(CROSS_BORDER, &body);
    assert_eq!(
        (status, code.as_str(), at.as_str()),
        (400, "FORMAT_ERROR", "regulatoryReportingCode")
    );
    let reported =
        json!({"regulatoryReportingCode": "14", "regulatoryReportingInformation": "Machines"});
    let (path, _) = stage.initiate(CROSS_BORDER, &with(&body, reported));
    stage.sign(&path);
    assert_eq!(stage.status(&path), "PDNG");
    stage.run();
    assert_eq!(stage.status(&path), "ACTC");
}

#[test]
fn execution_days_are_bank_days() {
    let stage = Stage::new();
    let on = |day: &str| with(&stage.order("1.00"), json!({"requestedExecutionDate": day}));
    for (day, status) in [
        ("2026-03-02", "ACTC"),
        ("2026-03-04", "ACTC"),
        ("2026-03-07", "ACWC"),
    ] {
        let (path, _) = stage.initiate(DOMESTIC, &on(day));
        stage.sign(&path);
        assert_eq!(stage.status(&path), status, "{day}");
        stage.run();
        let booked = day == "2026-03-02";
        assert_eq!(stage.status(&path) == "ACSP", booked, "{day}");
    }
    stage.initiate(DOMESTIC, &on("2027-03-02"));
    let (_, late) = stage.send(&format!("POST {DOMESTIC}"), &on("2027-03-03"));
    let text = "At most a year ahead: 2027-03-02 or earlier.";
    assert_eq!(late["tppMessages"][0]["text"], text);
    for day in ["2026-03-01", "2027-03-03", "tomorrow", "2026-02-30"] {
        let (_, code, at) = stage.refused(DOMESTIC, &on(day));
        assert_eq!(
            (code.as_str(), at.as_str()),
            ("EXECUTION_DATE_INVALID", "requestedExecutionDate")
        );
    }
    let (_, code, _) = stage.refused(INSTANT, &on("2026-03-03"));
    assert_eq!(code, "EXECUTION_DATE_INVALID");
    // After the day's last run, nothing is booked today any more.
    stage.pass_hours(4);
    let (path, _) = stage.initiate(DOMESTIC, &on("2026-03-02"));
    stage.sign(&path);
    assert_eq!(stage.status(&path), "ACWC");
}

#[test]
fn an_unknown_account_of_this_bank_and_an_unsigned_payment_are_refused_in_the_end() {
    let stage = Stage::new();
    let nobody =
        crate::core::money::bban(9_710_099_990).or(crate::core::money::bban(9_710_099_991));
    let changes = json!({"creditorAccount": {"bban": nobody}});
    let (path, _) = stage.initiate(DOMESTIC, &with(&stage.order("1.00"), changes));
    stage.sign(&path);
    stage.run();
    assert_eq!(stage.status(&path), "RJCT");
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("1.00"));
    stage.pass_hours(24 * 9);
    stage.run();
    assert_eq!(stage.status(&path), "RJCT");
}

#[test]
fn a_bulk_is_partly_what_its_parts_are() {
    let stage = Stage::new();
    let nobody =
        crate::core::money::bban(9_710_099_990).or(crate::core::money::bban(9_710_099_991));
    let part = |bban: &str| json!({"instructedAmount": {"amount": "1.00", "currency": "NOK"}, "creditorName": "a", "creditorAccount": {"bban": bban}});
    let bulk = |parts: &[&str]| {
        let parts: Vec<_> = parts.iter().map(|bban| part(bban)).collect();
        json!({"debtorAccount": {"bban": stage.account(0).bban}, "payments": parts})
    };
    let before = stage.booked(&stage.account(0));
    let (path, _) = stage.initiate(DOMESTIC, &bulk(&[ELSEWHERE, &nobody.unwrap(), ELSEWHERE]));
    stage.sign(&path);
    assert_eq!(stage.status(&path), "ACTC");
    stage.run();
    assert_eq!(stage.status(&path), "PART");
    assert_eq!(stage.booked(&stage.account(0)), before - 200);
    let (path, _) = stage.initiate(DOMESTIC, &bulk(&[ELSEWHERE, ELSEWHERE]));
    stage.sign(&path);
    stage.run();
    assert_eq!(stage.status(&path), "ACSP");
    let (_, code, at) = stage.refused(DOMESTIC, &bulk(&[ELSEWHERE, "1"]));
    assert_eq!(
        (code.as_str(), at.as_str()),
        ("FORMAT_ERROR", "payments[1].creditorAccount")
    );
    let (_, code, _) = stage.refused(INSTANT, &bulk(&[ELSEWHERE]));
    assert_eq!(code, "PRODUCT_INVALID");
}

//= SBX-14 accepted
//= SBX-14 refused
#[test]
fn a_domestic_payment_is_not_read_before_it_is_approved_and_keeps_its_id() {
    let stage = Stage::new();
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("1.00"));
    for rest in ["", "/status"] {
        let (status, body) = stage.ask(&format!("GET {path}{rest}"));
        assert_eq!((status, &body["code"]), (404, &json!("RESOURCE_UNKNOWN")));
    }
    let (abroad, _) = stage.initiate(CROSS_BORDER, &stage.order("1.00"));
    assert_eq!(stage.status(&abroad), "RCVD");
    stage.sign(&path);
    assert_eq!(stage.status(&path), "ACTC");
    let cancel = format!("POST /v1/sandbox/payments/{}/cancellation", id(&path));
    assert_eq!(stage.get(&cancel)["transactionStatus"], "CANC");
    assert_eq!(
        (stage.status(&path), stage.ask(&cancel).0),
        ("CANC".into(), 409)
    );
    stage.run();
    assert_eq!(stage.status(&path), "CANC");
    // A booked payment stays booked.
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("1.00"));
    stage.sign(&path);
    stage.run();
    let cancel = format!("POST /v1/sandbox/payments/{}/cancellation", id(&path));
    assert_eq!(
        (stage.ask(&cancel).0, stage.status(&path)),
        (409, "ACSP".into())
    );
    // Another TPP cancels nothing.
    let mut other = stage.caller.clone();
    other.tpp = "PSDNO-FSA-2".into();
    assert_eq!(
        ask(&stage.bank, &cancel, other.clone(), &Value::Null).0,
        404
    );
    assert_eq!(
        ask(
            &stage.bank,
            &format!("GET {path}/status"),
            other,
            &Value::Null
        )
        .0,
        404
    );
}
