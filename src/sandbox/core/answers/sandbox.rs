//! The sandbox's own operations: mock data, the batch, and the bank's own channel (SBX-1, SBX-2, SBX-4, SBX-5).
//!
//! Invariant: amounts are strings, as the interface describes them, except the int32 of a sandbox transaction. No x-accept-fix reaches
//! these operations (HDR-3), so no fix changes their answers.

use super::super::answer::{Answer, Asked, Ids, Stop, refused};
use super::super::bank::Bank;
use super::super::customer::{Account, AccountKind, Customer, NewAccount};
use super::super::details::{by_hand, text_fault};
use super::super::history::{Page, Transaction};
use super::super::kid::Modulus;
use super::super::money::{MOST, NOK, iban};
use super::{amount, link, reference, unknown};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// SBX-1: resets the bank to its initial state. The answer lists the customers, and the accounts that require a KID.
pub(in super::super) fn initialise(_: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    bank.initialise()?;
    let customers = all_customers(bank)?;
    let mut creditors = Vec::new();
    for customer in bank.customers()? {
        for account in bank.accounts_of(&customer.id)? {
            if let Some(modulus) = account.kid {
                let example = format!("1234567{}", modulus.check("1234567"));
                creditors.push(json!({
                    "name": customer.name, "account": reference(&account), "kid": modulus.name(), "example": example}));
            }
        }
    }
    let body = json!({"customers": customers, "creditorsWithKid": creditors});
    Ok((200, body))
}

/// Lists the customers.
pub(in super::super) fn customers(_: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    Ok((200, Value::Array(all_customers(bank)?)))
}

/// Opens an account for a customer, or for a new one.
pub(in super::super) fn open_account(
    asked: &Asked<'_>,
    _: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let body = asked.object()?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let customer = match text("customerId") {
        Some(id) => bank.customer_where("id = ?1", id)?,
        None => Some(new_customer(
            bank,
            given_name(&body, "customerName", "Testkunde")?,
        )?),
    };
    let customer = customer.ok_or_else(|| unknown("There is no such customer."))?;
    let kind = AccountKind::named(text("accountType").unwrap_or("CURRENT"));
    let kind = kind.ok_or_else(|| format_error("accountType: CURRENT, SAVINGS or CARD."))?;
    let currency = text("currency").unwrap_or(NOK);
    if bank.rates.digits(currency).is_none() {
        return Err(format_error("currency: one that the bank has a rate for."));
    }
    let sum = |name: &str| match body.get(name) {
        None => Ok(0),
        Some(written) => read_amount(bank, written, currency).ok_or_else(|| {
            format_error("balance, creditLine: decimals of the currency, as strings.")
        }),
    };
    let kid = text("kid")
        .map(|name| Modulus::named(name).ok_or_else(|| format_error("kid: MOD10 or MOD11.")));
    let new = NewAccount {
        kind,
        name: given_name(&body, "name", "Konto")?,
        currency,
        credit_line: sum("creditLine")?.max(0),
        kid: kid.transpose()?,
        opening: sum("balance")?,
        ..NewAccount::default()
    };
    if new.opening.saturating_add(new.credit_line) > MOST {
        return Err(format_error(&format!("balance, creditLine: {TOGETHER}")));
    }
    let id = bank.open_account(&customer.id, &new)?;
    let account = bank
        .account(&id)?
        .ok_or_else(|| unknown("There is no such account."))?;
    let mut shown = mock_account(bank, &account)?;
    if let Some(shown) = shown.as_object_mut() {
        shown.insert("customerId".into(), json!(customer.id));
    }
    Ok((201, shown))
}

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

