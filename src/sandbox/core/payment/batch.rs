//! The simulated batch (SBX-2): books payments, and handles those that cannot be booked.
//!
//! Invariant: a part is booked once, in the transaction that changes its status. Periodic payments are ignored.

use super::super::bank::{Bank, BankFault};
use super::super::ledger::{Balance, LedgerAccount, Own, Posting};
use super::super::money;
use super::{Part, Payment, Status};
use jiff::ToSpan;
use jiff::civil::{Date, DateTime};
use serde_json::{Map, json};

/// The setting with the time of the next run.
const NEXT_RUN: &str = "next-run";

/// The number of runs that try a payment without funds before it is refused: as many as a day has.
const ATTEMPTS: i64 = 5;

/// The number of days after which an unsigned payment is refused.
const UNSIGNED_DAYS: i64 = 7;

/// The result of a run, in parts of payments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Ran {
    /// Booked: debited from their debtors' accounts.
    pub(in super::super) booked: u32,
    /// Arrived at other banks.
    pub(in super::super) settled: u32,
    /// Without funds, and tried again.
    pub(in super::super) waiting: u32,
    /// Refused.
    pub(in super::super) rejected: u32,
    /// Reviewed, and released for the next run.
    pub(in super::super) released: u32,
}

impl Ran {
    const fn count(&mut self, status: Status) {
        let counter = match status {
            Status::WithoutFunds => &mut self.waiting,
            Status::Rejected => &mut self.rejected,
            _ => &mut self.booked,
        };
        *counter = counter.saturating_add(1);
    }
}

impl Bank {
    /// Runs the batch if it is due: with frequent calls, five times on a bank day. After a pause it runs once.
    pub(in super::super) fn run_if_due(&self) -> Result<Option<Ran>, BankFault> {
        let now = self.now().datetime();
        let next = self.next_run();
        let planned: Option<DateTime> = self
            .setting(NEXT_RUN)?
            .and_then(|planned| planned.parse().ok());
        let due = planned.filter(|planned| *planned <= now);
        if due.is_some() || planned.is_none() {
            self.set(NEXT_RUN, &next.to_string())?;
        }
        let day = due.map(|due| if due.date() == now.date() { due } else { next });
        day.map(|day| self.run_batch(day.date())).transpose()
    }

    /// Runs the batch on demand, in place of the next run: one on a Sunday books as of Monday.
    pub(in super::super) fn run_now(&self) -> Result<Ran, BankFault> {
        self.run_batch(self.processing_day())
    }

    fn run_batch(&self, day: Date) -> Result<Ran, BankFault> {
        let mut ran = Ran::default();
        for (payment, part) in self.parts_where("status IN ('ACSP', 'ACWP')", day)? {
            self.settle(&payment, &part, day)?;
            ran.settled = ran.settled.saturating_add(1);
        }
        let due = "status IN ('ACCP', 'ACWC', 'ACTC') AND due <= ?1 AND form <> 'PERIODIC'";
        for (payment, part) in self.parts_where(due, day)? {
            ran.count(self.execute(&payment, &part, day, false)?);
        }
        for (payment, part) in self.parts_where("status = 'PDNG'", day)? {
            self.move_part(&payment.id, &part, Status::Signed)?;
            ran.released = ran.released.saturating_add(1);
        }
        let since = day.saturating_sub(UNSIGNED_DAYS.days());
        for (payment, part) in self.parts_where("status = 'RCVD' AND created < ?1", since)? {
            self.move_part(&payment.id, &part, Status::Rejected)?;
            ran.rejected = ran.rejected.saturating_add(1);
        }
        Ok(ran)
    }

    /// Books a part if possible; returns its new status.
    pub(super) fn execute(
        &self,
        payment: &Payment,
        part: &Part,
        day: Date,
        at_once: bool,
    ) -> Result<Status, BankFault> {
        let mut part = part.clone();
        let needed = part.debit.saturating_add(part.fee);
        let balance = self.balance(&payment.debtor)?;
        // Runs process payments in order: a later signed payment that is not booked does not count against an earlier one.
        let usable = if at_once {
            balance.available()
        } else {
            balance.booked.saturating_add(balance.credit_line)
        };
        // What was signed before has its room.
        let has_room = !at_once || self.has_room(&balance, &part)?;
        let status = if !has_room || !self.reaches_somebody(&part) {
            Status::Rejected
        } else if usable < needed {
            part.attempts = part.attempts.saturating_add(1);
            match at_once || part.attempts >= ATTEMPTS {
                true => Status::Rejected,
                false => Status::WithoutFunds,
            }
        } else {
            self.book_part(payment, &part, day)?;
            match (part.creditor.is_some(), at_once) {
                (true, _) => Status::Settled,
                (false, true) => Status::WithoutPosting,
                (false, false) => Status::InSettlement,
            }
        };
        self.move_part(&payment.id, &part, status)?;
        Ok(status)
    }

