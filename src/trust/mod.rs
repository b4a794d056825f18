//! Certificate to TPP: from the bytes of TPP-Signature-Certificate to what is known of the one who sent it.
//!
//! Only facts are cached here: what the certificate says and to which anchor it chains. Whether it is valid now and
//! whether its roles suffice is judged on every request, in admission (CRT-12).

// From a header's bytes to DER (CRT-1).
pub mod decode;
// The little DER that is read by hand.
mod der;

// Distinguished names, compared as names (SIG-4).
pub mod name;
// QcStatements and the PSD2 statement (CRT-3, CRT-4).
pub mod qc;

// What a sandbox lets pass in test certificates.
pub mod tolerance;

// Chains to a trust anchor (CRT-2, CRT-10).
pub mod chain;
// Which of several issuers of the same name leads to an anchor (CRT-2).
mod search;

// Whether a member of a chain is revoked (CRT-6, CRT-11).
pub mod revocation;

// Who is registered, for what and where (CRT-7).
pub mod register;

// One rule each, over a certificate that was read.
pub(crate) mod judgement;

// Which certificates are kept ready, and what keeps them (CRT-12).
mod cache;

// What a certificate says.
pub mod certificate;

// The certificate of the TLS connection (TLS-3).
pub mod qwac;

pub use cache::{
    CandidateCertificate, CertificateLookup, CertificateSlot, IdentifiedCertificate,
    VerifiedCertificates, VerifiedSignature,
};
pub use certificate::{Certificate, Roles, Validity};
pub use chain::Anchors;
pub(crate) use chain::end_of;
pub use qc::CertificateTypes;
pub use qwac::{ClientChain, Qwac};
pub use register::Registers;
pub use revocation::Revocation;
pub use tolerance::{CertificatePolicy, Tolerated};

use crate::{clock::Timestamp, interface::Reason};
use cache::CertificateCache;
use openssl::x509::{X509, X509Ref};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Why a certificate does not identify a TPP. The texts are the operator's; what the caller reads is the reason's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// CRT-1, CRT-10: it cannot be read.
    #[error("{0}")]
    Malformed(&'static str),
    /// SIG-5: its key is not accepted.
    #[error("{0}")]
    Weak(String),
    /// CRT-2, CRT-9, CRT-10: it does not chain to an anchor.
    #[error("{0}")]
    Untrusted(String),
    /// CRT-2: it, or one above it, has expired.
    #[error("expired at {}", .0.unix())]
    Expired(Timestamp),
    /// CRT-2: it, or one above it, is not valid yet.
    #[error("not valid before {}", .0.unix())]
    NotYetValid(Timestamp),
    /// CRT-3: it is no eIDAS certificate of an accepted type.
    #[error("{0}")]
    WrongType(&'static str),
    /// CRT-4: it carries no PSD2 identity.
    #[error("{0}")]
    NotPsd2(&'static str),
}

impl CertificateFault {
    /// The reason that a caller is given for it.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Malformed(_) => Reason::CertificateMalformed,
            Self::Weak(_) => Reason::CertificateWeak,
            Self::Untrusted(_) => Reason::CertificateUntrusted,
            Self::Expired(_) => Reason::CertificateExpired,
            Self::NotYetValid(_) => Reason::CertificateNotYetValid,
            Self::WrongType(_) => Reason::CertificateWrongType,
            Self::NotPsd2(_) => Reason::CertificateNotPsd2,
        }
    }
}

/// The longest TPP-Signature-Certificate, in bytes (HTTP-9). A chain of four certificates takes half of it.
pub const MAX_PRESENTED: usize = 16 * 1024;

/// Everything by which certificates are judged, and the certificates that chained to it.
#[derive(Debug)]
pub struct Trust {
    anchors: Anchors,
    /// Those of QWACs, where they are others (TLS-3).
    client_anchors: Option<Anchors>,
    policy: CertificatePolicy,
    types: CertificateTypes,
    revocation: Option<Arc<Revocation>>,
    cache: CertificateCache,
    /// Tells certificates that were judged by these anchors from those of a Trust before a reload (CRT-12).
    generation: u64,
}

