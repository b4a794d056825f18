//! The shapes of answers: the tables of the interface, and the objects of the simulated bank that it does not show.
//!
//! Answers are not judged, so a shape forbids no further members.

use super::{components::Components, links::links};
use crate::payload::describe::day;
use serde_json::{Map, Value, json};

/// The statuses of a payment (§Payment transaction status values).
const PAYMENT_STATUSES: [&str; 11] = [
    "ACCP", "ACSC", "ACSP", "ACTC", "ACWC", "ACWP", "RCVD", "PDNG", "RJCT", "CANC", "PART",
];

/// An object with these members, of which some are required.
pub(super) fn object(required: &[&str], members: Value) -> Value {
    let mut object = json!({ "type": "object", "properties": members });
    if let Some(object) = object.as_object_mut()
        && !required.is_empty()
    {
        object.insert("required".to_owned(), json!(required));
    }
    object
}

pub(super) fn array(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

pub(super) fn string() -> Value {
    json!({ "type": "string" })
}

pub(super) fn text(most: usize) -> Value {
    json!({ "type": "string", "maxLength": most })
}

pub(super) fn boolean() -> Value {
    json!({ "type": "boolean" })
}

/// §Amount object, as the core writes it.
pub(super) fn amount(components: &mut Components<'_>) -> Value {
    components.schema("AnsweredAmount", || {
        let members = json!({ "amount": string(), "currency": string() });
        object(&["amount", "currency"], members)
    })
}

/// §Account reference, as the core writes it.
pub(super) fn account(components: &mut Components<'_>) -> Value {
    components.schema("AnsweredAccount", || {
        let members = json!({ "iban": text(34), "bban": text(30), "currency": string() });
        object(&[], members)
    })
}

/// The answer that has links only.
pub(super) fn links_only(components: &mut Components<'_>) -> Value {
    let links = links(components);
    components.schema("Authorisation", || {
        object(&["_links"], json!({ "_links": links }))
    })
}

pub(super) fn payment_status_word() -> Value {
    json!({ "type": "string", "enum": PAYMENT_STATUSES })
}

pub(super) fn basket_status_word() -> Value {
    json!({ "type": "string", "enum": ["RCVD", "ACTC", "PATC", "RJCT"] })
}

/// §Payment creation response.
pub(super) fn payment_created(components: &mut Components<'_>) -> Value {
    let (amount, links) = (amount(components), links(components));
    let message = components.schema("TppMessage", || {
        let members = json!({
            "category": { "type": "string", "enum": ["ERROR", "WARNING"] },
            "code": string(),
            "path": string(),
            "text": text(512),
        });
        object(&["category", "code"], members)
    });
    components.schema("PaymentCreated", || {
        let members = json!({
            "paymentId": string(),
            "transactionStatus": payment_status_word(),
            "transactionFees": amount,
            "transactionFeeIndicator": boolean(),
            "tppMessages": array(message),
            "psuMessage": text(512),
            "_links": links,
        });
        object(&["paymentId", "transactionStatus"], members)
    })
}

/// §Signing basket response.
pub(super) fn basket_created(components: &mut Components<'_>) -> Value {
    let links = links(components);
    components.schema("SigningBasketCreated", || {
        let members = json!({
            "basketId": string(),
            "transactionStatus": basket_status_word(),
            "_links": links,
        });
        object(&["transactionStatus"], members)
    })
}

/// §Transaction details: the answer.
pub(super) fn details(components: &mut Components<'_>) -> Value {
    let transaction = transaction(components);
    components.schema("TransactionDetails", || {
        object(
            &["transactionsDetails"],
            json!({ "transactionsDetails": transaction }),
        )
    })
}

/// §Transaction details: the members that an element of the simulated bank's transaction list has too (SBX-8).
pub(super) fn listed_members(components: &mut Components<'_>) -> Map<String, Value> {
    let (amount, account, links) = (amount(components), account(components), links(components));
    let members = [
        (
            "bankTransactionCode",
            json!({ "type": "string", "minLength": 4, "maxLength": 14 }),
        ),
        ("transactionId", string()),
        ("bookingDate", day()),
        ("valueDate", day()),
        ("transactionAmount", amount),
        ("creditorName", text(70)),
        ("creditorAccount", account.clone()),
        ("ultimateCreditor", text(70)),
        ("debtorName", text(70)),
        ("debtorAccount", account),
        ("ultimateDebtor", text(70)),
        ("remittanceInformationUnstructured", text(140)),
        (
            "purposeCode",
            json!({ "type": "string", "minLength": 1, "maxLength": 4 }),
        ),
        ("remittanceInformationUnstructuredArray", array(text(140))),
        ("_links", links),
    ];
    let members = members.into_iter();
    members.map(|(name, of)| (name.to_owned(), of)).collect()
}

/// §Transaction details: the object, with the members that only the details have.
fn transaction(components: &mut Components<'_>) -> Value {
    let mut members = listed_members(components);
    let exchange = components.schema("CurrencyExchange", || {
        let members = json!({
            "sourceCurrency": string(),
            "exchangeRate": string(),
            "unitCurrency": string(),
            "targetCurrency": string(),
            "quotationDate": day(),
            "contractIdentification": text(35),
        });
        object(&[], members)
    });
    let structured = components.schema("StructuredRemittance", || {
        let members = json!({ "reference": text(35), "referenceType": text(35), "referenceIssuer": text(35) });
        object(&[], members)
    });
    components.schema("Transaction", || {
        let of_details_only = [
            ("endToEndId", text(35)),
            ("currencyExchange", exchange),
            ("creditorId", text(35)),
            ("creditorAgent", string()),
            ("debtorAgent", string()),
            ("proprietaryBankTransactionCode", text(35)),
            ("remittanceInformationStructuredArray", array(structured)),
        ];
        let of_details_only = of_details_only.into_iter();
        members.extend(of_details_only.map(|(name, of)| (name.to_owned(), of)));
        let text = "Additional proprietary references stand in members that are called additionalInformationProprietaryX.";
        json!({
            "type": "object",
            "description": text,
            "properties": members,
            "patternProperties": { "^additionalInformationProprietary": string() },
        })
    })
}

/// §Sandbox transaction: all members are required.
pub(super) fn mock_transaction(components: &mut Components<'_>) -> Value {
    links(components);
    components.schema("SandboxTransaction", || {
        let account = object(&[], json!({ "iban": string(), "bban": string() }));
        let link = json!({ "$ref": "#/components/schemas/Link" });
        let members = json!({
            "id": string(),
            "amount": { "type": "integer", "format": "int32" },
            "currency": string(),
            "valueDate": string(),
            "remittanceInformationUnstructured": string(),
            "creditorName": string(),
            "creditorAccount": account,
            "debtorName": string(),
            "debtorAccount": account,
            "bankTransactionCode": { "type": "string", "minLength": 4, "maxLength": 14 },
            "ultimateDebtor": string(),
            "ultimateCreditor": string(),
            "purposeCode": string(),
            "bookingDate": string(),
            "_links": object(&["self"], json!({ "self": link })),
        });
        let required: Vec<_> = names(&members).collect();
        object(&required, members.clone())
    })
}

fn names(members: &Value) -> impl Iterator<Item = &str> {
    members
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
}
