//! Amounts in every currency of the interface, and of every size that it allows (SBX-17).

use super::*;
use crate::core::money::{MOST, written};
use crate::core::rates::tests::listed;
use portvakt_interface::operations::Schema;
use portvakt_interface::payload::{Ibans, check};

/// The built-in rates, as they are written.
const RATES: &str = include_str!("../../rates.json");

/// The largest amount in NOK: 18 digits.
const LARGEST: &str = "9999999999999999.99";

/// A transfer abroad from this account and its currency, with all that the interface asks for.
fn abroad(debtor: (&str, &str), amount: &str, currency: &str) -> Value {
    let (bban, own) = debtor;
    json!({
        "instructedAmount": {"amount": amount, "currency": currency},
        "creditorName": "Werkzeugbau Muster GmbH",
        "creditorAccount": {"iban": "DE89370400440532013000", "currency": currency},
        "debtorAccount": {"bban": bban, "currency": own},
        "regulatoryReportingCode": "14",
        "regulatoryReportingInformation": "Machines",
    })
}

/// Whether the gateway lets a transfer abroad through.
fn passes(stage: &Stage, body: &Value) -> bool {
    let (body, today, ibans) = (body.to_string(), stage.bank.today(), Ibans::default());
    let schema = Schema::CrossBorderPayment;
    check(body.as_bytes(), schema, &[], today, &ibans).is_ok()
}

/// Sets a balance by hand. Returns the status.
fn set(stage: &Stage, account: &Account, balance: &str) -> u16 {
    let line = format!("PUT /v1/sandbox/accounts/{}/balances", account.id);
    stage.send(&line, &json!({"balance": balance})).0
}

//= SBX-17 accepted
#[test]
fn a_payment_in_each_currency_is_booked_by_its_rate() {
    let stage = Stage::new();
    let account = stage.account(0);
    assert_eq!(set(&stage, &account, "1000000.00"), 200);
    let file: Value = serde_json::from_str(RATES).unwrap();
    let mut paths = Vec::new();
    let mut left = 100_000_000;
    for currency in listed() {
        let nok = match currency.as_str() {
            "NOK" => "1.000000",
            code => file["currencies"][code]["nok"].as_str().unwrap(),
        };
        let millionths: i64 = nok.replace('.', "").parse().unwrap();
        let digits = stage.bank.rates.digits(&currency).unwrap();
        let hundred = written(100 * 10_i64.pow(digits), digits);
        let body = abroad((&account.bban, "NOK"), &hundred, &currency);
        assert!(passes(&stage, &body), "{body}");
        let (path, created) = stage.initiate(CROSS_BORDER, &body);
        assert_eq!(created["transactionFees"]["currency"], "NOK", "{currency}");
        let payment = stage.bank.payment(id(&path)).unwrap().unwrap();
        let part = &payment.parts[0];
        // A hundred units in øre, and one øre at least.
        let debit = (millionths + 50) / 100;
        assert_eq!(part.debit, debit.max(1), "{currency}");
        left -= part.debit + part.fee;
        stage.sign(&path);
        paths.push(path);
    }
    stage.run();
    assert_eq!(stage.booked(&account), left);
    for path in paths {
        assert_eq!(stage.status(&path), "ACSP");
    }
}

//= SBX-17 accepted
//= SBX-17 refused
#[test]
fn the_largest_amount_of_each_currency_is_taken_and_no_larger_one() {
    let stage = Stage::new();
    for currency in listed() {
        let open = json!({"customerId": stage.psu.id, "currency": currency});
        let (status, account) = stage.send("POST /v1/sandbox/accounts", &open);
        assert_eq!(status, 201, "{account}");
        let own = (account["bban"].as_str().unwrap(), currency.as_str());
        let digits = stage.bank.rates.digits(&currency).unwrap();
        let [largest, larger] =
            [MOST, MOST + 1].map(|amount| abroad(own, &written(amount, digits), &currency));
        assert!(passes(&stage, &largest), "{largest}");
        assert!(!passes(&stage, &larger), "{larger}");
        let (path, _) = stage.initiate(CROSS_BORDER, &largest);
        let payment = stage.bank.payment(id(&path)).unwrap().unwrap();
        assert_eq!(payment.parts[0].debit, MOST, "{currency}");
        let (status, code, at) = stage.refused(CROSS_BORDER, &larger);
        assert_eq!(
            (status, code.as_str(), at.as_str()),
            (400, "FORMAT_ERROR", "instructedAmount.amount"),
            "{currency}"
        );
    }
}

