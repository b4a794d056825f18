//! The pipeline: the checks that a request must pass before any byte of it reaches an upstream.
//!
//! ```text
//! match ─ envelope ─ date ─ rate/address ─ certificate ─ role ─ signature ─ rate/TPP ─ register ─ revocation ─ body+digest ─ payload ─ SCA ─ claim ─ forward
//! path,   headers,   ±60 s                 who is it?    may    did they               regis-     still?       is it what    JSON by   may   first use
//! method, query                                          they?  say it?                tered?                  they signed?  the rules the   of the id,
//! framing                                                                                                                              PSU's 4 per 24 h
//!                                                                                                                                      data be read?
//! ```
//!
//! Cheap checks come first, and no body is buffered for a caller who did not sign. [`prove`] and [`authorise`] call the checks in the order
//! of the diagram. `prove` judges the request without state; `authorise` judges it by the state of the PSU, and requires the store. Only
//! `authorise` makes an [`Admitted`]: no request is forwarded whose SCA, quota and request id were not judged. Each stage is a function in
//! its own file: it takes the evidence of earlier stages and returns its own evidence. To add a stage: write its file, give it a [`Stage`],
//! call it from `prove` or `authorise`, and keep its evidence in [`Proven`] or [`Admitted`].
//!
//! Evidence cannot be forged: its fields are private, only the check itself constructs it, and it is not `Clone`. This does not compile:
//!
//! ```compile_fail,E0451
//! use portvakt::admission::Signed;
//! let forged = Signed { headers: String::new() };
//! ```
//!
//! Reading evidence compiles:
//!
//! ```
//! use portvakt::admission::Signed;
//! fn covers(signed: &Signed) -> &str { signed.headers() }
//! ```
//!
//! Neither an [`Admitted`] nor a [`Proven`] can be constructed elsewhere:
//!
//! ```compile_fail,E0451
//! use portvakt::admission::Admitted;
//! fn forge(body: bytes::Bytes, earned: Admitted) -> Admitted { Admitted { body, ..earned } }
//! ```
//!
//! ```compile_fail,E0451
//! use portvakt::admission::{Proven, Trial};
//! fn forge<'a>(trial: Trial<'a>, earned: Proven<'a>) -> Proven<'a> { Proven { trial, ..earned } }
//! ```
//!
//! Only `authorise` and `prove` return them:
//!
//! ```
//! use portvakt::{admission::{self, Admission, Head, Trial, standing::Present}, interface::Refusal, sca::Links, state::StateStore};
//! use std::sync::Arc;
//! async fn earn<'a>(head: &'a Head<'a>, trial: Trial<'a>, links: &Arc<Links>, store: &StateStore, now: &dyn Present) -> Result<Admission, Refusal> {
//!     let proven = admission::prove(head, &mut bytes::Bytes::new(), trial).await?;
//!     admission::authorise(proven, links, store, now).await
//! }
//! ```
//!
//! `authorise` requires a store, and does not accept an `Option`:
//!
//! ```compile_fail,E0308
//! use portvakt::{admission::{self, Admission, Head, Trial, standing::Present}, interface::Refusal, sca::Links, state::StateStore};
//! use std::sync::Arc;
//! async fn earn<'a>(head: &'a Head<'a>, trial: Trial<'a>, links: &Arc<Links>, store: Option<&StateStore>, now: &dyn Present) -> Result<Admission, Refusal> {
//!     let proven = admission::prove(head, &mut bytes::Bytes::new(), trial).await?;
//!     admission::authorise(proven, links, store, now).await
//! }
//! ```
//!
//! The head for the core is written from a [`Fresh`], which looks at the clock: it can neither be constructed nor kept for later:
//!
//! ```compile_fail,E0451
//! use portvakt::admission::{Admitted, Fresh};
//! fn forge<'a>(admitted: &'a Admitted, earned: Fresh<'a>) -> Fresh<'a> { Fresh { admitted, ..earned } }
//! ```
//!
//! ```compile_fail
//! use portvakt::{admission::UnderWay, clock::Clock};
//! fn spawned(_: impl Future<Output = ()> + Send) {}
//! fn keep(mut request: UnderWay<'static>) {
//!     spawned(async move {
//!         let fresh = request.refresh(&Clock::default()).await;
//!         std::future::ready(()).await;
//!         drop(fresh);
//!     });
//! }
//! ```
//!
//! ```
//! use portvakt::{admission::UnderWay, clock::Clock};
//! fn spawned(_: impl Future<Output = ()> + Send) {}
//! fn use_at_once(mut request: UnderWay<'static>) {
//!     spawned(async move {
//!         let is_fresh = request.refresh(&Clock::default()).await.is_ok();
//!         std::future::ready(is_fresh).await;
//!     });
//! }
//! ```
//!
//! A proven request is not an admitted request:
//!
//! ```compile_fail,E0308
//! use portvakt::{admission::{self, Admitted, Head, Trial}, interface::Refusal};
//! async fn earn<'a>(head: &'a Head<'a>, trial: Trial<'a>) -> Result<Admitted, Refusal> {
//!     admission::prove(head, &mut bytes::Bytes::new(), trial).await
//! }
//! ```

