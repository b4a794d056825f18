//! Certificates of requests before their chain is built.

use super::{CertificateFault, content, decode::PresentedCertificates, digests::Digests};
use aws_lc_rs::signature::ParsedPublicKey;
use std::sync::Arc;

/// A certificate that passed the checks that need no chain.
#[derive(Debug)]
pub struct CandidateCertificate {
    pub(super) presented: Arc<[u8]>,
    pub(super) certificates: PresentedCertificates,
    pub(super) digests: Digests,
    pub(super) key: ParsedPublicKey,
}

impl CandidateCertificate {
    /// Applies the checks that need no chain.
    pub(super) fn read(
        presented: &[u8],
        certificates: PresentedCertificates,
        digests: Digests,
    ) -> Result<Self, CertificateFault> {
        Ok(Self {
            key: content::signing_key(&certificates.leaf)?,
            presented: presented.into(),
            certificates,
            digests,
        })
    }
}
