//! One customer of the bank over all TPPs, by the bank's own key: list, withdraw, forget (CTL-1).
//!
//! Invariant: no answer has a PSU-ID, or an agreement that the call did not name. What the answers show of a consent is shown as admission
//! judges it: the ends are those of the same constants. Deliberately not here: calls that name a PSU-ID.

use super::{
    context::Call,
    fault::ApiFault,
    members::{self, Members},
    permissions::{self, Asked},
};
use crate::{
    audit::AuditKind,
    interface::{ForbiddenTpp, headers::CorporateId},
    state::{AccessChange, AccessesOf, CorporateHash, CustomerAccesses, CustomerKey, Known},
};
use serde_json::{Value, json};

/// The most agreements that a list names.
const MAX_AGREEMENTS: usize = 100;

/// The most accounts that a list names: each is in the answer once for each consent.
const MAX_ACCOUNTS: usize = 1_000;

/// The most contexts of an answer, and accounts in them: some megabytes. The first access is in the answer whatever it has.
const MAX_SHOWN: usize = 20_000;

/// The form of the agreements of a list, for faults.
const AGREEMENTS: &str = "a list of at most 100 UUIDs with their hyphens";

/// The form of the accounts of a list, for faults.
const ACCOUNTS: &str =
    "a list of 1 to 1000 account ids, each of 1 to 128 characters of bank.account_ids";

/// The form of the accounts that remain, for faults.
const LEFT: &str = "a list of account ids, at least one, each of 1 to 128 characters of bank.account_ids; if no account remains, leave it out";

/// `POST /psu/list`: the accesses of a customer, of every TPP.
pub(super) async fn list(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let account_ids = call.in_use.snapshot.policy.account_ids;
    let customer = members.required("customer", members::CUSTOMER, members::customer);
    let accounts = members.optional("accounts", ACCOUNTS, |value| {
        let ids = members::accounts(value, &account_ids)?;
        (ids.len() <= MAX_ACCOUNTS).then_some(ids)
    });
    let agreements = members.optional("psu_corporate_ids", AGREEMENTS, agreements);
    members.finish()?;
    let customer = customer.ok_or(ApiFault::CustomerUnknown)?;
    let store = call.context.store.as_ref();
    let CustomerAccesses {
        mut accesses,
        mut more,
    } = store.accesses_of(&customer).await?;
    if accesses.is_empty() {
        return Err(ApiFault::CustomerUnknown);
    }
    let named = accounts.as_ref().map_or(0, Vec::len);
    let fitting = fitting(
        accesses.iter().map(|access| access.facts.contexts.len()),
        named,
    );
    more |= fitting < accesses.len();
    accesses.truncate(fitting);
    let asked = Asked::new(
        store.keys(),
        accounts.unwrap_or_default(),
        &agreements.unwrap_or_default(),
    );
    let registers = call.in_use.snapshot.registers.as_ref();
    let accesses = accesses.iter().map(|access| {
        let name = registers.and_then(|registers| registers.tpp_name(&access.tpp));
        permissions::shown(access, name, &asked)
    });
    Ok(json!({ "accesses": accesses.collect::<Vec<_>>(), "more": more }))
}

/// The number of accesses that an answer shows, each with so many contexts, where the call names so many accounts.
fn fitting(contexts: impl Iterator<Item = usize>, named: usize) -> usize {
    let sums = contexts.scan(0_usize, |shown, contexts| {
        *shown = shown.saturating_add(contexts.saturating_mul(named.saturating_add(1)));
        Some(*shown)
    });
    sums.take_while(|shown| *shown <= MAX_SHOWN).count().max(1)
}

fn agreements(value: &Value) -> Option<Vec<Known<CorporateId>>> {
    let list = value.as_array()?;
    let list = (list.len() <= MAX_AGREEMENTS).then_some(list)?;
    list.iter().map(members::corporate).collect()
}

/// What a withdrawal by the key of a customer names.
struct Target {
    customer: CustomerKey,
    tpp: Option<ForbiddenTpp>,
    agreement: Option<Known<CorporateId>>,
    left: Option<Vec<String>>,
}

impl Target {
    /// Reads all members.
    fn read(call: Call<'_>, members: &mut Members) -> Result<Self, ApiFault> {
        let account_ids = call.in_use.snapshot.policy.account_ids;
        let customer = members.required("customer", members::CUSTOMER, members::customer);
        for name in ["psu_id", "what"] {
            let text = "customer stands in place of psu_id and what; leave it out, or customer";
            members.exclude(name, text);
        }
        let tpp = members.optional("tpp", members::TPP, members::forbidden_tpp);
        let agreement = members.optional("psu_corporate_id", members::UUID, members::corporate);
        let left = members.optional("accounts_left", LEFT, |value| {
            members::accounts(value, &account_ids)
        });
        members.finish()?;
        Ok(Self {
            customer: customer.ok_or(ApiFault::CustomerUnknown)?,
            tpp,
            agreement,
            left,
        })
    }

