//! The answers that the interface does not show, as the simulated bank gives them (SBX-3 to SBX-13).
//!
//! A core may answer otherwise: a deployment declares its own answers in its file of operations (`answer`).

use super::{
    components::Components,
    links::links,
    shapes::{
        account, amount, array, basket_status_word, boolean, links_only, listed_members,
        mock_transaction, object, payment_created, payment_status_word, string, text,
    },
};
use serde_json::{Value, json};

/// The status and the schema of the simulated bank's answer to an operation of the interface.
pub(super) fn of(operation: &str, components: &mut Components<'_>) -> Option<(u16, Value)> {
    let answer = match operation {
        "account-list" => (200, account_list(components)),
        "balance-list" => (200, balance_list(components)),
        "transaction-list" => (200, transaction_list(components)),
        "payment-create" => (201, payment_created(components)),
        "fee-information" => (200, fee_information(components)),
        "payment-read" => (200, payment_read(components)),
        "payment-status" => (200, payment_status(components)),
        "payment-authorise" | "basket-authorise" => (201, links_only(components)),
        "basket-read" => (200, basket_read(components)),
        "basket-status" => (200, basket_status(components)),
        "agreement-list" => (200, agreement_list(components)),
        "tpp-contact-read" | "tpp-contact-write" => (200, contact(components)),
        "sandbox-initialise" => (200, initialised(components)),
        "sandbox-customer-list" => (200, array(customer(components))),
        "sandbox-account-create" => (201, mock_account(components)),
        "sandbox-balance-update" | "sandbox-card-balance-update" => (200, mock_account(components)),
        "sandbox-card-transaction-create" => (201, mock_transaction(components)),
        _ => return None,
    };
    Some(answer)
}

fn account_list(components: &mut Components<'_>) -> Value {
    let links = links(components);
    let account = components.schema("AccountDetails", || {
        let members = json!({
            "resourceId": { "type": "string", "description": "The id in the account's paths." },
            "currency": string(),
            "name": text(70),
            "cashAccountType": { "type": "string", "description": "By ISO 20022 with the fix cash-account-type-iso, which is the default." },
            "status": string(),
            "bban": text(30),
            "iban": text(34),
            "maskedPan": { "type": "string", "description": "Of a card account, in place of bban and iban." },
            "_links": links,
        });
        object(&["resourceId", "currency"], members)
    });
    components.schema("AccountList", || {
        object(&["accounts"], json!({ "accounts": array(account) }))
    })
}

fn balance_list(components: &mut Components<'_>) -> Value {
    let (account, amount) = (account(components), amount(components));
    let balance = components.schema("Balance", || {
        let members = json!({
            "balanceType": { "type": "string", "enum": ["interimAvailable", "interimBooked", "expected"] },
            "balanceAmount": amount,
            "creditLimitIncluded": boolean(),
        });
        object(&["balanceType", "balanceAmount"], members)
    });
    components.schema("BalanceList", || {
        let members = json!({ "account": account, "balances": array(balance) });
        object(&["balances"], members)
    })
}

fn transaction_list(components: &mut Components<'_>) -> Value {
    let (account, transaction) = (account(components), listed_transaction(components));
    let links = links(components);
    let page = components.schema("TransactionPage", || {
        let members = json!({
            "booked": array(transaction.clone()),
            "pending": array(transaction),
            "_links": links,
        });
        object(&[], members)
    });
    components.schema("TransactionList", || {
        let members = json!({ "account": account, "transactions": page });
        object(&["transactions"], members)
    })
}

/// An element of the list, lighter than its details (SBX-8).
fn listed_transaction(components: &mut Components<'_>) -> Value {
    let members = listed_members(components);
    components.schema("ListedTransaction", || {
        let text = "A transaction with less than its details, which the link transactionDetails leads to. Only the details have \
            endToEndId, currencyExchange, creditorId, creditorAgent, debtorAgent, proprietaryBankTransactionCode, \
            remittanceInformationStructuredArray and additionalInformationProprietaryX.";
        json!({ "type": "object", "description": text, "properties": members })
    })
}

fn fee_information(components: &mut Components<'_>) -> Value {
    let amount = amount(components);
    components.schema("FeeInformation", || {
        let members = json!({
            "product": string(),
            "transactionFeeIndicator": boolean(),
            "transactionFees": amount,
        });
        object(&["transactionFeeIndicator"], members)
    })
}

