//! The pipeline: what a request must pass before any byte of it reaches an upstream.
//!
//! ```text
//! match ─ envelope ─ date ─ rate/address ─ certificate ─ role ─ signature ─ rate/TPP ─ register ─ revocation ─ body+digest ─ payload ─ SCA ─ claim ─ forward
//! path,   headers,   ±60 s                 who is it?    may    did they               regis-     still?       is it what    JSON by   may   first use
//! method, query                                          they?  say it?                tered?                  they signed?  the rules the   of the id,
//! framing                                                                                                                              PSU's 4 per 24 h
//!                                                                                                                                      data be read?
//! ```
//!
//! Cheap checks come first, nothing is buffered for a caller who did not sign, and [`prove`] and [`authorise`] read like
//! that line. `prove` judges what the request itself shows, and needs no state; `authorise` judges it by what is kept of
//! the PSU, and cannot be called without the store. Only `authorise` makes an [`Admitted`]: no request is forwarded
//! whose SCA, quota and request id nobody looked at.
//! Each stage is a plain function in a file of its own: it takes the evidence of the stages before it and returns its
//! own. To add a stage: write its file, give it a [`Stage`], call it from `prove` or `authorise`, keep its evidence in
//! [`Proven`] or [`Admitted`].
//!
//! Evidence cannot be forged: its fields are private, its one constructor stands where it is earned, and it is not
//! `Clone`. This does not compile:
//!
//! ```compile_fail,E0451
//! use portvakt::admission::Signed;
//! let forged = Signed { headers: String::new() };
//! ```
//!
//! while looking at evidence does:
//!
//! ```
//! use portvakt::admission::Signed;
//! fn covers(signed: &Signed) -> &str { signed.headers() }
//! ```
//!
//! Nor can an [`Admitted`] be built by hand, or a [`Proven`]:
//!
//! ```compile_fail,E0451
//! use portvakt::admission::Admitted;
//! fn forge(body: bytes::Bytes, earned: Admitted) -> Admitted { Admitted { body, ..earned } }
//! ```
//!
//! ```compile_fail,E0451
//! use portvakt::admission::Proven;
//! fn forge<'a>(body: bytes::Bytes, earned: Proven<'a>) -> Proven<'a> { Proven { body, ..earned } }
//! ```
//!
//! they are what `authorise` and `prove` give:
//!
//! ```
//! use portvakt::{admission::{self, Admission, Head, Record, Snapshot}, interface::Refusal, sca::Links, state::Kept};
//! use std::sync::Arc;
//! async fn earn(head: &Head<'_>, world: &Snapshot, links: &Arc<Links>, kept: &Kept, record: &mut Record) -> Result<Admission, Refusal> {
//!     let proven = admission::prove(head, &mut bytes::Bytes::new(), world, record).await?;
//!     admission::authorise(proven, links, kept, record).await
//! }
//! ```
//!
//! and `authorise` takes a store and links, not perhaps one:
//!
//! ```compile_fail,E0308
//! use portvakt::{admission::{self, Admission, Head, Record, Snapshot}, interface::Refusal, sca::Links, state::Kept};
//! use std::sync::Arc;
//! async fn earn(head: &Head<'_>, world: &Snapshot, links: &Arc<Links>, kept: Option<&Kept>, record: &mut Record) -> Result<Admission, Refusal> {
//!     let proven = admission::prove(head, &mut bytes::Bytes::new(), world, record).await?;
//!     admission::authorise(proven, links, kept, record).await
//! }
//! ```
//!
//! nor is what is proven an admission:
//!
//! ```compile_fail,E0308
//! use portvakt::{admission::{self, Admitted, Head, Record, Snapshot}, interface::Refusal};
//! async fn earn(head: &Head<'_>, world: &Snapshot, record: &mut Record) -> Result<Admitted, Refusal> {
//!     admission::prove(head, &mut bytes::Bytes::new(), world, record).await
//! }
//! ```

// What is judged: a request's head.
mod head;
// What is judged: a body that can be read once.
mod incoming;

// The world that a request is judged by.
mod snapshot;

// What a judgement gives.
mod evidence;
// What was judged, found and measured on one request.
mod record;

// Path and method (HTTP-1 to HTTP-3, HTTP-10).
mod matching;

