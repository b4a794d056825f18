//! The subject of an approval, and its effects.
//!
//! Invariant: an approval contains only accounts of its own context, regardless of the submitted form.

use super::super::bank::{Bank, BankFault};
use super::super::control::Pending;
use super::super::customer::Account;
use super::super::money;
use super::super::payment::Payment;
use serde_json::{Value, json};
use std::collections::BTreeSet;
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
        /// Each, in order.
        payments: Vec<Shown>,
        /// The only person who may sign them: a national identity number.
        payer: String,
        /// The agreement, in a corporate context.
        agreement: Option<Uuid>,
    },
    /// A payment or a basket that the bank does not know: only its path can be shown.
    Other {
        /// Its path.
        path: String,
    },
}

/// A payment, for its payer to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The payment's id.
    pub(super) id: String,
    /// The amounts with their currencies, one per transfer.
    pub(super) amounts: Vec<String>,
    /// The creditors' names and accounts, one per transfer.
    pub(super) creditors: Vec<String>,
    /// The fee, if there is one.
    pub(super) fee: Option<String>,
    /// The day on which it is carried out.
    pub(super) due: String,
}

impl Subject {
    /// The subject of `pending`, as far as the bank knows it.
    pub(super) fn of(bank: &Bank, pending: &Pending) -> Result<Self, BankFault> {
        let Some(path) = pending.resource.clone() else {
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
            None => bank.payment_at(&pending.tpp, &path)?.into_iter().collect(),
        };
        let Some(first) = payments.first() else {
            return Ok(Self::Other { path });
        };
        let payer = bank.customer_by_id(&first.customer)?.identity;
        let agreement = first.agreement;
        let payments = payments.iter().map(|payment| Shown::of(bank, payment));
        Ok(Self::Payments {
            payments: payments.collect::<Result<_, _>>()?,
            payer,
            agreement,
        })
    }

    /// Whether this person may end the SCA: a payment is signed by its payer alone.
    pub(super) fn may_be_ended_by(&self, identity: &str) -> bool {
        !matches!(self, Self::Payments { payer, .. } if payer != identity)
    }
}

impl Shown {
    fn of(bank: &Bank, payment: &Payment) -> Result<Self, BankFault> {
        let digits = |currency: &str| bank.rates.digits(currency).unwrap_or(2);
        let amount =
            |sum, currency: &str| format!("{currency} {}", money::written(sum, digits(currency)));
        let parts = payment.parts.iter();
        let creditors = payment.parts.iter().map(|part| {
            let text = |name: &str| part.details.get(name).and_then(Value::as_str);
            let account = part.details.get("creditorAccount");
            let number = |kind: &str| account?.get(kind)?.as_str();
            let number = number("bban").or_else(|| number("iban"));
            format!(
                "{}, {}",
                text("creditorName").unwrap_or("?"),
                number.unwrap_or("?")
            )
        });
        let account = bank.account(&payment.debtor)?;
        let currency = account.map(|account| account.currency).unwrap_or_default();
        let fee = payment.fee();
        Ok(Self {
            id: payment.id.clone(),
            amounts: parts
                .map(|part| amount(part.amount, &part.currency))
                .collect(),
            creditors: creditors.collect(),
            fee: (fee > 0).then(|| amount(fee, &currency)),
            due: bank.due_day(payment.requested).to_string(),
        })
    }
}

/// A context that is open to the PSU.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// The PSU-ID for the TPP.
    psu: Uuid,
    /// The agreement; `None` for PRIVATE.
    agreement: Option<Uuid>,
    /// The name that the PSU reads.
    pub(super) name: String,
    /// Its accounts, and whether each is already open to the TPP.
    pub(super) accounts: Vec<(Account, bool)>,
}

