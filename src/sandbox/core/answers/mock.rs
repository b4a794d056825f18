//! The mock data of one account: its transactions, and its balance (SBX-4, SBX-5, SBX-17).
//!
//! Invariant: amounts are strings, as the interface describes them, except the int32 of a sandbox transaction. A currency that is not the
//! account's is refused, except in originalAmount. Deliberately not here: the forms of the other members (details.rs).

use super::super::answer::{Answer, Asked, Ids, Stop, refused};
use super::super::bank::Bank;
use super::super::body::no_such_member;
use super::super::customer::{Account, AccountKind};
use super::super::details::{ByHand, by_hand, is_by_hand};
use super::super::history::{Page, Transaction};
use super::super::ledger::{Own, Posting, from_own};
use super::super::money::{MOST, bban_of, iban};
use super::{amount, link, unknown};
use serde_json::{Map, Value, json};

/// §D: every transaction of an account.
pub(in super::super) fn transactions(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let account = mock(ids, bank, |_| true)?;
    let page = Page {
        from: asked.parsed("fromDate"),
        to: asked.parsed("toDate"),
        offset: asked.parsed("offset").unwrap_or(0),
        limit: asked.parsed("limit").unwrap_or(i64::MAX - 1),
    };
    let (found, _) = bank.transactions(&account.id, &page)?;
    let shown = found
        .into_iter()
        .map(|one| mock_transaction(bank, &account, one));
    Ok((200, shown.collect()))
}

/// Adds a transaction by hand, on the days that it names (SBX-17). A member that breaks the table of transaction details is refused
/// (SBX-8).
pub(in super::super) fn add_transaction(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let account = mock(ids, bank, |_| true)?;
    let body = asked.members(is_by_hand)?;
    check_amounts(&body, &["amount"], &account.currency)?;
    let sum = body
        .get("amount")
        .and_then(|written| read_amount(bank, written, &account.currency));
    let sum = sum.filter(|sum| *sum != 0).ok_or_else(|| {
        format_error("amount: minor units as an int32, or a decimal as a string; not 0.")
    })?;
    if !bank.balance(&account.id)?.has_room_for(sum) {
        return Err(format_error(&format!("amount: {TOGETHER}")));
    }
    let ByHand {
        booked,
        valued,
        mut details,
    } = by_hand(&body, bank.today()).map_err(|faults| format_error(&faults.join(" ")))?;
    if let Some(original) = body.get(ORIGINAL).filter(|value| !value.is_null()) {
        if !is_amount(bank, original) {
            let text =
                "an amount and its currency, as in {\"amount\": \"30.00\", \"currency\": \"EUR\"}.";
            return Err(format_error(&format!("{ORIGINAL}: {text}")));
        }
        details.insert(ORIGINAL.to_owned(), original.clone());
    }
    check_sides(&details, &account, sum > 0, bank)?;
    let posting = bank.book(&Posting {
        booked,
        valued,
        details,
        bookings: from_own(Own::Simulation, &account.currency, &account.id, sum),
    })?;
    let found = bank.transaction_of(&account.id, posting)?;
    let found = found.ok_or_else(|| unknown("There is no such transaction."))?;
    Ok((201, mock_transaction(bank, &account, found)))
}

/// §Versioning 1.17.1: sets an account's balance, by booking the difference.
pub(in super::super) fn set_balance(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let account = mock(ids, bank, |kind| kind != AccountKind::Card)?;
    update(asked, &account, bank)
}

/// As [`set_balance`], for a card account.
pub(in super::super) fn set_card_balance(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let account = mock(ids, bank, |kind| kind == AccountKind::Card)?;
    update(asked, &account, bank)
}

/// The amount of a card transaction in the currency of the purchase.
const ORIGINAL: &str = "originalAmount";

/// The form of what an account keeps together.
pub(super) const TOGETHER: &str =
    "at most 18 digits, together with the balance, what is signed, and the credit line.";