// The head of a request.
mod head;
// The body of a request, which can be read once.
mod incoming;

// The current snapshot of the configuration; a reload replaces it.
mod snapshot;
mod when_unknown;

// The checks, by name.
mod stage;
// The checks that refuse, and those that are only observed.
mod enforcement;
// The result of a check.
mod evidence;
// The notes on one request.
mod record;
// The trial of one request: it decides, and the record notes.
mod trial;

// Path and method (HTTP-1 to HTTP-3, HTTP-10).
mod matching;

// Framing and headers (HTTP-4 to HTTP-7, HDR-*, FWD-2).
mod envelope;

// The query's parameters (QRY-*).
mod query;

// The Date header against the clock (DAT-2).
mod date;

// The identity of the caller (CRT-1 to CRT-4).
mod certificate;

// The role for the operation (CRT-5).
mod role;

// The signature (SIG-*).
mod signature;

// The certificate of the TLS connection, which is that of the TPP that signs (TLS-3).
mod client_certificate;

// The registration of the TPP (CRT-7).
mod register;

// The registration judged again, by the snapshot in use now (REP-1, SCA-23).
pub mod standing;

// The revocation status of the certificate (CRT-6, CRT-11).
mod revocation;

// The host to which the TPP may redirect PSUs (HDR-8).
mod redirect;

// The body and its digest (HTTP-6, HTTP-8, DIG-1).
mod body;

// The members of the body (PAY-*).
mod payload;

// The general rate limits (QUO-12).
mod rate;

// The checks of the sender, in their order.
mod sender;

// A request that passed every check that needs no state.
mod proven;
// A request with an authenticated sender.
mod authenticated;

// The permission to read the PSU's data (SCA-*).
mod sca;
// Claims about the PSU that the core may confirm (SCA-19, SCA-22).
mod learning;

// The first use of the request id, and the quota (REP-1, QUO-*).
mod claim;

// The evidence of all checks.
mod admitted;

pub use admitted::{
    Admitted,
    under_way::{Fresh, UnderWay},
};
pub use body::{ExpectedBody, IntactBody};
pub use certificate::{Tpp, said as said_of_certificate};
pub use claim::Claim;
pub use date::FreshDate;
pub use enforcement::{Enforcement, ObservableCheck, ObservedFault, TppChecks, Waiver};
pub use evidence::{Judged, NotJudged};
pub use head::{Framing, Head};
pub use incoming::{Announced, BodyFault, Incoming};
pub use learning::{ConfirmedContext, CoreWords, Learning, Unconfirmed};
pub use matching::unknown_path;
pub use payload::ValidPayload;
pub use proven::Proven;
pub use query::ValidQuery;
pub use rate::{RateSettings, Rates, WithinRate};
pub use record::{Check, ClockSkew, Outcome, OutcomeKind, Record, Verdict};
pub use redirect::Redirectable;
pub use register::{Registered, would_be_registered};
pub use revocation::Unrevoked;
pub use role::Entitled;
pub(crate) use role::suffices as role_suffices;
pub(crate) use sca::{DETAILS_CONSENT_LASTS, SESSION_LASTS};
pub use sca::{Grant, ScaAnswer};
pub use signature::{Signed, signing_string, verify_answer_signature, verify_signature};
pub use snapshot::{Policy, QuotaPolicy, Snapshot};
pub use stage::Stage;
pub use trial::Trial;
pub use when_unknown::WhenUnknown;

use crate::{
    clock::BootTime,
    interface::{Refusal, operations::AnsweredBy},
    sca::Links,
    state::StateStore,
};
use admitted::JudgedAt;
use proven::{Evidence, ProvenRequest, Sender};
use sender::{OfSender, of_sender};
use standing::Present;
use std::{net::SocketAddr, sync::Arc};

/// The result of an admission.
#[must_use]
#[derive(Debug)]
pub enum Admission {
    /// The request is forwarded. It is large, and moves through several futures: a pointer costs less.
    Forward(Box<Admitted>),
    /// The gateway answers the request (SCA-20).
    Answer(ScaAnswer),
}

