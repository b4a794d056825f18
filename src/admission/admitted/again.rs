//! The requirement on the PSU of an admitted request, judged again.

use super::Admitted;
use crate::{
    admission::{
        ObservableCheck, ObservedFault, Snapshot, authenticated::AuthenticatedRequest, sca,
        standing::Question,
    },
    clock::Timestamp,
    interface::path::Target,
    state::StateStore,
    trust::Certificate,
};
use std::borrow::Cow;

/// The parts of an admitted request that are read from it again.
pub(super) struct Again<'a> {
    target: Target<'a>,
    ids: Vec<Cow<'a, str>>,
    tpp: &'a Certificate,
}

impl<'a> Again<'a> {
    pub(super) fn request(
        &'a self,
        admitted: &'a Admitted,
        snapshot: &'a Snapshot,
    ) -> AuthenticatedRequest<'a> {
        AuthenticatedRequest {
            method: &admitted.method,
            envelope: &admitted.envelope,
            operation: &admitted.operation,
            target: self.target,
            ids: &self.ids,
            query: admitted.query(),
            date: None,
            tpp: self.tpp.tpp_id(),
            tpp_name: self.tpp.tpp_name(),
            snapshot,
        }
    }
}

impl Admitted {
    /// The fault for which SCA would refuse this request if it came after the end of learning, by the state of the PSU now (SCA-19, FWD-6).
    /// `snapshot` judged the request.
    pub async fn judge_unlearned(
        &self,
        snapshot: &Snapshot,
        store: &StateStore,
        at: Timestamp,
    ) -> Option<ObservedFault> {
        let again = self.again(snapshot)?;
        let request = again.request(self, snapshot);
        let refusal = sca::judge_unlearned(&request, &self.links, store, at).await?;
        Some(ObservedFault {
            check: ObservableCheck::Sca,
            reason: refusal.reason(),
        })
    }

    /// The sender, to be judged again (CTL-2, SCA-23). `snapshot` judged the request.
    pub(super) fn question<'a>(&'a self, snapshot: &'a Snapshot) -> Question<'a> {
        Question {
            before: snapshot,
            whose: self.evidence.claimant(&self.judged.claims),
            needed: self.operation.role,
            psu: self.envelope.psu(),
        }
    }

    /// The parts of the request by which SCA can be judged again; `None` if the sender is not authenticated.
    pub(super) fn again(&self, snapshot: &Snapshot) -> Option<Again<'_>> {
        let target = Target::parse(&self.target).ok()?;
        let ids = self.operation.ids(&target, &snapshot.policy.account_ids);
        Some(Again {
            target,
            ids: ids.ok()?,
            tpp: self.tpp()?.certificate(),
        })
    }
}
