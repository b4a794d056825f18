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
//! Cheap checks come first, nothing is buffered for a caller who did not sign, and [`admit`] reads like that line.
//! Each stage is a plain function in a file of its own: it takes the evidence of the stages before it and returns its
//! own. To add a stage: write its file, give it a [`Stage`], call it from `admit`, keep its evidence in [`Admitted`].
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
//! Nor can an [`Admitted`] be built by hand:
//!
//! ```compile_fail,E0451
//! use portvakt::admission::Admitted;
//! fn forge(body: bytes::Bytes, earned: Admitted) -> Admitted { Admitted { body, ..earned } }
//! ```
//!
//! it is what `admit` gives:
//!
//! ```
//! use portvakt::{admission::{self, Admission, Head, Record, Snapshot}, interface::Refusal, state::Store};
//! async fn earn(head: &Head<'_>, world: &Snapshot, store: &Store, record: &mut Record) -> Result<Admission, Refusal> {
//!     admission::admit(head, &mut bytes::Bytes::new(), world, store, record).await
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
pub use evidence::{Judged, NotJudged, Unbuilt, Waiver};
pub use head::{Framing, Head};
pub use incoming::{Announced, BodyFault, Incoming};
pub use payload::ValidPayload;
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
        headers::accept_fix,
        operations::{AnsweredBy, Operation},
    },
    state::Store,
};
use admitted::Evidence;
use heard::Heard;

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

/// Judges a request by the world, from top to bottom.
///
/// `record` collects each check with its verdict and its time, whether the request is admitted or not.
///
/// # Errors
/// The first stage that refuses decides; its [`Refusal`] holds everything that this stage found wrong.
pub async fn admit(
    head: &Head<'_>,
    body: &mut impl Incoming,
    world: &Snapshot,
    store: &Store,
    record: &mut Record,
) -> Result<Admission, Refusal> {
    let policy = &world.policy;
    let at = record.received();

    let found = matching::find(head, &world.catalogue);
    let (operation, target) = record.matched(found)?;
    let envelope = envelope::check(head, body.announced(), &operation, policy);
    let envelope = record.held(Stage::Envelope, envelope)?;

    let asked = record.judge(Stage::Query, policy, query::judge(head, &operation))?;
    let date = record.judge(Stage::Date, policy, date::judge(&envelope, at))?;
    let from_address = world.rates.address(head.peer);
    let from_address = record.judge(Stage::AddressRate, policy, from_address)?;
    let tpp = record.judge(
        Stage::Certificate,
        policy,
        certificate::identify(head, &world.trust, at),
    )?;
    record.identified(&tpp);
    let (entitled, signed) = match &tpp {
        Judged::Held(tpp) => (
            record.judge(Stage::Role, policy, role::judge(tpp, &operation))?,
            record.judge(
                Stage::Signature,
                policy,
                signature::verify(head, tpp, policy),
            )?,
        ),
        _ => (record.skip(Stage::Role), record.skip(Stage::Signature)),
    };
    let proven = match (&tpp, &signed) {
        (Judged::Held(tpp), Judged::Held(_)) => Some(tpp),
        _ => None,
    };
    let proven = of_proven(head, proven, &operation, world, record).await?;
    let Proven {
        paced: of_tpp,
        registered,
        unrevoked,
        redirectable,
    } = proven;

    let bytes = body::read(body, &operation, policy).await;
    let bytes = record.held(Stage::Body, bytes)?;
    let intact = record.judge(Stage::Digest, policy, body::digest(head, &bytes))?;
    let payload = payload::judge(&bytes, &operation, policy, at);
    let payload = record.judge(Stage::Payload, policy, payload)?;

    let heard = match (&tpp, &signed, &intact) {
        (Judged::Held(tpp), Judged::Held(_), Judged::Held(_)) => Some(Heard {
            head,
            operation: &operation,
            target,
            asked: asked.held(),
            tpp: tpp.certificate().tpp_id(),
            world,
        }),
        _ => None,
    };
    let (grant, claim) = match remember(heard, store, record).await? {
        Remembered::Answer(answer) => return Ok(Admission::Answer(answer)),
        Remembered::Judged(grant, claim) => (grant, claim),
    };

    let evidence = Evidence {
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
        grant,
        claim,
    };
    let fixes = accept_fix::resolve(envelope.fixes(), at);
    let admitted = Admitted::new(head, operation, world, fixes, at, bytes, evidence);
    record.admitted(envelope.fixes(), &admitted);
    Ok(Admission::Forward(admitted))
}

/// What the stages between the signature and the body give.
struct Proven {
    paced: Judged<Paced>,
    registered: Judged<Registered>,
    unrevoked: Judged<Unrevoked>,
    redirectable: Judged<Redirectable>,
}

/// The stages between the signature and the body: only of a TPP that signed they can be judged.
async fn of_proven(
    head: &Head<'_>,
    tpp: Option<&Tpp>,
    operation: &Operation,
    world: &Snapshot,
    record: &mut Record,
) -> Result<Proven, Refusal> {
    let policy = &world.policy;
    let Some(tpp) = tpp else {
        return Ok(Proven {
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
    Ok(Proven {
        paced,
        registered,
        unrevoked,
        redirectable,
    })
}

/// What the stages give that need the store.
#[allow(
    clippy::large_enum_variant,
    reason = "it is moved once, and nearly every one is judged"
)]
enum Remembered {
    Answer(Answer),
    Judged(Judged<Grant>, Judged<Claim>),
}

/// The stages that need the store. Of a request whose sender is not known no state is read or written (FWD-6).
async fn remember(
    heard: Option<Heard<'_>>,
    store: &Store,
    record: &mut Record,
) -> Result<Remembered, Refusal> {
    let Some(heard) = heard else {
        return Ok(Remembered::Judged(
            record.skip(Stage::Sca),
            record.skip(Stage::Claim),
        ));
    };
    let (Store::Kept(kept), Some(links)) = (store, &heard.world.links) else {
        return Ok(Remembered::Judged(
            record.without_store(Stage::Sca),
            record.without_store(Stage::Claim),
        ));
    };
    // The body took its time.
    let now = record.now();
    if heard.operation.answered_by == AnsweredBy::Gateway {
        let answer = sca::answer(&heard, links, kept, now).await;
        return record.held(Stage::Sca, answer).map(Remembered::Answer);
    }
    let policy = &heard.world.policy;
    let grant = sca::judge(&heard, links, kept, now).await;
    let grant = record.judge(Stage::Sca, policy, grant)?;
    let claim = claim::take(&heard, grant.held(), kept, now).await;
    let claim = record.judge(Stage::Claim, policy, claim)?;
    Ok(Remembered::Judged(grant, claim))
}

// It needs the development PKI.
#[cfg(all(test, feature = "sandbox"))]
mod tests;
