//! The earlier transactions of accounts that the bank opens by itself (SBX-17).
//!
//! Invariants: the entries of an account stand in the order of time, and each account has some that are older than 90 and than 180 days.
//! No account goes below its credit line, from its opening balance on. Deliberately not here: opening balances (seed.rs).

use super::super::customer::AccountKind;
use super::super::money::NOK;
use serde_json::{Map, Value, json};

/// A transaction with the outside world.
pub(super) struct Entry {
    /// How many days ago it was booked.
    pub(super) days: i64,
    /// In minor units; negative if it left the account.
    pub(super) amount: i64,
    /// The transaction details.
    pub(super) details: Map<String, Value>,
}

/// Those of a private customer's account of this kind, in NOK.
pub(super) fn private(kind: AccountKind) -> Vec<Entry> {
    match kind {
        AccountKind::Current => current(),
        AccountKind::Savings => savings(),
        AccountKind::Card => card(),
    }
}

/// Those of a corporation's account in this currency.
pub(super) fn corporate(currency: &str) -> Vec<Entry> {
    match currency {
        NOK => vec![
            incoming(399, 2_480_000, "Havbruk Nord AS", "Faktura 3902"),
            outgoing(181, -1_890_000, "Notbøteriet AS", "Reparasjon av nøter"),
            incoming(91, 660_000, "Kystfisk AS", "Faktura 4530"),
        ],
        _ => vec![
            incoming(399, 310_000, "Werkzeughandel Beispiel GmbH", "Faktura 3877"),
            outgoing(181, -95_000, "Réseau Exemple SARL", "Facture 118"),
            outgoing(120, -25_000, "Réseau Exemple SARL", "Facture 131"),
            incoming(10, 35_000, "Werkzeughandel Beispiel GmbH", "Faktura 4688"),
        ],
    }
}

fn current() -> Vec<Entry> {
    // The electricity bill is an e-invoice: the bank's own reference of it stands in the details.
    let bill = json!({
        "bankTransactionCode": "PMNT-ICDT-DMCT", "creditorName": "Strømlaget Eksempel",
        "remittanceInformationUnstructured": "Strøm",
        "additionalInformationProprietary1": "EFAKTURA 20417733"});
    let trip = json!({
        "bankTransactionCode": "PMNT-CCRD-POSD", "creditorName": "Reisebyrået Fjell og fjord",
        "remittanceInformationUnstructured": "Togreise"});
    let coffee = json!({
        "bankTransactionCode": "PMNT-CCRD-POSD", "creditorName": "Bakeriet på hjørnet",
        "remittanceInformationUnstructured": "Kaffe og kanelboller"});
    vec![
        entry(399, 3_350_000, salary()),
        outgoing(395, -1_200_000, "Utleieboliger AS", "Husleie"),
        entry(181, -1_849_000, trip),
        entry(91, -301_000, bill),
        entry(12, 3_500_000, salary()),
        entry(1, -19_900, coffee),
    ]
}

fn salary() -> Value {
    json!({
        "bankTransactionCode": "PMNT-RCDT-SALA", "debtorName": "Havbruk Nord AS", "purposeCode": "SALA",
        "remittanceInformationUnstructured": "Lønn"})
}

fn savings() -> Vec<Entry> {
    let interest = [(395, 12_100), (212, 12_200), (121, 12_400), (30, 12_550)];
    let interest = interest.into_iter().map(|(days, amount)| {
        let details = json!({
            "bankTransactionCode": "PMNT-MCOP-INTR", "remittanceInformationUnstructured": "Renter"});
        entry(days, amount, details)
    });
    interest.collect()
}

/// Purchases abroad, and payments of the card's bills.
fn card() -> Vec<Entry> {
    let bought = |name: &str, original: Value, text: &str| {
        json!({
            "bankTransactionCode": "PMNT-CCRD-POSD", "creditorName": name, "originalAmount": original,
            "remittanceInformationUnstructured": text})
    };
    let hotel = json!({"amount": "850.00", "currency": "SEK"});
    let hotel = bought("Hotell Exempel", hotel, "HOTELL EXEMPEL STOCKHOLM");
    let shop = json!({"amount": "420.00", "currency": "DKK"});
    let shop = bought("Butik Eksempel", shop, "BUTIK EKSEMPEL AARHUS");
    let cafe = json!({"amount": "30.00", "currency": "EUR"});
    let cafe = bought("Café de Flore", cafe, "CAFE DE FLORE PARIS");
    let paid = || {
        json!({
            "bankTransactionCode": "PMNT-RCDT-DMCT", "remittanceInformationUnstructured": "Innbetaling"})
    };
    vec![
        entry(399, -89_900, hotel),
        entry(370, 89_900, paid()),
        entry(181, -64_950, shop),
        entry(160, 64_950, paid()),
        entry(5, -34_872, cafe),
    ]
}

fn incoming(days: i64, amount: i64, debtor: &str, text: &str) -> Entry {
    let details = json!({
        "bankTransactionCode": "PMNT-RCDT-DMCT", "debtorName": debtor, "remittanceInformationUnstructured": text});
    entry(days, amount, details)
}

fn outgoing(days: i64, amount: i64, creditor: &str, text: &str) -> Entry {
    let details = json!({
        "bankTransactionCode": "PMNT-ICDT-DMCT", "creditorName": creditor, "remittanceInformationUnstructured": text});
    entry(days, amount, details)
}

fn entry(days: i64, amount: i64, details: Value) -> Entry {
    let details = match details {
        Value::Object(details) => details,
        _ => Map::new(),
    };
    Entry {
        days,
        amount,
        details,
    }
}
