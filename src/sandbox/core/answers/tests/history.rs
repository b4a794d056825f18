//! History older than 90 and 180 days: of the bank's own customers, and by hand (SBX-17).

use super::*;
use crate::core::customer::AccountKind;
use crate::core::history::{Page, Transaction};
use jiff::ToSpan;
use jiff::civil::Date;

/// The gateway's limit of a list without a session, in days.
const LIMIT: i64 = 90;

/// The text of an opening balance.
const OPENING: &str = "Åpningssaldo";

/// The bank's day, so many days ago.
fn ago(bank: &Bank, days: i64) -> Date {
    bank.today().saturating_sub(days.days())
}

/// The booking dates of a list.
fn booking_dates(body: &Value) -> Vec<Date> {
    let booked = body["transactions"]["booked"].as_array().unwrap();
    let days = booked
        .iter()
        .map(|one| one["bookingDate"].as_str().unwrap());
    days.map(|day| day.parse().unwrap()).collect()
}

//= SBX-17 accepted
#[test]
fn each_account_of_the_bank_has_a_coherent_history_of_more_than_180_days() {
    let (bank, _) = bank();
    bank.customer(KARI).unwrap();
    let whole = Page {
        from: None,
        to: None,
        offset: 0,
        limit: 1_000,
    };
    let customers = bank.customers().unwrap();
    assert_eq!(customers.len(), 7);
    for customer in customers {
        for account in bank.accounts_of(&customer.id).unwrap() {
            let (newest_first, _) = bank.transactions(&account.id, &whole).unwrap();
            let has = |from: i64, to: i64| {
                let period = ago(&bank, to)..=ago(&bank, from);
                newest_first.iter().any(|one| period.contains(&one.booked))
            };
            let at = format!("{} {}", customer.name, account.name);
            assert!(
                has(0, LIMIT) && has(LIMIT + 1, 180) && has(181, 400),
                "{at}"
            );
            assert!(newest_first.is_sorted_by_key(|one| std::cmp::Reverse(one.booked)));
            // The opening balance comes first, on the first day.
            let is_opening = |one: &Transaction| {
                let text = one.details.get("remittanceInformationUnstructured");
                text.and_then(Value::as_str) == Some(OPENING)
            };
            let opening = newest_first.iter().position(is_opening);
            let expected = (account.kind != AccountKind::Card).then(|| newest_first.len() - 1);
            assert_eq!(opening, expected, "{at}");
            let oldest = newest_first.last().unwrap().booked;
            assert!(ago(&bank, 400) <= oldest, "{at}");
            // No day ends below the credit line, and the last one with the balance.
            let balance = bank.balance(&account.id).unwrap();
            let mut sum = 0;
            for one in newest_first.iter().rev() {
                sum += one.amount;
                assert!(sum >= -balance.credit_line, "{at} on {}", one.booked);
            }
            assert_eq!(sum, balance.booked, "{at}");
        }
    }
}

/// SCA-8: with a session the gateway names no first day; without one it names the day 90 days ago.
//= SBX-17 accepted
#[test]
fn history_of_400_days_needs_a_session() {
    let stage = Stage::new();
    let path = format!("/v1/accounts/{}/transactions", stage.account(0).id);
    let list = |query: &str, history_from: Option<Date>| {
        let caller = Caller {
            history_from,
            ..stage.caller.clone()
        };
        let line = format!("GET {path}{query}");
        let (status, body) = ask(&stage.bank, &line, caller, &Value::Null);
        assert_eq!(status, 200, "{line}: {body}");
        body
    };
    let all = [1, 12, 91, 181, 395, 399, 400].map(|days| ago(&stage.bank, days));
    assert_eq!(booking_dates(&list("", None)), all);

    let without = list("", Some(ago(&stage.bank, LIMIT)));
    assert_eq!(booking_dates(&without), &all[..2]);
    assert_eq!(without["transactions"]["_links"].get("next"), None);
    // One day more shows one transaction more.
    let more = list("", Some(ago(&stage.bank, LIMIT + 1)));
    assert_eq!(booking_dates(&more), &all[..3]);

    // The dates of the query, of which the gateway lets the older ones through with a session only.
    for (from, to, expected) in [
        (400, 0, &all[..]),
        (399, 181, &all[3..6]),
        (400, 400, &all[6..]),
        (394, 182, &all[7..]),
    ] {
        let (from, to) = (ago(&stage.bank, from), ago(&stage.bank, to));
        let query = format!("?dateFrom={from}&dateTo={to}");
        assert_eq!(booking_dates(&list(&query, None)), expected, "{query}");
    }
}

//= SBX-17 accepted
#[test]
fn pages_of_old_history_show_each_once() {
    let stage = Stage::new();
    let path = format!("/v1/accounts/{}/transactions", stage.account(0).id);
    let first = ago(&stage.bank, 400);
    let mut next = Some(format!("{path}?dateFrom={first}&limit=3"));
    let mut days = Vec::new();
    let mut pages = 0;
    while let Some(href) = next {
        assert!(href.contains(&format!("dateFrom={first}")), "{href}");
        let body = stage.get(&format!("GET {href}"));
        days.extend(booking_dates(&body));
        pages += 1;
        let link = &body["transactions"]["_links"]["next"]["href"];
        next = link.as_str().map(str::to_owned);
    }
    assert_eq!((pages, days.len()), (3, 7));
    days.dedup();
    assert_eq!(days.len(), 7);
    assert!(days.is_sorted_by_key(|day| std::cmp::Reverse(*day)));
}

