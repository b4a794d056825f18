//! A request that passed every check that needs no state.
//!
//! Invariant: a proven request permits nothing. Only [`authorise`](super::authorise), which requires the store, turns it into an
//! [`Admitted`](super::Admitted).

use super::{
    Entitled, ExpectedBody, FreshDate, Head, IntactBody, Judged, Redirectable, Registered, Signed,
    Snapshot, Stage, Tpp, Trial, Unrevoked, ValidPayload, ValidQuery, WithinRate,
    authenticated::AuthenticatedRequest,
    enforcement::Waiver,
    envelope::{Envelope, ValidHeaders},
    standing::{Claimant, GoodStanding, Present, Question},
};
use crate::{
    clock::Timestamp,
    interface::{Reason, Refusal, TppId, operations::Operation, path::Target},
    state::StateStore,
};
use bytes::Bytes;
use std::{borrow::Cow, sync::Arc};

/// A request that passed every check without state. The PSU's permission and an earlier use of the request id are not judged yet.
#[must_use]
#[derive(Debug)]
pub struct Proven<'a> {
    pub(super) request: ProvenRequest<'a>,
    /// The trial that proved the request also judges the rest, so that no other snapshot, clock or record can.
    pub(super) trial: Trial<'a>,
}

/// The request, and the evidence of every check that needs no state.
#[derive(Debug)]
pub(super) struct ProvenRequest<'a> {
    pub(super) head: &'a Head<'a>,
    pub(super) snapshot: &'a Snapshot,
    pub(super) operation: Arc<Operation>,
    pub(super) target: Target<'a>,
    /// The decoded ids in the path (HTTP-10).
    pub(super) ids: Vec<Cow<'a, str>>,
    pub(super) envelope: Envelope,
    pub(super) at: Timestamp,
    pub(super) body: Bytes,
    pub(super) evidence: Evidence,
}

/// The sender of a proven request.
pub(super) enum Sender<'a> {
    /// Certificate, its revocation, signature and digest are valid.
    Authenticated(AuthenticatedRequest<'a>),
    /// One of them is not valid and was waived: no state is read or written for this sender (FWD-6).
    Unknown(&'a Waiver),
}

/// The results of the checks that need no state.
#[derive(Debug)]
#[allow(
    dead_code,
    reason = "evidence without a value proves only that the check was made; nothing reads it"
)]
pub(super) struct Evidence {
    pub(super) headers: Judged<ValidHeaders>,
    pub(super) query: Judged<ValidQuery>,
    pub(super) date: Judged<FreshDate>,
    pub(super) tpp: Judged<Tpp>,
    pub(super) entitled: Judged<Entitled>,
    pub(super) signed: Judged<Signed>,
    pub(super) registered: Judged<Registered>,
    pub(super) unrevoked: Judged<Unrevoked>,
    pub(super) redirectable: Judged<Redirectable>,
    pub(super) expected: Judged<ExpectedBody>,
    pub(super) intact: Judged<IntactBody>,
    pub(super) payload: Judged<ValidPayload>,
    pub(super) rates: [Judged<WithinRate>; 2],
}

impl Evidence {
    /// The sender. `claims` are the TPPs that the certificates of an unknown one name.
    pub(super) fn claimant<'a>(&'a self, claims: &'a [TppId]) -> Claimant<'a> {
        match (&self.tpp, &self.signed) {
            (Judged::Held(tpp), Judged::Held(_)) => {
                let certificate = tpp.certificate();
                Claimant::Tpp(certificate.tpp_id(), certificate.roles())
            }
            _ => Claimant::Unknown(claims),
        }
    }
}

impl Proven<'_> {
    /// The operation.
    pub fn operation(&self) -> &Operation {
        &self.request.operation
    }

    /// The reasons of refusals that were waived (FWD-6).
    pub fn waived(&self) -> impl Iterator<Item = Reason> + '_ {
        self.trial.record.observed().map(|fault| fault.reason)
    }
}

impl ProvenRequest<'_> {
    /// REP-1: judges again whether the bank or a register turns the sender away, by the snapshot in use now and by the bank's calls
    /// (CTL-2).
    ///
    /// # Errors
    /// It does.
    pub(super) async fn judge_standing(
        &self,
        claims: &[TppId],
        present: &dyn Present,
        store: &StateStore,
        trial: &mut Trial<'_>,
    ) -> Result<GoodStanding, Refusal> {
        let question = Question {
            before: self.snapshot,
            whose: self.evidence.claimant(claims),
            needed: self.operation.role,
            psu: self.envelope.psu(),
        };
        let standing = question.decide(present, store, trial.now()).await;
        standing.or_else(|refusal| trial.require(Stage::Claim, Err(refusal)))
    }

    /// The sender.
    ///
    /// # Errors
    /// A check of the sender neither passed nor was waived. [`prove`](super::prove) never returns such a request; if that changes, the
    /// request is refused.
    pub(super) fn sender(&self) -> Result<Sender<'_>, Refusal> {
        let Evidence {
            query,
            date,
            tpp,
            signed,
            unrevoked,
            intact,
            ..
        } = &self.evidence;
        match (tpp, signed, intact, unrevoked) {
            // A revoked certificate authenticates nobody: its key may be in other hands.
            (.., Judged::Waived(waiver)) => Ok(Sender::Unknown(waiver)),
            (Judged::Held(tpp), Judged::Held(_), Judged::Held(_), _) => {
                Ok(Sender::Authenticated(AuthenticatedRequest {
                    method: self.head.method,
                    envelope: &self.envelope,
                    operation: &self.operation,
                    target: self.target,
                    ids: &self.ids,
                    query: query.held(),
                    date: date.held().map(FreshDate::date),
                    tpp: tpp.certificate().tpp_id(),
                    tpp_name: tpp.certificate().tpp_name(),
                    snapshot: self.snapshot,
                }))
            }
            (Judged::Waived(waiver), ..)
            | (_, Judged::Waived(waiver), ..)
            | (_, _, Judged::Waived(waiver), _) => Ok(Sender::Unknown(waiver)),
            _ => Err(Refusal::new(Reason::Internal)),
        }
    }
}
