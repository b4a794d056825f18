//! Calls on PSUs: read, bind, withdraw a consent or a session, unbind (SCA-13, SCA-19, SCA-21).

use super::{
    accesses, audited,
    context::Call,
    fault::ApiFault,
    members::{self, Members},
    moves,
};
use crate::{
    audit::AuditKind,
    clock::Timestamp,
    interface::{
        ForbiddenTpp, TppId,
        headers::{CorporateId, PsuId},
        path::AccountIds,
    },
    state::{
        self, Accounts, Bind, Bound, Changes, ConsentAccounts, CustomerKey, Ended, Known, PsuRef,
        StateStore, Unavailable, Withdraw, Withdrawn,
    },
    telemetry::BindingSource,
};
use serde_json::{Value, json};

/// A PSU that the bank knows: the members of /psu/bind, and of a line of an import.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PsuRecord {
    tpp: TppId,
    psu: Known<PsuId>,
    corporate: Option<Known<CorporateId>>,
    last_sca: Timestamp,
    /// The time of the consent, and its accounts.
    consent: Option<(Timestamp, ConsentAccounts)>,
    /// The bank's own key for its customer (CTL-1).
    customer: Option<CustomerKey>,
}

impl PsuRecord {
    /// Reads all members.
    pub(super) fn read(
        members: &mut Members,
        now: Timestamp,
        account_ids: &AccountIds,
    ) -> Result<Self, ApiFault> {
        let who = who(members);
        let corporate = members.optional("psu_corporate_id", members::UUID, members::corporate);
        let moment = |value: &Value| members::moment(value, now);
        let last_sca = members.required("last_sca", members::MOMENT, moment);
        let has_consent = members.has("consent_at");
        let consent_at = members.optional("consent_at", members::MOMENT, moment);
        let accounts = |value: &Value| members::accounts(value, account_ids);
        let accounts = members.optional("accounts", members::ACCOUNTS, accounts);
        if accounts.is_some() && !has_consent {
            members.fault("accounts", "accounts require consent_at");
        }
        let customer = members.optional("customer", members::CUSTOMER, members::customer);
        members.finish()?;
        let (Some((tpp, psu)), Some(last_sca)) = (who, last_sca) else {
            return Err(ApiFault::NotJson("The body has faulty members."));
        };
        Ok(Self {
            tpp,
            psu,
            corporate,
            last_sca,
            consent: consent_at.map(|given| {
                let all = ConsentAccounts::All;
                (given, accounts.map_or(all, ConsentAccounts::Named))
            }),
            customer,
        })
    }

    /// The TPP.
    pub(super) const fn tpp(&self) -> &TppId {
        &self.tpp
    }

    /// PSU-ID.
    pub(super) const fn psu(&self) -> Known<PsuId> {
        self.psu
    }

    /// What an import would change.
    pub(super) async fn would_bind(&self, store: &StateStore) -> Result<Bound, Unavailable> {
        store.would_bind(&self.change(true)).await
    }

    /// The agreement, and the time and the accounts of the consent.
    pub(super) const fn consent(
        &self,
    ) -> (
        Option<Known<CorporateId>>,
        Option<&(Timestamp, ConsentAccounts)>,
    ) {
        (self.corporate, self.consent.as_ref())
    }

    /// Binds the PSU, or updates it, by a call or by an import.
    pub(super) async fn bind(
        &self,
        store: &StateStore,
        imported: bool,
    ) -> Result<Bound, Unavailable> {
        store.bind(self.change(imported)).await
    }

    fn change(&self, imported: bool) -> Bind<'_> {
        let consent = self.consent.as_ref();
        Bind {
            who: PsuRef {
                tpp: &self.tpp,
                psu: self.psu,
            },
            corporate: self.corporate,
            imported,
            last_sca: self.last_sca,
            consent: consent.map(|(given, accounts)| (*given, accounts)),
            customer: self.customer.as_ref(),
        }
    }
}