impl Trust {
    /// Trust in these anchors.
    pub fn new(anchors: Anchors) -> Self {
        static GENERATION: AtomicU64 = AtomicU64::new(0);
        Self {
            anchors,
            client_anchors: None,
            policy: CertificatePolicy::Strict,
            types: CertificateTypes::default(),
            revocation: None,
            cache: CertificateCache::new(),
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The same trust, in certificates that are read by another policy.
    pub fn with_policy(mut self, policy: CertificatePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The same trust, where requests are signed by certificates of these types only (CRT-3).
    pub fn with_types(mut self, types: CertificateTypes) -> Self {
        self.types = types;
        self
    }

    /// The same trust, where the certificates of TLS connections chain to these anchors; `None` for the same ones (TLS-3).
    pub fn with_client_anchors(mut self, anchors: Option<Anchors>) -> Self {
        self.client_anchors = anchors;
        self
    }

    /// The same trust, in certificates whose revocation is checked (CRT-6), or not. What sources said before a reload stays known
    /// where the new trust is given the old [`Revocation`].
    pub fn with_revocation(mut self, revocation: Option<Arc<Revocation>>) -> Self {
        self.revocation = revocation;
        self
    }

    /// What tells whether certificates are revoked; `None` where that is not checked.
    pub const fn revocation(&self) -> Option<&Arc<Revocation>> {
        self.revocation.as_ref()
    }

    /// When the first anchor of each set ends: those of seals (`anchor`) and, where they are others, of QWACs (`client_anchor`).
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, Timestamp)> {
        let clients = self.client_anchors.as_ref().and_then(Anchors::first_end);
        let sets = [
            ("anchor", self.anchors.first_end()),
            ("client_anchor", clients),
        ];
        sets.into_iter()
            .filter_map(|(name, end)| end.map(|end| (name, end)))
    }

    /// The certificates of TPPs whose signature verified, now and later.
    pub fn seen(&self) -> VerifiedCertificates {
        VerifiedCertificates(self.cache.clone())
    }

    /// The anchors, and none of what was remembered by them.
    pub fn into_anchors(self) -> Anchors {
        self.anchors
    }

    /// What is known of the certificate in a header's value (CRT-1, CRT-12). A slot is compared first, then spellings that TPPs have
    /// used are looked up, then the certificate's own bytes; all that is left costs a chain, which is the caller's to allow.
    ///
    /// # Errors
    /// The first fault, in the order of the rules.
    pub fn find(
        &self,
        presented: &[u8],
        slot: Option<&CertificateSlot>,
        now: Timestamp,
    ) -> Result<CertificateLookup, CertificateFault> {
        if let Some(certificate) = slot.and_then(|slot| slot.get(presented, self.generation))
            && certificate.judge_validity(now).is_ok()
        {
            return Ok(CertificateLookup::Cached(IdentifiedCertificate::in_slot(
                certificate,
            )));
        }
        if presented.len() > MAX_PRESENTED {
            return Err(CertificateFault::Malformed("it is longer than 16 KiB"));
        }
        if let Some(certificate) = self.cache.spelled(presented, now) {
            return Ok(CertificateLookup::Cached(IdentifiedCertificate::spelled(
                certificate,
                presented,
            )));
        }
        let certificates = decode::decode(presented)?;
        match self.cache.find(&certificates, now)? {
            Ok(certificate) => Ok(CertificateLookup::Cached(IdentifiedCertificate::known(
                certificate,
                presented,
            ))),
            Err(digests) => CandidateCertificate::read(presented, certificates, digests)
                .map(CertificateLookup::Unproven),
        }
    }

    /// The certificate in a header's value, chained to an anchor and valid at `now` (CRT-1 to CRT-4, CRT-10), whatever that costs.
    ///
    /// # Errors
    /// The first fault, in the order of the rules.
    pub fn identify(
        &self,
        presented: &[u8],
        slot: Option<&CertificateSlot>,
        now: Timestamp,
    ) -> Result<IdentifiedCertificate, CertificateFault> {
        match self.find(presented, slot, now)? {
            CertificateLookup::Cached(identified) => Ok(identified),
            CertificateLookup::Unproven(candidate) => candidate.chain(self, now),
        }
    }

    /// Keeps the certificate by which a signature verified, for the connection and for all.
    pub fn keep(&self, verified: &VerifiedSignature, slot: Option<&CertificateSlot>) {
        verified.keep(&self.cache, slot);
    }

    /// Keeps the certificates that another trust has kept, as far as they hold by this one at `now`: each is judged anew (CRT-12), so
    /// that a TPP that is known stays so over a reload.
    pub fn keep_those_of(&self, other: &Self, now: Timestamp) {
        for certificate in other.cache.all() {
            let found = self.find(certificate.presented(), None, now);
            if let Ok(CertificateLookup::Unproven(candidate)) = found {
                candidate.rejudge(self, now);
            }
        }
    }

    /// The certificate of a TLS connection, chained to an anchor and valid at `now` (TLS-3).
    ///
    /// # Errors
    /// The first fault, in the order of the rules.
    pub fn qwac(&self, shown: &ClientChain, now: Timestamp) -> Result<Arc<Qwac>, CertificateFault> {
        shown.judge(self, now)
    }

    /// Where the revocation of a chain's members is known from; `None` where it is not checked.
    fn sources(
        &self,
        anchors: &Anchors,
        members: &[X509],
        now: Timestamp,
    ) -> Result<Option<revocation::ChainSources>, CertificateFault> {
        let others = |issuer: &X509Ref| anchors.other_keys(issuer, members.last(), now);
        self.revocation
            .as_ref()
            .map(|revocation| revocation.sources(members, others))
            .transpose()
            .map_err(|fault| CertificateFault::Untrusted(fault.to_string()))
    }
}
