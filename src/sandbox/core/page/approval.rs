//! What the PSU can approve, and what approving it does.
//!
//! Invariant: an approval names accounts of its own context only, whatever a form says.

use super::super::account::Account;
use super::super::bank::Bank;
use super::super::control::Pending;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

/// What the SCA is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Reading accounts.
    Accounts,
    /// Knowing the PSU.
    Registration,
    /// One payment.
    Payment {
        /// Its path.
        path: String,
        /// With its currency.
        amount: String,
        /// Name and account.
        creditor: String,
        /// Who alone may sign it: a national identity number.
        payer: String,
        /// On whose behalf.
        agreement: Option<Uuid>,
    },
    /// A basket, or a payment that the core has forgotten: there is only its path to show.
    Other {
        /// Its path.
        path: String,
    },
}

impl Subject {
    /// What `pending` is about, as far as the bank knows it.
    pub(super) fn of(bank: &mut Bank, pending: &Pending) -> Self {
        let Some(path) = pending.resource.clone() else {
            return if pending.asks_consent {
                Self::Accounts
            } else {
                Self::Registration
            };
        };
        match bank.payment(&pending.tpp, &path) {
            None => Self::Other { path },
            Some(payment) => Self::Payment {
                path,
                amount: payment.amount(),
                creditor: payment.creditor(),
                payer: payment.payer.clone(),
                agreement: payment.agreement,
            },
        }
    }

    /// Whether this person may: a payment is signed by its payer alone.
    pub(super) fn may_be_ended_by(&self, identity: &str) -> bool {
        !matches!(self, Self::Payment { payer, .. } if payer != identity)
    }
}

/// A context that is open to the PSU.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// The PSU, as the TPP will know them.
    psu: Uuid,
    /// None for PRIVATE.
    agreement: Option<Uuid>,
    /// For the PSU to read.
    pub(super) name: String,
    /// Its accounts, and whether each is open to the TPP already.
    pub(super) accounts: Vec<(Account, bool)>,
}

/// The contexts that the PSU may choose from: what the TPP chose narrows it.
pub(super) fn contexts(
    bank: &mut Bank,
    pending: &Pending,
    subject: &Subject,
    identity: &str,
) -> Vec<Context> {
    let psu = bank.psu_id(&pending.tpp, identity);
    let customer = bank.customer(identity);
    let own = (None, format!("{}, privately", customer.name));
    let agreements = customer
        .agreements
        .iter()
        .map(|agreement| (Some(agreement.id), agreement.name.to_owned()));
    let all: Vec<_> = [own].into_iter().chain(agreements).collect();
    all.into_iter()
        .filter(|(agreement, _)| is_asked_for(pending, subject, *agreement))
        .map(|(agreement, name)| {
            let accounts = bank.customer(identity).accounts_of(agreement);
            let accounts = accounts.unwrap_or_default().to_vec();
            let is_open = |account: &Account| bank.is_open(psu, agreement, &account.id);
            Context {
                psu,
                agreement,
                name,
                accounts: accounts
                    .into_iter()
                    .map(|account| (account.clone(), is_open(&account)))
                    .collect(),
            }
        })
        .collect()
}

fn is_asked_for(pending: &Pending, subject: &Subject, agreement: Option<Uuid>) -> bool {
    if let Subject::Payment {
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
    /// What a form says for it.
    pub(super) fn value(&self) -> String {
        self.agreement
            .map_or_else(|| "PRIVATE".to_owned(), |id| id.to_string())
    }

    /// The PSU approves, with these accounts ticked.
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

/// The PSU approved.
#[derive(Debug)]
pub(super) struct Approval {
    psu: Uuid,
    agreement: Option<Uuid>,
    /// Those that are open from now on, where consent was asked for.
    accounts: Option<BTreeSet<String>>,
}

impl Approval {
    /// The body of `/sca/complete`. A consent to no account is none.
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

    /// The bank remembers it. Gives whether a consent was taken back, which the gateway must be told.
    pub(super) fn carry_out(&self, bank: &mut Bank, subject: &Subject) -> bool {
        if let Subject::Payment { path, .. } = subject {
            bank.sign(path);
        }
        let Some(accounts) = self.accounts.clone() else {
            return false;
        };
        let is_empty = accounts.is_empty();
        let was_open = bank.consent(self.psu, self.agreement, accounts);
        is_empty && was_open
    }

    /// The PSU and the agreement, as the TPP knows them.
    pub(super) const fn whose(&self) -> (Uuid, Option<Uuid>) {
        (self.psu, self.agreement)
    }
}