/// The contexts that the PSU may choose from, limited by the TPP's choice.
pub(super) fn contexts(
    bank: &Bank,
    pending: &Pending,
    subject: &Subject,
    identity: &str,
) -> Result<Vec<Context>, BankFault> {
    let customer = bank.customer(identity)?;
    let psu = bank.psu_id(&pending.tpp, &customer)?;
    let own = (None, format!("{}, privately", customer.name));
    let agreements = bank.agreements_of(&customer.id)?.into_iter();
    let agreements = agreements.map(|agreement| (Some(agreement.id), agreement.name));
    let asked = [own]
        .into_iter()
        .chain(agreements)
        .filter(|(agreement, _)| is_asked_for(pending, subject, *agreement));
    asked
        .map(|(agreement, name)| {
            let open = bank.open_accounts(psu, agreement)?;
            let accounts = bank
                .accounts_in(&customer.id, agreement)?
                .unwrap_or_default();
            let accounts = accounts.into_iter().map(|account| {
                let is_open = open.contains(&account.id);
                (account, is_open)
            });
            Ok(Context {
                psu,
                agreement,
                name,
                accounts: accounts.collect(),
            })
        })
        .collect()
}

fn is_asked_for(pending: &Pending, subject: &Subject, agreement: Option<Uuid>) -> bool {
    if let Subject::Payments {
        agreement: paying, ..
    } = subject
    {
        return *paying == agreement;
    }
    let word = agreement.map_or("PRIVATE", |_| "CORPORATE");
    pending
        .context
        .as_deref()
        .is_none_or(|chosen| chosen == word)
        && pending
            .psu_corporate_id
            .as_ref()
            .is_none_or(|chosen| agreement.is_some_and(|id| id.to_string() == *chosen))
}

impl Context {
    /// The value of the context in the form.
    pub(super) fn value(&self) -> String {
        self.agreement
            .map_or_else(|| "PRIVATE".to_owned(), |id| id.to_string())
    }

    /// Approves with these selected accounts.
    pub(super) fn approve<'a>(
        &self,
        pending: &Pending,
        ticked: impl Iterator<Item = &'a str>,
    ) -> Approval {
        let ticked: BTreeSet<&str> = ticked.collect();
        let accounts = self.accounts.iter().map(|(account, _)| account.id.clone());
        Approval {
            psu: self.psu,
            agreement: self.agreement,
            accounts: pending
                .asks_consent
                .then(|| accounts.filter(|id| ticked.contains(id.as_str())).collect()),
        }
    }
}

/// An approval of the PSU.
#[derive(Debug)]
pub(super) struct Approval {
    psu: Uuid,
    agreement: Option<Uuid>,
    /// The accounts that are open from now on, if consent was requested.
    accounts: Option<BTreeSet<String>>,
}

impl Approval {
    /// The body of `/sca/complete`. A consent without accounts counts as none.
    pub(super) fn completion(&self, request: &str) -> Value {
        let context = self.agreement.map_or("PRIVATE", |_| "CORPORATE");
        let mut said =
            json!({"request": request, "psu_id": self.psu.to_string(), "context": context});
        let mut say = |name: &str, value: Value| {
            if let Some(said) = said.as_object_mut() {
                said.insert(name.to_owned(), value);
            }
        };
        if let Some(id) = self.agreement {
            say("psu_corporate_id", id.to_string().into());
        }
        if let Some(accounts) = &self.accounts {
            say("consent", json!(!accounts.is_empty()));
            if !accounts.is_empty() {
                say("accounts", json!(accounts));
            }
        }
        said
    }

    /// Stores the approval in the bank; returns whether a consent was withdrawn, which the gateway must be told.
    pub(super) fn carry_out(&self, bank: &Bank, subject: &Subject) -> Result<bool, BankFault> {
        if let Subject::Payments { payments, .. } = subject {
            for payment in payments {
                bank.sign(&payment.id)?;
            }
        }
        let Some(accounts) = &self.accounts else {
            return Ok(false);
        };
        let was_open = bank.consent(self.psu, self.agreement, accounts)?;
        Ok(accounts.is_empty() && was_open)
    }

    /// The PSU and the agreement, as the TPP knows them.
    pub(super) const fn whose(&self) -> (Uuid, Option<Uuid>) {
        (self.psu, self.agreement)
    }
}
