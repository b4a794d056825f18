//! Accounts of the stand-in core: numbers with their check digits, balances, transactions.
//!
//! Invariant: every number holds (modulus 11 for a BBAN of Norway, ISO 7064 for its IBAN), and no two accounts have the same.
//! Deliberately without a ledger: nothing is booked yet, so a balance is what it was when the account was opened.

use jiff::{ToSpan, civil::Date};
use serde_json::{Value, json};
use uuid::Uuid;

/// What one account is.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// The resource id, as it stands in paths and consents.
    pub(super) id: String,
    /// What its owner calls it.
    pub(super) name: &'static str,
    /// Eleven digits.
    pub(super) bban: String,
    /// In øre.
    balance: i64,
    transactions: Vec<Transaction>,
}

/// One booked transaction.
#[derive(Clone, Debug)]
struct Transaction {
    id: String,
    day: Date,
    /// In øre; less than nothing where it was paid.
    amount: i64,
    other: &'static str,
    text: &'static str,
}

/// Account numbers, one after another.
#[derive(Debug)]
pub(super) struct Numbers(u64);

impl Account {
    /// Opens an account with something in it and a little history, the last of it yesterday.
    pub(super) fn open(name: &'static str, numbers: &mut Numbers, today: Date) -> Self {
        let transaction = |days: i64, amount, other, text| Transaction {
            id: Uuid::new_v4().to_string(),
            day: today.saturating_sub(days.days()),
            amount,
            other,
            text,
        };
        Self {
            id: Uuid::new_v4().to_string(),
            name,
            bban: numbers.next(),
            balance: 1_234_550,
            transactions: vec![
                transaction(1, -19_900, "Bakeriet på hjørnet", "Kaffe og kanelboller"),
                transaction(12, 3_500_000, "Fisk og Redskap AS", "Lønn"),
            ],
        }
    }

    /// An element of the account list.
    pub(super) fn shown(&self) -> Value {
        let Self { id, bban, name, .. } = self;
        json!({
            "resourceId": id,
            "bban": bban,
            "iban": iban(bban),
            "currency": "NOK",
            "name": name,
            "_links": {
                "balances": super::link(&format!("/v1/accounts/{id}/balances"), "GET"),
                "transactions": super::link(&format!("/v1/accounts/{id}/transactions"), "GET"),
            },
        })
    }

    /// The answer of the balances operation.
    pub(super) fn balances(&self) -> Value {
        json!({
            "account": {"bban": self.bban, "iban": iban(&self.bban), "currency": "NOK"},
            "balances": [{"balanceType": "interimAvailable", "balanceAmount": nok(self.balance)}],
        })
    }

    /// The answer of the transaction list, newest first.
    pub(super) fn transactions(&self) -> Value {
        let booked = self.transactions.iter().map(|transaction| {
            let Transaction { id, day, .. } = transaction;
            let href = format!("/v1/accounts/{}/transactions/{id}", self.id);
            json!({
                "transactionId": id,
                "bookingDate": day.to_string(),
                "transactionAmount": nok(transaction.amount),
                "remittanceInformationUnstructured": transaction.text,
                "_links": {"transactionDetails": super::link(&href, "GET")},
            })
        });
        json!({"transactions": {"booked": booked.collect::<Value>(), "pending": []}})
    }

    /// The answer of the transaction details operation, if there is such a transaction.
    pub(super) fn transaction(&self, id: &str) -> Option<Value> {
        let transaction = self.transactions.iter().find(|known| known.id == id)?;
        let other = if transaction.amount < 0 {
            "creditorName"
        } else {
            "debtorName"
        };
        Some(json!({
            "transactionsDetails": {
                "transactionId": id,
                "bookingDate": transaction.day.to_string(),
                "valueDate": transaction.day.to_string(),
                "transactionAmount": nok(transaction.amount),
                other: transaction.other,
                "remittanceInformationUnstructured": transaction.text,
            },
        }))
    }
}

impl Numbers {
    /// A bank of its own: 9710 is nobody's.
    pub(super) const fn new() -> Self {
        Self(9_710_050_000)
    }

    /// The next number whose check digit is one digit.
    fn next(&mut self) -> String {
        loop {
            self.0 = self.0.saturating_add(1);
            let digits = self.0.to_string();
            if let Some(check) = modulus_11(&digits) {
                return format!("{digits}{check}");
            }
        }
    }
}

/// Øre as the interface writes amounts.
pub(super) fn nok(amount: i64) -> Value {
    let sign = if amount < 0 { "-" } else { "" };
    let amount = amount.unsigned_abs();
    let text = format!("{sign}{}.{:02}", amount / 100, amount % 100);
    json!({"amount": text, "currency": "NOK"})
}

/// The check digit, unless it would be ten.
fn modulus_11(digits: &str) -> Option<u32> {
    let weights = [5, 4, 3, 2, 7, 6, 5, 4, 3, 2];
    let digits = digits.chars().filter_map(|digit| digit.to_digit(10));
    let sum: u32 = digits
        .zip(weights)
        .map(|(digit, weight)| digit.saturating_mul(weight))
        .sum();
    let check = (11 - sum % 11) % 11;
    (check < 10).then_some(check)
}

/// ISO 13616-1: the country's letters as 23 and 24, the check digits as 00, modulo 97.
fn iban(bban: &str) -> String {
    let digits = bban.chars().chain("232400".chars());
    let rest = digits
        .filter_map(|digit| digit.to_digit(10))
        .fold(0, |rest, digit| (rest * 10 + digit) % 97);
    format!("NO{:02}{bban}", 98 - rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day() -> Date {
        jiff::civil::date(2026, 3, 1)
    }

    #[test]
    fn numbers_hold_and_differ() {
        let mut numbers = Numbers::new();
        let many: std::collections::HashSet<_> = (0..500).map(|_| numbers.next()).collect();
        assert_eq!(many.len(), 500);
        for bban in many {
            assert_eq!(bban.len(), 11, "{bban}");
            let iban = iban(&bban).parse::<iban::Iban>().unwrap();
            assert_eq!(iban::IbanLike::country_code(&iban), "NO");
        }
        // The example of ISO 13616's registry for Norway.
        assert_eq!(iban("86011117947"), "NO9386011117947");
        assert_eq!(modulus_11("8601111794"), Some(7));
    }

    #[test]
    fn an_account_has_a_balance_and_a_history() {
        let account = Account::open("Brukskonto", &mut Numbers::new(), day());
        assert_eq!(
            account.balances()["balances"][0]["balanceAmount"]["amount"],
            "12345.50"
        );
        let list = account.transactions();
        let first = &list["transactions"]["booked"][0];
        assert_eq!(first["bookingDate"], "2026-02-28");
        assert_eq!(first["transactionAmount"]["amount"], "-199.00");
        let id = first["transactionId"].as_str().unwrap();
        let details = account.transaction(id).unwrap();
        assert_eq!(details["transactionsDetails"]["transactionId"], id);
        assert_eq!(account.transaction("another"), None);
    }
}
