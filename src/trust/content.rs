//! The rules of a certificate's content, which need no chain, in the order of the rules (CRT-1, CRT-3, CRT-4, CRT-10, SIG-5).
//!
//! Invariant: a request and a forecast are judged by the same rules: [`CandidateCertificate`](super::CandidateCertificate) and
//! [`Certificate`](super::Certificate) call one function each, and [`judge_content`] both. Deliberately not here: the chain, and validity.

use super::{
    CertificateFault, CertificatePolicy, CertificateTypes, judgement,
    name::Name,
    qc::Psd2Statement,
    tolerance::{Tolerance, Tolerances, Tolerated},
};
use aws_lc_rs::signature::ParsedPublicKey;
use portvakt_interface::TppId;
use x509_parser::certificate::X509Certificate;

/// The content of a certificate that may sign requests.
pub(super) struct SigningContent {
    /// The faults that the policy accepted.
    pub(super) tolerated: Tolerances,
    pub(super) psd2: Psd2Statement,
    pub(super) issuer: Name,
    pub(super) tpp_id: TppId,
}

impl SigningContent {
    /// Applies the rules of type, key usage and PSD2 identity.
    pub(super) fn judge(
        certificate: &X509Certificate<'_>,
        policy: CertificatePolicy,
        types: CertificateTypes,
    ) -> Result<Self, CertificateFault> {
        let mut tolerance = Tolerance::of(policy);
        let statements = judgement::statements_by(certificate, &mut tolerance)?;
        if !tolerance.used().contains(Tolerated::StatementUnwrapped) {
            judgement::qualified(&statements)?;
            judgement::qc_type(&statements, types)?;
        }
        judgement::key_usage(certificate)?;
        let psd2 = judgement::psd2_by(&statements, &mut tolerance)?;
        Ok(Self {
            issuer: judgement::issuer(certificate)?,
            tpp_id: judgement::tpp_id(certificate)?,
            tolerated: tolerance.used(),
            psd2,
        })
    }
}

/// Applies the rules that come before the chain; returns the key that signatures are verified with.
pub(super) fn signing_key(leaf: &[u8]) -> Result<ParsedPublicKey, CertificateFault> {
    let (certificate, rest) = judgement::read(leaf)?;
    judgement::ends(rest)?;
    judgement::algorithms_agree(&certificate)?;
    let key = judgement::signing_key(&certificate)?;
    judgement::is_no_ca(&certificate)?;
    Ok(key)
}

/// Applies to an end-entity certificate (DER) every rule by which a request is refused whatever the anchors are, as a gateway of this policy
/// and of these types does.
///
/// # Errors
/// The first fault. It depends neither on the time nor on the anchors.
pub fn judge_content(
    leaf: &[u8],
    policy: CertificatePolicy,
    types: CertificateTypes,
) -> Result<(), CertificateFault> {
    signing_key(leaf)?;
    let (certificate, _) = judgement::read(leaf)?;
    SigningContent::judge(&certificate, policy, types).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use portvakt_development_pki as pki;

    const SEALS: CertificateTypes = CertificateTypes {
        eseal: true,
        web: false,
    };

    fn judge(spec: &pki::LeafSpec, policy: CertificatePolicy) -> Result<(), CertificateFault> {
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        judge_content(&root.issue(spec).unwrap().der, policy, SEALS)
    }

    //= CRT-3 accepted
    //= CRT-3 refused
    //= CRT-4 refused
    //= CRT-10 refused
    #[test]
    fn the_content_is_judged_without_a_chain() {
        let spec = pki::LeafSpec::default;
        let strict = |spec: pki::LeafSpec| judge(&spec, CertificatePolicy::Strict);
        assert_eq!(strict(spec()), Ok(()));
        let unqualified = strict(pki::LeafSpec {
            qc_compliance: false,
            ..spec()
        });
        let web = strict(pki::LeafSpec {
            qc_type: Some(pki::QcType::Web),
            ..spec()
        });
        let no_usage = strict(pki::LeafSpec {
            key_usages: Vec::new(),
            ..spec()
        });
        for fault in [unqualified, web, no_usage] {
            let fault = fault.unwrap_err();
            assert!(matches!(fault, CertificateFault::WrongType(_)), "{fault}");
        }
        let nobody = strict(pki::LeafSpec {
            organization_identifier: None,
            ..spec()
        });
        assert!(matches!(nobody, Err(CertificateFault::NotPsd2(_))));
        let ca = strict(pki::LeafSpec {
            is_ca: true,
            ..spec()
        });
        assert_eq!(ca, Err(CertificateFault::OfCa));
        let fault = judge_content(b"no certificate", CertificatePolicy::Strict, SEALS);
        assert!(fault.is_err());
        // What a policy tolerates is no fault.
        let no_role = pki::LeafSpec {
            roles: Some(Vec::new()),
            ..spec()
        };
        assert!(judge(&no_role, CertificatePolicy::Strict).is_err());
        assert_eq!(judge(&no_role, CertificatePolicy::Tolerant), Ok(()));
    }
}