/// `POST /psu/read`: the stored state of a PSU.
pub(super) async fn read(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let who = who(members);
    members.finish()?;
    let (tpp, psu) = who.ok_or(ApiFault::PsuUnknown)?;
    let found = call
        .context
        .store
        .psu_now(PsuRef { tpp: &tpp, psu })
        .await?;
    let found = found.ok_or(ApiFault::PsuUnknown)?;
    let session = found.session.map(|session| {
        let completed = session.completed;
        json!({ "completed": members::shown(completed) })
    });
    let contexts: Vec<_> = found.contexts.iter().map(shown).collect();
    let mut known = json!({
        "last_sca": found.last_sca.and_then(members::shown),
        "session": session,
        "contexts": contexts,
    });
    if found.learned
        && let Some(known) = known.as_object_mut()
    {
        known.insert("learned".to_owned(), json!(true));
    }
    Ok(known)
}

/// `POST /psu/bind`: stores a PSU that the bank knows.
pub(super) async fn bind(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let account_ids = call.in_use.snapshot.policy.account_ids;
    let known = PsuRecord::read(members, call.context.clock.now(), &account_ids)?;
    let bound = known.bind(&call.context.store, false).await?;
    let of_new = || Changes {
        customer: known.customer.is_some(),
        ..Changes::of_new(known.consent.is_some())
    };
    let (word, changed) = match bound {
        Bound::New => ("new", names(of_new())),
        Bound::TakenOver => ("taken-over", names(of_new())),
        Bound::Changed(changes) => ("changed", names(changes)),
        Bound::Unchanged => ("unchanged", Vec::new()),
        Bound::ConsentOutdated => return Err(ApiFault::ConsentOutdated),
        Bound::Elsewhere if call.context.store.is_former(&known.tpp).await? => {
            return Err(moves::FORMER);
        }
        Bound::Elsewhere => {
            call.context
                .telemetry
                .psu_bound_elsewhere(BindingSource::Bind);
            return Err(ApiFault::BoundElsewhere);
        }
    };
    let consent = known.consent.as_ref().map(|(_, accounts)| accounts);
    let event = call.event(AuditKind::Bound, &known.tpp, Some(known.psu));
    let event = event.with("consent", audited::consent(consent));
    call.record(event.with("changed", changed.clone())).await?;
    Ok(json!({ "bound": word, "changed": changed }))
}

/// The names of what changed.
fn names(changes: Changes) -> Vec<&'static str> {
    let Changes {
        binding,
        context,
        last_sca,
        consent,
        customer,
    } = changes;
    let named = [
        ("binding", binding),
        ("context", context),
        ("last_sca", last_sca),
        ("consent", consent.is_some()),
        ("customer", customer),
    ];
    let named = named.into_iter().filter(|(_, changed)| *changed);
    named.map(|(name, _)| name).collect()
}

/// `POST /psu/withdraw`: withdraws a consent or a session (SCA-13), or by the key of a customer (CTL-1). What is said to be withdrawn was.
pub(super) async fn withdraw(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    if members.has("customer") {
        return accesses::withdraw(call, members).await;
    }
    for name in ["customer", "accounts_left"] {
        let text = "accounts that remain need customer, which stands in place of psu_id and what";
        members.exclude(name, text);
    }
    let named = from_whom(members);
    let what = members.required("what", "consent, consents or session", |value| {
        let what = value.as_str()?;
        ["consent", "consents", "session"]
            .contains(&what)
            .then(|| what.to_owned())
    });
    let corporate = members.optional("psu_corporate_id", members::UUID, members::corporate);
    let (part, what) = match what.as_deref() {
        Some("session") => ("session", Withdraw::Session),
        Some("consents") => ("consents", Withdraw::Consents),
        _ => ("consent", Withdraw::Consent(corporate)),
    };
    if corporate.is_some() && !matches!(what, Withdraw::Consent(_)) {
        members.fault(
            "psu_corporate_id",
            "an agreement requires what: consent; leave it out",
        );
    }
    members.finish()?;
    let (tpp, psu) = bound(&call.context.store, named).await?;
    let who = PsuRef { tpp: &tpp, psu };
    let (ended, left) = match call.context.store.withdraw(who, what).await? {
        Withdrawn::Done { ended, left } => {
            tracing::info!(tpp = tpp.as_str(), "withdrawn by the bank");
            (ended, left)
        }
        Withdrawn::Already { left } => (Ended::default(), left),
        Withdrawn::UnknownAgreement => return Err(ApiFault::AgreementUnknown),
        Withdrawn::OnlyAgreements => return Err(ApiFault::AgreementMissing),
        Withdrawn::Unknown => return Err(ApiFault::PsuUnknown),
    };
    let withdrawn = ended.sessions.saturating_add(ended.consents);
    // Also of a repeated call: the record of the first may be missing.
    let event = call.event(AuditKind::Withdrawn, &tpp, Some(psu));
    let event = event.with("what", part).with("withdrawn", withdrawn);
    call.record(event).await?;
    Ok(json!({ "withdrawn": withdrawn, "consents_left": left }))
}

