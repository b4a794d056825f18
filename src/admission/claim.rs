//! The first use of the request id, and the calls that are allowed without the PSU (REP-1, QUO-1 to QUO-7, QUO-13 to QUO-15, SCA-22).
//!
//! The claim is the last check: every other check has passed the request (QUO-6). It is made in one durable step before a byte is sent
//! upstream (QUO-5). Deliberately not here: giving a claim back, which the gateway does when it knows the outcome of the request.

use super::{
    Grant, Judged, Stage, Trial, Verdict, authenticated::AuthenticatedRequest, date,
    enforcement::Waiver, sca, standing::GoodStanding,
};
use crate::{
    clock::Timestamp,
    interface::{
        Fault, QuotaLeft, Reason, Refusal, headers,
        operations::{Quota, Transactions},
    },
    state::{
        Beside, CallsLeft, ClaimRequest, Decision, Page, QuotaClaim, QuotaKey, RequestIdClaim,
        Retention, StateStore, Taken, Unavailable,
    },
};

/// The proof that the request id is used for the first time and that the quota allows the call. Both are claimed in one step.
#[must_use]
#[derive(Debug)]
pub struct Claim {
    taken: Taken,
    left: Option<QuotaLeft>,
}

impl Claim {
    /// The claimed rows, which are needed to give the claim back.
    pub const fn taken(&self) -> &Taken {
        &self.taken
    }

    /// The rest of the quota, if the operation is limited (QUO-11).
    pub const fn left(&self) -> Option<QuotaLeft> {
        self.left
    }
}

/// Claims the request id and the call of a request that is about to be forwarded. The time is read here: a slow body must not delay the
/// claim until the id is forgotten. `_standing` is judged just before, for the same cause. If one of the two cannot be claimed and this is only observed, the other one is claimed alone.
///
/// # Errors
/// The Date is no longer valid (400), the request id was used (409), the quota is used up (429), or the store is unavailable (503). Then
/// nothing is claimed.
pub(super) async fn take(
    request: &AuthenticatedRequest<'_>,
    _standing: GoodStanding,
    grant: Option<&Grant>,
    store: &StateStore,
    trial: &mut Trial<'_>,
) -> Result<Judged<Claim>, Refusal> {
    let now = trial.now();
    // REP-1: a Date that was valid may have expired while the body was read.
    if let Err(refusal) = request.date.map_or(Ok(()), |date| date::holds(date, now)) {
        observe(refusal, trial)?;
    }
    let quota = match grant {
        Some(grant) => quota_claim(request, grant, store, now).await,
        None => Ok(None),
    };
    let quota = quota.map_err(sca::unavailable);
    let mut claim = ClaimRequest {
        request: request_id_claim(request, store, now),
        quota: quota.or_else(|refusal| trial.require(Stage::Claim, Err(refusal)))?,
        now,
    };
    loop {
        let decision = store.commit(claim).await.map_err(sca::unavailable);
        let decision = decision.or_else(|refusal| trial.require(Stage::Claim, Err(refusal)))?;
        let refusal = match decision {
            Decision::Held(taken) => {
                trial.note(Stage::Claim, Verdict::Held);
                return Ok(Judged::Held(Claim {
                    left: taken.left().map(|left| left.seen_at(now)),
                    taken,
                }));
            }
            Decision::Replayed => {
                claim.request = None;
                replayed()
            }
            Decision::NextAt(next) => {
                claim.quota = None;
                used_up(next, now, request.envelope.is_psu_present())
            }
        };
        let reason = refusal.reason();
        let waiver = observe(refusal, trial)?;
        if claim.request.is_none() && claim.quota.is_none() {
            trial.note(Stage::Claim, Verdict::Waived(reason));
            return Ok(Judged::Waived(waiver));
        }
    }
}

/// Observes a claim that was not granted.
///
/// # Errors
/// The refusal, if the check is enforced.
#[cold]
fn observe(refusal: Refusal, trial: &mut Trial<'_>) -> Result<Waiver, Refusal> {
    let observed = trial.observe(Stage::Claim, refusal);
    observed.or_else(|refusal| trial.require(Stage::Claim, Err(refusal)))
}

fn replayed() -> Refusal {
    let text = "it was used before, and that request was forwarded: give each request a new one";
    Fault::header(Reason::RequestReplayed, headers::X_REQUEST_ID.written, text).into()
}

