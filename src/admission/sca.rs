//! The PSU's permission to read data or to move money (SCA-8).
//!
//! The catalogue states the requirement of an operation: none, a known PSU, or a consent. The store gives the state of the PSU; [`grant`]
//! only compares the two. A refusal is never based on the cache, because another process could have changed the state since.

// The requirements of an operation against the state of the PSU.
mod grant;
// The pending SCA of a request.
mod pending;
// The session of a request.
mod session;

pub(crate) use grant::DETAILS_CONSENT_LASTS;
pub use grant::Grant;
pub(super) use pending::pending;
pub(crate) use session::SESSION_LASTS;

use super::{Policy, Unconfirmed, authenticated::AuthenticatedRequest};
use crate::{
    clock::Timestamp,
    interface::{
        Fault, Reason, Refusal,
        headers::{self, PsuId},
    },
    sca::{Links, SealFault},
    state::{AsOf, Dated, Keys, Known, KnownPsu, StateStore, Unavailable},
};
use grant::{Lack, Need, Terms, Unknown};
use jiff::civil::Date;

/// Judges whether a request may read the PSU's data, or move the PSU's money.
///
/// # Errors
/// The missing requirement, with the link by which the PSU authenticates; or the store is unavailable.
pub(super) async fn judge(
    request: &AuthenticatedRequest<'_>,
    links: &Links,
    store: &StateStore,
    at: Timestamp,
) -> Result<Grant, Refusal> {
    let policy = &request.snapshot.policy;
    let (need, terms) = (need(request, store.keys()), terms(policy, store.keys(), at));
    let refused = |lack, bound| refusal(lack, || link(request, links, bound, at));
    let Some(psu) = need.psu else {
        return grant::grant(&need, None, &terms).map_err(|lack| refused(lack, None));
    };
    let found = store.find(request.tpp, psu).await;
    let Dated { fact: known, as_of } = found.map_err(unavailable)?;
    let terms = Terms { as_of, ..terms };
    if known.is_some()
        && let Ok(grant) = grant::grant(&need, known.as_ref(), &terms)
    {
        return Ok(grant);
    }
    // A refusal is never based on the cache.
    let found = store.find_now(request.tpp, psu).await;
    let Dated { fact: known, as_of } = found.map_err(unavailable)?;
    let unknown = if !policy.unknown_psu.is_learned(at) {
        Unknown::AsNone
    } else if known.is_none() && store.is_taken(psu).await.map_err(unavailable)? {
        Unknown::Elsewhere
    } else {
        Unknown::Learned
    };
    let terms = Terms {
        unknown,
        as_of,
        ..terms
    };
    let bound = known.as_ref().map(KnownPsu::id);
    grant::grant(&need, known.as_ref(), &terms).map_err(|lack| refused(lack, bound))
}

/// Judges a request again whose PSU was to be learned: by the state of the PSU now, as if nobody were learned. Returns the refusal that the
/// request would get, or `None`. Where the store is unavailable, the PSU is unknown.
pub(super) async fn judge_unlearned(
    request: &AuthenticatedRequest<'_>,
    links: &Links,
    store: &StateStore,
    at: Timestamp,
) -> Option<Refusal> {
    let psu = request.envelope.psu()?;
    let known = store.find_now(request.tpp, psu).await.ok();
    let known = known.and_then(|known| known.fact);
    let need = need(request, store.keys());
    let terms = terms(&request.snapshot.policy, store.keys(), at);
    let lack = grant::grant(&need, known.as_ref(), &terms).err()?;
    let bound = known.as_ref().map(KnownPsu::id);
    Some(refusal(lack, || link(request, links, bound, at)))
}

/// The settings of the judgement. A PSU-ID that is not bound counts as absent, and nothing is known of a PSU yet.
fn terms<'a>(policy: &Policy, keys: &'a Keys, at: Timestamp) -> Terms<'a> {
    Terms {
        psu_present: policy.psu_present,
        unknown: Unknown::AsNone,
        as_of: AsOf::ANY_TIME,
        keys,
        at,
        today: policy.today(at),
    }
}

/// The requirements of a request.
fn need<'a>(request: &AuthenticatedRequest<'a>, keys: &Keys) -> Need<'a> {
    let (operation, envelope) = (request.operation, request.envelope);
    let psu = envelope.psu();
    let session = envelope.session();
    Need {
        sca: operation.sca,
        agreement: operation.agreement,
        transactions: operation.transactions,
        psu,
        identity: operation.initiates && envelope.has_identity(),
        corporate: envelope.corporate(),
        context_named: envelope.context().is_some(),
        session: session
            .filter(|_| psu.is_some())
            .map(|id| keys.session(request.tpp, id)),
        account: operation.account(request.ids),
        present: envelope.is_psu_present(),
        // A query that does not hold, and is only observed, may name any day.
        date_from: match request.query {
            Some(query) => query.date_from(),
            None => Some(Date::MIN),
        },
    }
}

