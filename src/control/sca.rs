//! Calls of the bank's SCA page: read a request, complete it, fail it (SCA-12).
//!
//! Invariant: an SCA ends once. The store consumes its token and stores the result in one transaction; a repeated report gets
//! the same answer and changes no time, a different report is refused and changes nothing.

use super::{
    audited,
    context::Call,
    fault::ApiFault,
    live_sca::{End, LiveSca, finish_as_failed, open, open_live},
    members::{self, Members},
};
use crate::{
    audit::AuditKind,
    interface::{
        Code,
        headers::{CorporateId, PsuContext, PsuId},
        path::AccountIds,
    },
    sca::{self, Failure, Opened, Pending},
    state::{
        Claimed, Completion, ConsentAccounts, CustomerKey, Finish, Finished, Keys, Known, PsuRef,
        ReportHash, StateStore,
    },
    telemetry::{BindingSource, ScaEvent},
};
use serde_json::{Value, json};

/// The most characters of a failure's message, as in §Message object.
const MAX_MESSAGE: usize = 512;

/// The most characters of a system's name, as in the configuration.
const MAX_SYSTEM: usize = 64;

/// A parsed completion.
struct Completed {
    psu: Known<PsuId>,
    corporate: Option<Known<CorporateId>>,
    /// As [`Completion`] has it.
    consent: Option<ConsentAccounts>,
    customer: Option<NamedCustomer>,
}

/// The bank's own key for its customer (CTL-1).
struct NamedCustomer {
    key: CustomerKey,
    /// The text, for the hash of the report.
    text: String,
}

/// `POST /sca/read`: the operation, the TPP and the expiry of a pending SCA.
pub(super) async fn read(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let request = request(members);
    members.finish()?;
    let live = open_live(call, request, None).await?;
    let Opened {
        id,
        pending,
        expires,
    } = live.opened;
    call.context.telemetry.sca_read(id);
    let corporate = pending.corporate.map(|id| id.to_show().hyphenated());
    let context = chosen_context(&pending).map(PsuContext::as_str);
    Ok(json!({
        "tpp": pending.tpp.as_str(),
        "tpp_name": Some(pending.tpp_name).filter(|name| !name.is_empty()),
        "operation": pending.operation,
        "resource": pending.resource,
        "asks_consent": pending.asks_consent,
        "context": context,
        "psu_corporate_id": corporate,
        "psu_known": pending.psu.is_some(),
        "redirect_preferred": pending.preferred,
        "expires": members::shown(expires),
    }))
}

/// The context that the TPP chose: an agreement without PSU-Context is CORPORATE (HDR-14). `None`: the PSU chooses.
fn chosen_context(pending: &Pending) -> Option<PsuContext> {
    let of_agreement = pending.corporate.map(|_| PsuContext::Corporate);
    pending.context.or(of_agreement)
}

/// `POST /sca/complete`: the PSU authenticated (SCA-4, SCA-10, SCA-18).
pub(super) async fn complete(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let request = request(members);
    let read = completion_members(members, &call.in_use.snapshot.policy.account_ids);
    members.finish()?;
    let psu = read.as_ref().map(|(psu, ..)| *psu);
    let live = open_live(call, request, psu).await?;
    let opened = &live.opened;
    let pending = &opened.pending;
    let Some((psu, corporate, consent, accounts, customer)) = read else {
        return Err(ApiFault::NotJson("The body has faulty members."));
    };
    let consent = judge_consent(members, pending, consent, accounts)?;
    let completed = Completed {
        psu,
        corporate,
        consent,
        customer,
    };
    let store = call.context.store.as_ref();
    if pending.psu.is_some_and(|named| named != psu) {
        return Err(fail_for_other_psu(call, store, opened).await?);
    }
    // SCA-17: the bank decides; the TPP only chose.
    let chosen = pending.corporate.map(Claimed::to_show);
    let other_agreement = chosen.is_some() && chosen != corporate.map(Known::get);
    let context = corporate.map_or(PsuContext::Private, |_| PsuContext::Corporate);
    if other_agreement || chosen_context(pending).is_some_and(|chosen| chosen != context) {
        return Err(ApiFault::OtherContext);
    }
    let ended = keep(call, store, &live, &completed).await?;
    let event = call
        .event(AuditKind::ScaCompleted, &pending.tpp, Some(psu))
        .with("operation", pending.operation.as_str())
        .with(
            "context",
            if corporate.is_some() {
                "corporate"
            } else {
                "private"
            },
        )
        .with("consent", audited::consent(completed.consent.as_ref()));
    call.record(ended.told(event)).await?;
    tracing::info!(
        tpp = pending.tpp.as_str(),
        operation = pending.operation,
        "SCA completed"
    );
    Ok(json!({ "redirect_uri": sca::completed(pending, psu, corporate) }))
}

