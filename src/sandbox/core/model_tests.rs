//! Invariants of the whole bank: double entry after any operations, and durability after a sudden end.

// Twenty thousand operations at random, each checked against a model.
mod operations;
// kill -9 between them.
mod killed;

use super::bank::tests::NOON;
use super::bank::{Bank, BankFault};
use super::money::NOK;
use super::payment::order::Ordered;
use super::rates::Rates;
use super::seed::WITH_AGREEMENT;
use portvakt_base::clock::Clock;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

fn open(file: Option<&Path>) -> (Bank, Clock) {
    let clock = Clock::standing(NOON);
    let rates = Rates::load(None).unwrap();
    (Bank::open(file, rates, clock.clone()).unwrap(), clock)
}

/// All bookings sum to zero in each currency, those of each posting too, and every posting has at least two.
fn assert_double_entry(bank: &Bank) {
    let none: i64 = bank
        .db
        .query_row(
            "SELECT count(*) FROM (SELECT 1 FROM booking JOIN account ON account.id = account \
             GROUP BY posting, currency HAVING sum(amount) <> 0)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(none, 0, "postings that do not sum to zero");
    let lone: i64 = bank
        .db
        .query_row(
            "SELECT count(*) FROM posting WHERE (SELECT count(*) FROM booking WHERE posting = number) < 2",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(lone, 0, "postings of a single booking");
    let mut sums = bank
        .db
        .prepare(
            "SELECT currency, sum(amount) FROM booking JOIN account ON account.id = account GROUP BY currency",
        )
        .unwrap();
    let sums = sums.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    });
    for sum in sums.unwrap() {
        let (currency, sum) = sum.unwrap();
        assert_eq!(sum, 0, "all bookings in {currency}");
    }
}

//= SBX-15 accepted
#[test]
fn a_restart_forgets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bank/ledger.db");
    let tpp = "PSDNO-FSA-1";
    let (bank, _) = open(Some(&file));
    let kept = bank.atomically(|bank| {
        let kari = bank.customer("01010112345")?;
        let ola = bank.customer(WITH_AGREEMENT)?;
        let psus = [bank.psu_id(tpp, &kari)?, bank.psu_id(tpp, &ola)?];
        let account = bank.accounts_of(&kari.id)?.remove(0);
        let open = BTreeSet::from([account.id.clone()]);
        bank.consent(psus[0], None, &open)?;
        let body = json!({
            "instructedAmount": {"amount": "10.00", "currency": NOK}, "creditorName": "a",
            "creditorAccount": {"bban": "86011117947"}, "debtorAccount": {"bban": account.bban}});
        let body = body.to_string();
        let ordered = Ordered {
            tpp,
            customer: &kari.id,
            agreement: None,
            product: super::payment::DOMESTIC,
            body: body.as_bytes(),
        };
        let payment = bank.order(&ordered)?.unwrap();
        bank.keep(&payment)?;
        bank.sign(&payment.id)?;
        Ok::<_, BankFault>((psus, kari, ola, account, payment.path()))
    });
    let (psus, kari, ola, account, path) = kept.unwrap();
    let customers = bank.customers().unwrap();
    let balance = bank.balance(&account.id).unwrap();
    drop(bank);

    let (bank, _) = open(Some(&file));
    assert_eq!(bank.customers().unwrap(), customers);
    assert_eq!(bank.psu(tpp, psus[0]).unwrap(), Some(kari.clone()));
    assert_eq!(bank.psu(tpp, psus[1]).unwrap(), Some(ola));
    assert_eq!(bank.psu_id(tpp, &kari).unwrap(), psus[0]);
    let open = bank.open_accounts(psus[0], None).unwrap();
    assert_eq!(open, BTreeSet::from([account.id.clone()]));
    assert_eq!(bank.balance(&account.id).unwrap(), balance);
    let payment = bank.payment_at(tpp, &path).unwrap().unwrap();
    assert_eq!(payment.status().word(), "ACTC");
    assert_double_entry(&bank);
}
