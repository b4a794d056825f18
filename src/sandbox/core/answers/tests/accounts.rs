use super::*;
use crate::core::caller::Fixes;
use serde_json::Map;

#[test]
fn account_information_follows_the_consent() {
    let stage = Stage::new();
    let [open, closed] = [stage.account(0).id, stage.account(1).id];
    let chosen = std::collections::BTreeSet::from([open.clone()]);
    let psu = stage.caller.psu.unwrap();
    stage.bank.consent(psu, None, &chosen).unwrap();
    let list = stage.get("GET /v1/accounts");
    assert_eq!(list["accounts"].as_array().unwrap().len(), 1);
    assert_eq!(list["accounts"][0]["resourceId"], open.as_str());
    for rest in ["", "/balances", "/transactions"] {
        let of = |id: &str| stage.ask(&format!("GET /v1/accounts/{id}{rest}")).0;
        assert_eq!((of(&open), of(&closed), of("x")), (200, 404, 404), "{rest}");
    }
    // Another TPP, no PSU-ID, and no consent.
    let mut other = stage.caller.clone();
    other.tpp = "PSDNO-FSA-2".into();
    for caller in [other, tpp()] {
        assert_eq!(
            ask(&stage.bank, "GET /v1/accounts", caller, &Value::Null).0,
            401
        );
    }
    stage.bank.consent(psu, None, &Default::default()).unwrap();
    assert_eq!(stage.ask("GET /v1/accounts").0, 401);
}

#[test]
fn balances_follow_from_bookings_and_what_is_signed() {
    let stage = Stage::of(WITH_AGREEMENT, true);
    let account = stage.account(0);
    let line = format!("GET /v1/accounts/{}/balances", account.id);
    let balances = || {
        let body = stage.get(&line);
        assert_eq!(body["account"]["currency"], "NOK");
        let balances = body["balances"].as_array().unwrap().clone();
        balances.into_iter().map(|balance| {
            let amount = balance["balanceAmount"]["amount"]
                .as_str()
                .unwrap()
                .to_owned();
            (balance["balanceType"].as_str().unwrap().to_owned(), amount)
        })
    };
    let booked = stage.booked(&account);
    let text = |amount: i64| crate::core::money::written(amount, 2);
    let expect = |available: i64, booked: i64, expected: i64| {
        let names = ["interimAvailable", "interimBooked", "expected"].map(str::to_owned);
        let sums = [available, booked, expected].map(text);
        assert!(balances().eq(names.into_iter().zip(sums)));
    };
    // With a credit line of 200 000.
    expect(booked + 20_000_000, booked, booked);
    let (path, _) = stage.initiate(DOMESTIC, &stage.order("100.00"));
    expect(booked + 20_000_000, booked, booked);
    stage.sign(&path);
    expect(booked + 20_000_000 - 10_000, booked, booked - 10_000);
    stage.run();
    expect(
        booked + 20_000_000 - 10_000,
        booked - 10_000,
        booked - 10_000,
    );
}

//= SBX-10 accepted
#[test]
fn the_transaction_list_has_pages_of_200() {
    let stage = Stage::new();
    let account = stage.account(0);
    for _ in 0..401 {
        stage
            .bank
            .adjust(&account.id, "NOK", 100, Map::new())
            .unwrap();
    }
    let path = format!("/v1/accounts/{}/transactions", account.id);
    let mut line = format!("GET {path}");
    let mut ids = std::collections::BTreeSet::new();
    let mut sizes = Vec::new();
    loop {
        let body = stage.get(&line);
        let booked = body["transactions"]["booked"].as_array().unwrap();
        sizes.push(booked.len());
        ids.extend(
            booked
                .iter()
                .map(|one| one["transactionId"].as_str().unwrap().to_owned()),
        );
        let links = &body["transactions"]["_links"];
        assert_eq!(links.get("previous").is_some(), sizes.len() > 1);
        let Some(next) = links["next"]["href"].as_str() else {
            break;
        };
        assert!(next.ends_with("&limit=200"), "{next}");
        line = format!("GET {next}");
    }
    // Six entries of the history and the opening balance are among them.
    assert_eq!((sizes, ids.len()), (vec![200, 200, 8], 408));
    let body = stage.get(&format!("GET {path}?offset=1&limit=2"));
    assert_eq!(body["transactions"]["booked"].as_array().unwrap().len(), 2);
}

/// A bank with four signed payments to the PSU's card account: 4.00 on 10 March, and 1.00, 2.00 and 3.00 today.
fn with_pending() -> Stage {
    let stage = Stage::new();
    let card = stage.account(2).bban;
    for (amount, day) in [
        ("4.00", "2026-03-10"),
        ("1.00", "2026-03-02"),
        ("2.00", "2026-03-02"),
        ("3.00", "2026-03-02"),
    ] {
        let changes = json!({"creditorAccount": {"bban": card}, "requestedExecutionDate": day});
        let (path, _) = stage.initiate(DOMESTIC, &with(&stage.order(amount), changes));
        stage.sign(&path);
    }
    stage
}

