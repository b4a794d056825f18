//! The payments that the bank exempts from SCA (§SCA 1, SBX-17).
//!
//! A real bank decides by the PSU's list of trusted beneficiaries and by the risk (Commission Delegated Regulation (EU) 2018/389,
//! Articles 13 to 18). Here every customer trusts one creditor, so that a TPP can choose: the same amount to another creditor, and
//! a larger amount to this one, need SCA. Invariant: an exempted payment has its funds.

use super::super::bank::{Bank, BankFault};
use super::super::money::NOK;
use super::{Form, Part, Payment};

/// The account of the creditor that every customer trusts, at another bank.
const TRUSTED: &str = "NO5986011130005";

/// The largest amount that is exempted, in øre.
const MOST_EXEMPTED: i64 = 50_000;

impl Bank {
    /// Whether a payment that is not signed goes on without SCA.
    pub(in super::super) fn is_exempt(&self, payment: &Payment) -> Result<bool, BankFault> {
        let (Form::Single, [part]) = (payment.form, payment.parts.as_slice()) else {
            return Ok(false);
        };
        let worth = self.rates.convert(part.amount, &part.currency, NOK);
        if !is_to_trusted(part) || worth.is_none_or(|worth| worth > MOST_EXEMPTED) {
            return Ok(false);
        }
        let balance = self.balance(&payment.debtor)?;
        let needed = part.debit.saturating_add(part.fee);
        Ok(balance.available() >= needed && self.has_room(&balance, part)?)
    }
}

fn is_to_trusted(part: &Part) -> bool {
    let account = part.details.get("creditorAccount");
    let number = account.and_then(|account| account.get("iban")?.as_str());
    number == Some(TRUSTED)
}
