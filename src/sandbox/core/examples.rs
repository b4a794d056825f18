//! What the stand-in core answers where it has no memory yet: one plausible example for each operation.
//!
//! Deliberately fixed: nothing that is posted to one of these can be read back.

use super::account::nok;
use super::link;
use super::operations::Ids;
use serde_json::{Value, json};

/// The links of a payment or a basket that waits for its SCA.
pub(super) fn authorise_and_status(path: &str) -> Value {
    json!({
        "self": link(path, "GET"),
        "startAuthorisation": link(&format!("{path}/authorisations"), "POST"),
        "status": link(&format!("{path}/status"), "GET"),
    })
}

pub(super) fn fee(_: &Ids<'_>) -> Value {
    json!({"transactionFeeIndicator": true, "transactionFees": nok(200)})
}

pub(super) fn status(_: &Ids<'_>) -> Value {
    json!({"transactionStatus": "RCVD"})
}

pub(super) fn sca(_: &Ids<'_>) -> Value {
    json!({"_links": {"scaRedirect": link("https://sca.example/placeholder", "GET")}})
}

pub(super) fn basket(_: &Ids<'_>) -> Value {
    let basket = super::new_id();
    let path = format!("/v1/signing-baskets/{basket}");
    json!({
        "basketId": basket,
        "transactionStatus": "RCVD",
        "_links": authorise_and_status(&path),
    })
}

pub(super) fn basket_read(ids: &Ids<'_>) -> Value {
    json!({"basketId": id(ids, 0), "transactionStatus": "RCVD"})
}

pub(super) fn sandbox_customers(_: &Ids<'_>) -> Value {
    json!([{"id": "kunde-1", "name": "Kari Nordmann", "context": "PRIVATE"}])
}

pub(super) fn sandbox_account(_: &Ids<'_>) -> Value {
    json!({"id": super::new_id(), "bban": "12345678903", "currency": "NOK"})
}

pub(super) fn sandbox_transactions(ids: &Ids<'_>) -> Value {
    json!([one_sandbox_transaction(id(ids, 0), "tx-1")])
}

pub(super) fn sandbox_transaction(ids: &Ids<'_>) -> Value {
    one_sandbox_transaction(id(ids, 0), &super::new_id())
}

fn one_sandbox_transaction(account: &str, transaction: &str) -> Value {
    let href = format!("/v1/sandbox/accounts/{account}/transactions");
    json!({
        "id": transaction,
        "amount": 199,
        "currency": "NOK",
        "valueDate": "2025-03-03",
        "bookingDate": "2025-03-03",
        "remittanceInformationUnstructured": "Kaffe og kanelboller",
        "creditorName": "Bakeriet på hjørnet",
        "creditorAccount": {"iban": "NO3612345678903", "bban": "12345678903"},
        "debtorName": "Kari Nordmann",
        "debtorAccount": {"iban": "NO9386011117947", "bban": "86011117947"},
        "bankTransactionCode": "PMNT",
        "ultimateDebtor": "",
        "ultimateCreditor": "",
        "purposeCode": "OTHR",
        "_links": {"self": link(&href, "GET")},
    })
}

fn id<'a>(ids: &Ids<'a>, position: usize) -> &'a str {
    ids.get(position).copied().unwrap_or_default()
}