/// `POST /sca/fail`: the PSU gave up, or the bank refused (SCA-11).
pub(super) async fn fail(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let request = request(members);
    let system = members.required(
        "system",
        "the name of a system, of at most 64 characters",
        |value| members::text(value, MAX_SYSTEM),
    );
    let status = members.required("status", "an HTTP status from 400 to 599", |value| {
        let status = u16::try_from(value.as_u64()?).ok()?;
        (400..600).contains(&status).then_some(status)
    });
    let code = members.required("code", "one of the interface's error codes", code);
    let message = members.required("message", "text of at most 512 characters", |value| {
        members::text(value, MAX_MESSAGE)
    });
    members.finish()?;
    let opened = open(call, request)?;
    let (Some(system), Some(status), Some(code), Some(message)) = (system, status, code, message)
    else {
        return Err(ApiFault::NotJson("The body has faulty members."));
    };
    let failure = Failure {
        system: &system,
        status,
        code,
        message: &message,
    };
    let redirect_uri = finish_as_failed(call, &call.context.store, &opened, &failure).await?;
    let Pending { tpp, operation, .. } = &opened.pending;
    tracing::info!(
        tpp = tpp.as_str(),
        operation,
        code = code.as_str(),
        "SCA failed"
    );
    Ok(json!({ "redirect_uri": redirect_uri }))
}

fn request(members: &mut Members) -> Option<String> {
    members.required(
        "request",
        "what stands behind request= in the link",
        |value| value.as_str().map(str::to_owned),
    )
}

type CompletionMembers = (
    Known<PsuId>,
    Option<Known<CorporateId>>,
    Option<bool>,
    Option<Vec<String>>,
    Option<NamedCustomer>,
);

/// Reads the members of a completion, as far as they can be validated without the token.
fn completion_members(
    members: &mut Members,
    account_ids: &AccountIds,
) -> Option<CompletionMembers> {
    let psu = members.required("psu_id", members::UUID, members::psu);
    let context = members.required("context", "PRIVATE or CORPORATE", context);
    let is_named = members.has("psu_corporate_id");
    let corporate = members.optional("psu_corporate_id", members::UUID, members::corporate);
    match (context, is_named) {
        (Some(PsuContext::Corporate), false) => members.fault(
            "psu_corporate_id",
            "it is missing; a CORPORATE context belongs to one agreement",
        ),
        (Some(PsuContext::Private), true) => members.fault(
            "psu_corporate_id",
            "a PRIVATE context has no agreement; leave it out, or use CORPORATE",
        ),
        _ => {}
    }
    let consent = members.optional("consent", "true or false", Value::as_bool);
    let accounts = |value: &Value| members::accounts(value, account_ids);
    let accounts = members.optional("accounts", members::ACCOUNTS, accounts);
    if consent == Some(false) && accounts.is_some() {
        members.fault(
            "accounts",
            "accounts require a consent, and consent is false",
        );
    }
    let customer = members.optional("customer", members::CUSTOMER, customer);
    Some((psu?, corporate, consent, accounts, customer))
}

/// Reads the consent and its accounts, with the defaults of SCA-18.
fn judge_consent(
    members: &mut Members,
    pending: &Pending,
    consent: Option<bool>,
    accounts: Option<Vec<String>>,
) -> Result<Option<ConsentAccounts>, ApiFault> {
    let given = consent.unwrap_or(pending.asks_consent);
    if !given && accounts.is_some() {
        members.fault(
            "consent",
            "no account consent was requested; use true if the PSU gave one for these accounts",
        );
        members.finish()?;
    }
    let accounts = accounts.map_or(ConsentAccounts::All, ConsentAccounts::Named);
    Ok(given.then_some(accounts))
}

