//! The subject of an SCA, as the PSU must see it: accounts, a registration, or payments with everything that they say.

use super::super::bank::{Bank, BankFault};
use super::super::control::Pending;
use super::super::customer::{Account, Customer};
use super::super::payment::{Form, Payment};
use jiff::civil::Date;
use serde_json::Value;
use uuid::Uuid;

/// The subject of the SCA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Access to accounts.
    Accounts,
    /// Registration of the PSU.
    Registration,
    /// A payment, or a basket of them.
    Payments {
        /// Each that waits to be signed, in order. None if all were signed, cancelled or refused before.
        payments: Vec<Shown>,
        /// What leaves the account, with fees, where there are several transfers from accounts in one currency.
        total: Option<Sum>,
        /// The only person who may sign them: a national identity number.
        payer: String,
        /// The agreement, in a corporate context.
        agreement: Option<Uuid>,
    },
    /// A payment or a basket that the bank does not know.
    Unknown,
}

/// A sum, in minor units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    /// The amount.
    pub(super) amount: i64,
    /// The digits after the point.
    pub(super) digits: u32,
    /// The currency.
    pub(super) currency: String,
}

/// A payment, for its payer to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The payment's id.
    pub(super) id: String,
    /// The product.
    pub(super) product: String,
    /// The debtor's account and its owner; `None` if the account is gone.
    pub(super) debtor: Option<(Account, Customer)>,
    /// At least one; a bulk has several.
    pub(super) transfers: Vec<Transfer>,
    /// The fees together; zero is none.
    pub(super) fee: Sum,
    /// The day on which it is carried out first.
    pub(super) due: Date,
    /// How often it is carried out, as the TPP wrote it, if it is periodic.
    pub(super) frequency: Option<String>,
}

/// One transfer of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    /// The instructed amount.
    pub(super) amount: Sum,
    /// The amount that leaves the account, where it is in another currency.
    pub(super) debit: Option<Sum>,
    /// The creditor's name.
    pub(super) creditor: String,
    /// The creditor's account number.
    pub(super) number: String,
    /// The message to the creditor.
    pub(super) message: Option<String>,
    /// The payment reference.
    pub(super) reference: Option<String>,
}

impl Subject {
    /// The subject of `pending`, as far as the bank knows it.
    pub(super) fn of(bank: &Bank, pending: &Pending) -> Result<Self, BankFault> {
        let Some(path) = &pending.resource else {
            return Ok(if pending.asks_consent {
                Self::Accounts
            } else {
                Self::Registration
            });
        };
        let payments = match path.strip_prefix("/v1/signing-baskets/") {
            Some(id) => {
                let basket = bank.basket(&pending.tpp, id)?;
                basket.map(|basket| basket.payments).unwrap_or_default()
            }
            None => bank.payment_at(&pending.tpp, path)?.into_iter().collect(),
        };
        let Some(first) = payments.first() else {
            return Ok(Self::Unknown);
        };
        let payer = bank.customer_by_id(&first.customer)?.identity;
        let agreement = first.agreement;
        // The others are not signed, so they are neither shown nor summed.
        let to_sign: Vec<_> = payments
            .iter()
            .filter(|payment| payment.is_to_sign())
            .collect();
        let total = total(bank, &to_sign)?;
        let payments = to_sign.into_iter().map(|payment| Shown::of(bank, payment));
        Ok(Self::Payments {
            payments: payments.collect::<Result<_, _>>()?,
            total,
            payer,
            agreement,
        })
    }

    /// Whether this person may end the SCA: a payment is signed by its payer alone.
    pub(super) fn may_be_ended_by(&self, identity: &str) -> bool {
        !matches!(self, Self::Payments { payer, .. } if payer != identity)
    }

    /// Whether there were payments, and none of them waits to be signed.
    pub(super) const fn is_settled(&self) -> bool {
        matches!(self, Self::Payments { payments, .. } if payments.is_empty())
    }

    /// The ids of the payments that wait to be signed.
    pub(super) fn payments(&self) -> Vec<String> {
        match self {
            Self::Payments { payments, .. } => {
                payments.iter().map(|payment| payment.id.clone()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What leaves the debtors' accounts in all. `None` for a single transfer, which says so itself, and for several currencies.
fn total(bank: &Bank, payments: &[&Payment]) -> Result<Option<Sum>, BankFault> {
    let mut total: Option<Sum> = None;
    let (mut transfers, mut is_mixed) = (0_usize, false);
    for payment in payments {
        let Some(account) = bank.account(&payment.debtor)? else {
            return Ok(None);
        };
        let sum = total.get_or_insert_with(|| Sum {
            amount: 0,
            digits: bank.rates.digits(&account.currency).unwrap_or(2),
            currency: account.currency.clone(),
        });
        is_mixed |= sum.currency != account.currency;
        for part in &payment.parts {
            let leaves = part.debit.saturating_add(part.fee);
            sum.amount = sum.amount.saturating_add(leaves);
            transfers = transfers.saturating_add(1);
        }
    }
    Ok(total.filter(|_| transfers > 1 && !is_mixed))
}

impl Shown {
    fn of(bank: &Bank, payment: &Payment) -> Result<Self, BankFault> {
        let debtor = match bank.account(&payment.debtor)? {
            Some(account) => {
                let owner = bank.customer_by_id(&account.customer)?;
                Some((account, owner))
            }
            None => None,
        };
        let sum = |amount, currency: &str| Sum {
            amount,
            digits: bank.rates.digits(currency).unwrap_or(2),
            currency: currency.to_owned(),
        };
        let currency = debtor
            .as_ref()
            .map_or("", |(account, _)| account.currency.as_str());
        let transfers = payment.parts.iter().map(|part| {
            let text = |name: &str| Some(part.details.get(name)?.as_str()?.to_owned());
            let account = part.details.get("creditorAccount");
            let number = |kind: &str| Some(account?.get(kind)?.as_str()?.to_owned());
            let structured = part.details.get("remittanceInformationStructuredArray");
            let reference = structured.and_then(|all| all.get(0)?.get("reference")?.as_str());
            Transfer {
                amount: sum(part.amount, &part.currency),
                debit: (part.currency != currency).then(|| sum(part.debit, currency)),
                creditor: text("creditorName").unwrap_or_default(),
                number: number("bban")
                    .or_else(|| number("iban"))
                    .unwrap_or_default(),
                message: text("remittanceInformationUnstructured"),
                reference: reference.map(str::to_owned),
            }
        });
        let body: Value = serde_json::from_str(&payment.body).unwrap_or_default();
        let member = |name: &str| Some(body.get(name)?.as_str()?.to_owned());
        Ok(Self {
            id: payment.id.clone(),
            product: payment.product.clone(),
            transfers: transfers.collect(),
            fee: sum(payment.fee(), currency),
            due: match payment.form {
                Form::Periodic => member("startDate").and_then(|day| day.parse().ok()),
                Form::Single | Form::Bulk => None,
            }
            .unwrap_or_else(|| bank.due_day(payment.requested)),
            frequency: match payment.form {
                Form::Periodic => member("frequency"),
                Form::Single | Form::Bulk => None,
            },
            debtor,
        })
    }
}