/// The link that starts the SCA of this request; `None` without TPP-Redirect-URI (SCA-9). The link names only a PSU that is bound to the TPP
/// (SCA-12).
fn link(
    request: &AuthenticatedRequest<'_>,
    links: &Links,
    bound: Option<Known<PsuId>>,
    at: Timestamp,
) -> Result<Option<String>, Refusal> {
    let pending = pending(
        request.envelope,
        request.operation,
        request.snapshot.policy.environment,
        request.target.path(),
        request.tpp,
        request.tpp_name,
        bound,
    );
    let link = pending.map(|pending| links.link(&pending, at));
    link.transpose().map_err(no_link)
}

/// ERR-4: no SCA can be started.
fn no_link(fault: SealFault) -> Refusal {
    Refusal::new(Reason::StateUnavailable).for_operator(fault.to_string())
}

/// ERR-4: the store is unavailable, so the permissions are unknown.
pub(super) fn unavailable(fault: Unavailable) -> Refusal {
    Refusal::new(Reason::StateUnavailable).for_operator(fault.0)
}

/// The refusal for a missing requirement.
fn refusal(lack: Lack, link: impl FnOnce() -> Result<Option<String>, Refusal>) -> Refusal {
    let text = say(lack);
    match lack {
        Lack::CorporateId => {
            let header = headers::PSU_CORPORATE_ID.written;
            Fault::header(Reason::CorporateIdMissing, header, text).into()
        }
        Lack::PsuForHistory => Fault::query(Reason::HistoryTooOld, "dateFrom", text).into(),
        Lack::Account => Fault::request(Reason::AccountUnknown, text).into(),
        _ => match link() {
            Ok(Some(href)) => {
                let fault = Fault::header(Reason::ScaRequired, header_of(lack), text);
                Refusal::from(fault).with_sca_redirect(href)
            }
            Ok(None) => nowhere_to_return(),
            Err(refusal) => refusal,
        },
    }
}

/// SCA-19, SCA-22: the core does not confirm the PSU or the agreement. For a PSU the answer is the same as for a PSU-ID of another TPP;
/// otherwise a TPP could find out which PSU-IDs are bound.
pub(super) fn not_learned(
    unconfirmed: Unconfirmed,
    link: Result<Option<String>, SealFault>,
) -> Refusal {
    let lack = match unconfirmed {
        Unconfirmed::Psu => Lack::Binding,
        Unconfirmed::Agreement => Lack::Agreement,
    };
    refusal(lack, || link.map_err(no_link))
}

/// SCA-9.
fn nowhere_to_return() -> Refusal {
    let header = headers::TPP_REDIRECT_URI.written;
    let text = "the PSU must authenticate, and afterwards be sent back: the header is required where SCA starts";
    Fault::header(Reason::HeaderMissing, header, text).into()
}

const fn header_of(lack: Lack) -> &'static str {
    match lack {
        Lack::Session(_) | Lack::SessionForHistory => headers::TPP_SESSION_ID.written,
        Lack::Agreement | Lack::CorporateId => headers::PSU_CORPORATE_ID.written,
        _ => headers::PSU_ID.written,
    }
}

const fn say(lack: Lack) -> &'static str {
    match lack {
        Lack::PsuId => {
            "there is no PSU-ID: use the link, or send the psu-id that an earlier SCA gave, and list it in the signature's headers"
        }
        Lack::Binding => "it is not a PSU-ID that this bank gave to this TPP",
        Lack::Agreement => {
            "no SCA of this PSU gave this agreement; the link leads to one that does"
        }
        Lack::CorporateId => {
            "this PSU authenticated for corporate agreements only: name one, or send PSU-Context"
        }
        Lack::Consent => {
            "the PSU has given no consent to account information in this context, or has withdrawn it"
        }
        Lack::Account => "this TPP has no account of this id",
        Lack::RecentSca => "the PSU last authenticated more than 180 days ago",
        Lack::RecentConsent => {
            "without the PSU, details need a consent that is at most 90 days old"
        }
        Lack::Session(why) => why.text(),
        Lack::SessionForHistory => {
            "transactions of more than 90 days ago need a valid session, named in TPP-Session-ID"
        }
        Lack::PsuForHistory => {
            "without PSU-IP-Address transactions reach back 90 days; name a later date, or none"
        }
    }
}

/// An answer of the gateway itself: the link that starts an SCA (SCA-20).
#[must_use]
#[derive(Debug)]
pub struct ScaAnswer {
    href: String,
}

impl ScaAnswer {
    /// The value of scaRedirect.
    pub fn href(&self) -> &str {
        &self.href
    }
}

/// SCA-20: registration of a PSU, and consent. Only the TPP and its redirect URI are checked.
///
/// # Errors
/// TPP-Redirect-URI is missing (SCA-9), or the store is unavailable.
pub(super) async fn answer(
    request: &AuthenticatedRequest<'_>,
    links: &Links,
    store: &StateStore,
    at: Timestamp,
) -> Result<ScaAnswer, Refusal> {
    let bound = match request.envelope.psu() {
        Some(psu) => {
            let known = store.find_now(request.tpp, psu).await;
            known.map_err(unavailable)?.fact.as_ref().map(KnownPsu::id)
        }
        None => None,
    };
    let href = link(request, links, bound, at)?.ok_or_else(nowhere_to_return)?;
    Ok(ScaAnswer { href })
}
