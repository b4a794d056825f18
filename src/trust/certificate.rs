//! The content of a judged certificate: the TPP's identity, its roles and its key.
//!
//! A [`Certificate`] holds facts that do not change while the anchors stay the same: the key is strong enough, the chain leads to an
//! anchor, the type is accepted and the subject is a PSD2 identity. A `Certificate` is not a permission: admission judges validity and
//! roles at every request.

use super::{
    CandidateCertificate, CertificateFault, Roles, Validity,
    content::SigningContent,
    criteria::CertificateCriteria,
    decode::{self, PresentedCertificates},
    judgement,
    name::Name,
    path,
    revocation::ChainSources,
    tolerance::Tolerances,
};
use aws_lc_rs::signature::ParsedPublicKey;
use http::HeaderValue;
use portvakt_base::clock::Timestamp;
use portvakt_interface::TppId;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

/// The longest issuer text of a keyId that is cached, in bytes. Real issuers have under 300.
const MAX_SPELLING: usize = 1024;

/// A certificate that chains to an anchor and identifies a TPP (CRT-1 to CRT-4).
#[derive(Debug)]
pub struct Certificate {
    /// The header value that first carried the certificate.
    presented: Arc<[u8]>,
    /// The generation of the Trust that judged the certificate.
    generation: u64,
    tpp_id: TppId,
    tpp_name: String,
    roles: Roles,
    nca_id: String,
    /// The faults that a tolerant policy accepted.
    tolerated: Tolerances,
    /// Big-endian, without leading zeros.
    serial: Vec<u8>,
    issuer: Name,
    key: ParsedPublicKey,
    /// The validity of every member of the chain.
    validity: Vec<Validity>,
    /// The revocation sources of the chain; `None` if revocation is not checked.
    sources: Option<ChainSources>,
    /// The first issuer text of a verified keyId that matched: an equal text needs no comparison of names.
    spelling: OnceLock<Box<[u8]>>,
    /// The values of the headers with which the core gets the certificate's facts (FWD-1), written once.
    core_headers: OnceLock<[HeaderValue; 3]>,
    /// The last day for which [`Self::begins_day`] was true; 0 for none.
    noted_day: AtomicU64,
}

impl Certificate {
    /// Judges a candidate by the anchors.
    pub(super) fn judge(
        candidate: CandidateCertificate,
        criteria: &CertificateCriteria,
        now: Timestamp,
    ) -> Result<Self, CertificateFault> {
        let PresentedCertificates { leaf, pool } = &candidate.certificates;
        let members = criteria.anchors.members(leaf, pool, criteria.types, now)?;
        let validity = path::validity(&members)?;
        judgement::validity(&validity, now)?;
        let (certificate, _) = judgement::read(leaf)?;
        let SigningContent {
            tolerated,
            psd2,
            issuer,
            tpp_id,
        } = SigningContent::judge(&certificate, criteria.policy, criteria.types)?;
        // Only now: addresses in a certificate count only after the chain is verified (CRT-11).
        let sources = criteria.sources(&criteria.anchors, &members, now)?;
        Ok(Self {
            generation: criteria.generation,
            sources,
            tpp_id,
            tpp_name: judgement::tpp_name(&certificate),
            roles: psd2.roles,
            nca_id: psd2.nca_id,
            tolerated,
            serial: judgement::without_leading_zeros(certificate.raw_serial()).to_vec(),
            issuer,
            validity,
            spelling: OnceLock::new(),
            core_headers: OnceLock::new(),
            noted_day: AtomicU64::new(0),
            presented: candidate.presented,
            key: candidate.key,
        })
    }