/// The payment as it was posted, with its status.
fn payment_read(components: &mut Components<'_>) -> Value {
    let (account, amount) = (account(components), amount(components));
    components.schema("PaymentRead", || {
        let members = json!({
            "paymentId": string(),
            "transactionStatus": payment_status_word(),
            "fundsAvailable": boolean(),
            "transactionFees": amount,
            "transactionFeeIndicator": boolean(),
            "instructedAmount": amount,
            "creditorName": text(70),
            "creditorAccount": account,
            "debtorAccount": account,
            "remittanceInformationUnstructured": text(140),
        });
        object(&["paymentId", "transactionStatus"], members)
    })
}

fn payment_status(components: &mut Components<'_>) -> Value {
    components.schema("PaymentStatus", || {
        let members = json!({
            "transactionStatus": payment_status_word(),
            "fundsAvailable": { "type": "boolean", "description": "Whether there were funds, once that is known (§Errors 9)." },
        });
        object(&["transactionStatus"], members)
    })
}

fn basket_read(components: &mut Components<'_>) -> Value {
    components.schema("SigningBasketRead", || {
        let members = json!({
            "basketId": string(),
            "transactionStatus": basket_status_word(),
            "paymentIds": array(string()),
        });
        object(&["basketId", "transactionStatus"], members)
    })
}

fn basket_status(components: &mut Components<'_>) -> Value {
    components.schema("SigningBasketStatus", || {
        let members = json!({ "transactionStatus": basket_status_word() });
        object(&["transactionStatus"], members)
    })
}

/// A corporate agreement; its id stands in PSU-Corporate-ID.
fn agreement(components: &mut Components<'_>) -> Value {
    components.schema("Agreement", || {
        let id = json!({ "type": "string", "format": "uuid", "description": "The value of PSU-Corporate-ID." });
        object(&["id"], json!({ "id": id, "name": string() }))
    })
}

fn agreement_list(components: &mut Components<'_>) -> Value {
    let agreement = agreement(components);
    components.schema("AgreementList", || {
        object(&["agreements"], json!({ "agreements": array(agreement) }))
    })
}

fn contact(components: &mut Components<'_>) -> Value {
    components.schema("TppContact", || {
        object(
            &["email"],
            json!({ "email": text(254), "organisationNumber": string() }),
        )
    })
}

fn mock_account(components: &mut Components<'_>) -> Value {
    let amount = amount(components);
    components.schema("SandboxAccount", || {
        let members = json!({
            "id": string(),
            "accountType": { "type": "string", "enum": ["CURRENT", "SAVINGS", "CARD"] },
            "name": string(),
            "bban": string(),
            "iban": string(),
            "currency": string(),
            "balance": amount,
            "creditLine": amount,
            "customerId": { "type": "string", "description": "In the answer of its creation." },
        });
        object(&["id", "accountType", "currency", "balance"], members)
    })
}

fn customer(components: &mut Components<'_>) -> Value {
    let (account, agreement) = (mock_account(components), agreement(components));
    components.schema("SandboxCustomer", || {
        let members = json!({
            "id": string(),
            "context": { "type": "string", "enum": ["PRIVATE", "CORPORATE"] },
            "name": string(),
            "nationalIdentityNumber": { "type": "string", "description": "Of a private customer: mock data, to type at the SCA page." },
            "organisationNumber": { "type": "string", "description": "Of a corporation." },
            "accounts": array(account),
            "agreements": array(agreement),
        });
        object(&["id", "context", "name", "accounts"], members)
    })
}

fn initialised(components: &mut Components<'_>) -> Value {
    let (customer, account) = (customer(components), account(components));
    let creditor = components.schema("SandboxCreditor", || {
        let members = json!({
            "name": string(),
            "account": account,
            "kid": { "type": "string", "enum": ["MOD10", "MOD11"] },
            "example": string(),
        });
        object(&["name", "account", "kid", "example"], members)
    });
    components.schema("SandboxInitialised", || {
        let members = json!({ "customers": array(customer), "creditorsWithKid": array(creditor) });
        object(&["customers"], members)
    })
}
