//! Updates the state after the core has answered or failed: releases calls of the quota (QUO-5), learns PSUs and agreements (SCA-19,
//! SCA-22), notes the day of use (CTL-1).
//!
//! The update is made before the answer is sent, so the caller can rely on it; only the day of use is written later. If the store is
//! unavailable, the call may stay counted and the PSU unknown.

use super::{failure, upstream::SendFailure};
use crate::{
    admission::{
        Admitted, Claim, ConfirmedContext, CoreWords, Grant, ObservedFault, Snapshot, Unconfirmed,
    },
    audit::AuditKind,
    clock::Timestamp,
    interface::{QuotaLeft, Reason, headers, path::AccountIds},
    state::{Bound, ConsentAccounts, Learned, LearnedContext, Removal, StateStore},
    telemetry::{BindingSource, Telemetry},
};
use http::{HeaderMap, HeaderName, StatusCode, response::Parts};
use jiff::fmt::temporal::DateTimeParser;
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// The time of the last SCA of a PSU that the core confirms (SCA-19).
const SCA_AT: HeaderName = HeaderName::from_static("gateway-sca-at");
/// The time of that PSU's consent.
const CONSENT_AT: HeaderName = HeaderName::from_static("gateway-consent-at");
/// The accounts of that consent.
const CONSENT_ACCOUNTS: HeaderName = HeaderName::from_static("gateway-consent-accounts");

/// The most seconds that the core's clock may be ahead, as for a TPP's (DAT-2). A later time is ignored.
const AHEAD: u64 = 60;

/// The remaining calls of the quota, for the answer (QUO-11).
pub(super) async fn answered(
    admitted: &Admitted,
    store: &StateStore,
    status: u16,
    telemetry: &Telemetry,
) -> Option<QuotaLeft> {
    let claim = admitted.claim()?;
    let given_back = match status {
        401 | 404 | 429 | 500.. => give_back(claim, store, true, telemetry).await,
        _ => None,
    };
    given_back.or(claim.left())
}

/// Releases a call of the quota; if the core was never connected, the request id too. Returns the remaining calls if one was
/// released.
pub(super) async fn give_back(
    claim: &Claim,
    store: &StateStore,
    connected: bool,
    telemetry: &Telemetry,
) -> Option<QuotaLeft> {
    let taken = claim.taken();
    match store.give_back(taken, connected).await {
        Ok(left) => left.map(|left| {
            telemetry.quota_given_back();
            left.seen_at(taken.at())
        }),
        Err(fault) => {
            tracing::warn!(%fault, "a call could not be given back: it may stay counted");
            None
        }
    }
}

/// Releases the quota and the request id of a request that the core never answered (QUO-5, REP-1). A request stays counted if its caller
/// disconnected or an endpoint timed out, the last one or an earlier one: the core may have executed it.
pub(super) async fn undo(
    admitted: &Admitted,
    failure: &SendFailure,
    store: &StateStore,
    telemetry: &Telemetry,
) {
    // A rejected answer never reached the caller.
    let unreachable = failure::refusal(&failure.error).is_some_and(|refusal| {
        matches!(
            refusal.reason(),
            Reason::UpstreamUnreachable | Reason::UpstreamError
        )
    });
    if let Some(claim) = admitted.claim()
        && ((unreachable && !failure.timed_out) || !failure.connected)
    {
        give_back(claim, store, failure.connected, telemetry).await;
    }
}

/// The PSU or the agreement that the core refuses to confirm: its answer is an error that concerns the request, without the confirmation that
/// the PSU or the agreement is the TPP's (SCA-19, SCA-22). A 429 concerns the core, and is passed on.
pub(super) fn not_learned(
    admitted: &Admitted,
    status: StatusCode,
    answer: &HeaderMap,
) -> Option<Unconfirmed> {
    let is_refused = status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS;
    let learning = admitted.learns().filter(|_| is_refused)?;
    learning.unconfirmed(CoreWords::read(answer))
}

/// The last time that the bank took something back from a PSU that the core's answer may teach; `None` if it teaches nothing.
pub(super) async fn last_removal(admitted: &Admitted, store: &StateStore) -> Option<Removal> {
    let learning = admitted.learns()?;
    let last = store.last_removal(learning.psu()).await;
    last.inspect_err(|fault| tracing::warn!(%fault, "nothing can be learned from an answer"))
        .ok()
}

/// Binds a PSU if the core executed the request and confirms the PSU (SCA-19), with the agreement of the request only if the core confirms
/// that too (SCA-22). A missing header counts as absence: without Gateway-Sca-At no SCA is known, without Gateway-Consent-At there is no
/// consent. `head` is the core's.
///
/// Returns the fault for which the request would be refused after the end of learning: a core that binds nobody, or leaves out facts, must
/// be seen before that day. `since` is what [`last_removal`] returned before the request went to the core.
pub(super) async fn learn(
    admitted: &Admitted,
    since: Option<Removal>,
    head: &Parts,
    snapshot: &Snapshot,
    now: Timestamp,
    store: &StateStore,
    telemetry: &Telemetry,
) -> Option<ObservedFault> {
    let learning = admitted.learns()?;
    let answer = &head.headers;
    let confirmed = learning.confirmed(CoreWords::read(answer));
    let confirmed = confirmed.filter(|_| head.status.is_success());
    if let Some(((who, context), since)) = confirmed.zip(since) {
        let accounts = accounts(answer, &snapshot.policy.account_ids);
        let consent = time(answer, &CONSENT_AT, now).zip(accounts);
        let consent = consent.as_ref().map(|(given, accounts)| (*given, accounts));
        let about = |corporate| Some(LearnedContext { corporate, consent });
        let learned = Learned {
            who,
            context: match context {
                ConfirmedContext::Private => about(None),
                ConfirmedContext::Agreement(corporate) => about(Some(corporate)),
                ConfirmedContext::Unconfirmed => None,
            },
            last_sca: time(answer, &SCA_AT, now),
        };
        match store.learn(learned, since).await {
            // A changed PSU was learned before, and has a new agreement (SCA-22).
            Ok(Bound::New | Bound::Changed(_)) => {
                let audit = telemetry.audit();
                let learned = audit
                    .event(AuditKind::Learned)
                    .with("tpp", who.tpp.as_str());
                audit.record(learned.about(store.keys().psu(who.psu)));
            }
            Ok(Bound::Elsewhere) => telemetry.psu_bound_elsewhere(BindingSource::Learning),
            // The core's word changes nothing of a PSU that is bound, or of which the bank took something back meanwhile.
            Ok(Bound::Unchanged | Bound::TakenOver | Bound::ConsentOutdated) => {}
            Err(fault) => tracing::warn!(%fault, "a PSU cannot be learned"),
        }
    }
    admitted.judge_unlearned(snapshot, store, now).await
}

