use super::*;
use crate::core::caller::Fixes;

/// The gateway forwards no x-accept-fix to the sandbox's operations.
#[test]
fn amounts_are_strings_without_a_fix() {
    let stage = Stage::new();
    let caller = || Caller {
        fixes: Fixes::default(),
        ..tpp()
    };
    let line = "GET /v1/sandbox/customers";
    let (_, customers) = ask(&stage.bank, line, caller(), &Value::Null);
    assert!(customers[0]["accounts"][0]["balance"]["amount"].is_string());
    let body = json!({"balance": "5.00"});
    let line = format!("PUT /v1/sandbox/accounts/{}/balances", stage.account(0).id);
    let (_, updated) = ask(&stage.bank, &line, caller(), &body);
    assert_eq!(updated["balance"]["amount"], "5.00");
}

/// §Sandbox transaction.
const MEMBERS: [&str; 15] = [
    "id",
    "amount",
    "currency",
    "valueDate",
    "remittanceInformationUnstructured",
    "creditorName",
    "creditorAccount",
    "debtorName",
    "debtorAccount",
    "bankTransactionCode",
    "ultimateDebtor",
    "ultimateCreditor",
    "purposeCode",
    "bookingDate",
    "_links",
];

//= SBX-4 accepted
#[test]
fn the_sandbox_list_has_every_member_and_pages() {
    let stage = Stage::new();
    let path = format!("/v1/sandbox/accounts/{}/transactions", stage.account(0).id);
    let line = format!("GET {path}");
    let all = stage.get(&line);
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 7);
    for one in all {
        for name in MEMBERS {
            assert!(one.get(name).is_some(), "{name}");
        }
        assert!((4..=14).contains(&one["bankTransactionCode"].as_str().unwrap().len()));
        assert!(
            one["creditorAccount"]["iban"].is_string() && one["debtorAccount"]["bban"].is_string()
        );
        assert_eq!(one["_links"]["self"]["href"], path.as_str());
    }
    let count = |query: &str| {
        stage
            .get(&format!("{line}?{query}"))
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(count("limit=2"), 2);
    assert_eq!(count("limit=2&offset=2"), 2);
    assert_eq!(count("limit=2&offset=6"), 1);
    assert_eq!(count("fromDate=2026-03-01&toDate=2026-03-01"), 1);
    assert_eq!(count("toDate=2020-01-01"), 0);
    // A payment that is booked is among them.
    let (payment, _) = stage.initiate(DOMESTIC, &stage.order("12.34"));
    stage.sign(&payment);
    stage.run();
    assert_eq!(stage.get(&line)[0]["amount"], -1_234);
    assert_eq!(stage.ask("GET /v1/sandbox/accounts/x/transactions").0, 404);
}

//= SBX-5 accepted
#[test]
fn accounts_are_opened_and_filled_by_hand() {
    let stage = Stage::new();
    let customers = stage.get("GET /v1/sandbox/customers");
    let customer = customers
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["nationalIdentityNumber"] == KARI);
    let customer = customer.unwrap();
    assert_eq!(
        (
            &customer["context"],
            customer["accounts"].as_array().unwrap().len()
        ),
        (&json!("PRIVATE"), 3)
    );
    let body = json!({"customerId": customer["id"], "accountType": "CARD", "name": "Reisekort", "creditLine": "1000.00"});
    let (status, card) = stage.send("POST /v1/sandbox/accounts", &body);
    assert_eq!(
        (status, &card["accountType"], &card["balance"]["amount"]),
        (201, &json!("CARD"), &json!("0.00"))
    );
    let id = card["id"].as_str().unwrap();
    let line = format!("/v1/sandbox/accounts/{id}/transactions");
    let bought = json!({"amount": -12_345, "creditorName": "Kiosk", "remittanceInformationUnstructured": "Avis"});
    let (status, transaction) = stage.send(&format!("POST {line}"), &bought);
    assert_eq!(
        (status, &transaction["amount"], &transaction["creditorName"]),
        (201, &json!(-12_345), &json!("Kiosk"))
    );
    assert_eq!(stage.get(&format!("GET {line}")), json!([transaction]));

    let update = |path: &str, body: Value| {
        stage.send(&format!("PUT /v1/sandbox/{path}/{id}/balances"), &body)
    };
    assert_eq!(
        update("accounts", json!({"balance": "5.00"})).0,
        404,
        "a card account has its own operation"
    );
    let (status, updated) = update(
        "card-accounts",
        json!({"balance": {"amount": "-5.00", "currency": "NOK"}}),
    );
    assert_eq!(
        (status, &updated["balance"]["amount"]),
        (200, &json!("-5.00"))
    );
    assert_eq!(update("card-accounts", json!({})).0, 400);
    for bad in [
        json!({}),
        json!({"amount": 0}),
        json!({"amount": 2_147_483_648_i64}),
        json!({"amount": "x"}),
    ] {
        assert_eq!(stage.send(&format!("POST {line}"), &bad).0, 400, "{bad}");
    }
}

