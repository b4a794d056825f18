//! The criteria by which certificates are judged: anchors, policy, accepted types and the revocation check.

use super::{
    Anchors, CertificateFault, CertificatePolicy, CertificateTypes, Revocation,
    revocation::ChainSources,
};
use openssl::x509::{X509, X509Ref};
use portvakt_base::clock::Timestamp;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The criteria of a [`Trust`](super::Trust).
#[derive(Debug)]
pub(super) struct CertificateCriteria {
    pub(super) anchors: Anchors,
    /// The anchors of QWACs, if they have their own (TLS-3).
    pub(super) client_anchors: Option<Anchors>,
    pub(super) policy: CertificatePolicy,
    pub(super) types: CertificateTypes,
    pub(super) revocation: Option<Arc<Revocation>>,
    /// Distinguishes the certificates judged by these criteria from those judged before a reload (CRT-12).
    pub(super) generation: u64,
}

impl CertificateCriteria {
    /// The strict criteria, without a revocation check.
    pub(super) fn new(anchors: Anchors) -> Self {
        static GENERATION: AtomicU64 = AtomicU64::new(0);
        Self {
            anchors,
            client_anchors: None,
            policy: CertificatePolicy::Strict,
            types: CertificateTypes::default(),
            revocation: None,
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The anchors of QWACs: their own, or those of seals (TLS-3).
    pub(super) const fn anchors_of_clients(&self) -> &Anchors {
        match &self.client_anchors {
            Some(own) => own,
            None => &self.anchors,
        }
    }

    /// The revocation sources of the members of a chain; `None` if revocation is not checked.
    pub(super) fn sources(
        &self,
        anchors: &Anchors,
        members: &[X509],
        now: Timestamp,
    ) -> Result<Option<ChainSources>, CertificateFault> {
        let others = |issuer: &X509Ref| anchors.other_keys(issuer, members.last(), now);
        self.revocation
            .as_ref()
            .map(|revocation| revocation.sources(members, others))
            .transpose()
            .map_err(|fault| CertificateFault::Untrusted(fault.to_string()))
    }
}
