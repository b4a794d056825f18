//! The fee of a payment: by its product and its currency, and higher with an exchange of currencies (§Single payment 1).

use super::super::bank::Bank;
use super::super::money::{MOST, NOK};
use super::{CROSS_BORDER, INSTANT};

/// The fee of an instant payment, in øre.
pub(in super::super) const INSTANT_FEE: i64 = 200;

/// The least fee of an exchange, in øre. The fee is a quarter of a per cent of the debited amount.
const LEAST_EXCHANGE_FEE: i128 = 1_000;

/// The divisor of the debited amount: a quarter of a per cent.
const EXCHANGE_PARTS: i128 = 400;

/// The fee of a transfer abroad, by its currency, in øre.
fn abroad(currency: &str) -> i64 {
    match currency {
        "EUR" => 2_500,
        NOK | "SEK" | "DKK" => 3_000,
        _ => 6_000,
    }
}

impl Bank {
    /// The total fee, in minor units of the debtor account's currency; `None` if it is more than an amount. `debit` is the debited amount.
    pub(in super::super) fn fee(
        &self,
        product: &str,
        currency: &str,
        debit: (i64, &str),
    ) -> Option<i64> {
        let (amount, debited) = debit;
        let product = match product {
            CROSS_BORDER => abroad(currency),
            INSTANT => INSTANT_FEE,
            _ => 0,
        };
        let exchange = if debited == currency {
            0
        } else {
            let worth = self.rates.convert_wide(amount.into(), debited, NOK)?;
            (worth / EXCHANGE_PARTS).max(LEAST_EXCHANGE_FEE)
        };
        let fee = exchange.saturating_add(product.into());
        let fee = self.rates.convert_wide(fee, NOK, debited)?;
        i64::try_from(fee).ok().filter(|fee| *fee <= MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::super::DOMESTIC;
    use super::*;
    use crate::core::bank::tests::bank;

    #[test]
    fn product_and_currency_make_the_fee_and_an_exchange_raises_it() {
        let (bank, _) = bank();
        for (product, currency, debit, fee) in [
            (DOMESTIC, NOK, (10_000, NOK), 0),
            (INSTANT, NOK, (10_000, NOK), 200),
            (CROSS_BORDER, NOK, (10_000, NOK), 3_000),
            (CROSS_BORDER, "EUR", (10_000, "EUR"), 215),
            (CROSS_BORDER, "EUR", (10_000, NOK), 3_500),
            (CROSS_BORDER, "EUR", (10_000_000, NOK), 27_500),
            (CROSS_BORDER, "USD", (10_000, NOK), 7_000),
            // Worth more in NOK than an amount has.
            (CROSS_BORDER, "USD", (MOST, "EUR"), 2_500_000_000_000_516),
        ] {
            assert_eq!(
                bank.fee(product, currency, debit).unwrap(),
                fee,
                "{product} {currency}"
            );
        }
    }
}