    /// Debits the debtor's account, with the exchange, if there is one, and the fee.
    fn book_part(&self, payment: &Payment, part: &Part, day: Date) -> Result<(), BankFault> {
        let debtor = self.account(&payment.debtor)?;
        let debtor = debtor.ok_or(BankFault::Kept("an account"))?;
        let creditor = part.creditor.as_deref().map(|id| self.account(id));
        let creditor = creditor.transpose()?.flatten();
        let (target, currency, amount) = match &creditor {
            Some(account) => (
                LedgerAccount::Customer(&account.id),
                account.currency.as_str(),
                part.credit,
            ),
            None => (
                LedgerAccount::Own(Own::Clearing, &part.currency),
                part.currency.as_str(),
                part.amount,
            ),
        };
        let mut bookings = vec![
            (LedgerAccount::Customer(&debtor.id), -part.debit),
            (target, amount),
        ];
        if currency != debtor.currency {
            bookings.push((
                LedgerAccount::Own(Own::Exchange, &debtor.currency),
                part.debit,
            ));
            bookings.push((LedgerAccount::Own(Own::Exchange, currency), -amount));
        }
        self.book(&Posting {
            booked: day,
            valued: day,
            details: part.details.clone(),
            bookings,
        })?;
        if part.fee > 0 {
            let mut details = Map::new();
            details.insert("bankTransactionCode".into(), json!("PMNT-MDOP-COMM"));
            details.insert("remittanceInformationUnstructured".into(), json!("Gebyr"));
            self.book(&Posting {
                booked: day,
                valued: day,
                details,
                bookings: vec![
                    (LedgerAccount::Customer(&debtor.id), -part.fee),
                    (LedgerAccount::Own(Own::Fees, &debtor.currency), part.fee),
                ],
            })?;
        }
        Ok(())
    }

    /// Settles a part with the other bank.
    fn settle(&self, payment: &Payment, part: &Part, day: Date) -> Result<(), BankFault> {
        self.book(&Posting {
            booked: day,
            valued: day,
            details: Map::new(),
            bookings: vec![
                (
                    LedgerAccount::Own(Own::Clearing, &part.currency),
                    -part.amount,
                ),
                (
                    LedgerAccount::Own(Own::Settlement, &part.currency),
                    part.amount,
                ),
            ],
        })?;
        self.move_part(&payment.id, part, Status::Settled)
    }

    /// Whether the debtor's account, and the creditor's where it is in this bank, can keep what this part moves beside all that is signed.
    pub(super) fn has_room(&self, debtor: &Balance, part: &Part) -> Result<bool, BankFault> {
        let leaves = part.debit.saturating_add(part.fee).saturating_neg();
        let has_room = debtor.has_room_for(leaves);
        match &part.creditor {
            Some(creditor) if has_room => Ok(self.balance(creditor)?.has_room_for(part.credit)),
            _ => Ok(has_room),
        }
    }

    /// Whether the creditor's account exists: one with this bank's number must be known here.
    fn reaches_somebody(&self, part: &Part) -> bool {
        let account = part.details.get("creditorAccount");
        let number = account.and_then(|account| account.get("bban")?.as_str());
        part.creditor.is_some()
            || number.is_none_or(|number| !number.starts_with(money::BANK_NUMBER))
    }

    /// Every part that meets this condition on a day, in the order of initiation.
    fn parts_where(&self, condition: &str, day: Date) -> Result<Vec<(Payment, Part)>, BankFault> {
        let mut found = self.db.prepare_cached(&format!(
            "SELECT payment, part.number FROM part JOIN payment ON payment.id = payment \
             WHERE {condition} AND ?1 IS NOT NULL ORDER BY payment.number, part.number"
        ))?;
        let rows = found.query_map([day.to_string()], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
        let mut all = Vec::new();
        for row in rows {
            let (id, number) = row?;
            let Some(payment) = self.payment(&id)? else {
                continue;
            };
            let part = payment.parts.iter().find(|part| part.number == number);
            all.extend(part.cloned().map(|part| (payment.clone(), part)));
        }
        Ok(all)
    }
}