//= SBX-17 accepted
#[test]
fn an_amount_of_eighteen_digits_is_booked_and_shown() {
    let stage = Stage::new();
    let account = stage.account(0);
    assert_eq!(set(&stage, &account, LARGEST), 200);
    let (path, _) = stage.initiate(DOMESTIC, &stage.order(LARGEST));
    stage.sign(&path);
    assert_eq!(stage.status(&path), "ACTC");
    let read = stage.get(&format!("GET {path}"));
    assert_eq!(read["instructedAmount"]["amount"], LARGEST);
    stage.run();
    assert_eq!(
        (stage.status(&path), stage.booked(&account)),
        ("ACSP".into(), 0)
    );

    let amount = json!({"amount": format!("-{LARGEST}"), "currency": "NOK"});
    let line = format!("GET /v1/accounts/{}/transactions", account.id);
    let list = stage.get(&format!("{line}?limit=1"));
    let booked = &list["transactions"]["booked"][0];
    assert_eq!(booked["transactionAmount"], amount);
    let id = booked["transactionId"].as_str().unwrap();
    let body = stage.get(&format!("{line}/{id}"));
    assert_eq!(body["transactionsDetails"]["transactionAmount"], amount);
}

/// §Sandbox transaction: what an int32 leaves out stands beside it.
//= SBX-17 accepted
#[test]
fn a_sandbox_transaction_says_what_its_int32_leaves_out() {
    let stage = Stage::new();
    let account = stage.account(0);
    let path = format!("/v1/sandbox/accounts/{}/transactions", account.id);
    for (text, short, whole) in [
        ("21474836.47", i32::MAX, false),
        ("-21474836.48", i32::MIN, false),
        ("21474836.48", i32::MAX, true),
        ("-21474836.49", i32::MIN, true),
        ("9999999999999.99", i32::MAX, true),
    ] {
        let (status, posted) = stage.send(&format!("POST {path}"), &json!({"amount": text}));
        assert_eq!((status, &posted["amount"]), (201, &json!(short)), "{text}");
        let amount = json!({"amount": text, "currency": "NOK"});
        let expected = whole.then_some(&amount);
        assert_eq!(posted.get("transactionAmount"), expected, "{text}");
        assert_eq!(stage.get(&format!("GET {path}?limit=1"))[0], posted);
    }
    // A number is an int32.
    for number in [2_147_483_648_i64, -2_147_483_649, i64::MAX] {
        let line = format!("POST {path}");
        let status = stage.send(&line, &json!({"amount": number})).0;
        assert_eq!(status, 400, "{number}");
    }
}

//= SBX-17 refused
#[test]
fn a_sum_of_more_digits_is_refused() {
    let stage = Stage::new();
    let [from, to] = [stage.account(0), stage.account(1)];
    // An exchange makes more digits.
    let body = abroad((&from.bban, "NOK"), LARGEST, "EUR");
    let (status, code, at) = stage.refused(CROSS_BORDER, &body);
    assert_eq!(
        (status, code.as_str(), at.as_str()),
        (400, "FORMAT_ERROR", "instructedAmount.amount")
    );

    // By hand: a transaction, a balance that is far from the present one, and a balance with a credit line.
    assert_eq!(set(&stage, &to, LARGEST), 200);
    let line = format!("POST /v1/sandbox/accounts/{}/transactions", to.id);
    for (amount, expected) in [("0.01", 400), ("-0.01", 201), ("0.01", 201)] {
        let status = stage.send(&line, &json!({"amount": amount})).0;
        assert_eq!(status, expected, "{amount}");
    }
    let negative = format!("-{LARGEST}");
    for (balance, expected) in [
        (negative.as_str(), 400),
        ("0.00", 200),
        (negative.as_str(), 200),
        ("0.01", 400),
        ("0.00", 200),
        ("1000.00", 200),
    ] {
        assert_eq!(set(&stage, &from, balance), expected, "{balance}");
    }
    for (line, expected) in [("0.01", 400), ("0.00", 201)] {
        let open = json!({"customerId": stage.psu.id, "balance": LARGEST, "creditLine": line});
        let status = stage.send("POST /v1/sandbox/accounts", &open).0;
        assert_eq!(status, expected, "{line}");
    }
}