// Framing and headers (HTTP-4 to HTTP-7, HDR-*, FWD-2).
mod envelope;

// The query's parameters (QRY-*).
mod query;

// The Date header against the clock (DAT-2).
mod date;

// Who is it (CRT-1 to CRT-4)?
mod certificate;

// May they ask for this (CRT-5)?
mod role;

// Did they say it (SIG-*)?
mod signature;

// Are they registered for this (CRT-7)?
mod register;

// Is the certificate still good (CRT-6, CRT-11)?
mod revocation;

// May they have PSUs redirected there (HDR-8)?
mod redirect;

// Is the body what they signed (HTTP-6, HTTP-8, DIG-1)?
mod body;

// Is it what the operation takes (PAY-*)?
mod payload;

// How much comes from whom (QUO-12)?
mod rate;

// All that a request itself shows.
mod proven;
// A request whose sender is known.
mod heard;

// May the PSU's data be read (SCA-*)?
mod sca;

// The first use, within the quota (REP-1, QUO-*)?
mod claim;

// The sum of all evidence.
mod admitted;

pub use admitted::Admitted;
pub use body::IntactBody;
pub use certificate::Tpp;
pub use claim::Claim;
pub use date::Timely;
pub use evidence::{Judged, NotJudged, Waiver};
pub use head::{Framing, Head};
pub use incoming::{Announced, BodyFault, Incoming};
pub use payload::ValidPayload;
pub use proven::Proven;
pub use query::Asked;
pub use rate::{Paced, RateSettings, Rates};
pub use record::{Check, Outcome, Record, Stage, Verdict};
pub use redirect::Redirectable;
pub use register::Registered;
pub use revocation::{Unrevoked, WhenUnknown};
pub use role::Entitled;
pub use sca::{Answer, Grant};
pub use signature::{Signed, signing_string};
pub use snapshot::{Policy, QuotaPolicy, Snapshot};

use crate::{
    interface::{
        Refusal,
        operations::{AnsweredBy, Operation},
    },
    sca::Links,
    state::Kept,
};
use proven::Evidence;
use std::sync::Arc;

/// What becomes of a request that holds.
#[must_use]
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "it is moved once, and nearly every one is forwarded"
)]
pub enum Admission {
    /// It is forwarded.
    Forward(Admitted),
    /// The gateway answers it (SCA-20).
    Answer(Answer),
}

/// Judges a request by itself and the world, from top to bottom: everything that needs no state.
///
/// `record` collects each check with its verdict and its time, whether the request holds or not.
///
/// # Errors
/// The first stage that refuses decides; its [`Refusal`] holds everything that this stage found wrong.
pub async fn prove<'a>(
    head: &'a Head<'a>,
    body: &mut impl Incoming,
    world: &'a Snapshot,
    record: &mut Record,
) -> Result<Proven<'a>, Refusal> {
    let policy = &world.policy;
    let at = record.received();

    let found = matching::find(head, world);
    let (operation, (target, ids)) = record.matched(found)?;
    let envelope = envelope::check(head, body.announced(), &operation, policy);
    let envelope = record.held(Stage::Envelope, envelope)?;

    let asked = record.judge(Stage::Query, policy, query::judge(head, &operation))?;
    let date = record.judge(Stage::Date, policy, date::judge(&envelope, at))?;
    let from_address = world.rates.address(head.peer);
    let from_address = record.judge(Stage::AddressRate, policy, from_address)?;
    let tpp = record.judge(
        Stage::Certificate,
        policy,
        certificate::identify(head, &world.trust, &world.rates, at),
    )?;
    record.identified(&tpp);
    let (entitled, signed) = match &tpp {
        Judged::Held(tpp) => (
            record.judge(Stage::Role, policy, role::judge(tpp, &operation))?,
            record.judge(
                Stage::Signature,
                policy,
                signature::verify(head, tpp, world),
            )?,
        ),
        _ => (record.skip(Stage::Role), record.skip(Stage::Signature)),
    };
    let signer = match (&tpp, &signed) {
        (Judged::Held(tpp), Judged::Held(_)) => Some(tpp),
        _ => None,
    };
    let OfSigner {
        paced: of_tpp,
        registered,
        unrevoked,
        redirectable,
    } = of_signer(head, signer, &operation, world, record).await?;

    let bytes = body::read(body, &operation, policy).await;
    let bytes = record.held(Stage::Body, bytes)?;
    let intact = record.judge(Stage::Digest, policy, body::digest(head, &bytes))?;
    let payload = payload::judge(&bytes, &operation, policy, at);
    let payload = record.judge(Stage::Payload, policy, payload)?;

    Ok(Proven {
        head,
        world,
        operation,
        target,
        ids,
        fixes: envelope.fixes(),
        at,
        body: bytes,
        evidence: Evidence {
            asked,
            date,
            paced: [from_address, of_tpp],
            tpp,
            entitled,
            signed,
            registered,
            unrevoked,
            redirectable,
            intact,
            payload,
        },
    })
}

