//! The certificate of a caller's TLS connection, a QWAC, where the listener asks for one (TLS-3).
//!
//! The TLS handshake has proven that the caller holds the private key. This module judges the identity and the validity of the certificate
//! at every request whose signature verified, by the rules for sealing certificates: chain, validity, QcStatements and PSD2 identity. The key may be of any type
//! that TLS accepts and that passes OpenSSL's security level, because no request signature is verified with it.

use super::{
    CertificateFault, CertificateTypes, Validity, claimed,
    criteria::CertificateCriteria,
    decode::MAX_CERTIFICATES,
    digests::{Digest, Digests, sha256},
    judgement, path,
    revocation::ChainSources,
    tolerance::{Tolerance, Tolerated},
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::TppId;

/// The certificate chain that a TLS client sent.
#[derive(Debug)]
pub struct ClientChain {
    leaf: Vec<u8>,
    pool: Vec<Vec<u8>>,
    digest: Digest,
}

/// A QWAC that chains to an anchor.
#[derive(Debug)]
pub struct Qwac {
    tpp_id: TppId,
    validity: Vec<Validity>,
    sources: Option<ChainSources>,
}

impl ClientChain {
    /// The certificates of a handshake, in DER, the end-entity certificate first; `None` if the client sent none.
    pub fn new<'a>(chain: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut chain = chain.into_iter().map(<[u8]>::to_vec);
        let leaf = chain.next()?;
        let pool: Vec<_> = chain.take(MAX_CERTIFICATES - 1).collect();
        let digest = Digests::of(sha256(&[&leaf]), &pool).with_pool;
        Some(Self { leaf, pool, digest })
    }

    /// The SHA-256 of its certificates.
    pub(super) const fn digest(&self) -> Digest {
        self.digest
    }

    /// The TPPs that the end-entity certificate names, whether or not it is valid.
    pub fn claimed(&self) -> Vec<TppId> {
        claimed::of(&self.leaf)
    }
}

impl Qwac {
    /// The TPP's identity: the organizationIdentifier, upper-cased and trimmed (CRT-4).
    pub const fn tpp_id(&self) -> &TppId {
        &self.tpp_id
    }

    /// The revocation sources of the chain; `None` if revocation is not checked.
    pub const fn sources(&self) -> Option<&ChainSources> {
        self.sources.as_ref()
    }

    /// Whether the chain is valid at `now`.
    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        judgement::validity(&self.validity, now).is_ok()
    }

    pub(super) fn judge(
        shown: &ClientChain,
        criteria: &CertificateCriteria,
        now: Timestamp,
    ) -> Result<Self, CertificateFault> {
        let (certificate, rest) = judgement::read(&shown.leaf)?;
        judgement::ends(rest)?;
        judgement::algorithms_agree(&certificate)?;
        judgement::is_no_ca(&certificate)?;
        let anchors = criteria.anchors_of_clients();
        let members = anchors.members(&shown.leaf, &shown.pool, CertificateTypes::WEB, now)?;
        let validity = path::validity(&members)?;
        judgement::validity(&validity, now)?;
        let mut tolerance = Tolerance::of(criteria.policy);
        let statements = judgement::statements_by(&certificate, &mut tolerance)?;
        if !tolerance.used().contains(Tolerated::StatementUnwrapped) {
            judgement::qualified(&statements)?;
            judgement::web(&statements)?;
        }
        judgement::psd2_by(&statements, &mut tolerance)?;
        Ok(Self {
            tpp_id: judgement::tpp_id(&certificate)?,
            sources: criteria.sources(anchors, &members, now)?,
            validity,
        })
    }
}
