//! Payments of every product, from their creation to their status (SBX-6, SBX-11, SBX-12).

use super::super::answer::{Answer, Asked, Ids, Stop, error, refused};
use super::super::bank::Bank;
use super::super::customer::{Customer, is_identity};
use super::super::payment::fee::INSTANT_FEE;
use super::super::payment::order::{Ordered, Violation};
use super::super::payment::{DOMESTIC, INSTANT, Payment, Status};
use super::{amount, answered, link, psu, sca_demanded, sca_link, unknown};
use serde_json::{Map, Value, json};

/// §B and the other products: creates a payment of the PSU, or of the person in X-PSU-IDENTITY (§Single SCA payment flow).
pub(in super::super) fn initiate(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let payer = payer(asked, bank)?;
    let product = ids.first().map(String::as_str).unwrap_or_default();
    let ordered = Ordered {
        tpp: &asked.caller.tpp,
        customer: &payer.id,
        agreement: asked.caller.agreement,
        product,
        body: asked.body,
    };
    let payment = match bank.order(&ordered)? {
        Ok(payment) => payment,
        Err(violations) => return Err(Stop::Refused(faulty(&violations))),
    };
    // §B: whether logical duplicates are allowed, which is the default.
    let no_duplicates = asked.parameter("allowLogicalDuplicate").as_deref() == Some("false");
    if no_duplicates && bank.is_duplicate(&payment)? {
        let text = "The same payment was initiated today already.";
        return Err(refused(409, "CONFLICT", text));
    }
    bank.keep(&payment)?;
    let mut created = state(&payment);
    created.insert("paymentId".into(), json!(payment.id));
    created.extend(fees(bank, &payment)?);
    let text = "The payment is carried out once you have signed it.";
    created.insert("psuMessage".into(), json!(text));
    created.insert("_links".into(), authorise_and_status(&payment.path()));
    answered(asked, 201, Value::Object(created))
}

/// The payment as it was posted, and its status.
pub(in super::super) fn read(asked: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let payment = approved(asked, asked.path, bank)?;
    let mut shown: Map<String, Value> = serde_json::from_str(&payment.body).unwrap_or_default();
    shown.insert("paymentId".into(), json!(payment.id));
    shown.extend(state(&payment));
    shown.extend(fees(bank, &payment)?);
    answered(asked, 200, Value::Object(shown))
}

/// §Single payment 4. Reading a status never moves it.
pub(in super::super) fn status(asked: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let path = asked.path.trim_end_matches("/status");
    let payment = approved(asked, path, bank)?;
    answered(asked, 200, Value::Object(state(&payment)))
}

/// §Single payment 2.
pub(in super::super) fn authorise(asked: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let path = asked.path.trim_end_matches("/authorisations");
    let payment = own(asked, path, bank)?;
    if payment.status() != Status::Received {
        let text = "The payment is signed, cancelled or refused already.";
        return Err(refused(409, "CONFLICT", text));
    }
    answered(asked, 201, sca_link(asked)?)
}

/// The fee of the instant product.
pub(in super::super) fn fee_information(
    asked: &Asked<'_>,
    _: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let fees = amount(bank, INSTANT_FEE, "NOK");
    let body =
        json!({"product": INSTANT, "transactionFeeIndicator": true, "transactionFees": fees});
    answered(asked, 200, body)
}

/// The links of an unsigned payment or basket.
pub(super) fn authorise_and_status(path: &str) -> Value {
    json!({
        "self": link(path, "GET"),
        "startAuthorisation": link(&format!("{path}/authorisations"), "POST"),
        "status": link(&format!("{path}/status"), "GET"),
    })
}

/// The payer: the PSU, or the person in X-PSU-IDENTITY.
fn payer(asked: &Asked<'_>, bank: &Bank) -> Result<Customer, Stop> {
    match (&asked.caller.psu, &asked.caller.identity) {
        (Some(_), _) => psu(asked, bank),
        (None, Some(identity)) if is_identity(identity) => Ok(bank.customer(identity)?),
        _ => Err(sca_demanded()),
    }
}

/// A TPP's own payment.
fn own(asked: &Asked<'_>, path: &str, bank: &Bank) -> Result<Payment, Stop> {
    let found = bank.payment_at(&asked.caller.tpp, path)?;
    found.ok_or_else(|| unknown("There is no such payment."))
}

/// A TPP's own payment, if it may be read: a domestic one not before it is approved (SBX-14, the known issue).
fn approved(asked: &Asked<'_>, path: &str, bank: &Bank) -> Result<Payment, Stop> {
    let payment = own(asked, path, bank)?;
    if payment.product == DOMESTIC && payment.status() == Status::Received {
        let text = "A domestic payment cannot be read before it is approved.";
        return Err(unknown(text));
    }
    Ok(payment)
}

/// The status, and whether there were funds (§Errors rule 9).
fn state(payment: &Payment) -> Map<String, Value> {
    let mut state = Map::new();
    state.insert("transactionStatus".into(), json!(payment.status().word()));
    if let Some(funds) = payment.funds_available() {
        state.insert("fundsAvailable".into(), json!(funds));
    }
    state
}

/// The fees, if there are any (§Single payment 1).
fn fees(bank: &Bank, payment: &Payment) -> Result<Map<String, Value>, Stop> {
    let fee = payment.fee();
    let mut fees = Map::new();
    fees.insert("transactionFeeIndicator".into(), json!(fee > 0));
    if fee > 0 {
        let account = bank.account(&payment.debtor)?;
        let currency = account.map(|account| account.currency).unwrap_or_default();
        fees.insert("transactionFees".into(), amount(bank, fee, &currency));
    }
    Ok(fees)
}

/// All violations (PAY-2); status and code are those of the first (ERR-1).
fn faulty(violations: &[Violation]) -> Answer {
    let first = violations.first();
    let (status, code) = first.map_or((400, "FORMAT_ERROR"), |first| (first.status, first.code));
    let (status, mut body) = error(status, code, "The payment cannot be taken as it is.");
    if let Some(body) = body.as_object_mut() {
        let messages = violations.iter().map(Violation::message);
        body.insert("tppMessages".into(), messages.collect());
    }
    (status, body)
}