    /// The result of `write`, cached, because it is the same for each request with this certificate.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn core_headers<E>(
        &self,
        write: impl FnOnce(&Self) -> Result<[HeaderValue; 3], E>,
    ) -> Result<&[HeaderValue; 3], E> {
        if let Some(written) = self.core_headers.get() {
            return Ok(written);
        }
        let written = write(self)?;
        Ok(self.core_headers.get_or_init(|| written))
    }

    /// The TPP's identity: the organizationIdentifier, upper-cased and trimmed (CRT-4, QUO-15).
    pub const fn tpp_id(&self) -> &TppId {
        &self.tpp_id
    }

    /// The TPP's name: the organizationName, or the commonName if there is none.
    pub fn tpp_name(&self) -> &str {
        &self.tpp_name
    }

    /// The roles in the PSD2 statement.
    pub const fn roles(&self) -> Roles {
        self.roles
    }

    /// The id of the competent authority.
    pub fn nca_id(&self) -> &str {
        &self.nca_id
    }

    /// The faults that a tolerant policy accepted (CRT-9: none in production).
    pub const fn tolerated(&self) -> Tolerances {
        self.tolerated
    }

    /// The issuer's name.
    pub const fn issuer(&self) -> &Name {
        &self.issuer
    }

    /// The serial number in upper-case hexadecimal, as keyId should have it (SIG-3).
    pub fn serial_hex(&self) -> String {
        judgement::serial_hex(&self.serial)
    }

    /// The key that signatures are verified with.
    pub const fn key(&self) -> &ParsedPublicKey {
        &self.key
    }

    /// The validity of each member of the chain, the certificate's own first.
    pub fn validity(&self) -> &[Validity] {
        &self.validity
    }

    /// Whether every member of the chain is valid (CRT-2: at the moment of each request).
    ///
    /// # Errors
    /// [`CertificateFault::Expired`] or [`CertificateFault::NotYetValid`].
    pub fn judge_validity(&self, now: Timestamp) -> Result<(), CertificateFault> {
        judgement::validity(&self.validity, now)
    }

    /// The revocation sources of the chain; `None` if revocation is not checked.
    pub const fn sources(&self) -> Option<&ChainSources> {
        self.sources.as_ref()
    }

    /// Whether hexadecimal digits name this certificate's serial number (SIG-3); leading zeros and case don't matter.
    pub fn has_serial(&self, hex: &[u8]) -> bool {
        judgement::is_serial(&self.serial, hex)
    }

    /// Whether decimal digits name this certificate's serial number, which keyId has in hexadecimal: for the text of a fault.
    pub fn has_decimal_serial(&self, decimal: &[u8]) -> bool {
        judgement::is_decimal_serial(&self.serial, decimal)
    }

    /// The length of a signature by this certificate's key, in bytes: for the text of a fault.
    pub fn signature_length(&self) -> Option<usize> {
        judgement::signature_length(self.key.as_ref())
    }

    /// Whether the issuer in a keyId names this certificate's issuer (SIG-4).
    ///
    /// # Errors
    /// Where the names differ.
    pub fn has_issuer(&self, spelling: &[u8]) -> Result<(), super::name::NameMismatch> {
        if self
            .spelling
            .get()
            .is_some_and(|known| **known == *spelling)
        {
            return Ok(());
        }
        self.issuer.compare(spelling)
    }

    /// The revocation status of the chain from the last answers, for benchmarks: the cost of a request with a cached certificate.
    #[cfg(feature = "sandbox")]
    pub fn standing(
        &self,
        revocation: &super::Revocation,
        now: Timestamp,
    ) -> super::revocation::RevocationStatus {
        match self.sources() {
            Some(sources) => revocation.standing(sources, now),
            None => super::revocation::RevocationStatus::Unknown { depth: 0 },
        }
    }

    /// Caches the issuer text of a keyId. Call this only after the signature has verified: the first text is kept, and another caller's
    /// text would displace the TPP's.
    pub fn remember_issuer(&self, spelling: &[u8]) {
        if self.spelling.get().is_none() && spelling.len() <= MAX_SPELLING {
            let _ = self.spelling.set(spelling.into());
        }
    }

    /// The certificate and the pool that first came with it.
    ///
    /// # Errors
    /// None in fact: the header value was decoded before the certificate was judged.
    pub fn certificates(&self) -> Result<PresentedCertificates, CertificateFault> {
        decode::decode(&self.presented)
    }

    /// Whether this is the first call for another day than the last one's.
    pub(super) fn begins_day(&self, day: u64) -> bool {
        self.noted_day.load(Ordering::Relaxed) != day
            && self.noted_day.swap(day, Ordering::Relaxed) != day
    }

    /// The header value that first carried the certificate.
    pub(super) fn presented(&self) -> &[u8] {
        &self.presented
    }

    /// This header value, shared with the certificate if it is the first one.
    pub(super) fn spelling(&self, presented: &[u8]) -> Arc<[u8]> {
        if *self.presented == *presented {
            Arc::clone(&self.presented)
        } else {
            presented.into()
        }
    }

    /// Whether the Trust of this generation judged the certificate.
    pub(super) const fn is_of(&self, generation: u64) -> bool {
        self.generation == generation
    }
}
