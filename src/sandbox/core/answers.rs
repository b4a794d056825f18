//! The simulated core's answers, operation by operation.
//!
//! Invariant: every resource belongs to a TPP or to one of its PSUs; any other caller is told that it does not exist. If the bank
//! does not know a PSU-ID, it demands SCA with a 401 without a link, which the gateway adds (SCA-14).

// Account information: accounts, balances, transactions.
pub(super) mod accounts;
// Payments and signing baskets.
pub(super) mod baskets;
pub(super) mod payments;
// The TPP's contact address, and operations that the gateway answers by itself by default.
pub(super) mod contact;
// The sandbox's own operations: of one account, and the others.
pub(super) mod mock;
pub(super) mod sandbox;

use super::answer::{Answer, Asked, Stop, error, refused};
use super::bank::Bank;
use super::caller::Fixes;
use super::customer::{Account, Customer};
use super::money::{self, iban};
use serde_json::{Map, Value, json};

/// A link with one verb (§Link and links map).
fn link(href: &str, verb: &str) -> Value {
    json!({"href": href, "verbs": [verb]})
}

/// The gateway created the link for this request (SCA-21). A safe method has none: the gateway adds it to a 401 (SCA-14).
fn sca_link(asked: &Asked<'_>) -> Result<Value, Stop> {
    match &asked.caller.sca_redirect {
        Some(href) => Ok(json!({"_links": {"scaRedirect": link(href, "GET")}})),
        None => Err(refused(
            500,
            "SYSTEM_ERROR",
            "The gateway sent no Gateway-Sca-Redirect, from which an SCA starts.",
        )),
    }
}

/// SCA-14: the gateway adds the link.
fn sca_demanded() -> Stop {
    refused(401, "SCA_NOT_FOUND", "The PSU must authenticate first.")
}

/// The customer of the PSU-ID, if this TPP received it. The gateway forwards X-PSU-IDENTITY beside it (HDR-12), and only the bank knows
/// whether both are the same person.
fn psu(asked: &Asked<'_>, bank: &Bank) -> Result<Customer, Stop> {
    let caller = asked.caller;
    let found = match caller.psu {
        Some(id) => bank.psu(&caller.tpp, id)?,
        None => None,
    };
    let found = found.ok_or_else(sca_demanded)?;
    match &caller.identity {
        Some(identity) if *identity != found.identity => Err(refused(
            400,
            "PSU_CREDENTIALS_INVALID",
            "X-PSU-IDENTITY names another person than PSU-ID. Send one of the two, or both of the same person.",
        )),
        _ => Ok(found),
    }
}

/// An amount (§Amount object).
fn amount(bank: &Bank, amount: i64, currency: &str) -> Value {
    let digits = bank.rates.digits(currency).unwrap_or(2);
    json!({"amount": money::written(amount, digits), "currency": currency})
}

/// An account, as the interface refers to it.
fn reference(account: &Account) -> Value {
    let bban = &account.bban;
    json!({"iban": iban(bban), "bban": bban, "currency": account.currency})
}

/// x-accept-fix: without amount-as-string every amount is a number.
fn with_fixes(value: Value, fixes: Fixes) -> Value {
    match value {
        value if fixes.amount_as_string => value,
        Value::Array(entries) => entries
            .into_iter()
            .map(|entry| with_fixes(entry, fixes))
            .collect(),
        Value::Object(members) => {
            let is_amount = members.len() == 2 && members.contains_key("currency");
            let fixed = members.into_iter().map(|(name, member)| {
                let number = member.as_str().and_then(|text| text.parse::<f64>().ok());
                match number {
                    Some(number) if is_amount && name == "amount" => (name, json!(number)),
                    _ => (name, with_fixes(member, fixes)),
                }
            });
            Value::Object(fixed.collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// The answer, with the fixes that are on (SBX-14).
fn answered(asked: &Asked<'_>, status: u16, body: Value) -> Result<Answer, Stop> {
    Ok((status, with_fixes(body, asked.caller.fixes)))
}

fn unknown(what: &str) -> Stop {
    let (status, body) = error(404, "RESOURCE_UNKNOWN", what);
    Stop::Refused((status, body))
}

#[cfg(test)]
mod tests;
