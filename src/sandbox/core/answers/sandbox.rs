//! The sandbox's own operations: its customers, the batch, and the bank's own channel (SBX-1, SBX-2, SBX-5). What they change of one
//! account is in mock.rs.
//!
//! No x-accept-fix reaches these operations (HDR-3), so no fix changes their answers.

use super::super::answer::{Answer, Asked, Ids, Stop, refused, text_member};
use super::super::bank::Bank;
use super::super::customer::{AccountKind, Customer, NewAccount};
use super::super::details::given_text_fault;
use super::super::kid::Modulus;
use super::super::money::{MOST, NOK};
use super::mock::{TOGETHER, check_amounts, format_error, mock_account, read_amount};
use super::payments::{PAYMENTS_ALLOWED, payments_allowed};
use super::{reference, unknown};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The members of a new account.
const OF_AN_ACCOUNT: [&str; 9] = [
    "customerId",
    "customerName",
    "accountType",
    "name",
    "currency",
    "balance",
    "creditLine",
    "kid",
    PAYMENTS_ALLOWED,
];

/// SBX-1: resets the bank to its initial state. The answer lists the customers, and the accounts that require a KID.
pub(in super::super) fn initialise(
    asked: &Asked<'_>,
    _: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    asked.nothing()?;
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
    let body = asked.members(|name| OF_AN_ACCOUNT.contains(&name))?;
    let [customer, name] = ["customerId", "customerName"]
        .map(|name| body.get(name).is_some_and(|value| !value.is_null()));
    if customer && name {
        let text = "customerName: of a new customer only, and customerId names one: leave one of them out.";
        return Err(format_error(text));
    }
    let customer = match text_member(&body, "customerId")? {
        Some(id) => bank.customer_where("id = ?1", id)?,
        None => Some(new_customer(
            bank,
            given_name(&body, "customerName", "Testkunde")?,
        )?),
    };
    let customer = customer.ok_or_else(|| unknown("There is no such customer."))?;
    let new = new_account(bank, &body)?;
    let may_pay = payments_allowed(&body)?.unwrap_or(true);
    let id = bank.open_account(&customer.id, &new)?;
    bank.permit_payments(&id, may_pay)?;
    let account = bank
        .account(&id)?
        .ok_or_else(|| unknown("There is no such account."))?;
    let mut shown = mock_account(bank, &account)?;
    if let Some(shown) = shown.as_object_mut() {
        shown.insert("customerId".into(), json!(customer.id));
        shown.insert(PAYMENTS_ALLOWED.into(), json!(may_pay));
    }
    Ok((201, shown))
}

/// SBX-2: the batch, on demand.
pub(in super::super) fn run_batch(asked: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    asked.nothing()?;
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
    asked.nothing()?;
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

/// The account that a body describes (SBX-5): a member that is wrong is refused, and no default takes its place.
fn new_account<'a>(bank: &Bank, body: &'a Map<String, Value>) -> Result<NewAccount<'a>, Stop> {
    let kind = AccountKind::named(text_member(body, "accountType")?.unwrap_or("CURRENT"));
    let kind = kind.ok_or_else(|| format_error("accountType: CURRENT, SAVINGS or CARD."))?;
    let currency = text_member(body, "currency")?.unwrap_or(NOK);
    if bank.rates.digits(currency).is_none() {
        return Err(format_error("currency: one that the bank has a rate for."));
    }
    check_amounts(body, &["balance", "creditLine"], currency)?;
    let sum = |name: &str| match body.get(name) {
        None => Ok(0),
        Some(written) => read_amount(bank, written, currency).ok_or_else(|| {
            format_error(&format!("{name}: a decimal of the currency, as a string."))
        }),
    };
    let credit_line = sum("creditLine")?;
    if credit_line < 0 {
        let text = "creditLine: 0 or more, as the balance may be below 0 by this amount.";
        return Err(format_error(text));
    }
    let kid = text_member(body, "kid")?
        .map(|name| Modulus::named(name).ok_or_else(|| format_error("kid: MOD10 or MOD11.")));
    let new = NewAccount {
        kind,
        name: given_name(body, "name", "Konto")?,
        currency,
        credit_line,
        kid: kid.transpose()?,
        opening: sum("balance")?,
        ..NewAccount::default()
    };
    if new.opening.saturating_add(new.credit_line) > MOST {
        return Err(format_error(&format!("balance, creditLine: {TOGETHER}")));
    }
    Ok(new)
}

/// A name in the body, as long as transaction details have names at most: a customer is the debtor of payments (SBX-8). Null and an empty
/// text are an unknown name.
fn given_name<'a>(
    body: &'a Map<String, Value>,
    member: &str,
    default: &'a str,
) -> Result<&'a str, Stop> {
    let given = body.get(member).filter(|value| !value.is_null());
    if let Some(fault) = given.and_then(|value| given_text_fault("debtorName", value)) {
        return Err(format_error(&format!("{member}: {fault}")));
    }
    let given = given.and_then(Value::as_str);
    Ok(given.filter(|name| !name.is_empty()).unwrap_or(default))
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