//= SBX-5 accepted
//= SBX-5 refused
#[test]
fn an_account_brings_its_own_customer_in_any_currency() {
    let stage = Stage::new();
    let body = json!({"customerName": "Per", "currency": "EUR", "balance": "10.50"});
    let (status, account) = stage.send("POST /v1/sandbox/accounts", &body);
    assert_eq!(
        (status, &account["balance"]),
        (201, &json!({"amount": "10.50", "currency": "EUR"}))
    );
    for bad in [
        json!({"accountType": "x"}),
        json!({"currency": "XXX"}),
        json!({"balance": "1"}),
        json!({"kid": "MOD9"}),
    ] {
        assert_eq!(
            stage.send("POST /v1/sandbox/accounts", &bad).0,
            400,
            "{bad}"
        );
    }
    assert_eq!(
        stage
            .send("POST /v1/sandbox/accounts", &json!({"customerId": "x"}))
            .0,
        404
    );
}

//= SBX-1 accepted
#[test]
fn the_initialisation_says_whom_there_is() {
    let stage = Stage::new();
    let body = stage.get("POST /v1/sandbox/initialisation");
    let customers = body["customers"].as_array().unwrap();
    let of = |context: &str| {
        let chosen = customers.iter().filter(|one| one["context"] == context);
        chosen
            .map(|one| one["accounts"].as_array().unwrap().len())
            .collect::<Vec<_>>()
    };
    assert_eq!((of("PRIVATE"), of("CORPORATE")), (vec![3; 3], vec![2; 3]));
    let creditors = body["creditorsWithKid"].as_array().unwrap();
    let moduli: Vec<_> = creditors
        .iter()
        .map(|one| one["kid"].as_str().unwrap())
        .collect();
    assert_eq!(moduli, ["MOD10", "MOD11"]);
    // Kari was made by hand: gone, with her PSU-ID.
    assert_eq!(stage.ask("GET /v1/accounts").0, 401);
}

//= SBX-13 accepted
#[test]
fn a_tpp_registers_its_address() {
    let stage = Stage::new();
    let line = "PUT /v1/tpp/contact";
    assert_eq!(stage.ask("GET /v1/tpp/contact").0, 404);
    for number in ["PSDNO-FSA-1", "NO-FSA-1"] {
        let body = json!({"email": "psd2@tpp.example", "organisationNumber": number});
        assert_eq!(stage.send(line, &body).0, 200, "{number}");
    }
    assert_eq!(
        stage.send(line, &json!({"email": "new@tpp.example"})).0,
        200
    );
    let contact = stage.get("GET /v1/tpp/contact");
    assert_eq!(
        contact,
        json!({"email": "new@tpp.example", "organisationNumber": TPP})
    );
    let other = json!({"email": "psd2@tpp.example", "organisationNumber": "PSDNO-FSA-2"});
    assert_eq!(stage.send(line, &other).0, 403);
    for bad in [
        json!({}),
        json!({"email": "x"}),
        json!({"email": "a@b@c.d"}),
        json!({"email": "a b@c.d"}),
    ] {
        assert_eq!(stage.send(line, &bad).0, 400, "{bad}");
    }
    let mut other = tpp();
    other.tpp = "PSDNO-FSA-2".into();
    assert_eq!(
        ask(&stage.bank, "GET /v1/tpp/contact", other, &Value::Null).0,
        404
    );
}
