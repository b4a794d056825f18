//! The permission to pay from an account: the bank may remove it, and the account is still open for account information
//! (§Bank-offered consent, SBX-17).
//!
//! Invariant: without it no payment from the account is taken or signed. Payments that were signed before are carried out.

use super::super::bank::{Bank, BankFault};

impl Bank {
    /// Whether the bank permits payments from an account.
    pub(in super::super) fn may_pay_from(&self, account: &str) -> Result<bool, BankFault> {
        let mut found = self
            .db
            .prepare_cached("SELECT 1 FROM payment_stop WHERE account = ?1")?;
        Ok(!found.exists([account])?)
    }

    /// Permits payments from an account, or removes the permission.
    pub(in super::super) fn permit_payments(
        &self,
        account: &str,
        permitted: bool,
    ) -> Result<(), BankFault> {
        let statement = match permitted {
            true => "DELETE FROM payment_stop WHERE account = ?1",
            false => "INSERT OR IGNORE INTO payment_stop (account) VALUES (?1)",
        };
        self.db.prepare_cached(statement)?.execute([account])?;
        Ok(())
    }
}
