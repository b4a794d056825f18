//! The transactions of an account: booked ones, and pending ones, which are signed and not booked.

use super::bank::{Bank, BankFault, day};
use super::customer::{Account, AccountKind};
use super::details::of_side;
use super::payment::Payment;
use super::payment_status::PENDING;
use jiff::civil::Date;
use rusqlite::{Row, params};
use serde_json::{Map, Value};

/// A booked transaction, as its account shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transaction {
    /// The id, stable because the transaction is booked.
    pub(super) id: String,
    /// The booking date.
    pub(super) booked: Date,
    /// The value date.
    pub(super) valued: Date,
    /// In minor units; negative if it left the account.
    pub(super) amount: i64,
    /// Further details.
    pub(super) details: Map<String, Value>,
}

/// The selection of transactions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// The first day.
    pub(super) from: Option<Date>,
    /// The last day.
    pub(super) to: Option<Date>,
    /// The number of skipped ones.
    pub(super) offset: i64,
    /// The most on one page.
    pub(super) limit: i64,
}

/// A signed payment that is not booked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingTransaction {
    /// The due date.
    pub(super) due: Date,
    /// In minor units; negative if it leaves the account.
    pub(super) amount: i64,
    /// Further details.
    pub(super) details: Map<String, Value>,
}

const COLUMNS: &str = "SELECT id, booked, valued, amount, details FROM booking \
    JOIN posting ON posting.number = booking.posting WHERE account = ?1";

impl Page {
    /// Whether a day is selected.
    pub(super) fn has(&self, day: Date) -> bool {
        self.from.is_none_or(|from| from <= day) && self.to.is_none_or(|to| day <= to)
    }
}

impl Bank {
    /// A page of booked transactions, newest first, and whether there are more.
    pub(super) fn transactions(
        &self,
        account: &str,
        page: &Page,
    ) -> Result<(Vec<Transaction>, bool), BankFault> {
        let mut found = self.db.prepare_cached(&format!(
            "{COLUMNS} AND booked BETWEEN ?2 AND ?3 ORDER BY booked DESC, posting.number DESC LIMIT ?4 OFFSET ?5"
        ))?;
        // Days are compared as text; an empty text precedes every day.
        let from = page.from.map(|day| day.to_string()).unwrap_or_default();
        let to = page.to.unwrap_or(Date::MAX).to_string();
        let one_more = page.limit.saturating_add(1);
        let asked = params![account, from, to, one_more, page.offset];
        let rows = found.query_and_then(asked, transaction)?;
        let mut all = rows.collect::<Result<Vec<_>, _>>()?;
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let more = all.len() > limit;
        all.truncate(limit);
        Ok((all, more))
    }

    /// One booked transaction.
    pub(super) fn transaction(
        &self,
        account: &str,
        id: &str,
    ) -> Result<Option<Transaction>, BankFault> {
        let mut found = self.db.prepare_cached(&format!("{COLUMNS} AND id = ?2"))?;
        let mut rows = found.query_and_then(params![account, id], transaction)?;
        rows.next().transpose()
    }

    /// The transaction that a posting made.
    pub(super) fn transaction_of(
        &self,
        account: &str,
        posting: i64,
    ) -> Result<Option<Transaction>, BankFault> {
        let mut found = self
            .db
            .prepare_cached(&format!("{COLUMNS} AND posting = ?2"))?;
        let mut rows = found.query_and_then(params![account, posting], transaction)?;
        rows.next().transpose()
    }

    /// A page of pending transactions, the latest payment first, and whether there are more. If the bank has the known issue, all of them
    /// are on every page, except those of a card account (SBX-10).
    pub(super) fn pending(
        &self,
        account: &Account,
        page: &Page,
    ) -> Result<(Vec<PendingTransaction>, bool), BankFault> {
        let mut all = self.all_pending(account)?;
        if self.has_known_issue && account.kind != AccountKind::Card {
            return Ok((all, false));
        }
        all.retain(|one| page.has(one.due));
        let offset = usize::try_from(page.offset).unwrap_or_default();
        let mut rest = all.into_iter().skip(offset).collect::<Vec<_>>();
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let more = rest.len() > limit;
        rest.truncate(limit);
        Ok((rest, more))
    }

    /// All signed payments that are not booked. A periodic payment is not a transaction until it is carried out.
    fn all_pending(&self, account: &Account) -> Result<Vec<PendingTransaction>, BankFault> {
        let mut found = self.db.prepare_cached(&format!(
            "SELECT due, CASE WHEN part.debtor = ?1 THEN -debit ELSE credit END, details \
             FROM part JOIN payment ON payment.id = payment \
             WHERE (part.debtor = ?1 OR creditor = ?1) AND form <> 'PERIODIC' AND status IN {PENDING} \
             ORDER BY payment.number DESC, part.number"
        ))?;
        let rows = found.query_and_then([&account.id], |row| {
            let amount = row.get(1)?;
            Ok(PendingTransaction {
                due: day(&row.get::<_, String>(0)?)?,
                amount,
                details: of_side(object(&row.get::<_, String>(2)?), amount > 0),
            })
        })?;
        rows.collect()
    }

    /// Whether the same TPP ordered the same payment earlier today.
    pub(super) fn is_duplicate(&self, payment: &Payment) -> Result<bool, BankFault> {
        let mut found = self.db.prepare_cached(
            "SELECT 1 FROM payment WHERE debtor = ?1 AND tpp = ?2 AND product = ?3 AND created = ?4 AND body = ?5",
        )?;
        let created = payment.created.to_string();
        Ok(found.exists(params![
            payment.debtor,
            payment.tpp,
            payment.product,
            created,
            payment.body
        ])?)
    }
}

fn transaction(row: &Row<'_>) -> Result<Transaction, BankFault> {
    let amount = row.get(3)?;
    Ok(Transaction {
        id: row.get(0)?,
        booked: day(&row.get::<_, String>(1)?)?,
        valued: day(&row.get::<_, String>(2)?)?,
        amount,
        details: of_side(object(&row.get::<_, String>(4)?), amount > 0),
    })
}

fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}
