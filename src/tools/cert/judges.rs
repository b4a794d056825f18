//! The gateway by which a certificate is judged: its trust, and what its configuration says beside it.
//!
//! Both decisions are the request path's own. Revocation is left out, as in the faults.

use crate::{
    clock::Timestamp,
    config::{ClientAuth, TrustBundle},
    interface::operations::Catalogue,
    trust::{
        Anchors, CertificateFault, CertificateTypes, ClientChain, Tolerated, Trust,
        decode::{self, PresentedCertificates},
        path::CertificationPath,
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};
use openssl::error::ErrorStack;

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
    pub(super) lists: Option<Lists>,
    /// Whether the listener asks for a QWAC.
    pub(super) client_auth: ClientAuth,
    /// The operations.
    pub(super) catalogue: Catalogue,
}

/// A bundle, and its anchors as if the operator named none.
pub(super) struct Lists {
    bundle: TrustBundle,
    signing: Anchors,
    client: Anchors,
}

/// The paths of a certificate by the anchors of a bundle alone: an anchor of the operator's own on the way to a listed one ends none of them.
pub(super) struct ListedPaths<'l> {
    pub(super) bundle: &'l TrustBundle,
    /// By the anchors of certificates that sign.
    pub(super) signing: CertificationPath,
    /// By the anchors of QWACs.
    pub(super) client: CertificationPath,
}

impl Lists {
    /// The bundle of a gateway with this trust.
    pub(super) fn new(bundle: TrustBundle, trust: &Trust) -> Result<Self, ErrorStack> {
        let alone = |all: &Anchors, types| all.by_lists_alone(&bundle.listed, types);
        Ok(Self {
            signing: alone(trust.anchors(), trust.types())?,
            client: alone(trust.client_anchors(), CertificateTypes::WEB)?,
            bundle,
        })
    }

    /// The paths of a certificate.
    pub(super) fn paths(
        &self,
        presented: &PresentedCertificates,
        types: CertificateTypes,
        at: Timestamp,
    ) -> Result<ListedPaths<'_>, CertificateFault> {
        let path = |all: &Anchors, types| all.path(&presented.leaf, &presented.pool, types, at);
        Ok(ListedPaths {
            bundle: &self.bundle,
            signing: path(&self.signing, types)?,
            client: path(&self.client, CertificateTypes::WEB)?,
        })
    }
}

impl Judges {
    /// The paths of a certificate by the trusted lists alone; `None` without a bundle.
    pub(super) fn listed_paths(
        &self,
        presented: &PresentedCertificates,
        at: Timestamp,
    ) -> Result<Option<ListedPaths<'_>>, CertificateFault> {
        let lists = self.configured.as_ref();
        let lists = lists.and_then(|configured| configured.lists.as_ref());
        let paths = lists.map(|lists| lists.paths(presented, self.trust.types(), at));
        paths.transpose()
    }

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