/// Judges what is proven by what is kept of the PSU, and claims what it needs: the last step before it is forwarded.
///
/// `links` and `kept` belong to the world that it was proven in, `record` is the request's.
///
/// # Errors
/// As for [`prove`]; nothing is taken of a request that is refused.
pub async fn authorise(
    proven: Proven<'_>,
    links: &Arc<Links>,
    kept: &Kept,
    record: &mut Record,
) -> Result<Admission, Refusal> {
    let (grant, claim) = match proven.heard() {
        // Of a request whose sender is not known no state is read or written (FWD-6).
        None => (record.skip(Stage::Sca), record.skip(Stage::Claim)),
        Some(heard) => {
            // The body took its time.
            let now = record.now();
            if heard.operation.answered_by == AnsweredBy::Gateway {
                let answer = sca::answer(&heard, links, kept, now).await;
                return record.held(Stage::Sca, answer).map(Admission::Answer);
            }
            let policy = &heard.world.policy;
            let grant = sca::judge(&heard, links, kept, now).await;
            let grant = record.judge(Stage::Sca, policy, grant)?;
            let claim = claim::take(&heard, grant.held(), kept, record.now()).await;
            let claim = record.judge(Stage::Claim, policy, claim)?;
            (grant, claim)
        }
    };
    let named_fixes = proven.fixes;
    let admitted = Admitted::new(proven, Arc::clone(links), grant, claim);
    record.admitted(named_fixes, &admitted);
    Ok(Admission::Forward(admitted))
}

/// What the stages between the signature and the body give.
struct OfSigner {
    paced: Judged<Paced>,
    registered: Judged<Registered>,
    unrevoked: Judged<Unrevoked>,
    redirectable: Judged<Redirectable>,
}

/// The stages between the signature and the body: only of a TPP that signed they can be judged.
async fn of_signer(
    head: &Head<'_>,
    tpp: Option<&Tpp>,
    operation: &Operation,
    world: &Snapshot,
    record: &mut Record,
) -> Result<OfSigner, Refusal> {
    let policy = &world.policy;
    let Some(tpp) = tpp else {
        return Ok(OfSigner {
            paced: record.skip(Stage::TppRate),
            registered: match &world.registers {
                Some(_) => record.skip(Stage::Register),
                None => Judged::switched_off(),
            },
            unrevoked: match world.trust.revocation() {
                Some(_) => record.skip(Stage::Revocation),
                None => Judged::switched_off(),
            },
            redirectable: record.skip(Stage::Redirect),
        });
    };
    let paced = world.rates.tpp(tpp.certificate().tpp_id());
    let paced = record.judge(Stage::TppRate, policy, paced)?;
    let registered = match &world.registers {
        None => Judged::switched_off(),
        Some(registers) => {
            let found = register::judge(tpp, operation, registers, record.received());
            record.judge(Stage::Register, policy, found)?
        }
    };
    let unrevoked = match world.trust.revocation() {
        None => Judged::switched_off(),
        Some(revocation) => {
            let at = record.received();
            let found = revocation::judge(tpp, operation, policy, revocation, at).await;
            record.judge(Stage::Revocation, policy, found)?
        }
    };
    let redirectable = redirect::judge(head, tpp, operation, policy);
    let redirectable = record.judge(Stage::Redirect, policy, redirectable)?;
    Ok(OfSigner {
        paced,
        registered,
        unrevoked,
        redirectable,
    })
}

// It needs the development PKI.
#[cfg(all(test, feature = "sandbox"))]
mod tests;
