//! The initial state that an initialisation restores (SBX-1).
//!
//! Invariants: each private customer has two accounts and a card account, each corporate one two accounts; their ids, account ids
//! and PSU-IDs are the same after every initialisation, so that the gateway's records about them stay valid (SBX-15). Customers
//! and changes made by hand are removed. One representative has only some accounts of a corporation. Each account has a history of more
//! than 180 days (SBX-17).

// What was booked before.
mod entries;

use super::bank::{Bank, BankFault};
use super::customer::{AccountKind, NewAccount};
use super::kid::Modulus;
use super::ledger::{Own, Posting, from_own};
use super::money::{BIC, NOK, iban};
use entries::Entry;
use jiff::ToSpan;
use rusqlite::params;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// A private person who also acts for a corporation, for the corporate context.
pub(crate) const WITH_AGREEMENT: &str = "20000000002";

/// The first account number of the initialisation's customers.
const FIRST_NUMBER: u64 = 9_710_050_000;

/// National identity number, name, and the corporations of the agreements.
const PRIVATE: [(&str, &str, &[&str]); 3] = [
    (WITH_AGREEMENT, "Ola Nordmann", &["910000004"]),
    ("20000000010", "Astrid Haugen", &["910000012"]),
    ("20000000029", "Ingrid Berg", &["910000004", "910000020"]),
];

/// A representative, a corporation, and the account of it that is not granted to the representative (§Basic rules 6).
const WITHHELD: (&str, &str, &str) = ("20000000029", "910000004", FOREIGN);

/// The name of a corporation's account in another currency.
const FOREIGN: &str = "Valutakonto";

/// Organisation number, name, and the check of payment references for the first account.
const CORPORATE: [(&str, &str, Option<Modulus>); 3] = [
    ("910000004", "Fisk og Redskap AS", None),
    ("910000012", "Kraftlaget SA", Some(Modulus::Ten)),
    ("910000020", "Bysykkelen AS", Some(Modulus::Eleven)),
];

/// The tables of customers, in an order in which their rows can be deleted.
const TABLES: [&str; 10] = [
    "basket_payment",
    "basket",
    "part",
    "payment",
    "consent",
    "psu",
    "agreement",
    "booking",
    "posting",
    "account",
];

impl Bank {
    /// SBX-1: restores the initial state. PSU-IDs and consents of the remaining customers are kept.
    pub(super) fn initialise(&self) -> Result<(), BankFault> {
        let psus =
            self.rows("SELECT tpp, identity, '' FROM psu JOIN customer ON customer.id = customer")?;
        let consents = self.rows("SELECT psu, agreement, account FROM consent")?;
        for table in TABLES {
            self.db.execute(&format!("DELETE FROM {table}"), [])?;
        }
        self.db.execute("DELETE FROM customer", [])?;
        self.seed()?;
        for [tpp, identity, _] in psus {
            if let Some(customer) = self.customer_where("identity = ?1", &identity)? {
                self.psu_id(&tpp, &customer)?;
            }
        }
        for consent in consents {
            self.db.execute(
                "INSERT INTO consent (psu, agreement, account) SELECT psu.id, ?2, account.id FROM psu, account \
                 WHERE psu.id = ?1 AND account.id = ?3",
                consent,
            )?;
        }
        Ok(())
    }

