//! The ledger: postings by double entry, and balances.
//!
//! Invariants: the bookings of a posting sum to zero in each currency, so all bookings do; a posting is never changed or removed.
//! A balance is a sum, computed when it is read. No balance of a customer has more digits than an amount, so no sum overflows: whoever
//! books or signs asks [`Balance::has_room_for`] before.

use super::bank::{Bank, BankFault};
use super::money::MOST;
use super::payment_status::PENDING;
use jiff::ToSpan;
use jiff::civil::Date;
use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The age in days of the oldest booking: history older than 90 and 180 days can be tried (SBX-17), with room beyond a year.
pub(super) const HISTORY_DAYS: i64 = 400;

/// An account of the bank's own, one per currency, created at its first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Own {
    /// Payments in transit to and from other banks.
    Clearing,
    /// Settled with other banks.
    Settlement,
    /// Income from fees.
    Fees,
    /// Holdings of a currency from exchange.
    Exchange,
    /// The source of the simulated money: opening balances, and manual changes by TPPs.
    Simulation,
}

impl Own {
    /// The name in account ids.
    const fn name(self) -> &'static str {
        match self {
            Self::Clearing => "clearing",
            Self::Settlement => "settlement",
            Self::Fees => "fees",
            Self::Exchange => "exchange",
            Self::Simulation => "simulation",
        }
    }
}

/// An account of the ledger: one of the bank's own, in one currency, or a customer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LedgerAccount<'a> {
    /// The bank's own.
    Own(Own, &'a str),
    /// A customer's, by its id.
    Customer(&'a str),
}

/// A business event to be booked.
#[derive(Clone, Debug)]
pub(super) struct Posting<'a> {
    /// The booking date.
    pub(super) booked: Date,
    /// The value date.
    pub(super) valued: Date,
    /// The transaction details.
    pub(super) details: Map<String, Value>,
    /// The accounts, and the amounts in minor units.
    pub(super) bookings: Vec<(LedgerAccount<'a>, i64)>,
}

/// The balances of an account, in minor units of its currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Balance {
    /// The sum of its bookings.
    pub(super) booked: i64,
    /// Signed outgoing payments that are not booked, with their fees.
    pub(super) leaving: i64,
    /// The part of `leaving` that is reserved for the next run of the batch: due by then, and funded.
    pub(super) reserved: i64,
    /// Signed incoming payments from accounts of this bank that are not booked.
    pub(super) coming: i64,
    /// The credit line.
    pub(super) credit_line: i64,
}

/// One booking, for people to read.
#[derive(Clone, Debug)]
pub(super) struct Booking {
    /// The posting's number.
    pub(super) posting: i64,
    /// The booking date.
    pub(super) booked: String,
    /// The account's number, or its id where it is the bank's own.
    pub(super) account: String,
    /// In minor units.
    pub(super) amount: i64,
    /// The account's currency.
    pub(super) currency: String,
}

impl Balance {
    /// The usable amount now (interimAvailable), including the credit line.
    pub(super) const fn available(&self) -> i64 {
        self.booked
            .saturating_sub(self.reserved)
            .saturating_add(self.credit_line)
    }

    /// The balance after all signed payments are booked (expected).
    pub(super) const fn expected(&self) -> i64 {
        self.booked
            .saturating_sub(self.leaving)
            .saturating_add(self.coming)
    }

    /// Whether this amount more may come in, or leave if it is negative: every balance stays between the largest amount and its opposite.
    pub(super) const fn has_room_for(&self, amount: i64) -> bool {
        if amount < 0 {
            let least = self.booked.saturating_sub(self.leaving);
            return least.saturating_add(amount) >= -MOST;
        }
        let most = self.booked.saturating_add(self.coming);
        most.saturating_add(self.credit_line).saturating_add(amount) <= MOST
    }
}

