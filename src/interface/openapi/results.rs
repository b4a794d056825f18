//! The answer of an operation that succeeds: the interface shows four of them (§A to §D), and the gateway answers some
//! by itself (SCA-20).

use super::{components::Components, links::links};
use crate::interface::{
    operations::{AnsweredBy, Operation, Schema, Transactions},
    payload::describe::{day, reference},
};
use serde_json::{Value, json};

/// The operation whose answer is known by its name only (§D).
const MOCK_TRANSACTIONS: &str = "sandbox-transaction-list";

/// The status of an operation that is done, and the schema of its answer.
pub(super) fn of(operation: &Operation, components: &mut Components<'_>) -> (&'static str, Value) {
    let links = links(components);
    if operation.answered_by == AnsweredBy::Gateway {
        let schema =
            json!({ "type": "object", "required": ["_links"], "properties": { "_links": links } });
        return ("200", schema);
    }
    if operation.name == MOCK_TRANSACTIONS {
        let element = components.schema("SandboxTransaction", mock_transaction);
        return ("200", json!({ "type": "array", "items": element }));
    }
    match (operation.schema, operation.transactions) {
        (Schema::CrossBorderPayment, _) => {
            ("201", components.schema("PaymentCreated", payment_created))
        }
        (Schema::Basket, _) => (
            "201",
            components.schema("SigningBasketCreated", basket_created),
        ),
        (_, Transactions::Details) => ("200", components.schema("TransactionDetails", details)),
        _ => (
            "2XX",
            json!({ "description": "The interface does not show its members." }),
        ),
    }
}

fn text(most: usize) -> Value {
    json!({ "type": "string", "maxLength": most })
}

/// §Payment creation response.
fn payment_created() -> Value {
    let statuses = [
        "ACCP", "ACSC", "ACSP", "ACTC", "ACWC", "ACWP", "RCVD", "PDNG", "RJCT", "CANC", "PART",
    ];
    json!({
        "type": "object",
        "required": ["paymentId", "transactionStatus"],
        "properties": {
            "paymentId": { "type": "string" },
            "transactionStatus": { "type": "string", "enum": statuses },
            "transactionFees": result_amount(),
            "transactionFeeIndicator": { "type": "boolean" },
            "tppMessages": { "type": "array", "items": {
                "type": "object",
                "required": ["category", "code"],
                "properties": {
                    "category": { "type": "string", "enum": ["ERROR", "WARNING"] },
                    "code": { "type": "string" },
                    "path": { "type": "string" },
                    "text": text(512),
                },
            } },
            "psuMessage": text(512),
            "_links": reference("Links"),
        },
    })
}

/// §Signing basket response.
fn basket_created() -> Value {
    json!({
        "type": "object",
        "required": ["transactionStatus"],
        "properties": {
            "basketId": { "type": "string" },
            "transactionStatus": { "type": "string", "enum": ["RCVD", "ACTC", "PATC", "RJCT"] },
            "_links": reference("Links"),
        },
    })
}

/// §Amount object, as the core writes it: answers are not judged.
fn result_amount() -> Value {
    json!({
        "type": "object",
        "required": ["amount", "currency"],
        "properties": { "amount": { "type": "string" }, "currency": { "type": "string" } },
    })
}

fn account() -> Value {
    json!({
        "type": "object",
        "properties": { "iban": text(34), "bban": text(30), "currency": { "type": "string" } },
    })
}

/// §Transaction details.
fn details() -> Value {
    let details = json!({
        "type": "object",
        "properties": {
            "bankTransactionCode": { "type": "string", "minLength": 4, "maxLength": 14 },
            "transactionId": { "type": "string" },
            "endToEndId": text(35),
            "bookingDate": day(),
            "valueDate": day(),
            "transactionAmount": result_amount(),
            "currencyExchange": { "type": "object", "properties": {
                "sourceCurrency": { "type": "string" },
                "exchangeRate": { "type": "string" },
                "unitCurrency": { "type": "string" },
                "targetCurrency": { "type": "string" },
                "quotationDate": day(),
                "contractIdentification": text(35),
            } },
            "creditorId": text(35),
            "creditorName": text(70),
            "creditorAccount": account(),
            "creditorAgent": { "type": "string" },
            "ultimateCreditor": text(70),
            "debtorName": text(70),
            "debtorAccount": account(),
            "debtorAgent": { "type": "string" },
            "ultimateDebtor": text(70),
            "remittanceInformationUnstructured": text(140),
            "purposeCode": { "type": "string", "minLength": 1, "maxLength": 4 },
            "proprietaryBankTransactionCode": text(35),
            "remittanceInformationUnstructuredArray": { "type": "array", "items": text(140) },
            "remittanceInformationStructuredArray": { "type": "array", "items": {
                "type": "object",
                "properties": { "reference": text(35), "referenceType": text(35), "referenceIssuer": text(35) },
            } },
            "_links": reference("Links"),
        },
    });
    json!({
        "type": "object",
        "required": ["transactionsDetails"],
        "properties": { "transactionsDetails": details },
    })
}

/// §Sandbox transaction.
fn mock_transaction() -> Value {
    let account = json!({
        "type": "object",
        "properties": { "iban": { "type": "string" }, "bban": { "type": "string" } },
    });
    let string = json!({ "type": "string" });
    let members = json!({
        "id": string,
        "amount": { "type": "integer", "format": "int32" },
        "currency": string,
        "valueDate": string,
        "remittanceInformationUnstructured": string,
        "creditorName": string,
        "creditorAccount": account,
        "debtorName": string,
        "debtorAccount": account,
        "bankTransactionCode": { "type": "string", "minLength": 4, "maxLength": 14 },
        "ultimateDebtor": string,
        "ultimateCreditor": string,
        "purposeCode": string,
        "bookingDate": string,
        "_links": { "type": "object", "required": ["self"], "properties": { "self": reference("Link") } },
    });
    let required: Vec<_> = members
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    json!({ "type": "object", "required": required, "properties": members })
}
