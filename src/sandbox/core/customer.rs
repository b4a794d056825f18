//! Customers, private and corporate, and their accounts.
//!
//! Invariants: account numbers are unique. An account's opening balance is booked, and comes before its other bookings.

use super::bank::{Bank, BankFault};
use super::kid::Modulus;
use super::ledger::{Own, Posting, first_day, from_own};
use super::money::{self, NOK};
use rusqlite::{OptionalExtension, Row, params};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The number of digits of a national identity number.
const IDENTITY_DIGITS: usize = 11;

/// The first account number for accounts opened later; lower ones belong to the initialisation.
const FIRST_NUMBER: u64 = 9_710_060_000;

/// A private person, or a corporation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Customer {
    /// The bank's own id.
    pub(super) id: String,
    /// PRIVATE or CORPORATE.
    pub(super) context: String,
    /// A mocked national identity number, or an organisation number.
    pub(super) identity: String,
    /// The name, for people.
    pub(super) name: String,
}

/// The kind of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccountKind {
    /// A current account.
    Current,
    /// Savings.
    Savings,
    /// A credit card.
    Card,
}

impl AccountKind {
    /// The stored form.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Current => "CURRENT",
            Self::Savings => "SAVINGS",
            Self::Card => "CARD",
        }
    }

    /// Parses the stored form.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Current, Self::Savings, Self::Card]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// A customer's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    /// The resource id in paths and consents.
    pub(super) id: String,
    /// The customer's id.
    pub(super) customer: String,
    /// The kind.
    pub(super) kind: AccountKind,
    /// The owner's name for the account.
    pub(super) name: String,
    /// Eleven digits.
    pub(super) bban: String,
    /// The currency.
    pub(super) currency: String,
    /// The check of payment references, if payments to it need a KID.
    pub(super) kid: Option<Modulus>,
}

/// An account to open.
#[derive(Clone, Debug)]
pub(super) struct NewAccount<'a> {
    /// The resource id; `None` for a random one.
    pub(super) id: Option<String>,
    /// The ten digits of its number; `None` for the next ones.
    pub(super) number: Option<u64>,
    /// The kind.
    pub(super) kind: AccountKind,
    /// The owner's name for the account.
    pub(super) name: &'a str,
    /// The currency.
    pub(super) currency: &'a str,
    /// The credit line, in minor units.
    pub(super) credit_line: i64,
    /// The check of payment references, if payments to it need a KID.
    pub(super) kid: Option<Modulus>,
    /// The opening balance, in minor units.
    pub(super) opening: i64,
}

