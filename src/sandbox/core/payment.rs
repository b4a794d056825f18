//! Payments: their stored form, and the transitions of their statuses (SBX-6).
//!
//! ```text
//!     RCVD ─sign─▶ ACTC, ACWC, PDNG or ACCP ─batch─▶ ACSP ─batch─▶ ACSC        to another bank
//!                                           ─batch─▶ ACSC                      within the bank
//!     RCVD ─sign─▶ ACWP ─batch─▶ ACSC, or ACSC at once                         instant
//! ```
//!
//! The interface names the statuses and hardly defines them. Here, ACTC is signed and waits for its day; ACWC likewise, for
//! another day than requested, which is not a bank day; PDNG is a large transfer abroad under review until the next run; ACCP
//! lacks funds; ACSP is booked and in transit to the other bank; ACWP likewise for an instant payment; ACSC has arrived. RJCT and
//! CANC are final; signing refuses what would give an account a balance of more digits than an amount has. A bulk is PART if only
//! some of its parts were refused. Invariants: only signing, the batch, a change and a cancellation change a status, never a read; a
//! payment's status is not stored, but follows from its parts; a booking is never undone. Pending means signed and not booked.

// A TPP's order: the body, parsed and validated.
pub(super) mod order;
// The fee.
pub(super) mod fee;
// The accounts that can be paid from, and the payments that need no SCA.
mod exemption;
mod permission;
// The transitions.
mod batch;
pub(super) mod change;
mod signing;

use super::bank::{Bank, BankFault, day};
pub(super) use super::payment_status::Status;
use super::psu::in_context;
use jiff::civil::Date;
use rusqlite::{Row, params};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The product that needs no exchange and no BIC.
pub(super) const DOMESTIC: &str = "norwegian-domestic-credit-transfers";
/// The product for transfers abroad.
pub(super) const CROSS_BORDER: &str = "norwegian-cross-border-credit-transfers";
/// The product that is booked at once.
pub(super) const INSTANT: &str = "instant-norwegian-credit-transfers-straks";

/// The form of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One transfer.
    Single,
    /// Several, from one account.
    Bulk,
    /// A recurring transfer. The batch ignores it (§What the service does).
    Periodic,
}

impl Form {
    /// The stored form.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Single => "SINGLE",
            Self::Bulk => "BULK",
            Self::Periodic => "PERIODIC",
        }
    }

    fn read(name: &str) -> Result<Self, BankFault> {
        [Self::Single, Self::Bulk, Self::Periodic]
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or(BankFault::Kept("a form of payment"))
    }
}

/// One payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payment {
    /// The id that the TPP uses.
    pub(super) id: String,
    /// The TPP that initiated it; no other TPP sees it.
    pub(super) tpp: String,
    /// Its product.
    pub(super) product: String,
    /// Its form.
    pub(super) form: Form,
    /// The id of the private customer who pays.
    pub(super) customer: String,
    /// The agreement, in a corporate context.
    pub(super) agreement: Option<Uuid>,
    /// The debtor's account.
    pub(super) debtor: String,
    /// The date of initiation.
    pub(super) created: Date,
    /// The requested day.
    pub(super) requested: Option<Date>,
    /// The bank day on which it is carried out.
    pub(super) due: Date,
    /// The posted body, a JSON object.
    pub(super) body: String,
    /// Its parts, at least one.
    pub(super) parts: Vec<Part>,
}

/// One transfer of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its place, from 0.
    pub(super) number: i64,
    /// Its status.
    pub(super) status: Status,
    /// The instructed amount, in minor units.
    pub(super) amount: i64,
    /// The instructed currency.
    pub(super) currency: String,
    /// The amount that leaves the debtor's account, in its currency.
    pub(super) debit: i64,
    /// The fee, in the same currency.
    pub(super) fee: i64,
    /// The creditor's account, if it is in this bank.
    pub(super) creditor: Option<String>,
    /// The amount that the creditor's account receives, in its currency.
    pub(super) credit: i64,
    /// The transaction details.
    pub(super) details: Map<String, Value>,
    /// The number of runs of the batch that found no funds.
    pub(super) attempts: i64,
}

impl Payment {
    /// Its path, which identifies it to the gateway in an SCA.
    pub(super) fn path(&self) -> String {
        format!("/v1/payments/{}/{}", self.product, self.id)
    }

    /// Its status: that of its part, or, for a bulk, PART if some parts were refused, otherwise that of the least advanced part.
    pub(super) fn status(&self) -> Status {
        let of = |refused: bool| {
            let states = self.parts.iter().map(|part| part.status);
            states.filter(move |status| status.is_refused() == refused)
        };
        match (of(true).max(), of(false).min()) {
            (None, Some(status)) | (Some(status), None) => status,
            (Some(_), Some(_)) => Status::Partly,
            (None, None) => Status::Rejected,
        }
    }

    /// Whether it waits to be signed: it is not signed, cancelled or refused.
    pub(super) fn is_to_sign(&self) -> bool {
        self.status() == Status::Received
    }

    /// Whether there were funds, if that was checked: false if it waits or was refused for lack of them.
    pub(super) fn funds_available(&self) -> Option<bool> {
        let lacks = |part: &Part| match part.status {
            Status::WithoutFunds => true,
            Status::Rejected => part.attempts > 0,
            _ => false,
        };
        if self.parts.iter().any(lacks) {
            return Some(false);
        }
        let booked = self.parts.iter().any(|part| part.status.is_booked());
        booked.then_some(true)
    }

