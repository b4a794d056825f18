//! The accesses of TPPs to a PSU's accounts, for the PSU to see and to end (SBX-16).
//!
//! The ledger knows which accounts were opened and when a TPP read them last; the gateway says each time whether the TPP may read them
//! still. Invariants: an access is shown only if both have it; the ledger forgets an access only after the gateway has withdrawn it.
//! Deliberately not here: who the PSU is, and the page.

use super::bank::{Bank, BankFault};
use super::control::ControlFault;
use super::customer::{Account, Customer};
use super::ending::{self, Stopped};
use super::grants::{Grants, PSU_UNKNOWN, Standing};
use super::psu::Agreement;
use super::stage::AccessKey;
use super::state::Core;
use jiff::Timestamp;
use std::collections::BTreeSet;
use uuid::Uuid;

/// The reasons by which the gateway refuses to withdraw a consent that it does not have: there is none, as the PSU wants.
const NO_CONSENT: [&str; 3] = [PSU_UNKNOWN, "agreement-unknown", "agreement-missing"];

/// An access that a TPP has in one context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// The TPP, the PSU and the agreement.
    pub(super) key: AccessKey,
    /// The name of the TPP in its certificate, if known.
    pub(super) tpp_name: Option<String>,
    /// The corporation; `None` for the private context.
    pub(super) company: Option<String>,
    /// At least one.
    pub(super) accounts: Vec<Account>,
    /// When the PSU gave it, if known.
    pub(super) since: Option<Timestamp>,
    /// When it needs SCA again, if known. It may have passed.
    pub(super) until: Option<Timestamp>,
    /// When the TPP read an account last, to the minute.
    pub(super) last_use: Option<Timestamp>,
    /// The number of accounts that the gateway counts, where it is another.
    pub(super) counted: Option<u64>,
    /// Whether it may have ended at the gateway: [`Standing::Unclear`].
    pub(super) is_unclear: bool,
}

/// What a PSU opened to one TPP, by the ledger.
struct Opened {
    tpp: String,
    tpp_name: Option<String>,
    psu: Uuid,
    contexts: Vec<OpenContext>,
    /// The number of agreements among the contexts.
    agreements: usize,
}

struct OpenContext {
    agreement: Option<Agreement>,
    accounts: Vec<Account>,
    since: Option<Timestamp>,
    used: Option<Timestamp>,
}

/// The accesses that TPPs have by the consent of the person with this national identity number, by the gateway's word of now.
pub(super) async fn list(core: &Core, identity: &str) -> Result<Vec<Access>, Stopped> {
    let opened = core.bank().opened_by(identity)?;
    let mut accesses = Vec::new();
    for of_tpp in opened {
        let grants = core.control.grants(&of_tpp.tpp, of_tpp.psu).await?;
        let contexts = of_tpp.contexts.iter();
        accesses.extend(contexts.filter_map(|context| access(&of_tpp, context, &grants)));
    }
    Ok(accesses)
}

/// Withdraws accesses, one after the other: at the gateway, and then in the ledger. After an error the rest is not withdrawn.
pub(super) async fn withdraw(core: &Core, accesses: &[AccessKey]) -> Result<(), Stopped> {
    // An older approval that still waits for the gateway would give the access again.
    ending::recover(core).await?;
    let _one = core.endings.lock().await;
    for access in accesses {
        let AccessKey {
            tpp,
            psu,
            agreement,
        } = access;
        match core.control.withdraw(tpp, *psu, *agreement).await {
            Ok(_) => {}
            Err(ControlFault::Refused { reason, .. }) if NO_CONSENT.contains(&reason.as_str()) => {}
            Err(fault) => return Err(fault.into()),
        }
        core.bank()
            .atomically(|bank| bank.consent(*psu, *agreement, &BTreeSet::new()))?;
    }
    Ok(())
}

/// The access in one context, if it stands at the gateway.
fn access(of_tpp: &Opened, context: &OpenContext, grants: &Grants) -> Option<Access> {
    let agreement = context.agreement.as_ref();
    let id = agreement.map(|agreement| agreement.id);
    let (grant, is_unclear) = match grants.standing(id, of_tpp.agreements) {
        Standing::Given(grant) => (grant, false),
        Standing::Unclear => (None, true),
        Standing::Ended => return None,
    };
    let other = grant.filter(|grant| !grant.is_of(context.accounts.len()));
    Some(Access {
        key: AccessKey {
            tpp: of_tpp.tpp.clone(),
            psu: of_tpp.psu,
            agreement: id,
        },
        tpp_name: of_tpp.tpp_name.clone(),
        company: agreement.map(|agreement| agreement.name.clone()),
        accounts: context.accounts.clone(),
        since: grant.and_then(|grant| grant.given).or(context.since),
        until: grants.until(),
        last_use: context.used,
        counted: other.and_then(|grant| grant.accounts),
        is_unclear,
    })
}

impl Bank {
    /// What this person opened, by TPP. An unknown number makes no customer.
    fn opened_by(&self, identity: &str) -> Result<Vec<Opened>, BankFault> {
        let Some(customer) = self.customer_where("identity = ?1", identity)? else {
            return Ok(Vec::new());
        };
        let mut found = self.db.prepare_cached(
            "SELECT psu.id, psu.tpp, tpp_name.name FROM psu LEFT JOIN tpp_name ON tpp_name.tpp = psu.tpp \
             WHERE psu.customer = ?1 ORDER BY psu.tpp",
        )?;
        let rows = found.query_map([&customer.id], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
        })?;
        let mut opened = Vec::new();
        for row in rows {
            let (id, tpp, tpp_name): (String, String, Option<String>) = row?;
            let psu = id.parse().map_err(|_| BankFault::Kept("a PSU-ID"))?;
            let contexts = self.open_contexts(psu, &customer)?;
            if !contexts.is_empty() {
                opened.push(Opened {
                    tpp,
                    tpp_name,
                    psu,
                    contexts,
                    agreements: self.open_agreements(psu)?,
                });
            }
        }
        Ok(opened)
    }

    fn open_contexts(&self, psu: Uuid, customer: &Customer) -> Result<Vec<OpenContext>, BankFault> {
        let agreements = self.agreements_of(&customer.id)?.into_iter().map(Some);
        let mut contexts = Vec::new();
        for agreement in std::iter::once(None).chain(agreements) {
            let id = agreement.as_ref().map(|agreement: &Agreement| agreement.id);
            let open = self.open_accounts(psu, id)?;
            let mut accounts = self.accounts_in(&customer.id, id)?.unwrap_or_default();
            accounts.retain(|account| open.contains(&account.id));
            if accounts.is_empty() {
                continue;
            }
            let (since, used) = self.times_of(psu, id)?;
            contexts.push(OpenContext {
                agreement,
                accounts,
                since,
                used,
            });
        }
        Ok(contexts)
    }
}