impl Bank {
    /// Books a posting; returns its number.
    pub(super) fn book(&self, posting: &Posting<'_>) -> Result<i64, BankFault> {
        let id = Uuid::new_v4().to_string();
        let (booked, valued) = (posting.booked.to_string(), posting.valued.to_string());
        let details = Value::Object(posting.details.clone()).to_string();
        self.db
            .prepare_cached(
                "INSERT INTO posting (id, booked, valued, details) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![id, booked, valued, details])?;
        let number = self.db.last_insert_rowid();
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for (account, amount) in &posting.bookings {
            let (account, currency) = self.id_and_currency(account)?;
            let sum = sums.entry(currency).or_default();
            *sum = sum.checked_add(*amount).ok_or(BankFault::TooLarge)?;
            self.db
                .prepare_cached(
                    "INSERT INTO booking (account, posting, amount) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![account, number, amount])?;
        }
        if sums.values().any(|sum| *sum != 0) {
            return Err(BankFault::Unbalanced);
        }
        Ok(number)
    }

    /// The sum of an account's bookings.
    pub(super) fn booked(&self, account: &str) -> Result<i64, BankFault> {
        let mut sum = self
            .db
            .prepare_cached("SELECT coalesce(sum(amount), 0) FROM booking WHERE account = ?1")?;
        Ok(sum.query_row([account], |row| row.get(0))?)
    }

    /// The bookings of the latest postings, the newest first.
    pub(super) fn latest_bookings(&self, most: usize) -> Result<Vec<Booking>, BankFault> {
        let mut found = self.db.prepare_cached(
            "SELECT posting, booked, coalesce(bban, account.id), amount, currency FROM booking \
             JOIN posting ON posting.number = posting JOIN account ON account.id = account \
             ORDER BY posting DESC, amount LIMIT ?1",
        )?;
        let rows = found.query_map([i64::try_from(most).unwrap_or(i64::MAX)], |row| {
            Ok(Booking {
                posting: row.get(0)?,
                booked: row.get(1)?,
                account: row.get(2)?,
                amount: row.get(3)?,
                currency: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The balances of a customer's account.
    pub(super) fn balance(&self, account: &str) -> Result<Balance, BankFault> {
        let booked = self.booked(account)?;
        let mut line = self
            .db
            .prepare_cached("SELECT credit_line FROM account WHERE id = ?1")?;
        let credit_line = line.query_row([account], |row| row.get(0))?;
        let mut sums = self.db.prepare_cached(&format!(
            "SELECT coalesce(sum(debit + fee), 0), \
             coalesce(sum(CASE WHEN status <> 'ACCP' AND due <= ?2 THEN debit + fee END), 0) \
             FROM part JOIN payment ON payment.id = payment \
             WHERE part.debtor = ?1 AND form <> 'PERIODIC' AND status IN {PENDING}"
        ))?;
        let day = self.processing_day().to_string();
        let (leaving, reserved) =
            sums.query_row(params![account, day], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut sum = self.db.prepare_cached(&format!(
            "SELECT coalesce(sum(credit), 0) FROM part JOIN payment ON payment.id = payment \
             WHERE creditor = ?1 AND form <> 'PERIODIC' AND status IN {PENDING}"
        ))?;
        let coming = sum.query_row([account], |row| row.get(0))?;
        Ok(Balance {
            booked,
            leaving,
            reserved,
            coming,
            credit_line,
        })
    }

    /// An account's id and currency.
    fn id_and_currency(&self, account: &LedgerAccount<'_>) -> Result<(String, String), BankFault> {
        match account {
            LedgerAccount::Own(own, currency) => {
                Ok((self.own(*own, currency)?, (*currency).to_owned()))
            }
            LedgerAccount::Customer(id) => {
                let mut found = self
                    .db
                    .prepare_cached("SELECT currency FROM account WHERE id = ?1")?;
                let currency = found.query_row([id], |row| row.get(0))?;
                Ok(((*id).to_owned(), currency))
            }
        }
    }

    fn own(&self, own: Own, currency: &str) -> Result<String, BankFault> {
        let id = format!("bank-{}-{currency}", own.name());
        let mut found = self
            .db
            .prepare_cached("SELECT 1 FROM account WHERE id = ?1")?;
        let known: Option<i64> = found.query_row([&id], |row| row.get(0)).optional()?;
        if known.is_none() {
            self.db
                .prepare_cached(
                    "INSERT INTO account (id, number, kind, name, currency, credit_line) \
                     VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM account), 'BANK', ?2, ?3, 0)",
                )?
                .execute(params![id, own.name(), currency])?;
        }
        Ok(id)
    }
}

/// The earliest booking date, as seen from a day.
pub(super) fn first_day(today: Date) -> Date {
    today.saturating_sub(HISTORY_DAYS.days())
}

/// The bookings that move an amount from an account of the bank's own to a customer's.
pub(super) fn from_own<'a>(
    own: Own,
    currency: &'a str,
    account: &'a str,
    amount: i64,
) -> Vec<(LedgerAccount<'a>, i64)> {
    vec![
        (LedgerAccount::Own(own, currency), amount.saturating_neg()),
        (LedgerAccount::Customer(account), amount),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::bank::tests::bank;
    use crate::core::money::NOK;

    #[test]
    fn a_balance_has_room_up_to_the_largest_amount() {
        let balance = Balance {
            booked: 100,
            leaving: 30,
            reserved: 20,
            coming: 7,
            credit_line: 50,
        };
        for (amount, has_room) in [
            (0, true),
            (MOST - 157, true),
            (MOST - 156, false),
            (i64::MAX, false),
            (-MOST - 70, true),
            (-MOST - 71, false),
            (i64::MIN, false),
        ] {
            assert_eq!(balance.has_room_for(amount), has_room, "{amount}");
        }
    }

    fn posting(bookings: Vec<(LedgerAccount<'_>, i64)>) -> Posting<'_> {
        let day = jiff::civil::date(2026, 3, 2);
        Posting {
            booked: day,
            valued: day,
            details: Map::new(),
            bookings,
        }
    }

    #[test]
    fn what_does_not_sum_to_zero_is_not_booked() {
        let (bank, _) = bank();
        let account = "bank-clearing-NOK";
        let book = |bookings| bank.atomically(|bank| bank.book(&posting(bookings)));
        let own = LedgerAccount::Own;
        book(vec![
            (own(Own::Clearing, NOK), 5),
            (own(Own::Fees, NOK), -5),
        ])
        .unwrap();
        assert_eq!(bank.booked(account).unwrap(), 5);
        for bookings in [
            vec![(own(Own::Clearing, NOK), 5)],
            vec![(own(Own::Clearing, NOK), 5), (own(Own::Fees, NOK), -4)],
            // The total is zero, but not in each currency.
            vec![(own(Own::Clearing, NOK), 5), (own(Own::Fees, "EUR"), -5)],
        ] {
            assert!(matches!(book(bookings), Err(BankFault::Unbalanced)));
        }
        assert_eq!(bank.booked(account).unwrap(), 5);
    }
}