/// Adds a transaction by hand. A member that breaks the table of transaction details is refused (SBX-8).
pub(in super::super) fn add_transaction(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let account = mock(ids, bank, |_| true)?;
    let body = asked.object()?;
    let sum = body
        .get("amount")
        .and_then(|written| read_amount(bank, written, &account.currency));
    let sum = sum.filter(|sum| *sum != 0).ok_or_else(|| {
        format_error("amount: minor units as an int32, or a decimal as a string; not 0.")
    })?;
    if !bank.balance(&account.id)?.has_room_for(sum) {
        return Err(format_error(&format!("amount: {TOGETHER}")));
    }
    let mut details = by_hand(&body).map_err(|faults| format_error(&faults.join(" ")))?;
    if let Some(original) = body.get(ORIGINAL).filter(|value| !value.is_null()) {
        if !is_amount(bank, original) {
            let text =
                "an amount and its currency, as in {\"amount\": \"30.00\", \"currency\": \"EUR\"}.";
            return Err(format_error(&format!("{ORIGINAL}: {text}")));
        }
        details.insert(ORIGINAL.to_owned(), original.clone());
    }
    let posting = bank.adjust(&account.id, &account.currency, sum, details)?;
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

/// SBX-2: the batch, on demand.
pub(in super::super) fn run_batch(_: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let ran = bank.run_now()?;
    let body = json!({
        "booked": ran.booked,
        "settled": ran.settled,
        "waiting": ran.waiting,
        "rejected": ran.rejected,
        "released": ran.released,
        "nextRun": bank.next_run().to_string(),
    });
    Ok((200, body))
}

/// The bank's own channel: its customer cancels a payment (SBX-14). The payment keeps its id.
pub(in super::super) fn cancel_payment(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let id = ids.first().map(String::as_str).unwrap_or_default();
    let payment = bank.payment(id)?;
    // Through the gateway, a TPP reaches its own payments only; the bank's own channel names no TPP.
    let payment =
        payment.filter(|payment| asked.caller.tpp.is_empty() || payment.tpp == asked.caller.tpp);
    let payment = payment.ok_or_else(|| unknown("There is no such payment."))?;
    if !bank.cancel(&payment)? {
        return Err(refused(
            409,
            "CONFLICT",
            "The payment is booked, cancelled or refused already.",
        ));
    }
    let status = bank.payment(id)?.map(|payment| payment.status().word());
    Ok((200, json!({"paymentId": id, "transactionStatus": status})))
}

/// The amount of a card transaction in the currency of the purchase.
const ORIGINAL: &str = "originalAmount";

/// The form of what an account keeps together.
const TOGETHER: &str =
    "at most 18 digits, together with the balance, what is signed, and the credit line.";

fn update(asked: &Asked<'_>, account: &Account, bank: &Bank) -> Result<Answer, Stop> {
    let body = asked.object()?;
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

fn mock(ids: &Ids, bank: &Bank, is_kind: impl Fn(AccountKind) -> bool) -> Result<Account, Stop> {
    let id = ids.first().map(String::as_str).unwrap_or_default();
    let found = bank.account(id)?.filter(|account| is_kind(account.kind));
    found.ok_or_else(|| unknown("There is no such account."))
}

/// A name in the body, as long as transaction details have names at most: a customer is the debtor of payments (SBX-8).
fn given_name<'a>(
    body: &'a Map<String, Value>,
    member: &str,
    default: &'a str,
) -> Result<&'a str, Stop> {
    let given = body.get(member).filter(|value| !value.is_null());
    if let Some(fault) = given.and_then(|value| text_fault("debtorName", value)) {
        return Err(format_error(&format!("{member}: {fault}")));
    }
    Ok(given.and_then(Value::as_str).unwrap_or(default))
}

fn new_customer(bank: &Bank, name: &str) -> Result<Customer, Stop> {
    let id = Uuid::new_v4();
    let number = id.as_u128() % 100_000_000_000;
    let identity = format!("{number:011}");
    let id = id.to_string();
    bank.add_customer(&id, "PRIVATE", &identity, name)?;
    Ok(bank.customer_by_id(&id)?)
}

fn all_customers(bank: &Bank) -> Result<Vec<Value>, Stop> {
    let mut all = Vec::new();
    for customer in bank.customers()? {
        let mut accounts = Vec::new();
        for account in bank.accounts_of(&customer.id)? {
            accounts.push(mock_account(bank, &account)?);
        }
        let agreements = bank.agreements_of(&customer.id)?.into_iter();
        let agreements = agreements.map(|one| json!({"id": one.id.to_string(), "name": one.name}));
        let number = match customer.context.as_str() {
            "CORPORATE" => "organisationNumber",
            _ => "nationalIdentityNumber",
        };
        all.push(json!({
            "id": customer.id,
            "context": customer.context,
            "name": customer.name,
            number: customer.identity,
            "accounts": accounts,
            "agreements": agreements.collect::<Value>(),
        }));
    }
    Ok(all)
}

fn mock_account(bank: &Bank, account: &Account) -> Result<Value, Stop> {
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

/// Minor units as an int32, a decimal as text, or an amount object.
fn read_amount(bank: &Bank, written: &Value, currency: &str) -> Option<i64> {
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

fn format_error(text: &str) -> Stop {
    refused(400, "FORMAT_ERROR", text)
}