fn update(asked: &Asked<'_>, account: &Account, bank: &Bank) -> Result<Answer, Stop> {
    let body = asked.members(|name| matches!(name, "balance" | "amount" | "currency"))?;
    if body.contains_key("balance") && body.contains_key("amount") {
        let text =
            "amount: another name of balance, of which the body has one already: leave this out.";
        return Err(format_error(text));
    }
    check_amounts(&body, &["balance", "amount"], &account.currency)?;
    let written = body.get("balance").or_else(|| body.get("amount"));
    let wanted = written.and_then(|written| read_amount(bank, written, &account.currency));
    let wanted =
        wanted.ok_or_else(|| format_error("balance: a decimal of the currency, as a string."))?;
    let balance = bank.balance(&account.id)?;
    let change = wanted.saturating_sub(balance.booked);
    if change.saturating_abs() > MOST {
        return Err(format_error(
            "balance: the change is more than the bank books at once.",
        ));
    }
    if !balance.has_room_for(change) {
        return Err(format_error(&format!("balance: {TOGETHER}")));
    }
    if change != 0 {
        let details = Map::from_iter([(
            "remittanceInformationUnstructured".to_owned(),
            json!("Saldojustering"),
        )]);
        bank.adjust(&account.id, &account.currency, change, details)?;
    }
    Ok((200, mock_account(bank, account)?))
}

/// The account's own side is the account, and the other side is an account elsewhere: nothing is booked there.
fn check_sides(
    details: &Map<String, Value>,
    account: &Account,
    is_received: bool,
    bank: &Bank,
) -> Result<(), Stop> {
    let sides = [
        ("creditorAccount", is_received),
        ("debtorAccount", !is_received),
    ];
    for (name, is_own) in sides {
        let Some(given) = details.get(name) else {
            continue;
        };
        let text = |kind: &str| given.get(kind).and_then(Value::as_str);
        let (number, beside) = (text("iban"), text("bban"));
        // ISO 13616: an IBAN ends with the number of its country.
        if let (Some(iban), Some(bban)) = (number, beside)
            && iban.get(4..) != Some(bban)
        {
            let text = format!("{name}: iban and bban are two accounts, name one.");
            return Err(format_error(&text));
        }
        let bban = number
            .and_then(bban_of)
            .or(beside)
            .or(number)
            .unwrap_or_default();
        let text = if !is_own && bank.account_of_number(bban)?.is_some() {
            "an account of another bank: between accounts of this bank, make a payment."
        } else if is_own && bban != account.bban {
            "the account of the path, or nothing: an amount above 0 is received by it, and one below 0 paid from it."
        } else if is_own && text("currency").is_some_and(|code| code != account.currency) {
            "the currency of the account of the path, or none."
        } else {
            continue;
        };
        return Err(format_error(&format!("{name}: {text}")));
    }
    Ok(())
}

fn mock(ids: &Ids, bank: &Bank, is_kind: impl Fn(AccountKind) -> bool) -> Result<Account, Stop> {
    let id = ids.first().map(String::as_str).unwrap_or_default();
    let found = bank.account(id)?.filter(|account| is_kind(account.kind));
    found.ok_or_else(|| unknown("There is no such account."))
}

/// An account, as the sandbox's operations show it.
pub(super) fn mock_account(bank: &Bank, account: &Account) -> Result<Value, Stop> {
    let balance = bank.balance(&account.id)?;
    Ok(json!({
        "id": account.id,
        "accountType": account.kind.name(),
        "name": account.name,
        "bban": account.bban,
        "iban": iban(&account.bban),
        "currency": account.currency,
        "balance": amount(bank, balance.booked, &account.currency),
        "creditLine": amount(bank, balance.credit_line, &account.currency),
    }))
}