    fn rows(&self, sql: &str) -> Result<Vec<[String; 3]>, BankFault> {
        let mut all = self.db.prepare(sql)?;
        let rows = all.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn seed(&self) -> Result<(), BankFault> {
        let mut numbers = FIRST_NUMBER..;
        let mut open = |customer: &str, identity: &str, new: &NewAccount<'_>| {
            let account = NewAccount {
                id: Some(account_id(identity, new.name)),
                number: numbers.find(|ten| super::money::bban(*ten).is_some()),
                ..new.clone()
            };
            self.open_account(customer, &account)
        };
        for (identity, name, kid) in CORPORATE {
            let id = fixed_id(identity);
            self.add_customer(&id, "CORPORATE", identity, name)?;
            for new in corporate_accounts(kid) {
                let account = open(&id, identity, &new)?;
                self.book_entries(&account, new.currency, entries::corporate(new.currency))?;
                if new.currency == NOK {
                    self.book_invoice(&account)?;
                }
            }
        }
        for (identity, name, corporations) in PRIVATE {
            let id = fixed_id(identity);
            self.add_customer(&id, "PRIVATE", identity, name)?;
            for new in private_accounts() {
                let account = open(&id, identity, &new)?;
                self.book_entries(&account, new.currency, entries::private(new.kind))?;
            }
            for corporation in corporations {
                self.db.execute(
                    "INSERT INTO agreement (id, representative, corporation) VALUES (?1, ?2, ?3)",
                    params![
                        agreement_id(identity, corporation),
                        id,
                        fixed_id(corporation)
                    ],
                )?;
            }
        }
        let (identity, corporation, account) = WITHHELD;
        self.db.execute(
            "INSERT INTO withheld (agreement, account) VALUES (?1, ?2)",
            params![
                agreement_id(identity, corporation),
                account_id(corporation, account)
            ],
        )?;
        Ok(())
    }

    /// The accounts of a new private customer, with their history.
    pub(super) fn open_private_accounts(&self, customer: &str) -> Result<(), BankFault> {
        for new in private_accounts() {
            let account = self.open_account(customer, &new)?;
            self.book_entries(&account, new.currency, entries::private(new.kind))?;
        }
        Ok(())
    }

    /// Books earlier transactions of an account.
    fn book_entries(
        &self,
        account: &str,
        currency: &str,
        entries: Vec<Entry>,
    ) -> Result<(), BankFault> {
        for entry in entries {
            let day = self.today().saturating_sub(entry.days.days());
            self.book(&Posting {
                booked: day,
                valued: day,
                details: entry.details,
                bookings: from_own(Own::Settlement, currency, account, entry.amount),
            })?;
        }
        Ok(())
    }

    /// An invoice paid from abroad, with all the transaction details that exist (SBX-8).
    fn book_invoice(&self, account: &str) -> Result<(), BankFault> {
        let day = self.today().saturating_sub(3.days());
        let number = self
            .account(account)?
            .map(|account| account.bban)
            .unwrap_or_default();
        let rate = self.rates.quote("EUR", NOK).map(|(_, rate)| rate);
        let amount = self
            .rates
            .convert(250_000, "EUR", NOK)
            .ok_or(BankFault::TooLarge)?;
        let details = json!({
            "bankTransactionCode": "PMNT-RCDT-XBCT",
            "endToEndId": "FAKTURA-4711",
            "currencyExchange": {
                "sourceCurrency": "EUR", "exchangeRate": rate, "unitCurrency": "EUR", "targetCurrency": NOK,
                "quotationDate": self.rates.quoted.to_string(), "contractIdentification": "SPOT-1"},
            "creditorId": "NO910000004",
            "creditorName": "Fisk og Redskap AS",
            "creditorAccount": {"iban": iban(&number), "bban": number, "currency": NOK},
            "creditorAgent": BIC,
            "ultimateCreditor": "Fisk og Redskap Eksport",
            "debtorName": "Werkzeugbau Muster GmbH",
            "debtorAccount": {"iban": "DE89370400440532013000", "currency": "EUR"},
            "debtorAgent": "COBADEFFXXX",
            "ultimateDebtor": "Muster Holding SE",
            "remittanceInformationUnstructured": "Faktura 4711",
            "purposeCode": "SUPP",
            "proprietaryBankTransactionCode": "UTLAND INN",
            "additionalInformationProprietary1": "UTLAND INN 0047110021",
            "remittanceInformationUnstructuredArray": ["Faktura 4711", "12 kasser klippfisk"],
            "remittanceInformationStructuredArray": [
                {"reference": "47116", "referenceType": "SCOR", "referenceIssuer": "Fisk og Redskap AS"}],
        });
        self.book(&Posting {
            booked: day,
            valued: day,
            details: object(&details),
            bookings: from_own(Own::Settlement, NOK, account, amount),
        })?;
        Ok(())
    }
}