/// QUO-14: where the bank asks for it, calls with the PSU present count too, unless they have a valid session.
fn used_up(next: Timestamp, now: Timestamp, is_present: bool) -> Refusal {
    let left = CallsLeft { calls: 0, next }.seen_at(now);
    let text = match is_present {
        true => {
            "four calls of this operation in 24 hours were made, and this bank counts those with PSU-IP-Address too unless they have a valid session: send its TPP-Session-ID"
        }
        false => {
            "four calls of this operation in 24 hours were made without PSU-IP-Address: wait for the seconds in Retry-After, or send the header while the PSU is present"
        }
    };
    let refusal = Refusal::from(Fault::request(Reason::QuotaExceeded, text));
    refusal.retry_after(left.seconds).with_quota(left)
}

/// REP-1: the ids of safe methods are stored while their Date can be valid, those of other methods for a day. A Date that was not valid and
/// only observed counts as absent.
fn request_id_claim(
    request: &AuthenticatedRequest<'_>,
    store: &StateStore,
    now: Timestamp,
) -> Option<RequestIdClaim> {
    let id = request.envelope.request_id()?;
    let retention = match request.method.is_safe() {
        false => Retention::Day,
        true if request.snapshot.policy.replay_everywhere => Retention::Date,
        true => Retention::Memory,
    };
    Some(RequestIdClaim {
        id: store.keys().request(request.tpp, id),
        date: request.date.unwrap_or(now),
        retention,
    })
}

/// QUO-4, QUO-15: the call that is counted, and the key of its quota. A PSU or an agreement that is not known counts for the account
/// (SCA-22): whoever invents one gets no further calls.
///
/// # Errors
/// The TPP's former identities are not known, or are more than can be counted.
async fn quota_claim(
    request: &AuthenticatedRequest<'_>,
    grant: &Grant,
    store: &StateStore,
    now: Timestamp,
) -> Result<Option<QuotaClaim>, Unavailable> {
    let policy = &request.snapshot.policy.quota;
    let operation = request.operation;
    let counted = !request.envelope.is_psu_present()
        || policy.psu_present_needs_session && grant.session().is_none();
    if !counted || operation.quota == Quota::None {
        return Ok(None);
    }
    let each = policy.details_each && operation.transactions == Transactions::Details;
    let ids = operation.counted_ids(request.ids, each);
    let keys = store.keys();
    let of_account = || keys.quota_of_account(request.tpp, &operation.name, &ids);
    let (key, beside) = match grant.known_context() {
        None => (of_account(), Beside::default()),
        Some((psu, corporate)) => {
            let tpp = grant.counted_as().unwrap_or(request.tpp);
            let of_psu = |tpp| keys.quota(tpp, psu, corporate, &operation.name, &ids);
            // Before the PSU was known its calls counted for the account. They must not become four more, nor those of another identity.
            let unknown = may_have_been_unknown(request, grant, now).then(of_account);
            let names = store.names_of(request.tpp).await?;
            let others = names.iter().filter(|name| *name != tpp).map(of_psu);
            let beside = unknown.into_iter().chain(others).map(QuotaKey::hash);
            (of_psu(tpp), Beside::all(beside)?)
        }
    };
    Ok(Some(QuotaClaim {
        key: key.hash(),
        beside,
        page: page(request, key, store),
    }))
}

/// Whether calls of a known PSU may have counted for the account in the last 24 hours (QUO-1): the PSU was learned, or somebody could be.
fn may_have_been_unknown(
    request: &AuthenticatedRequest<'_>,
    grant: &Grant,
    now: Timestamp,
) -> bool {
    let yesterday = Timestamp::from_unix(now.unix().saturating_sub(86_400));
    let unknown_psu = request.snapshot.policy.unknown_psu;
    grant.is_learned() || unknown_psu.is_learned(now) || unknown_psu.is_learned(yesterday)
}

/// QUO-13: the number of entries of a page without a limit in the query.
const LIMIT: u32 = 200;

/// QUO-13.
fn page(request: &AuthenticatedRequest<'_>, key: QuotaKey, store: &StateStore) -> Option<Page> {
    let once = request.snapshot.policy.quota.pages_once
        && request.operation.transactions == Transactions::List;
    let query = request.query.filter(|_| once)?;
    let number = |written: Option<i32>| written.and_then(|number| u32::try_from(number).ok());
    Some(Page {
        list: store.keys().list(key, query.list()?),
        offset: number(query.offset()).unwrap_or_default(),
        limit: number(query.limit()).unwrap_or(LIMIT),
    })
}