    /// What the store withdraws.
    fn accesses(&self) -> AccessesOf<'_> {
        AccessesOf {
            customer: &self.customer,
            tpp: self.tpp.as_ref(),
            agreement: self.agreement,
            remaining: self.left.as_deref(),
        }
    }
}

/// `POST /psu/withdraw` with `customer`: withdraws or narrows what TPPs may do for a customer, from their next requests on.
pub(super) async fn withdraw(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let target = Target::read(call, members)?;
    let store = call.context.store.as_ref();
    let changes = store.withdraw_accesses(target.accesses()).await?;
    if changes.is_empty() {
        return Err(ApiFault::CustomerUnknown);
    }
    // Also of a repeated call, and where nothing ended: the record of the first may be missing.
    let events = changes.iter().map(|change| {
        let event = call.event_by_hash(AuditKind::Withdrawn, &change.tpp, change.psu);
        let event = event.with("what", "access");
        let event = event.with("withdrawn", withdrawn(change));
        event.with("narrowed", change.narrowed)
    });
    call.record_all(events.collect()).await?;
    let sum = |of: fn(&AccessChange) -> usize| {
        let counts = changes.iter().map(of);
        counts.fold(0, usize::saturating_add)
    };
    let (ended, narrowed) = (sum(withdrawn), sum(|change| change.narrowed));
    if let Some(agreement) = target.agreement
        && (ended, narrowed) == (0, 0)
        && !has_agreement(call, &target.customer, store.keys().corporate(agreement)).await?
    {
        return Err(ApiFault::AgreementUnknown);
    }
    tracing::info!(ended, narrowed, "withdrawn for a customer of the bank");
    let accesses = changes.iter().map(|change| {
        let (ended, narrowed) = (withdrawn(change), change.narrowed);
        json!({ "tpp": change.tpp.as_str(), "withdrawn": ended, "narrowed": narrowed })
    });
    let accesses = accesses.collect::<Vec<_>>();
    Ok(json!({ "withdrawn": ended, "narrowed": narrowed, "accesses": accesses }))
}

/// The sessions and consents that ended.
const fn withdrawn(change: &AccessChange) -> usize {
    let ended = change.ended;
    ended.sessions.saturating_add(ended.consents)
}

/// Whether a PSU-ID of the customer has an agreement, with a consent or without one, at whatever TPP. Where there are more PSU-IDs than a
/// list has, one of the others may have it.
async fn has_agreement(
    call: Call<'_>,
    customer: &CustomerKey,
    agreement: CorporateHash,
) -> Result<bool, ApiFault> {
    let CustomerAccesses { accesses, more } = call.context.store.accesses_of(customer).await?;
    let mut contexts = accesses.iter().flat_map(|access| &access.facts.contexts);
    Ok(more || contexts.any(|context| context.corporate == Some(agreement)))
}

/// `POST /psu/forget`: takes the key of a customer off every PSU-ID. Bindings, sessions and consents stay.
pub(super) async fn forget(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let customer = members.required("customer", members::CUSTOMER, members::customer);
    members.finish()?;
    let customer = customer.ok_or(ApiFault::CustomerUnknown)?;
    let forgotten = call.context.store.forget_customer(&customer).await?;
    let events = forgotten
        .iter()
        .map(|(tpp, psu)| call.event_by_hash(AuditKind::CustomerForgotten, tpp, *psu));
    call.record_all(events.collect()).await?;
    Ok(json!({ "forgotten": forgotten.len() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CTL-1: the product of accesses and accounts is bounded, and an access alone is always shown.
    #[test]
    fn the_accesses_of_an_answer() {
        let fitting =
            |accesses, contexts, named| fitting(vec![contexts; accesses].into_iter(), named);
        assert_eq!(fitting(1_000, 1, 0), 1_000);
        assert_eq!(fitting(1_000, 1, 19), 1_000);
        assert_eq!(fitting(1_000, 1, 1_000), 19);
        assert_eq!(fitting(1_000, 2, 19), 500);
        assert_eq!(fitting(3, 100, 1_000), 1);
        assert_eq!(fitting(3, 0, 1_000), 3);
    }
}
