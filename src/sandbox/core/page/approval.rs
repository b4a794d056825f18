//! The contexts that a PSU may choose from, and an approval in one of them.
//!
//! Invariant: an approval contains only accounts of its own context, regardless of the submitted form.

use super::super::bank::{Bank, BankFault};
use super::super::control::Pending;
use super::super::customer::Account;
use super::super::ending::Approval;
use super::super::grants::{Grants, Standing};
use super::subject::{Subject, Sum};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

/// A context that is open to the PSU.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// The PSU-ID for the TPP.
    psu: Uuid,
    /// The agreement; `None` for PRIVATE.
    agreement: Option<Uuid>,
    /// The name of the person or the corporation.
    pub(super) name: String,
    /// Its accounts.
    pub(super) accounts: Vec<Choice>,
}

/// An account that can be opened to the TPP.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// The account.
    pub(super) account: Account,
    /// The usable amount.
    pub(super) available: Sum,
    /// Whether the PSU opened it to the TPP, and has not withdrawn this since.
    pub(super) is_open: bool,
    /// Whether the TPP may read it today, without another SCA.
    pub(super) is_readable: bool,
}

/// The contexts that the PSU may choose from, limited by the TPP's choice. Whether the TPP may read accounts is the gateway's to say.
pub(super) fn contexts(
    bank: &Bank,
    pending: &Pending,
    subject: &Subject,
    identity: &str,
    grants: &Grants,
) -> Result<Vec<Context>, BankFault> {
    let customer = bank.customer(identity)?;
    let psu = bank.psu_id(&pending.tpp, &customer)?;
    let own = (None, customer.name.clone());
    let agreements = bank.agreements_of(&customer.id)?.into_iter();
    let agreements = agreements.map(|agreement| (Some(agreement.id), agreement.name));
    let asked = [own]
        .into_iter()
        .chain(agreements)
        .filter(|(agreement, _)| is_asked_for(pending, subject, *agreement));
    let open_agreements = bank.open_agreements(psu)?;
    let today = bank.now().timestamp();
    let is_current = grants.until().is_some_and(|until| until > today);
    asked
        .map(|(agreement, name)| {
            let open = bank.open_accounts(psu, agreement)?;
            let (is_given, is_whole) = match grants.standing(agreement, open_agreements) {
                Standing::Given(grant) => (true, grant.is_none_or(|grant| grant.is_of(open.len()))),
                Standing::Unclear | Standing::Ended => (false, false),
            };
            let accounts = bank.accounts_in(&customer.id, agreement)?;
            let accounts = accounts.unwrap_or_default().into_iter().map(|account| {
                let is_open = is_given && open.contains(&account.id);
                let is_readable = is_open && is_whole && is_current;
                choice(bank, account, is_open, is_readable)
            });
            Ok(Context {
                psu,
                agreement,
                name,
                accounts: accounts.collect::<Result<_, _>>()?,
            })
        })
        .collect()
}

fn choice(
    bank: &Bank,
    account: Account,
    is_open: bool,
    is_readable: bool,
) -> Result<Choice, BankFault> {
    Ok(Choice {
        available: Sum {
            amount: bank.balance(&account.id)?.available(),
            digits: bank.rates.digits(&account.currency).unwrap_or(2),
            currency: account.currency.clone(),
        },
        account,
        is_open,
        is_readable,
    })
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

    /// Whether it is a corporation's.
    pub(super) const fn is_corporate(&self) -> bool {
        self.agreement.is_some()
    }

    /// Approves with these selected accounts.
    pub(super) fn approve<'a>(
        &self,
        request: &str,
        pending: &Pending,
        subject: &Subject,
        ticked: impl Iterator<Item = &'a str>,
    ) -> Approval {
        let ticked: BTreeSet<&str> = ticked.collect();
        let ids = self.accounts.iter().map(|choice| choice.account.id.clone());
        let accounts = pending
            .asks_consent
            .then(|| ids.filter(|id| ticked.contains(id.as_str())).collect());
        Approval {
            tpp: pending.tpp.clone(),
            psu: self.psu,
            agreement: self.agreement,
            completion: self.completion(request, accounts.as_ref()),
            accounts,
            payments: subject.payments(),
        }
    }

    /// The body of `/sca/complete`. A consent without accounts counts as none.
    fn completion(&self, request: &str, accounts: Option<&BTreeSet<String>>) -> Value {
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
        if let Some(accounts) = accounts {
            say("consent", json!(!accounts.is_empty()));
            if !accounts.is_empty() {
                say("accounts", json!(accounts));
            }
        }
        said
    }
}