/// SBX-1: two accounts and a card account.
fn private_accounts() -> [NewAccount<'static>; 3] {
    [
        NewAccount {
            name: "Brukskonto",
            opening: 900_000,
            ..NewAccount::default()
        },
        NewAccount {
            kind: AccountKind::Savings,
            name: "Sparekonto",
            opening: 4_963_300,
            ..NewAccount::default()
        },
        NewAccount {
            kind: AccountKind::Card,
            name: "Kredittkort med reiseforsikring og utvidet garanti",
            credit_line: 5_000_000,
            ..NewAccount::default()
        },
    ]
}

/// SBX-1: two accounts.
fn corporate_accounts(kid: Option<Modulus>) -> [NewAccount<'static>; 2] {
    [
        NewAccount {
            name: "Driftskonto",
            credit_line: 20_000_000,
            opening: 48_750_000,
            kid,
            ..NewAccount::default()
        },
        NewAccount {
            name: FOREIGN,
            currency: "EUR",
            opening: 1_775_000,
            ..NewAccount::default()
        },
    ]
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// The id of an agreement.
fn agreement_id(representative: &str, corporation: &str) -> String {
    fixed_id(&format!("{representative} for {corporation}"))
}

/// The id of a customer's account.
fn account_id(owner: &str, name: &str) -> String {
    fixed_id(&format!("{owner} {name}"))
}

/// An id that is the same after each initialisation.
fn fixed_id(name: &str) -> String {
    let hash: [u8; 32] = Sha256::digest(["portvakt sandbox ", name].concat()).into();
    let mut half = [0; 16];
    half.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    uuid::Builder::from_random_bytes(half)
        .into_uuid()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::bank::tests::bank;
    use std::collections::BTreeSet;

    /// Identity, context, and ids and numbers of the accounts.
    type Known = (String, String, Vec<(String, String)>);

    /// Every customer.
    fn state(bank: &Bank) -> Vec<Known> {
        let customers = bank.customers().unwrap().into_iter();
        customers
            .map(|customer| {
                let accounts = bank.accounts_of(&customer.id).unwrap().into_iter();
                let accounts = accounts.map(|account| (account.id, account.bban)).collect();
                (customer.identity, customer.context, accounts)
            })
            .collect()
    }

    //= SBX-1 accepted
    #[test]
    fn an_initialisation_resets_to_the_known_state() {
        let (bank, _) = bank();
        let first = state(&bank);
        let of = |context: &str| {
            let chosen = first.iter().filter(|(_, known, _)| known == context);
            chosen
                .map(|(_, _, accounts)| accounts.len())
                .collect::<Vec<_>>()
        };
        assert_eq!((of("PRIVATE"), of("CORPORATE")), (vec![3; 3], vec![2; 3]));

        // Created by hand, and removed.
        let tpp = "PSDNO-FSA-1";
        let kari = bank.customer("01010112345").unwrap();
        let gone = bank.psu_id(tpp, &kari).unwrap();
        let ola = bank.customer(WITH_AGREEMENT).unwrap();
        let psu = bank.psu_id(tpp, &ola).unwrap();
        let account = bank.accounts_of(&ola.id).unwrap().remove(0);
        let by_hand = bank.open_account(&ola.id, &NewAccount::default()).unwrap();
        let open = BTreeSet::from([account.id.clone(), by_hand.clone()]);
        bank.consent(psu, None, &open).unwrap();
        let before = bank.balance(&account.id).unwrap();
        bank.adjust(&account.id, NOK, 100, Map::new()).unwrap();
        assert_ne!(state(&bank), first);

        bank.atomically(Bank::initialise).unwrap();
        assert_eq!(state(&bank), first);
        assert_eq!(bank.balance(&account.id).unwrap(), before);
        assert_eq!(bank.account(&by_hand).unwrap(), None);
        assert_eq!(bank.psu(tpp, gone).unwrap(), None);
        // The remaining customers keep their PSU-IDs and consents.
        assert_eq!(bank.psu(tpp, psu).unwrap(), Some(ola));
        assert_eq!(
            bank.open_accounts(psu, None).unwrap(),
            BTreeSet::from([account.id])
        );
    }
}
