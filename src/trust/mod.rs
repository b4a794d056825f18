//! Certificates of TPPs: from the bytes of TPP-Signature-Certificate to an identified, chained certificate.
//!
//! The cache holds only facts that do not change: the certificate's content and its chain. Admission judges validity and roles at every
//! request (CRT-12).

// From a header's bytes to DER (CRT-1).
pub mod decode;
// A reader of DER elements.
mod der;

// Distinguished names, compared as names (SIG-4).
pub mod name;
// QcStatements and the PSD2 statement (CRT-3, CRT-4).
pub mod qc;

// Faults of test certificates that a sandbox tolerates.
pub mod tolerance;

// Chains to a trust anchor (CRT-2, CRT-10).
pub mod chain;
// Certification paths over several issuers of the same name (CRT-2).
mod search;

// Whether a member of a chain is revoked (CRT-6, CRT-11).
pub mod revocation;

// The registers of TPPs (CRT-7).
pub mod register;

// The rules for a parsed certificate, one function each.
pub(crate) mod judgement;

// The cache of judged certificates (CRT-12).
mod cache;

// The content of a judged certificate.
pub mod certificate;

// The client certificate of a TLS connection (TLS-3).
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

/// The reason why a certificate does not identify a TPP. The texts are for the operator; the caller gets the text of [`Self::reason`].
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
    /// The refusal reason for the caller.
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

/// The anchors and settings by which certificates are judged, and the cache of judged certificates.
#[derive(Debug)]
pub struct Trust {
    anchors: Anchors,
    /// The anchors of QWACs, if they have their own (TLS-3).
    client_anchors: Option<Anchors>,
    policy: CertificatePolicy,
    types: CertificateTypes,
    revocation: Option<Arc<Revocation>>,
    cache: CertificateCache,
    /// Distinguishes the certificates that this Trust judged from those of the Trust before a reload (CRT-12).
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

    /// Sets the policy by which certificates are read.
    pub fn with_policy(mut self, policy: CertificatePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the types of certificate that may sign requests (CRT-3).
    pub fn with_types(mut self, types: CertificateTypes) -> Self {
        self.types = types;
        self
    }

    /// Sets the anchors of QWACs; `None` for the anchors of seals (TLS-3).
    pub fn with_client_anchors(mut self, anchors: Option<Anchors>) -> Self {
        self.client_anchors = anchors;
        self
    }

    /// Sets the revocation check (CRT-6); `None` switches it off. The answers of sources survive a reload if the new trust gets the old
    /// [`Revocation`].
    pub fn with_revocation(mut self, revocation: Option<Arc<Revocation>>) -> Self {
        self.revocation = revocation;
        self
    }

    /// The revocation check; `None` if it is switched off.
    pub const fn revocation(&self) -> Option<&Arc<Revocation>> {
        self.revocation.as_ref()
    }

    /// The earliest notAfter of each set of anchors: of seals (`anchor`) and, if they have their own, of QWACs (`client_anchor`).
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, Timestamp)> {
        let clients = self.client_anchors.as_ref().and_then(Anchors::first_end);
        let sets = [
            ("anchor", self.anchors.first_end()),
            ("client_anchor", clients),
        ];
        sets.into_iter()
            .filter_map(|(name, end)| end.map(|end| (name, end)))
    }

    /// A live view of the cached certificates whose signatures verified.
    pub fn seen(&self) -> VerifiedCertificates {
        VerifiedCertificates(self.cache.clone())
    }

    /// The anchors, without the cache.
    pub fn into_anchors(self) -> Anchors {
        self.anchors
    }

    /// Looks up the certificate in a header value (CRT-1, CRT-12): in the connection's slot, then by the header value, then by the
    /// certificate's DER. A certificate that is found nowhere needs a chain; the caller decides whether to build one.
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

    /// The certificate in a header value, chained to an anchor and valid at `now` (CRT-1 to CRT-4, CRT-10). Builds a chain if necessary.
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

    /// Caches the certificate by which a signature verified, for the connection and for all connections.
    pub fn keep(&self, verified: &VerifiedSignature, slot: Option<&CertificateSlot>) {
        verified.keep(&self.cache, slot);
    }

    /// Judges each certificate in the cache of another Trust by this one (CRT-12), and caches those that are accepted at `now`. So a
    /// reload does not make known TPPs unknown.
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

    /// The revocation sources of the members of a chain; `None` if revocation is not checked.
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
