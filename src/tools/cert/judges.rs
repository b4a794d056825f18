//! The gateway by which a certificate is judged: its trust, and what its configuration says beside it.
//!
//! Both decisions are the request path's own. Revocation is left out, as in the faults.

use crate::{
    clock::Timestamp,
    config::{ClientAuth, TrustBundle},
    interface::operations::Catalogue,
    trust::{
        CertificateFault, ClientChain, Tolerated, Trust,
        decode::{self, PresentedCertificates},
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};

/// The gateway that judges.
pub(super) struct Judges {
    /// Its anchors and policy.
    pub(super) trust: Trust,
    /// The folders of its anchors, for people; `None` if no anchors are given, so that only the path is shown.
    pub(super) anchors: Option<String>,
    /// What only a configuration says; `None` without one.
    pub(super) configured: Option<Configured>,
}

/// What a configuration says beside its anchors.
pub(super) struct Configured {
    /// The bundle of anchors from trusted lists, if it names one.
    pub(super) bundle: Option<TrustBundle>,
    /// Whether the listener asks for a QWAC.
    pub(super) client_auth: ClientAuth,
    /// The operations.
    pub(super) catalogue: Catalogue,
}

impl Judges {
    /// Judges it as the certificate of a signature; returns the faults that the policy tolerates.
    pub(super) fn signing(
        &self,
        presented: &PresentedCertificates,
        at: Timestamp,
    ) -> Result<Vec<&'static str>, CertificateFault> {
        let identified = self.trust.identify(&header(presented), None, at)?;
        let tolerated = identified.certificate().tolerated();
        Ok(tolerated.iter().map(Tolerated::name).collect())
    }

    /// Judges it as the certificate of a TLS connection (TLS-3).
    pub(super) fn client(
        &self,
        presented: &PresentedCertificates,
        at: Timestamp,
    ) -> Result<(), CertificateFault> {
        let leaf = std::iter::once(presented.leaf.as_slice());
        let shown = ClientChain::new(leaf.chain(presented.pool.iter().map(Vec::as_slice)));
        match shown {
            Some(shown) => self.trust.qwac(&shown, at).map(drop),
            None => Ok(()),
        }
    }
}

/// The value of TPP-Signature-Certificate with these certificates.
fn header(presented: &PresentedCertificates) -> Vec<u8> {
    if presented.pool.is_empty() {
        return STANDARD.encode(&presented.leaf).into_bytes();
    }
    let all = std::iter::once(&presented.leaf).chain(&presented.pool);
    all.flat_map(|der| {
        let base64 = STANDARD.encode(der);
        [decode::BEGIN, base64.as_bytes(), decode::END].concat()
    })
    .collect()
}