/// `POST /psu/unbind`: removes the binding of a PSU-ID, which the bank bound or the gateway learned (SCA-19).
pub(super) async fn unbind(call: Call<'_>, members: &mut Members) -> Result<Value, ApiFault> {
    let named = from_whom(members);
    members.finish()?;
    let (tpp, psu) = bound(&call.context.store, named).await?;
    let who = PsuRef { tpp: &tpp, psu };
    match call.context.store.withdraw(who, Withdraw::Binding).await? {
        Withdrawn::Done { ended, .. } => {
            let Ended { sessions, consents } = ended;
            tracing::info!(tpp = tpp.as_str(), "unbound by the bank");
            let event = call.event(AuditKind::Unbound, &tpp, Some(psu));
            let event = event.with("withdrawn", sessions.saturating_add(consents));
            call.record(event).await?;
            Ok(json!({ "unbound": true, "sessions": sessions, "consents": consents }))
        }
        // A binding ends or is not there.
        Withdrawn::Already { .. }
        | Withdrawn::UnknownAgreement
        | Withdrawn::OnlyAgreements
        | Withdrawn::Unknown => Err(ApiFault::PsuUnknown),
    }
}

/// Exactly this TPP, and a PSU: for calls that give the TPP something, or read.
fn who(members: &mut Members) -> Option<(TppId, Known<PsuId>)> {
    let tpp = members.required("tpp", members::TPP, members::permitted_tpp);
    let psu = members.required("psu_id", members::UUID, members::psu);
    Some((tpp?.into_exact(), psu?))
}

/// A TPP in any spelling, and a PSU: for calls that take something from the TPP.
fn from_whom(members: &mut Members) -> Option<(ForbiddenTpp, Known<PsuId>)> {
    let tpp = members.required("tpp", members::TPP, members::forbidden_tpp);
    let psu = members.required("psu_id", members::UUID, members::psu);
    Some((tpp?, psu?))
}

/// The TPP that the PSU is bound to, if the call names it, in whatever spelling (FWD-6).
async fn bound(
    store: &StateStore,
    named: Option<(ForbiddenTpp, Known<PsuId>)>,
) -> Result<(TppId, Known<PsuId>), ApiFault> {
    let (named, psu) = named.ok_or(ApiFault::PsuUnknown)?;
    let meant = async || match store.tpp_of(psu).await? {
        Some(tpp) => Ok::<_, Unavailable>(store.is_meant(&named, &tpp).await?.then_some(tpp)),
        None => Ok(None),
    };
    let mut tpp = meant().await?;
    if tpp.is_none() {
        // An answer of the core that would bind it may be under way: it teaches nothing from here on.
        store.note_removal(psu).await?;
        tpp = meant().await?;
    }
    Ok((tpp.ok_or(ApiFault::PsuUnknown)?, psu))
}

/// The store keeps only hashes of agreements, so an answer cannot name a corporate context.
fn shown(context: &state::Context) -> Value {
    let consent = context.consent.as_ref().map(|consent| {
        let accounts = match &consent.accounts {
            Accounts::All => json!("all"),
            Accounts::Named(accounts) => json!(accounts.len()),
        };
        json!({ "given": members::shown(consent.given), "accounts": accounts })
    });
    json!({
        "context": if context.corporate.is_some() { "CORPORATE" } else { "PRIVATE" },
        "last_sca": context.last_sca.and_then(members::shown),
        "consent": consent,
    })
}
