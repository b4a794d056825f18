//! Certificates of TPPs: from the bytes of TPP-Signature-Certificate to an identified, chained certificate.
//!
//! The cache holds only facts that do not change: the certificate's content and its chain. Admission judges validity and roles at every
//! request (CRT-12).
//!
//! Trust knows no state, no request and no proxy; what a certificate may do at an operation is not judged here:
//!
//! ```compile_fail,E0432
//! use portvakt_state::StateStore;
//! ```
//!
//! ```compile_fail,E0432
//! use portvakt::admission::Snapshot;
//! ```
//!
//! ```compile_fail,E0432
//! use pingora::Error;
//! ```

// From a header's bytes to DER (CRT-1).
pub mod decode;
// Recognises other data that was sent in place of a certificate (ERR-10).
mod undecodable;
// Whether it is DER throughout (CRT-1), and a reader of DER elements.
mod der;
mod distinguished;

// Distinguished names, compared as names (SIG-4).
pub mod name;
// QcStatements and the PSD2 statement (CRT-3, CRT-4).
pub mod qc;

// Faults of test certificates that a sandbox tolerates.
pub mod tolerance;

// The reasons why a certificate does not identify a TPP.
mod fault;
// Validity periods.
mod validity;

// Chains to a trust anchor (CRT-2, CRT-10), and OpenSSL's part in building them.
pub mod chain;
pub mod path;
// Certification paths over several issuers of the same name (CRT-2).
mod search;
// The hash of an issuer's key, by which lists and chains are compared.
mod key_hash;
// The same hash of keys that lists write in other forms.
mod listed_key;
// What trusted lists say of issuers (CRT-3, CRT-13).
mod grant;
// The anchors of trusted lists, with what the lists say of them.
mod listed;
// Qualifications of services of trusted lists.
pub mod qualification;
// What an import and the gateway agree on about a bundle of trusted lists (CRT-8, CRT-13).
pub mod bundle;

// Whether a member of a chain is revoked (CRT-6, CRT-11).
pub mod revocation;

// The registers of TPPs (CRT-7).
pub mod register;

// The rules for a parsed certificate, one function each.
pub mod judgement;
// The rules of a certificate's content together, which need no chain.
mod content;

// The anchors and settings by which certificates are judged.
mod criteria;
// A certificate before its chain is built, and the digests by which it is looked up.
mod candidate;
mod digests;
// The cache of judged certificates (CRT-12).
mod cache;

// The TPPs that a certificate names, valid or not.
pub mod claimed;
// The content of a judged certificate.
pub mod certificate;
// The PSD2 roles of a TPP.
mod roles;

// The client certificate of a TLS connection (TLS-3).
pub mod qwac;

pub use cache::{
    CertificateLookup, CertificateSlot, CertificateSource, IdentifiedCertificate,
    VerifiedCertificates, VerifiedSignature,
};
pub use candidate::CandidateCertificate;
pub use certificate::Certificate;
pub use chain::Anchors;
pub use content::judge_content;
pub use distinguished::NotDer;
pub use fault::{CertificateFault, Member, PathFault};
pub use grant::{GrantedType, Grants};
pub use key_hash::KeyHash;
pub use listed::{ListedAnchors, ListedService, ListingFault};
pub use path::validity_of;
pub use qc::CertificateTypes;
pub use qwac::{ClientChain, Qwac};
pub use register::Registers;
pub use revocation::Revocation;
pub use roles::Roles;
pub use tolerance::{CertificatePolicy, Tolerated};
pub use validity::Validity;

use cache::CertificateCache;
use criteria::CertificateCriteria;
use digests::Digest;
use moka::sync::Cache;
use portvakt_base::clock::Timestamp;
use std::sync::Arc;

/// The longest TPP-Signature-Certificate, in bytes (HTTP-9). A chain of four certificates takes half of it.
pub const MAX_PRESENTED: usize = 16 * 1024;

/// The number of certificates of TLS connections that are cached: a country has a few hundred TPPs. Each takes a few KiB.
const QWACS_KEPT: u64 = 2_000;

/// The criteria by which certificates are judged, and the cache of judged certificates.
#[derive(Debug)]
pub struct Trust {
    criteria: CertificateCriteria,
    cache: CertificateCache,
    /// The accepted certificates of TLS connections, by the digest of their chain. Only TPPs whose signature verified fill it.
    qwacs: Cache<Digest, Arc<Qwac>>,
}