/// How many booked and how many pending transactions of an account a query shows.
fn count(stage: &Stage, at: usize, query: &str) -> [Option<usize>; 2] {
    let path = format!("/v1/accounts/{}/transactions", stage.account(at).id);
    let body = stage.get(&format!("GET {path}?{query}"));
    ["booked", "pending"].map(|group| body["transactions"][group].as_array().map(Vec::len))
}

//= SBX-10 accepted
#[test]
fn pending_ones_obey_dates_and_limit() {
    let stage = with_pending();
    assert_eq!(count(&stage, 0, ""), [Some(7), None]);
    assert_eq!(count(&stage, 0, "bookingStatus=booked"), [Some(7), None]);
    for (query, expected) in [
        ("", 4),
        ("&limit=1", 1),
        ("&limit=3&offset=2", 2),
        ("&offset=4", 0),
        ("&dateFrom=2026-03-03", 1),
        ("&dateTo=2026-03-02", 3),
        ("&dateFrom=2026-03-02&dateTo=2026-03-02&limit=2", 2),
        ("&dateFrom=2020-01-01&dateTo=2020-01-02", 0),
    ] {
        let query = format!("bookingStatus=pending{query}");
        for at in [0, 2] {
            assert_eq!(count(&stage, at, &query), [None, Some(expected)], "{query}");
        }
    }
    for status in ["both", "all"] {
        let query = format!("bookingStatus={status}&dateFrom=2020-01-01&dateTo=2020-01-02&limit=1");
        assert_eq!(count(&stage, 0, &query), [Some(0), Some(0)]);
        let query = format!("bookingStatus={status}&dateFrom=2026-03-01&limit=1");
        assert_eq!(count(&stage, 0, &query), [Some(1), Some(1)]);
    }
    let path = format!("/v1/accounts/{}/transactions", stage.account(0).id);
    let body = stage.get(&format!("GET {path}?bookingStatus=pending"));
    let first = &body["transactions"]["pending"][0];
    assert_eq!(first["transactionAmount"]["amount"], "-3.00");
    assert_eq!(first.get("transactionId"), None);

    // Gateway-History-From limits a list without dateFrom.
    let mut caller = stage.caller.clone();
    caller.history_from = "2026-03-01".parse().ok();
    let (_, body) = ask(&stage.bank, &format!("GET {path}"), caller, &Value::Null);
    assert_eq!(body["transactions"]["booked"].as_array().unwrap().len(), 1);
}

//= SBX-10 accepted
#[test]
fn pages_of_booked_and_pending_ones_show_each_once() {
    let stage = with_pending();
    let path = format!("/v1/accounts/{}/transactions", stage.account(0).id);
    let mut next = Some(format!("{path}?bookingStatus=both&limit=3"));
    let mut amounts = Vec::new();
    let mut sizes = Vec::new();
    while let Some(href) = next {
        let body = stage.get(&format!("GET {href}"));
        let page = &body["transactions"];
        let groups = ["booked", "pending"].map(|group| page[group].as_array().unwrap().clone());
        sizes.push(groups.each_ref().map(Vec::len));
        let shown = groups.into_iter().flatten();
        amounts.extend(shown.map(|one| one["transactionAmount"]["amount"].to_string()));
        next = page["_links"]["next"]["href"].as_str().map(str::to_owned);
    }
    assert_eq!(sizes, [[3, 3], [3, 1], [1, 0]]);
    amounts.sort_unstable();
    amounts.dedup();
    assert_eq!(amounts.len(), 11);
}

//= SBX-10 accepted
#[test]
fn the_known_issue_is_shown_where_it_is_switched_on() {
    let mut stage = with_pending();
    stage.bank.has_known_issue = true;
    let query = "bookingStatus=pending&limit=1";
    assert_eq!(count(&stage, 0, query), [None, Some(4)]);
    // Card accounts are without it.
    assert_eq!(count(&stage, 2, query), [None, Some(1)]);
    for status in ["both", "all"] {
        let query = format!("bookingStatus={status}&dateFrom=2020-01-01&dateTo=2020-01-02&limit=1");
        assert_eq!(count(&stage, 0, &query), [Some(0), Some(4)]);
        assert_eq!(count(&stage, 2, &query), [Some(0), Some(0)]);
        let query = format!("bookingStatus={status}&dateFrom=2026-03-01&limit=1");
        assert_eq!(count(&stage, 0, &query), [Some(1), Some(4)]);
    }
}