/// Whether this has the form of a national identity number. The check digits of a mocked one are not verified.
pub(super) fn is_identity(text: &str) -> bool {
    text.len() == IDENTITY_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The columns that [`customer`] reads.
pub(super) const CUSTOMER: &str = "SELECT id, context, identity, name FROM customer";
/// The columns that [`account`] reads.
const ACCOUNT: &str = "SELECT id, customer, kind, name, bban, currency, kid FROM account";

impl Bank {
    /// The private customer with this national identity number; an unknown number creates a customer with accounts (SBX-3).
    pub(super) fn customer(&self, identity: &str) -> Result<Customer, BankFault> {
        if let Some(known) = self.customer_where("identity = ?1", identity)? {
            return Ok(known);
        }
        let mut count = self.db.prepare_cached("SELECT count(*) FROM customer")?;
        let number: i64 = count.query_row([], |row| row.get(0))?;
        let id = Uuid::new_v4().to_string();
        let name = format!("Testkunde {}", number.saturating_add(1));
        self.add_customer(&id, "PRIVATE", identity, &name)?;
        self.open_private_accounts(&id)?;
        self.customer_by_id(&id)
    }

    /// The customer with this id.
    pub(super) fn customer_by_id(&self, id: &str) -> Result<Customer, BankFault> {
        let found = self.customer_where("id = ?1", id)?;
        found.ok_or(BankFault::Kept("a customer"))
    }

    /// All customers, in the order of creation.
    pub(super) fn customers(&self) -> Result<Vec<Customer>, BankFault> {
        let mut all = self
            .db
            .prepare_cached(&format!("{CUSTOMER} ORDER BY rowid"))?;
        let rows = all.query_map([], customer)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// One customer, if there is one.
    pub(super) fn customer_where(
        &self,
        condition: &str,
        value: &str,
    ) -> Result<Option<Customer>, BankFault> {
        let mut found = self
            .db
            .prepare_cached(&format!("{CUSTOMER} WHERE {condition}"))?;
        Ok(found.query_row([value], customer).optional()?)
    }

    /// Adds a customer without accounts.
    pub(super) fn add_customer(
        &self,
        id: &str,
        context: &str,
        identity: &str,
        name: &str,
    ) -> Result<(), BankFault> {
        self.db
            .prepare_cached(
                "INSERT INTO customer (id, context, identity, name) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![id, context, identity, name])?;
        Ok(())
    }

    /// Opens an account and books its opening balance; returns its id.
    pub(super) fn open_account(
        &self,
        customer: &str,
        new: &NewAccount<'_>,
    ) -> Result<String, BankFault> {
        let id = match &new.id {
            Some(id) => id.clone(),
            None => Uuid::new_v4().to_string(),
        };
        let bban = match new.number.and_then(money::bban) {
            Some(bban) => bban,
            None => self.next_number()?,
        };
        self.db
            .prepare_cached(
                "INSERT INTO account (id, number, customer, kind, name, bban, currency, credit_line, kid) \
                 VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM account), ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                id,
                customer,
                new.kind.name(),
                new.name,
                bban,
                new.currency,
                new.credit_line,
                new.kid.map(Modulus::name)
            ])?;
        if new.opening != 0 {
            let mut details = Map::new();
            details.insert(
                "remittanceInformationUnstructured".into(),
                json!("Åpningssaldo"),
            );
            // First in time: nothing can be booked on an earlier day (SBX-17).
            let first = first_day(self.today());
            self.book(&Posting {
                booked: first,
                valued: first,
                details,
                bookings: from_own(Own::Simulation, new.currency, &id, new.opening),
            })?;
        }
        Ok(id)
    }

    /// Books a change that the simulation makes; returns the posting's number.
    pub(super) fn adjust(
        &self,
        account: &str,
        currency: &str,
        amount: i64,
        details: Map<String, Value>,
    ) -> Result<i64, BankFault> {
        let today = self.today();
        self.book(&Posting {
            booked: today,
            valued: today,
            details,
            bookings: from_own(Own::Simulation, currency, account, amount),
        })
    }

    /// An account, by its id.
    pub(super) fn account(&self, id: &str) -> Result<Option<Account>, BankFault> {
        self.account_where("id = ?1", id)
    }

    /// An account, by its number.
    pub(super) fn account_of_number(&self, bban: &str) -> Result<Option<Account>, BankFault> {
        self.account_where("bban = ?1", bban)
    }

    fn account_where(&self, condition: &str, value: &str) -> Result<Option<Account>, BankFault> {
        let mut found = self
            .db
            .prepare_cached(&format!("{ACCOUNT} WHERE {condition} AND kind <> 'BANK'"))?;
        let mut rows = found.query_and_then([value], account)?;
        rows.next().transpose()
    }

    /// The accounts of a customer, in the order in which they were opened.
    pub(super) fn accounts_of(&self, customer: &str) -> Result<Vec<Account>, BankFault> {
        let mut found = self
            .db
            .prepare_cached(&format!("{ACCOUNT} WHERE customer = ?1 ORDER BY number"))?;
        found.query_and_then([customer], account)?.collect()
    }

    /// The next number that has a valid check digit.
    fn next_number(&self) -> Result<String, BankFault> {
        let last = self.setting("account-number")?;
        let mut ten = last
            .and_then(|last| last.parse().ok())
            .unwrap_or(FIRST_NUMBER);
        loop {
            ten = ten.checked_add(1).ok_or(BankFault::TooLarge)?;
            if let Some(bban) = money::bban(ten) {
                self.set("account-number", &ten.to_string())?;
                return Ok(bban);
            }
        }
    }
}

/// An empty current account in NOK.
impl Default for NewAccount<'_> {
    fn default() -> Self {
        Self {
            id: None,
            number: None,
            kind: AccountKind::Current,
            name: "Brukskonto",
            currency: NOK,
            credit_line: 0,
            kid: None,
            opening: 0,
        }
    }
}

/// A row of [`CUSTOMER`].
pub(super) fn customer(row: &Row<'_>) -> rusqlite::Result<Customer> {
    Ok(Customer {
        id: row.get(0)?,
        context: row.get(1)?,
        identity: row.get(2)?,
        name: row.get(3)?,
    })
}

/// A row of [`ACCOUNT`].
fn account(row: &Row<'_>) -> Result<Account, BankFault> {
    let kid: Option<String> = row.get(6)?;
    Ok(Account {
        id: row.get(0)?,
        customer: row.get(1)?,
        kind: AccountKind::named(&row.get::<_, String>(2)?).ok_or(BankFault::Kept("an account"))?,
        name: row.get(3)?,
        bban: row.get(4)?,
        currency: row.get(5)?,
        kid: kid.as_deref().and_then(Modulus::named),
    })
}