//= SBX-17 refused
#[test]
fn a_payment_that_no_balance_can_hold_is_rejected() {
    let stage = Stage::new();
    let [from, to] = [stage.account(0), stage.account(1)];
    let creditor = json!({"creditorAccount": {"bban": to.bban}});
    let inside = |amount: &str| with(&stage.order(amount), creditor.clone());
    let signed = |product: &str, body: &Value| {
        let (path, _) = stage.initiate(product, body);
        stage.sign(&path);
        (stage.status(&path), path)
    };
    // The creditor's account is full.
    assert_eq!(set(&stage, &to, LARGEST), 200);
    for product in [DOMESTIC, INSTANT] {
        let (status, _) = signed(product, &inside("0.01"));
        assert_eq!(status, "RJCT", "{product}");
    }
    // What is on its way to an account needs its room there.
    assert_eq!(set(&stage, &to, "0.00"), 200);
    let (status, path) = signed(DOMESTIC, &inside("1.00"));
    assert_eq!(status, "ACTC");
    assert_eq!(set(&stage, &to, LARGEST), 400);
    assert_eq!(set(&stage, &to, "9999999999999998.99"), 200);
    stage.run();
    assert_eq!(
        (stage.status(&path), stage.booked(&to)),
        ("ACSC".into(), MOST)
    );

    // What waits for funds is at most the largest amount.
    let unfunded = || signed(DOMESTIC, &stage.order(LARGEST)).0;
    assert_eq!([unfunded(), unfunded()], ["ACCP", "RJCT"]);
    let balance = stage.bank.balance(&from.id).unwrap();
    assert_eq!(balance.leaving, MOST);
    stage.get(&format!("GET /v1/accounts/{}/balances", from.id));
    // The batch goes on.
    stage.run();
}

/// Opens an account of this kind in this currency. Returns its id.
fn opened(stage: &Stage, kind: &str, currency: &str) -> String {
    let open = json!({"customerId": stage.psu.id, "accountType": kind, "currency": currency});
    let (status, account) = stage.send("POST /v1/sandbox/accounts", &open);
    assert_eq!(status, 201, "{account}");
    account["id"].as_str().unwrap().to_owned()
}

//= SBX-17 accepted
//= SBX-17 refused
#[test]
fn another_currency_than_the_accounts_is_refused() {
    let stage = Stage::new();
    let [nok, card, eur] = [("CURRENT", "NOK"), ("CARD", "NOK"), ("CURRENT", "EUR")]
        .map(|(kind, currency)| (opened(&stage, kind, currency), currency));
    let post = |id: &str| format!("POST /v1/sandbox/accounts/{id}/transactions");
    let put = |group: &str, id: &str| format!("PUT /v1/sandbox/{group}/{id}/balances");
    for ((id, own), line, member, ok) in [
        (&nok, post(&nok.0), "amount", 201),
        (&card, post(&card.0), "amount", 201),
        (&eur, post(&eur.0), "amount", 201),
        (&nok, put("accounts", &nok.0), "balance", 200),
        (&card, put("card-accounts", &card.0), "balance", 200),
        (&eur, put("accounts", &eur.0), "balance", 200),
    ] {
        let other = if *own == "NOK" { "EUR" } else { "NOK" };
        let beside = |currency: Value| json!({member: "1.00", "currency": currency});
        let inside = |currency: &str| json!({member: {"amount": "1.00", "currency": currency}});
        let within = format!("{member}.currency");
        let before = stage.bank.booked(id).unwrap();
        for (body, path) in [
            (beside(json!(other)), "currency"),
            (beside(json!("kr")), "currency"),
            (beside(json!(7)), "currency"),
            (inside(other), within.as_str()),
        ] {
            let (status, refused) = stage.send(&line, &body);
            assert_eq!(
                (status, &refused["code"]),
                (400, &json!("FORMAT_ERROR")),
                "{line} {body}"
            );
            let message = refused["message"].as_str().unwrap();
            assert!(
                message.starts_with(&format!("{path}: {own}, ")),
                "{message}"
            );
        }
        assert_eq!(stage.bank.booked(id).unwrap(), before);
        for body in [beside(json!(own)), beside(Value::Null), inside(own)] {
            assert_eq!(stage.send(&line, &body).0, ok, "{line} {body}");
        }
    }
    // Also where the account is opened.
    for (currency, expected) in [("EUR", 400), ("NOK", 201)] {
        let balance = json!({"amount": "1.00", "currency": currency});
        let open = json!({"customerId": stage.psu.id, "balance": balance});
        assert_eq!(
            stage.send("POST /v1/sandbox/accounts", &open).0,
            expected,
            "{currency}"
        );
    }
}
