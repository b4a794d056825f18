//! Certificates of requests before their chain is built.

use super::{CertificateFault, decode::PresentedCertificates, digests::Digests, judgement};
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
        let (certificate, rest) = judgement::read(&certificates.leaf)?;
        judgement::ends(rest)?;
        judgement::algorithms_agree(&certificate)?;
        let key = judgement::signing_key(&certificate)?;
        judgement::is_no_ca(&certificate)?;
        Ok(Self {
            presented: presented.into(),
            certificates,
            digests,
            key,
        })
    }
}
