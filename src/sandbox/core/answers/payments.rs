//! Payments of every product, from their creation to their status (SBX-6, SBX-11, SBX-12), and what the bank and its customer change of
//! them in the bank's own channel (SBX-17).

// The texts of a creation response.
mod notice;

use super::super::answer::{Answer, Asked, Ids, Stop, error, refused};
use super::super::bank::Bank;
use super::super::customer::{Customer, is_identity};
use super::super::payment::change::is_changeable;
use super::super::payment::fee::INSTANT_FEE;
use super::super::payment::order::{Ordered, Violation};
use super::super::payment::{DOMESTIC, INSTANT, Payment, Status};
use super::{amount, answered, link, psu, sca_demanded, sca_link, unknown};
use serde_json::{Map, Value, json};

/// The member that permits payments from an account of the sandbox.
pub(super) const PAYMENTS_ALLOWED: &str = "paymentsAllowed";

/// §B and the other products: creates a payment of the PSU, or of the person in X-PSU-IDENTITY (§Single SCA payment flow).
pub(in super::super) fn initiate(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    let payer = payer(asked, bank)?;
    let allows_duplicates = allows_duplicates(asked)?;
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
    if !allows_duplicates && bank.is_duplicate(&payment)? {
        let text = "The same payment was initiated today already.";
        return Err(refused(409, "CONFLICT", text));
    }
    bank.keep(&payment)?;
    let payment = exempt(asked, bank, payment)?;
    let mut created = state(&payment);
    created.insert("paymentId".into(), json!(payment.id));
    created.extend(fees(bank, &payment)?);
    let language = asked.caller.language;
    let text = notice::psu_message(&payment, language);
    created.insert("psuMessage".into(), json!(text));
    if let Some(warning) = notice::warning(&payment, language) {
        created.insert("tppMessages".into(), json!([warning]));
    }
    let mut links = authorise_and_status(&payment.path());
    if let Some(links) = links.as_object_mut()
        && payment.status() != Status::Received
    {
        links.remove("startAuthorisation");
    }
    created.insert("_links".into(), links);
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
    asked.nothing()?;
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

/// The bank's own channel: its customer changes a payment that is signed and not booked (§Versioning 1.18.0). The payment keeps its id.
pub(in super::super) fn change(asked: &Asked<'_>, ids: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let id = ids.first().map(String::as_str).unwrap_or_default();
    // Through the gateway, a TPP reaches its own payments only; the bank's own channel names no TPP.
    let tpp = &asked.caller.tpp;
    let payment = bank.payment(id)?;
    let payment = payment.filter(|payment| tpp.is_empty() || payment.tpp == *tpp);
    let payment = payment.ok_or_else(no_payment)?;
    if !payment.is_changeable() {
        let text = "Only a single payment that is signed and not booked can be changed.";
        return Err(refused(409, "CONFLICT", text));
    }
    if let Err(violations) = bank.change(&payment, &asked.members(is_changeable)?)? {
        return Err(Stop::Refused(faulty(&violations)));
    }
    let changed = bank.payment(id)?.ok_or_else(no_payment)?;
    let status = changed.status().word();
    Ok((200, json!({"paymentId": id, "transactionStatus": status})))
}

/// The bank's own channel: the bank permits payments from an account, or removes the permission (§Bank-offered consent).
pub(in super::super) fn permit(asked: &Asked<'_>, ids: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let id = ids.first().map(String::as_str).unwrap_or_default();
    let account = bank.account(id)?;
    let account = account.ok_or_else(|| unknown("There is no such account."))?;
    let Some(permitted) = payments_allowed(&asked.members(|name| name == PAYMENTS_ALLOWED)?)?
    else {
        return Err(no_boolean());
    };
    bank.permit_payments(&account.id, permitted)?;
    let body = json!({"id": account.id, PAYMENTS_ALLOWED: permitted});
    Ok((200, body))
}

/// Whether a body permits payments from an account; `None` if it says nothing of them.
pub(super) fn payments_allowed(body: &Map<String, Value>) -> Result<Option<bool>, Stop> {
    let given = body.get(PAYMENTS_ALLOWED);
    given
        .map(|value| value.as_bool().ok_or_else(no_boolean))
        .transpose()
}

fn no_boolean() -> Stop {
    let text = format!("{PAYMENTS_ALLOWED}: true or false.");
    refused(400, "FORMAT_ERROR", &text)
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

/// §B: whether logical duplicates are allowed, which is the default. The gateway knows the parameter of one product only.
fn allows_duplicates(asked: &Asked<'_>) -> Result<bool, Stop> {
    match asked.parameter("allowLogicalDuplicate").as_deref() {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(_) => {
            let text = "The parameter allowLogicalDuplicate is true or false.";
            Err(Stop::Refused(faulty(&[Violation::format("", text)])))
        }
    }
}

/// §SCA 1: signs a new payment that the bank exempts. In a single SCA the PSU-ID comes with the SCA, so the bank demands it.
fn exempt(asked: &Asked<'_>, bank: &Bank, payment: Payment) -> Result<Payment, Stop> {
    if asked.caller.psu.is_none() || !bank.is_exempt(&payment)? {
        return Ok(payment);
    }
    bank.sign(&payment.id)?;
    bank.payment(&payment.id)?.ok_or_else(no_payment)
}

fn no_payment() -> Stop {
    unknown("There is no such payment.")
}

/// A TPP's own payment, of the PSU that the request names, if it names one.
fn own(asked: &Asked<'_>, path: &str, bank: &Bank) -> Result<Payment, Stop> {
    let found = bank.payment_at(&asked.caller.tpp, path)?;
    let payment = found.ok_or_else(no_payment)?;
    match is_of_psu(asked, &payment.customer, bank)? {
        true => Ok(payment),
        false => Err(no_payment()),
    }
}

/// Whether a payment or a basket of this customer is the PSU's of the request. A request without a PSU reaches those of every PSU of the
/// TPP: before the SCA of a single SCA payment the TPP has no PSU-ID.
pub(super) fn is_of_psu(asked: &Asked<'_>, customer: &str, bank: &Bank) -> Result<bool, Stop> {
    let caller = asked.caller;
    let owner = match caller.psu {
        Some(id) => match bank.psu(&caller.tpp, id)? {
            Some(psu) => psu,
            None => return Ok(false),
        },
        None if caller.identity.is_some() => bank.customer_by_id(customer)?,
        None => return Ok(true),
    };
    let mut identity = caller.identity.iter();
    Ok(owner.id == customer && identity.all(|identity| *identity == owner.identity))
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
