//! The content of a judged certificate: the TPP's identity, its roles and its key.
//!
//! A [`Certificate`] holds facts that do not change while the anchors stay the same: the key is strong enough, the chain leads to an
//! anchor, the type is accepted and the subject is a PSD2 identity. A `Certificate` is not a permission: admission judges validity and
//! roles at every request.

use super::{
    CandidateCertificate, CertificateFault, Trust, chain,
    decode::PresentedCertificates,
    judgement,
    name::Name,
    revocation::ChainSources,
    tolerance::{Tolerance, Tolerances, Tolerated},
};
use crate::{clock::Timestamp, interface::TppId};
use aws_lc_rs::signature::ParsedPublicKey;
use http::HeaderValue;
use std::{
    fmt,
    sync::{Arc, OnceLock},
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
    /// The header values that tell the core about the certificate (FWD-1), written once.
    told: OnceLock<[HeaderValue; 3]>,
}

/// When a certificate is valid, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub not_before: Timestamp,
    /// The last second.
    pub not_after: Timestamp,
}

impl Validity {
    /// Whether `now` lies in it.
    pub fn contains(self, now: Timestamp) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }
}

impl Certificate {
    /// Judges a candidate by the anchors.
    pub(super) fn judge(
        candidate: CandidateCertificate,
        trust: &Trust,
        now: Timestamp,
    ) -> Result<Self, CertificateFault> {
        let PresentedCertificates { leaf, pool } = &candidate.certificates;
        let members = trust.anchors.members(leaf, pool, now)?;
        let validity = chain::validity(&members)?;
        judgement::validity(&validity, now)?;
        let (certificate, _) = judgement::read(leaf)?;
        let mut tolerance = Tolerance::of(trust.policy);
        let statements = judgement::statements_by(&certificate, &mut tolerance)?;
        if !tolerance.used().contains(Tolerated::StatementUnwrapped) {
            judgement::qualified(&statements)?;
            judgement::qc_type(&statements, trust.types)?;
        }
        judgement::key_usage(&certificate)?;
        let psd2 = judgement::psd2_by(&statements, &mut tolerance)?;
        let issuer = judgement::issuer(&certificate)?;
        let tpp_id = judgement::tpp_id(&certificate)?;
        // Only now: addresses in a certificate count only after the chain is verified (CRT-11).
        let sources = trust.sources(&trust.anchors, &members, now)?;
        Ok(Self {
            generation: trust.generation,
            sources,
            tpp_id,
            tpp_name: judgement::tpp_name(&certificate),
            roles: psd2.roles,
            nca_id: psd2.nca_id,
            tolerated: tolerance.used(),
            serial: judgement::without_leading_zeros(certificate.raw_serial()).to_vec(),
            issuer,
            validity,
            spelling: OnceLock::new(),
            told: OnceLock::new(),
            presented: candidate.presented,
            key: candidate.key,
        })
    }

    /// The result of `write`, cached, because it is the same for each request with this certificate.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn told<E>(
        &self,
        write: impl FnOnce(&Self) -> Result<[HeaderValue; 3], E>,
    ) -> Result<&[HeaderValue; 3], E> {
        if let Some(told) = self.told.get() {
            return Ok(told);
        }
        let told = write(self)?;
        Ok(self.told.get_or_init(|| told))
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
    pub(crate) const fn sources(&self) -> Option<&ChainSources> {
        self.sources.as_ref()
    }

    /// Whether hexadecimal digits name this certificate's serial number (SIG-3); leading zeros and case don't matter.
    pub fn has_serial(&self, hex: &[u8]) -> bool {
        judgement::is_serial(&self.serial, hex)
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

    /// Caches the issuer text of a keyId. Call this only after the signature has verified: the first text is kept, and another caller's
    /// text would displace the TPP's.
    pub(crate) fn remember_issuer(&self, spelling: &[u8]) {
        if self.spelling.get().is_none() && spelling.len() <= MAX_SPELLING {
            let _ = self.spelling.set(spelling.into());
        }
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

/// The PSD2 roles of a TPP (ETSI TS 119 495, 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    const NAMES: [(u8, &'static str); 6] = [
        (1, "PSP_AS"),
        (2, "PSP_PI"),
        (3, "PSP_AI"),
        (4, "PSP_IC"),
        (5, "PSP_CB"),
        (6, "PSP_PA"),
    ];

    /// Adds the role with this number; other numbers have no meaning in this interface.
    pub fn with(self, number: u8) -> Self {
        if Self::NAMES.iter().any(|(known, _)| *known == number) {
            Self(self.0 | 1 << number)
        } else {
            self
        }
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The roles in either.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The roles in both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// May it initiate payments?
    pub const fn payment_initiation(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// May it read account information?
    pub const fn account_information(self) -> bool {
        self.0 & 1 << 3 != 0
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = Self::NAMES
            .iter()
            .filter(|(number, _)| self.0 & 1 << number != 0);
        f.write_str(&held.map(|(_, name)| *name).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles() {
        let roles = Roles::default().with(3).with(2).with(9);
        assert!(roles.account_information() && roles.payment_initiation());
        assert_eq!(roles.to_string(), "PSP_PI,PSP_AI");
        assert_eq!(
            Roles::default().with(6).with(5).to_string(),
            "PSP_CB,PSP_PA"
        );
        assert!(Roles::default().with(0).with(7).is_empty());
    }
}