//= SBX-8 accepted
//= SBX-8 refused
//= SBX-17 accepted
#[test]
fn transaction_details_have_every_member() {
    let stage = Stage::of(WITH_AGREEMENT, true);
    let path = format!("/v1/accounts/{}/transactions", stage.account(0).id);
    let list = stage.get(&format!("GET {path}"));
    let booked = list["transactions"]["booked"].as_array().unwrap();
    let invoice = booked
        .iter()
        .find(|one| one["debtorName"] == "Werkzeugbau Muster GmbH");
    let id = invoice.unwrap()["transactionId"].as_str().unwrap();
    let body = stage.get(&format!("GET {path}/{id}"));
    let details = body["transactionsDetails"].as_object().unwrap();
    let mut names: Vec<_> = details.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "_links",
            "additionalInformationProprietary1",
            "bankTransactionCode",
            "bookingDate",
            "creditorAccount",
            "creditorAgent",
            "creditorId",
            "creditorName",
            "currencyExchange",
            "debtorAccount",
            "debtorAgent",
            "debtorName",
            "endToEndId",
            "proprietaryBankTransactionCode",
            "purposeCode",
            "remittanceInformationStructuredArray",
            "remittanceInformationUnstructured",
            "remittanceInformationUnstructuredArray",
            "transactionAmount",
            "transactionId",
            "ultimateCreditor",
            "ultimateDebtor",
            "valueDate"
        ]
    );
    for line in [
        format!("GET {path}/x"),
        format!("GET /v1/accounts/x/transactions/{id}"),
        // A transaction of another account of the same PSU.
        format!("GET /v1/accounts/{}/transactions/{id}", stage.account(1).id),
    ] {
        let (status, body) = stage.ask(&line);
        assert_eq!(
            (status, &body["code"]),
            (404, &json!("RESOURCE_UNKNOWN")),
            "{line}"
        );
    }
}

//= SBX-14 accepted
#[test]
fn fixes_have_their_documented_effect() {
    let stage = Stage::new();
    let with = |list: &str, line: &str| {
        let mut caller = stage.caller.clone();
        caller.fixes = Fixes::named(list);
        ask(&stage.bank, line, caller, &Value::Null).1
    };
    let all = "amount-as-string, cardaccount-switch-originalamount-and-transactionamount,longer-names,cash-account-type-iso";
    let card = stage.account(2);
    let list = |fixes: &str| with(fixes, "GET /v1/accounts")["accounts"].clone();
    let name = |fixes: &str| list(fixes)[2]["name"].as_str().unwrap().chars().count();
    assert_eq!((name(""), name("longer-names")), (35, 50));
    assert_eq!(list("")[0]["cashAccountType"], "CURRENT");
    assert_eq!(list(all)[0]["cashAccountType"], "CACC");

    let line = format!("GET /v1/accounts/{}/transactions", card.id);
    let amounts = |fixes: &str| {
        let one = with(fixes, &line)["transactions"]["booked"][0].clone();
        [
            one["transactionAmount"].clone(),
            one["originalAmount"].clone(),
        ]
    };
    let nok = json!({"amount": "-348.72", "currency": "NOK"});
    let eur = json!({"amount": "30.00", "currency": "EUR"});
    assert_eq!(amounts(all), [nok.clone(), eur.clone()]);
    assert_eq!(amounts("amount-as-string"), [eur, nok]);
    assert_eq!(amounts("")[1]["amount"], json!(-348.72));
}

#[test]
fn agreements_are_the_psus() {
    let stage = Stage::of(WITH_AGREEMENT, false);
    let body = stage.get("GET /v1/agreements");
    assert_eq!(body["agreements"][0]["name"], "Fisk og Redskap AS");
    assert_eq!(
        Stage::new().get("GET /v1/agreements"),
        json!({"agreements": []})
    );
    assert_eq!(
        ask(&stage.bank, "GET /v1/agreements", tpp(), &Value::Null).0,
        401
    );
}

//= SBX-8 accepted
//= SBX-8 refused
#[test]
fn a_representative_reads_and_pays_from_granted_accounts_alone() {
    let stage = Stage::of("20000000029", true);
    let agreements = stage.bank.agreements_of(&stage.psu.id).unwrap();
    let company = agreements
        .iter()
        .find(|one| one.name == "Fisk og Redskap AS")
        .unwrap();
    let [granted, withheld] = stage
        .bank
        .accounts_of(&company.corporation)
        .unwrap()
        .try_into()
        .unwrap();
    // Consent to both, as an older ledger may have it.
    let (psu, id) = (stage.caller.psu.unwrap(), Some(company.id));
    let both = [granted.id.clone(), withheld.id.clone()].into();
    stage.bank.consent(psu, id, &both).unwrap();
    let caller = Caller {
        agreement: id,
        ..stage.caller.clone()
    };
    let send = |line: &str, body: &Value| ask(&stage.bank, line, caller.clone(), body);
    let (_, body) = send("GET /v1/accounts", &Value::Null);
    let listed = body["accounts"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["resourceId"], granted.id);
    for (account, read, paid) in [(&granted, 200, 201), (&withheld, 404, 404)] {
        let line = format!("GET /v1/accounts/{}/balances", account.id);
        assert_eq!(send(&line, &Value::Null).0, read, "{}", account.name);
        let debtor = json!({"bban": account.bban, "currency": account.currency});
        let order = with(&stage.order("1.00"), json!({"debtorAccount": debtor}));
        let (status, body) = send(&format!("POST {DOMESTIC}"), &order);
        assert_eq!(status, paid, "{}: {body}", account.name);
    }
}