/// Notes the day on which a TPP used the context of a known PSU (CTL-1): the core executed the request, and the grant knows of no use on this
/// day. The answer does not wait for the state. Where the day cannot be written, the next use writes it.
pub(super) fn note_use(
    admitted: &Admitted,
    status: StatusCode,
    now: Timestamp,
    store: &Arc<StateStore>,
) {
    // A sender that is only observed has used nothing.
    let is_use = status.is_success() && admitted.tpp().is_some();
    let grant = admitted.grant().filter(|_| is_use);
    let first = grant.filter(|grant| grant.first_use_of_day(now));
    let Some((psu, corporate)) = first.and_then(Grant::known_context) else {
        return;
    };
    let store = Arc::clone(store);
    tokio::spawn(async move {
        if let Err(fault) = store.note_use(psu, corporate, now).await {
            tracing::debug!(%fault, "a day of use is not written");
        }
    });
}

/// The value of a header that occurs exactly once; a repeated header is ignored.
fn one<'a>(answer: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = answer.get_all(name).iter();
    let value = values.next()?;
    let value = headers::trim(value.as_bytes());
    values.next().is_none().then_some(value)
}

/// A time in RFC 3339 format, truncated to the whole second.
fn time(answer: &HeaderMap, name: &HeaderName, now: Timestamp) -> Option<Timestamp> {
    let time = DateTimeParser::new()
        .parse_timestamp(one(answer, name)?)
        .ok()?;
    let time = u64::try_from(time.as_second()).ok()?;
    let latest = now.unix().saturating_add(AHEAD);
    (time <= latest).then(|| Timestamp::from_unix(time.min(now.unix())))
}

/// The accounts of a consent, percent-encoded as in a path, separated by commas; all accounts if the header is absent. `None` if
/// the list is unreadable, repeated, or contains an id that a path may not contain (HTTP-10).
fn accounts(answer: &HeaderMap, account_ids: &AccountIds) -> Option<ConsentAccounts> {
    if !answer.contains_key(&CONSENT_ACCOUNTS) {
        return Some(ConsentAccounts::All);
    }
    let list = std::str::from_utf8(one(answer, &CONSENT_ACCOUNTS)?).ok()?;
    let ids = list.split(',').map(str::trim).filter(|id| !id.is_empty());
    let account = |id| decoded(id).filter(|id| account_ids.include(id));
    let mut accounts: Vec<String> = ids.map(account).collect::<Option<_>>()?;
    accounts.sort_unstable();
    accounts.dedup();
    Some(ConsentAccounts::Named(accounts))
}

/// An account's id, percent-decoded.
fn decoded(id: &str) -> Option<String> {
    let is_hex = |escape: &str| {
        let digits = escape.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let mut escapes = id.split('%').skip(1);
    if !escapes.all(is_hex) {
        return None;
    }
    let id = percent_decode_str(id).decode_utf8().ok()?;
    Some(id.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn answer(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| HeaderValue::from_str(value));
        values.map(|value| (name.clone(), value.unwrap())).collect()
    }

    #[test]
    fn accounts_of_a_consent() {
        let class = AccountIds::default();
        let read = |values: &[&str]| accounts(&answer(&CONSENT_ACCOUNTS, values), &class);
        let named = |ids: &[&str]| {
            let ids = ids.iter().map(|id| (*id).to_owned()).collect();
            Some(ConsentAccounts::Named(ids))
        };
        assert_eq!(read(&[]), Some(ConsentAccounts::All));
        assert_eq!(read(&["b, a%3Ab,a,b, ,"]), named(&["a", "a:b", "b"]));
        assert_eq!(read(&[""]), named(&[]), "no account is not all accounts");
        for bad in ["a,%", "%4", "%zz", "a%C3", "a,b%20c", "a,\u{e6}", "a/b"] {
            assert_eq!(read(&[bad]), None, "{bad}");
        }
        assert_eq!(read(&["a", "a"]), None, "twice said is not said");
    }

    #[test]
    fn times_of_the_core() {
        let now = Timestamp::from_unix(1_800_000_000);
        let read = |values: &[&str]| time(&answer(&SCA_AT, values), &SCA_AT, now);
        assert_eq!(read(&["2027-01-15T09:00:00.9+01:00"]), Some(now));
        assert_eq!(read(&["2027-01-15T08:01:00Z"]), Some(now));
        for bad in [
            &["2027-01-15T08:01:01Z"][..],
            &["2027-01-15"],
            &["1969-12-31T23:59:59Z"],
            &["2027-01-15T08:00:00Z", "2027-01-15T08:00:00Z"],
            &[],
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