/// §Sandbox transaction: all members are required. An int32 has no fraction, so its amount is in minor units; unknown values are
/// empty, and the account's own side is the account. An amount beyond an int32 is the int32 nearest to it, and transactionAmount, which
/// no other sandbox transaction has, is all of it, as in the details (SBX-17).
fn mock_transaction(bank: &Bank, account: &Account, transaction: Transaction) -> Value {
    let Transaction {
        id,
        details,
        amount: sum,
        ..
    } = transaction;
    let nearest = if sum < 0 { i32::MIN } else { i32::MAX };
    let short = i32::try_from(sum);
    let text = |name: &str| {
        details
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let side = |name: &str, is_own: bool| {
        let number = |kind: &str| details.get(name)?.get(kind)?.as_str();
        let own = |number: String| if is_own { number } else { String::new() };
        json!({
            "iban": number("iban").map_or_else(|| own(iban(&account.bban)), str::to_owned),
            "bban": number("bban").map_or_else(|| own(account.bban.clone()), str::to_owned),
        })
    };
    let code = match text("bankTransactionCode") {
        "" => "PMNT",
        code => code,
    };
    let href = format!("/v1/sandbox/accounts/{}/transactions", account.id);
    let mut shown = json!({
        "id": id,
        "amount": short.unwrap_or(nearest),
        "currency": account.currency,
        "valueDate": transaction.valued.to_string(),
        "remittanceInformationUnstructured": text("remittanceInformationUnstructured"),
        "creditorName": text("creditorName"),
        "creditorAccount": side("creditorAccount", sum > 0),
        "debtorName": text("debtorName"),
        "debtorAccount": side("debtorAccount", sum < 0),
        "bankTransactionCode": code,
        "ultimateDebtor": text("ultimateDebtor"),
        "ultimateCreditor": text("ultimateCreditor"),
        "purposeCode": text("purposeCode"),
        "bookingDate": transaction.booked.to_string(),
        "_links": {"self": link(&href, "GET")},
    });
    if let Some(shown) = shown.as_object_mut()
        && short.is_err()
    {
        let whole = amount(bank, sum, &account.currency);
        shown.insert("transactionAmount".into(), whole);
    }
    shown
}

/// Refuses a currency that is not the account's, beside the amounts or in an amount object with one of these names (SBX-17), and any
/// further member of such an object.
pub(super) fn check_amounts(
    body: &Map<String, Value>,
    amounts: &[&str],
    currency: &str,
) -> Result<(), Stop> {
    for name in amounts {
        let object = body.get(*name).and_then(Value::as_object);
        let mut members = object.into_iter().flat_map(Map::keys);
        if let Some(other) = members.find(|other| !["amount", "currency"].contains(&other.as_str()))
        {
            return Err(no_such_member(name, other));
        }
    }
    let beside = body
        .get("currency")
        .map(|given| ("currency".to_owned(), given));
    let inside = amounts.iter().filter_map(|name| {
        let given = body.get(*name)?.get("currency")?;
        Some((format!("{name}.currency"), given))
    });
    for (path, given) in beside.into_iter().chain(inside) {
        // Null and an empty text are unknown values, as in the other members.
        let is_own = given.is_null()
            || matches!(given.as_str(), Some(code) if code.is_empty() || code == currency);
        if !is_own {
            return Err(format_error(&format!(
                "{path}: {currency}, which is the currency of the account."
            )));
        }
    }
    Ok(())
}

/// Minor units as an int32, a decimal as text, or an amount object.
pub(super) fn read_amount(bank: &Bank, written: &Value, currency: &str) -> Option<i64> {
    match written {
        Value::Number(number) => i32::try_from(number.as_i64()?).ok().map(i64::from),
        Value::String(text) => bank.rates.read(text, currency),
        Value::Object(object) => bank.rates.read(object.get("amount")?.as_str()?, currency),
        _ => None,
    }
}

/// Whether this is an amount object: a decimal of a currency that the bank has a rate for.
fn is_amount(bank: &Bank, written: &Value) -> bool {
    let currency = written.get("currency").and_then(Value::as_str);
    let amount = currency.and_then(|currency| read_amount(bank, written, currency));
    amount.is_some()
        && written
            .as_object()
            .is_some_and(|members| members.len() == 2)
}

/// 400 FORMAT_ERROR, with the member and its form.
pub(super) fn format_error(text: &str) -> Stop {
    refused(400, "FORMAT_ERROR", text)
}