//= SBX-17 accepted
#[test]
fn a_transaction_by_hand_is_booked_on_the_days_that_it_names() {
    let stage = Stage::new();
    let account = stage.account(0);
    let before = stage.booked(&account);
    let day = |days: Option<i64>| json!(days.map(|days| ago(&stage.bank, days).to_string()));
    let post = format!("POST /v1/sandbox/accounts/{}/transactions", account.id);
    let path = format!("/v1/accounts/{}/transactions", account.id);
    let cases = [
        (None, None, [0, 0]),
        (Some(0), None, [0, 0]),
        // Of a value date that is two days ahead.
        (None, Some(-2), [0, -2]),
        (Some(91), None, [91, 91]),
        (Some(181), Some(150), [181, 150]),
        (Some(400), Some(431), [400, 431]),
    ];
    for (booked, valued, expected) in cases {
        let body = json!({"amount": -100, "bookingDate": day(booked), "valueDate": day(valued)});
        let (status, created) = stage.send(&post, &body);
        assert_eq!(status, 201, "{body}: {created}");
        let expected = expected.map(|days| day(Some(days)));
        assert_eq!(
            [&created["bookingDate"], &created["valueDate"]],
            expected.each_ref()
        );
        let id = created["id"].as_str().unwrap();
        let details = stage.get(&format!("GET {path}/{id}"))["transactionsDetails"].clone();
        assert_eq!(
            [&details["bookingDate"], &details["valueDate"]],
            expected.each_ref()
        );
        // The list of that day has it first.
        let [on, _] = expected.map(|day| day.as_str().unwrap().to_owned());
        let list = stage.get(&format!("GET {path}?dateFrom={on}&dateTo={on}"));
        assert_eq!(list["transactions"]["booked"][0]["transactionId"], id);
    }
    // An empty text is an unknown value.
    let unknown = json!({"amount": -100, "bookingDate": "", "valueDate": ""});
    assert_eq!(stage.send(&post, &unknown).1["bookingDate"], day(Some(0)));

    // Whatever its day, a booking is in the balance; the opening balance still comes first.
    let left = before - 700;
    assert_eq!(stage.booked(&account), left);
    let balances = stage.get(&format!("GET /v1/accounts/{}/balances", account.id));
    for balance in balances["balances"].as_array().unwrap() {
        let amount = crate::core::money::written(left, 2);
        assert_eq!(balance["balanceAmount"]["amount"], amount, "{balance}");
    }
    let list = stage.get(&format!("GET {path}"));
    let dates = booking_dates(&list);
    assert!(dates.is_sorted_by_key(|day| std::cmp::Reverse(*day)));
    let last = &list["transactions"]["booked"][dates.len() - 1];
    assert_eq!(last["remittanceInformationUnstructured"], OPENING);
}

//= SBX-17 refused
#[test]
fn a_day_of_another_form_or_out_of_reach_is_refused() {
    let stage = Stage::new();
    let account = stage.account(0);
    let line = format!("/v1/sandbox/accounts/{}/transactions", account.id);
    let before = stage.get(&format!("GET {line}"));
    let day = |days: i64| json!(ago(&stage.bank, days).to_string());
    let refused = |body: Value, member: &str, bounds: [i64; 2]| {
        let (status, answer) = stage.send(&format!("POST {line}"), &body);
        assert_eq!(
            (status, &answer["code"]),
            (400, &json!("FORMAT_ERROR")),
            "{body}"
        );
        let message = answer["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("{member}: ")),
            "{body}: {message}"
        );
        assert_eq!(message.matches("Date: ").count(), 1, "{body}: {message}");
        for bound in bounds.map(|days| ago(&stage.bank, days).to_string()) {
            assert!(message.contains(&bound), "{body}: {message}");
        }
    };
    for bad in [
        json!("2026-3-2"),
        json!("20260302"),
        json!("02.03.2026"),
        json!("2026-03-02T12:00:00"),
        json!(" 2026-03-02"),
        json!("2026-02-30"),
        json!("yesterday"),
        json!(20_260_302),
        json!(["2026-03-02"]),
    ] {
        refused(
            json!({"amount": -100, "bookingDate": bad}),
            "bookingDate",
            [0, 400],
        );
        refused(
            json!({"amount": -100, "valueDate": bad}),
            "valueDate",
            [31, -31],
        );
    }
    for out in [-1, -400, 401, 4_000] {
        refused(
            json!({"amount": -100, "bookingDate": day(out)}),
            "bookingDate",
            [0, 400],
        );
    }
    for (booked, valued) in [(0, 32), (0, -32), (100, 132), (100, 68), (400, 0)] {
        let body = json!({"amount": -100, "bookingDate": day(booked), "valueDate": day(valued)});
        refused(body, "valueDate", [booked + 31, booked - 31]);
    }
    assert_eq!(stage.get(&format!("GET {line}")), before);
}

//= SBX-17 accepted
#[test]
fn an_opening_balance_by_hand_comes_before_what_is_booked_by_hand() {
    let stage = Stage::new();
    let open = json!({"customerId": stage.psu.id, "balance": "10.00"});
    let (_, account) = stage.send("POST /v1/sandbox/accounts", &open);
    assert_eq!(account["balance"]["amount"], "10.00");
    let line = format!(
        "/v1/sandbox/accounts/{}/transactions",
        account["id"].as_str().unwrap()
    );
    let first = ago(&stage.bank, 400).to_string();
    let body = json!({"amount": 100, "bookingDate": first});
    assert_eq!(stage.send(&format!("POST {line}"), &body).0, 201);
    // On the next day too, when a booking of the same day is refused.
    stage.pass_hours(24);
    assert_eq!(stage.send(&format!("POST {line}"), &body).0, 400);
    let all = stage.get(&format!("GET {line}"));
    let amounts = all.as_array().unwrap().iter().map(|one| &one["amount"]);
    assert_eq!(amounts.collect::<Vec<_>>(), [&json!(100), &json!(1_000)]);
}