/// Judges a request without state, by every check from `match` to `payload`.
///
/// The record of `trial` notes each check with its verdict and its time, whether the check passes or not.
///
/// # Errors
/// The refusal of the first stage that refuses, with all faults that this stage found.
pub async fn prove<'a>(
    head: &'a Head<'a>,
    body: &mut impl Incoming,
    mut trial: Trial<'a>,
) -> Result<Proven<'a>, Refusal> {
    let snapshot = trial.snapshot;
    let policy = &snapshot.policy;
    let at = trial.received();
    trial.read(head);

    let matched = trial.require(Stage::Match, matching::find(head, snapshot));
    let (operation, (target, ids)) = matched?;
    trial.record.note_operation(&operation);
    let (envelope, headers) = envelope::check(head, body.announced(), &operation, policy);
    let headers = trial.judge(Stage::Envelope, headers)?;

    let query = trial.judge(Stage::Query, query::judge(target, &envelope, &operation))?;
    let date = date::judge(&envelope, &headers, at, &mut trial)?;
    let from_address = trial.judge(Stage::AddressRate, snapshot.rates.address(head.peer))?;
    let OfSender {
        tpp,
        entitled,
        signed,
        of_signer,
    } = of_sender(head, &envelope, &operation, &mut trial).await?;

    let bytes = match body::read(body, policy).await {
        Ok(bytes) => bytes,
        Err(refusal) => return trial.require(Stage::Body, Err(refusal)),
    };
    let expected = trial.judge(Stage::Body, body::expected(&bytes, &operation))?;
    let intact = body::digest(&head.fields, &bytes, &operation);
    let intact = trial.judge(Stage::Digest, intact)?;
    let payload = payload::judge(&bytes, &operation, policy, at);
    let payload = trial.judge(Stage::Payload, payload)?;

    Ok(Proven {
        request: ProvenRequest {
            head,
            snapshot,
            operation,
            target,
            ids,
            envelope,
            at,
            body: bytes,
            evidence: Evidence {
                headers,
                query,
                date,
                rates: [from_address, of_signer.within_rate],
                tpp,
                entitled,
                signed,
                registered: of_signer.registered,
                unrevoked: of_signer.unrevoked,
                redirectable: of_signer.redirectable,
                expected,
                intact,
                payload,
            },
        },
        trial,
    })
}

/// Judges a proven request by the state of the PSU, and claims the request id and the call: the last step before the request is forwarded.
///
/// `links` and `store` must belong to the snapshot by which the request was proven. `present` is the snapshot in use now: the body took time.
///
/// # Errors
/// As for [`prove`]; nothing is claimed for a refused request.
pub async fn authorise(
    proven: Proven<'_>,
    links: &Arc<Links>,
    store: &StateStore,
    present: &dyn Present,
) -> Result<Admission, Refusal> {
    let Proven { request, mut trial } = proven;
    let (judged_at, mut claims) = (BootTime::now(), Vec::new());
    let (grant, claim) = match request.sender()? {
        Sender::Unknown(because) => {
            claims = certificate::claims(request.head);
            let standing = request.judge_standing(&claims, present, store, &mut trial);
            let _standing = standing.await?;
            (
                trial.pass_over(Stage::Sca, because),
                trial.pass_over(Stage::Claim, because),
            )
        }
        Sender::Authenticated(authenticated) => {
            // Before the SCA too: a TPP that is turned away gets no link.
            let standing = request.judge_standing(&claims, present, store, &mut trial);
            let _standing = standing.await?;
            // Reading the body took time.
            let now = trial.now();
            let grant = if authenticated.operation.answered_by == AnsweredBy::Gateway {
                let answer = sca::answer(&authenticated, links, store, now).await;
                match trial.judge(Stage::Sca, answer)? {
                    Judged::Held(answer) => return Ok(Admission::Answer(answer)),
                    // The core answers the request that the gateway cannot answer.
                    Judged::Waived(waiver) => Judged::Waived(waiver),
                    Judged::NotJudged(why) => Judged::NotJudged(why),
                }
            } else {
                let grant = sca::judge(&authenticated, links, store, now).await;
                trial.judge(Stage::Sca, grant)?
            };
            let standing = request.judge_standing(&claims, present, store, &mut trial);
            let standing = standing.await?;
            let grant_held = grant.held();
            let claim = claim::take(&authenticated, standing, grant_held, store, &mut trial);
            let claim = claim.await?;
            (grant, claim)
        }
    };
    let named_fixes = request.envelope.fixes();
    let observed = trial.record.observed().map(|fault| fault.reason).collect();
    let admitted = Admitted::new(
        request,
        Arc::clone(links),
        grant,
        claim,
        observed,
        JudgedAt {
            moment: judged_at,
            claims: claims.into(),
        },
    );
    let admitted = Box::new(admitted);
    trial.record.note_admitted(admitted.facts(named_fixes));
    Ok(Admission::Forward(admitted))
}

/// Counts a refused request towards the rate of its address, unless its checks have (QUO-12): a flood of requests that cheap checks refuse
/// is limited like any other. Returns the refusal that it gets.
#[cold]
pub fn count_refused(refusal: Refusal, peer: Option<SocketAddr>, mut trial: Trial<'_>) -> Refusal {
    let stage = Stage::AddressRate;
    let mut checks = trial.record.checks().iter();
    if checks.any(|check| check.stage == stage) {
        return refusal;
    }
    let rate = trial.snapshot.rates.address(peer);
    match trial.judge(stage, rate) {
        Ok(_) => refusal,
        Err(limited) => limited,
    }
}

// These tests need the development PKI.
#[cfg(all(test, feature = "sandbox"))]
mod tests;
