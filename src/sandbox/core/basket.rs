//! Signing baskets (SBX-7): payments of one TPP and one PSU that are signed together.
//!
//! Invariants: a basket's status is not stored, but is the worst of its payments'; signing is not atomic, so a payment that
//! cannot be signed does not block the others; a payment is in at most one basket.

use super::bank::{Bank, BankFault};
use super::customer::Customer;
use super::payment::{Payment, Status};
use super::psu::in_context;
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

/// One basket.
#[derive(Clone, Debug)]
pub(super) struct Basket {
    /// The id that the TPP uses.
    pub(super) id: String,
    /// Its payments, at least one, in the order of the request.
    pub(super) payments: Vec<Payment>,
}

impl Basket {
    /// Its path.
    pub(super) fn path(&self) -> String {
        format!("/v1/signing-baskets/{}", self.id)
    }

    /// The worst case over its payments (§Signing basket status values): RJCT, then RCVD, then PATC, then ACTC.
    pub(super) fn status(&self) -> &'static str {
        let ranked = self.payments.iter().map(|payment| rank(payment.status()));
        ranked.min().map_or("RJCT", |(_, word)| word)
    }
}

/// The rank of a payment in its basket, the worst first. PATC: signed and delayed.
const fn rank(status: Status) -> (u8, &'static str) {
    match status {
        Status::Rejected | Status::Cancelled => (0, "RJCT"),
        Status::Received => (1, "RCVD"),
        Status::Pending | Status::WithoutFunds | Status::Changed | Status::Partly => (2, "PATC"),
        Status::Signed | Status::InSettlement | Status::WithoutPosting | Status::Settled => {
            (3, "ACTC")
        }
    }
}

impl Bank {
    /// Puts payments into a new basket; returns its id.
    pub(super) fn new_basket(
        &self,
        tpp: &str,
        customer: &Customer,
        agreement: Option<Uuid>,
        payments: &[Payment],
    ) -> Result<String, BankFault> {
        let id = Uuid::new_v4().to_string();
        self.db
            .prepare_cached(
                "INSERT INTO basket (id, tpp, customer, agreement) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![id, tpp, customer.id, in_context(agreement)])?;
        let mut keep = self.db.prepare_cached(
            "INSERT INTO basket_payment (basket, position, payment) VALUES (?1, ?2, ?3)",
        )?;
        for (payment, position) in payments.iter().zip(0_i64..) {
            keep.execute(params![id, position, payment.id])?;
        }
        Ok(id)
    }

    /// A TPP's own basket.
    pub(super) fn basket(&self, tpp: &str, id: &str) -> Result<Option<Basket>, BankFault> {
        let mut found = self
            .db
            .prepare_cached("SELECT 1 FROM basket WHERE id = ?1 AND tpp = ?2")?;
        let found: Option<i64> = found
            .query_row(params![id, tpp], |row| row.get(0))
            .optional()?;
        if found.is_none() {
            return Ok(None);
        }
        let mut ids = self.db.prepare_cached(
            "SELECT payment FROM basket_payment WHERE basket = ?1 ORDER BY position",
        )?;
        let ids = ids.query_map([id], |row| row.get::<_, String>(0))?;
        let mut payments = Vec::new();
        for id in ids {
            payments.extend(self.payment(&id?)?);
        }
        Ok(Some(Basket {
            id: id.to_owned(),
            payments,
        }))
    }

    /// Whether a payment is in a basket already.
    pub(super) fn is_in_a_basket(&self, payment: &str) -> Result<bool, BankFault> {
        let mut found = self
            .db
            .prepare_cached("SELECT 1 FROM basket_payment WHERE payment = ?1")?;
        Ok(found.exists([payment])?)
    }
}
