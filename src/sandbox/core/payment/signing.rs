//! The PSU's actions on a payment: signing it on the bank's page, and cancelling it in the bank's own channel (SBX-14). To change it
//! there is in change.rs.

use super::super::bank::{Bank, BankFault};
use super::super::calendar::{bank_day_from, next_run};
use super::super::money::NOK;
use super::{CROSS_BORDER, INSTANT, Part, Payment, Status};
use jiff::civil::{Date, DateTime};
use rusqlite::params;

/// The amount from which a transfer abroad is reviewed before it is booked, because tax authorities require it (§Payment creation
/// request), in øre.
const LOOKED_AT: i64 = 10_000_000;

impl Bank {
    /// The next run of the batch, in the bank's time zone.
    pub(in super::super) fn next_run(&self) -> DateTime {
        next_run(&self.now())
    }

    /// The day of that run.
    pub(in super::super) fn processing_day(&self) -> Date {
        self.next_run().date()
    }

    /// The bank day on which a payment is carried out.
    pub(in super::super) fn due_day(&self, requested: Option<Date>) -> Date {
        let earliest = self.processing_day();
        bank_day_from(requested.map_or(earliest, |day| day.max(earliest)))
    }

    /// Signs a payment. One that is already signed, cancelled or refused keeps its status; one from an account that the bank permits no
    /// payments from any more is refused.
    pub(in super::super) fn sign(&self, id: &str) -> Result<(), BankFault> {
        let Some(payment) = self.payment(id)? else {
            return Ok(());
        };
        // A request for today that is booked today is no change, at any hour; nor is a request without a day.
        let due = self.due_day(payment.requested);
        let is_changed = payment.requested.is_some_and(|requested| requested != due);
        self.db
            .prepare_cached("UPDATE payment SET due = ?2 WHERE id = ?1")?
            .execute(params![id, due.to_string()])?;
        let may_pay = self.may_pay_from(&payment.debtor)?;
        for part in &payment.parts {
            if part.status != Status::Received {
                continue;
            }
            if !may_pay {
                self.move_part(id, part, Status::Rejected)?;
                continue;
            }
            if payment.product == INSTANT {
                self.execute(&payment, part, self.today(), true)?;
                continue;
            }
            let balance = self.balance(&payment.debtor)?;
            let needed = part.debit.saturating_add(part.fee);
            let status = if !self.has_room(&balance, part)? {
                Status::Rejected
            } else if self.is_looked_at(&payment, part) {
                Status::Pending
            } else if due <= self.processing_day() && balance.available() < needed {
                // Payments that are signed already have their funds before this one.
                Status::WithoutFunds
            } else if is_changed {
                Status::Changed
            } else {
                Status::Signed
            };
            self.move_part(id, part, status)?;
        }
        Ok(())
    }

    /// Whether one of these payments waits to be signed.
    pub(in super::super) fn has_one_to_sign(&self, ids: &[String]) -> Result<bool, BankFault> {
        for id in ids {
            let payment = self.payment(id)?;
            if payment.is_some_and(|payment| payment.is_to_sign()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Cancels a payment in the bank's own channel; returns whether that was possible: a booked payment stays booked.
    pub(in super::super) fn cancel(&self, payment: &Payment) -> Result<bool, BankFault> {
        let open = |part: &&Part| part.status == Status::Received || part.status.is_pending();
        for part in payment.parts.iter().filter(open) {
            self.move_part(&payment.id, part, Status::Cancelled)?;
        }
        Ok(payment.parts.iter().any(|part| open(&part)))
    }

    fn is_looked_at(&self, payment: &Payment, part: &Part) -> bool {
        let worth = self.rates.convert(part.amount, &part.currency, NOK);
        payment.product == CROSS_BORDER && worth.is_none_or(|worth| worth >= LOOKED_AT)
    }
}
