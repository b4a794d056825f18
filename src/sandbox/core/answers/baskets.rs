//! Signing baskets (SBX-7).

use super::super::answer::{Answer, Asked, Ids, Stop, error, refused};
use super::super::bank::Bank;
use super::super::basket::Basket;
use super::super::payment::{Form, Status};
use super::payments::{authorise_and_status, is_of_psu};
use super::{answered, psu, sca_link, unknown};
use serde_json::{Value, json};

/// §A: creates a basket of payments of this TPP and this PSU, all unsigned.
pub(in super::super) fn create(asked: &Asked<'_>, _: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let customer = psu(asked, bank)?;
    let body = asked.members(|name| name == "paymentIds")?;
    let ids = body.get("paymentIds").and_then(Value::as_array);
    // An id that is no text would be a payment that is not in the basket.
    let ids: Option<Vec<&str>> = ids.and_then(|ids| ids.iter().map(Value::as_str).collect());
    let ids = ids.filter(|ids| (1..=10).contains(&ids.len()));
    let ids = ids.ok_or_else(|| {
        let text = "paymentIds: 1 to 10 ids of payments, as strings.";
        refused(400, "FORMAT_ERROR", text)
    })?;
    let mut payments = Vec::new();
    for (position, id) in ids.iter().enumerate() {
        let found = bank.payment(id)?.filter(|payment| {
            payment.tpp == asked.caller.tpp
                && payment.customer == customer.id
                && payment.agreement == asked.caller.agreement
        });
        let payment = found.ok_or_else(|| unknown("There is no such payment of this PSU."))?;
        if payment.form != Form::Single {
            return Err(Stop::Refused(mixed(position)));
        }
        if payment.status() != Status::Received || bank.is_in_a_basket(id)? {
            let text = "A payment is signed already, or in another basket.";
            return Err(refused(409, "CONFLICT", text));
        }
        payments.push(payment);
    }
    let id = bank.new_basket(
        &asked.caller.tpp,
        &customer,
        asked.caller.agreement,
        &payments,
    )?;
    let basket = Basket { id, payments };
    let mut body = shown(&basket);
    if let Some(body) = body.as_object_mut() {
        body.insert("_links".into(), authorise_and_status(&basket.path()));
    }
    answered(asked, 201, body)
}

/// The basket's payments and its status.
pub(in super::super) fn read(asked: &Asked<'_>, ids: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let basket = own(asked, ids, bank)?;
    let mut body = shown(&basket);
    if let Some(body) = body.as_object_mut() {
        let ids = basket.payments.iter().map(|payment| json!(payment.id));
        body.insert("paymentIds".into(), ids.collect());
    }
    answered(asked, 200, body)
}

/// The basket's status.
pub(in super::super) fn status(asked: &Asked<'_>, ids: &Ids, bank: &Bank) -> Result<Answer, Stop> {
    let basket = own(asked, ids, bank)?;
    answered(asked, 200, json!({"transactionStatus": basket.status()}))
}

/// Starts an SCA that signs the basket's payments.
pub(in super::super) fn authorise(
    asked: &Asked<'_>,
    ids: &Ids,
    bank: &Bank,
) -> Result<Answer, Stop> {
    asked.nothing()?;
    let basket = own(asked, ids, bank)?;
    let mut states = basket.payments.iter().map(|payment| payment.status());
    if !states.any(|status| status == Status::Received) {
        return Err(refused(
            409,
            "CONFLICT",
            "No payment of it waits to be signed.",
        ));
    }
    answered(asked, 201, sca_link(asked)?)
}

fn own(asked: &Asked<'_>, ids: &Ids, bank: &Bank) -> Result<Basket, Stop> {
    let id = ids.first().map(String::as_str).unwrap_or_default();
    let found = bank.basket(&asked.caller.tpp, id)?;
    let unknown = || unknown("There is no such basket.");
    let basket = found.ok_or_else(unknown)?;
    // The payments of a basket are all of one PSU.
    for payment in basket.payments.iter().take(1) {
        if !is_of_psu(asked, &payment.customer, bank)? {
            return Err(unknown());
        }
    }
    Ok(basket)
}

fn shown(basket: &Basket) -> Value {
    json!({"basketId": basket.id, "transactionStatus": basket.status()})
}

/// §Errors rule 5.
fn mixed(position: usize) -> Answer {
    let text = "Bulk and periodic payments cannot be in a basket.";
    let (status, mut body) = error(400, "REFERENCE_MIX_INVALID", text);
    if let Some(body) = body.as_object_mut() {
        let path = format!("paymentIds[{position}]");
        let message = json!({"category": "ERROR", "code": "REFERENCE_MIX_INVALID", "path": path, "text": text});
        body.insert("tppMessages".into(), json!([message]));
    }
    (status, body)
}