    /// The requested day and the bank day to which it moves, if it does. An instant payment is carried out at once, on any day.
    pub(super) fn moved_day(&self) -> Option<(Date, Date)> {
        let requested = self.requested.filter(|day| *day != self.due)?;
        (self.product != INSTANT).then_some((requested, self.due))
    }

    /// The total fee, in the debtor account's currency.
    pub(super) fn fee(&self) -> i64 {
        let fees = self.parts.iter().map(|part| part.fee);
        fees.fold(0, i64::saturating_add)
    }
}

const PAYMENT: &str = "SELECT id, tpp, product, form, customer, agreement, debtor, created, requested, due, body FROM payment";
const PART: &str = "SELECT number, status, amount, currency, debit, fee, creditor, credit, details, attempts FROM part";

impl Bank {
    /// Stores a new payment.
    pub(super) fn keep(&self, payment: &Payment) -> Result<(), BankFault> {
        self.db
            .prepare_cached(
                "INSERT INTO payment (id, number, tpp, product, form, customer, agreement, debtor, created, requested, due, body) \
                 VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM payment), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                payment.id,
                payment.tpp,
                payment.product,
                payment.form.name(),
                payment.customer,
                in_context(payment.agreement),
                payment.debtor,
                payment.created.to_string(),
                payment.requested.map(|day| day.to_string()),
                payment.due.to_string(),
                payment.body
            ])?;
        self.keep_parts(payment)
    }

    /// Stores the parts of a payment that has none.
    fn keep_parts(&self, payment: &Payment) -> Result<(), BankFault> {
        let mut keep = self.db.prepare_cached(
            "INSERT INTO part (payment, number, status, amount, currency, debit, fee, creditor, credit, details, debtor) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?;
        for part in &payment.parts {
            let credit = part.creditor.as_ref().map(|_| part.credit);
            keep.execute(params![
                payment.id,
                part.number,
                part.status.word(),
                part.amount,
                part.currency,
                part.debit,
                part.fee,
                part.creditor,
                credit,
                Value::Object(part.details.clone()).to_string(),
                payment.debtor
            ])?;
        }
        Ok(())
    }

    /// The payment with this id, of any TPP.
    pub(super) fn payment(&self, id: &str) -> Result<Option<Payment>, BankFault> {
        let mut found = self
            .db
            .prepare_cached(&format!("{PAYMENT} WHERE id = ?1"))?;
        let mut rows = found.query_and_then([id], read_payment)?;
        let Some(mut payment) = rows.next().transpose()? else {
            return Ok(None);
        };
        payment.parts = self.parts(id)?;
        Ok(Some(payment))
    }

    /// The latest payments, of every TPP, the newest first.
    pub(super) fn latest_payments(&self, most: usize) -> Result<Vec<Payment>, BankFault> {
        let mut found = self
            .db
            .prepare_cached(&format!("{PAYMENT} ORDER BY number DESC LIMIT ?1"))?;
        let mut payments = found
            .query_and_then([i64::try_from(most).unwrap_or(i64::MAX)], read_payment)?
            .collect::<Result<Vec<_>, _>>()?;
        for payment in &mut payments {
            payment.parts = self.parts(&payment.id)?;
        }
        Ok(payments)
    }

    /// A TPP's own payment, by its path.
    pub(super) fn payment_at(&self, tpp: &str, path: &str) -> Result<Option<Payment>, BankFault> {
        let id = path.rsplit('/').next().unwrap_or_default();
        let found = self.payment(id)?;
        Ok(found.filter(|payment| payment.tpp == tpp && payment.path() == path))
    }

    fn parts(&self, payment: &str) -> Result<Vec<Part>, BankFault> {
        let mut found = self
            .db
            .prepare_cached(&format!("{PART} WHERE payment = ?1 ORDER BY number"))?;
        found.query_and_then([payment], read_part)?.collect()
    }

    /// Stores the status of a part.
    fn move_part(&self, payment: &str, part: &Part, status: Status) -> Result<(), BankFault> {
        self.db
            .prepare_cached(
                "UPDATE part SET status = ?3, attempts = ?4 WHERE payment = ?1 AND number = ?2",
            )?
            .execute(params![payment, part.number, status.word(), part.attempts])?;
        Ok(())
    }
}

/// A row of [`PAYMENT`], still without its parts.
fn read_payment(row: &Row<'_>) -> Result<Payment, BankFault> {
    let text = |column| row.get::<_, String>(column);
    let agreement = text(5)?;
    let agreement = Some(agreement).filter(|agreement| !agreement.is_empty());
    let agreement = agreement.map(|id| id.parse().map_err(|_| BankFault::Kept("an agreement")));
    let requested: Option<String> = row.get(8)?;
    Ok(Payment {
        id: text(0)?,
        tpp: text(1)?,
        product: text(2)?,
        form: Form::read(&text(3)?)?,
        customer: text(4)?,
        agreement: agreement.transpose()?,
        debtor: text(6)?,
        created: day(&text(7)?)?,
        requested: requested.as_deref().map(day).transpose()?,
        due: day(&text(9)?)?,
        body: text(10)?,
        parts: Vec::new(),
    })
}

/// A row of [`PART`].
fn read_part(row: &Row<'_>) -> Result<Part, BankFault> {
    Ok(Part {
        number: row.get(0)?,
        status: Status::read(&row.get::<_, String>(1)?)?,
        amount: row.get(2)?,
        currency: row.get(3)?,
        debit: row.get(4)?,
        fee: row.get(5)?,
        creditor: row.get(6)?,
        credit: row.get::<_, Option<i64>>(7)?.unwrap_or_default(),
        details: serde_json::from_str(&row.get::<_, String>(8)?).unwrap_or_default(),
        attempts: row.get(9)?,
    })
}