/// Consumes the token and stores the result in one transaction.
async fn keep(
    call: Call<'_>,
    store: &StateStore,
    LiveSca { opened, .. }: &LiveSca,
    completed: &Completed,
) -> Result<End, ApiFault> {
    let pending = &opened.pending;
    let finish = Finish {
        token: store.keys().token(opened.id),
        expires: opened.expires,
        said: hash(store.keys(), completed),
        completion: Some(Completion {
            who: PsuRef {
                tpp: &pending.tpp,
                psu: completed.psu,
            },
            corporate: completed.corporate,
            session: pending.session.clone(),
            consent: completed.consent.as_ref(),
            customer: completed.customer.as_ref().map(|named| &named.key),
        }),
        now: call.context.clock.now(),
    };
    match store.finish(finish).await? {
        Finished::Done => {
            call.context.telemetry.sca(ScaEvent::Completed);
            Ok(End::Now)
        }
        Finished::Again => Ok(End::Before),
        Finished::Otherwise => Err(ApiFault::FinishedOtherwise),
        Finished::BoundElsewhere => {
            call.context
                .telemetry
                .psu_bound_elsewhere(BindingSource::Completion);
            Err(ApiFault::BoundElsewhere)
        }
    }
}

/// The hash of a completion: its members, with the defaults of missing ones.
fn hash(keys: &Keys, completed: &Completed) -> ReportHash {
    let psu = completed.psu.get().to_be_bytes();
    let corporate = completed.corporate.map(|id| id.get().to_be_bytes());
    let (consent, accounts): (&[u8], &[String]) = match &completed.consent {
        None => (b"none", &[]),
        Some(ConsentAccounts::All) => (b"all", &[]),
        Some(ConsentAccounts::Named(accounts)) => (b"named", accounts),
    };
    let mut parts = vec![
        &psu[..],
        corporate.as_ref().map_or(&[], |id| &id[..]),
        consent,
    ];
    parts.extend(accounts.iter().map(String::as_bytes));
    let customer = completed.customer.as_ref();
    keys.completed(&parts, customer.map(|customer| customer.text.as_str()))
}

/// SCA-12: a completion for a PSU other than the token's fails the SCA.
async fn fail_for_other_psu(
    call: Call<'_>,
    store: &StateStore,
    opened: &Opened,
) -> Result<ApiFault, ApiFault> {
    let failure = Failure {
        system: &call.context.system,
        status: 401,
        code: Code::PsuCredentialsInvalid,
        message: "The SCA was completed by another PSU than the one it was started for.",
    };
    let redirect_uri = finish_as_failed(call, store, opened, &failure).await?;
    let Pending { tpp, operation, .. } = &opened.pending;
    tracing::warn!(
        tpp = tpp.as_str(),
        operation,
        "SCA completed by another PSU"
    );
    Ok(ApiFault::OtherPsu { redirect_uri })
}

fn customer(value: &Value) -> Option<NamedCustomer> {
    Some(NamedCustomer {
        key: members::customer(value)?,
        text: value.as_str()?.to_owned(),
    })
}

fn context(value: &Value) -> Option<PsuContext> {
    PsuContext::parse(value.as_str()?.as_bytes())
}

fn code(value: &Value) -> Option<Code> {
    let text = value.as_str()?;
    Code::ALL.iter().copied().find(|code| code.as_str() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(accounts: &[&str], customer: Option<&str>) -> Completed {
        let accounts = accounts.iter().map(|id| (*id).to_owned()).collect();
        Completed {
            psu: Known::by_bank(PsuId::from_bits(7)),
            corporate: None,
            consent: Some(ConsentAccounts::Named(accounts)),
            customer: customer.and_then(|key| super::customer(&json!(key))),
        }
    }

    /// A report that is repeated after an upgrade is the same one, and the customer is part of a report that names one.
    #[test]
    fn a_report_without_a_customer_has_the_hash_of_versions_before() {
        let keys = Keys::new(&[7; 32]);
        let of = |accounts: &[&str], customer| hash(&keys, &completed(accounts, customer));
        let psu = 7_u128.to_be_bytes();
        let before = keys.completed(&[&psu, b"", b"named", b"a"], None);
        assert_eq!(of(&["a"], None), before);
        let of_customer = of(&["a"], Some("c"));
        for other in [
            before,
            of(&["a"], Some("d")),
            of(&["a", "c"], None),
            of(&["a", "customer", "c"], None),
        ] {
            assert_ne!(of_customer, other);
        }
    }
}