impl Trust {
    /// Trust in these anchors.
    pub fn new(anchors: Anchors) -> Self {
        Self {
            criteria: CertificateCriteria::new(anchors),
            cache: CertificateCache::new(),
            qwacs: Cache::new(QWACS_KEPT),
        }
    }

    /// Sets the policy by which certificates are read.
    pub fn with_policy(mut self, policy: CertificatePolicy) -> Self {
        self.criteria.policy = policy;
        self
    }

    /// Sets the types of certificate that may sign requests (CRT-3).
    pub fn with_types(mut self, types: CertificateTypes) -> Self {
        self.criteria.types = types;
        self
    }

    /// The types of certificate that may sign requests (CRT-3).
    pub const fn types(&self) -> CertificateTypes {
        self.criteria.types
    }

    /// Sets the anchors of QWACs; `None` for the anchors of seals (TLS-3).
    pub fn with_client_anchors(mut self, anchors: Option<Anchors>) -> Self {
        self.criteria.client_anchors = anchors;
        self
    }

    /// Sets the revocation check (CRT-6); `None` switches it off. The answers of sources survive a reload if the new trust gets the old
    /// [`Revocation`].
    pub fn with_revocation(mut self, revocation: Option<Arc<Revocation>>) -> Self {
        self.criteria.revocation = revocation;
        self
    }

    /// The revocation check; `None` if it is switched off.
    pub const fn revocation(&self) -> Option<&Arc<Revocation>> {
        self.criteria.revocation.as_ref()
    }

    /// A live view of the cached certificates whose signatures verified.
    pub fn seen(&self) -> VerifiedCertificates {
        VerifiedCertificates(self.cache.clone())
    }

    /// The anchors of the certificates that sign requests (CRT-2).
    pub const fn anchors(&self) -> &Anchors {
        &self.criteria.anchors
    }

    /// The anchors of QWACs (TLS-3).
    pub const fn client_anchors(&self) -> &Anchors {
        self.criteria.anchors_of_clients()
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
        if let Some(certificate) =
            slot.and_then(|slot| slot.get(presented, self.criteria.generation))
            && certificate.judge_validity(now).is_ok()
        {
            return Ok(CertificateLookup::Cached(IdentifiedCertificate::in_slot(
                certificate,
            )));
        }
        if presented.len() > MAX_PRESENTED {
            return Err(CertificateFault::Malformed(
                "it is longer than 16 KiB".into(),
            ));
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
            CertificateLookup::Unproven(candidate) => self.chain(candidate, now),
        }
    }

    /// Builds the chain of a candidate to an anchor and applies the checks of the certificate's content.
    ///
    /// # Errors
    /// The first fault, in the order of the rules.
    pub fn chain(
        &self,
        candidate: CandidateCertificate,
        now: Timestamp,
    ) -> Result<IdentifiedCertificate, CertificateFault> {
        let digests = candidate.digests;
        let judged = Certificate::judge(candidate, &self.criteria, now);
        let certificate = judged.inspect_err(|fault| self.cache.refuse(&digests, fault))?;
        Ok(IdentifiedCertificate::chained(certificate, digests.leaf))
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
                let digest = candidate.digests.leaf;
                if let Ok(identified) = self.chain(candidate, now) {
                    let certificate = Arc::clone(identified.certificate());
                    self.cache.insert(digest, certificate);
                }
            }
        }
    }

    /// The certificate of a TLS connection, if it was accepted before and is valid at `now` (TLS-3).
    pub fn known_qwac(&self, shown: &ClientChain, now: Timestamp) -> Option<Arc<Qwac>> {
        let known = self.qwacs.get(&shown.digest());
        known.filter(|qwac| qwac.is_valid(now))
    }

    /// The certificate of a TLS connection, chained to an anchor and valid at `now` (TLS-3). The next connection with it needs no chain.
    ///
    /// # Errors
    /// The first fault, in the order of the rules.
    pub fn qwac(&self, shown: &ClientChain, now: Timestamp) -> Result<Arc<Qwac>, CertificateFault> {
        let qwac = Arc::new(Qwac::judge(shown, &self.criteria, now)?);
        self.qwacs.insert(shown.digest(), Arc::clone(&qwac));
        Ok(qwac)
    }
}
