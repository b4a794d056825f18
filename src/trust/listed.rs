//! The anchors of trusted lists, each with what the lists say of it (CRT-3, CRT-13).
//!
//! Invariants: an anchor is added together with its services, so that none passes for the operator's own, which vouches for each type; what
//! is no CA's certificate is no anchor, since it would admit its own holder (CRT-2). Deliberately not here: where the anchors are read, and
//! what their services mean for a certificate (`grant`).

use super::{
    CertificateTypes, GrantedType, Grants, judgement::is_no_ca, qualification::Qualification,
};
use openssl::{
    error::ErrorStack,
    x509::{X509, X509Ref},
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A granted service of a trusted list, as far as it matters for the anchor that identifies it.
#[derive(Clone, Copy, Debug)]
pub struct ListedService<'s> {
    /// Whether it issues qualified certificates for seals.
    pub seals: bool,
    /// Whether it issues qualified certificates for web sites.
    pub websites: bool,
    /// Which of its certificates are not what they say themselves.
    pub qualifications: &'s [Qualification],
}

impl ListedService<'_> {
    const fn is_of(&self, of: GrantedType) -> bool {
        match of {
            GrantedType::Eseal => self.seals,
            GrantedType::Web => self.websites,
        }
    }
}

/// The anchors of trusted lists, by the type of certificate for which they serve, and the grants of all of them.
#[derive(Clone, Debug, Default)]
pub struct ListedAnchors {
    seals: Vec<X509>,
    websites: Vec<X509>,
    grants: Grants,
}

impl ListedAnchors {
    /// Adds a certificate that lists name for a type, with all services that it identifies: the anchor has every qualification of those of
    /// this type. Returns whether it became an anchor; the certificate of no CA becomes none.
    ///
    /// # Errors
    /// OpenSSL cannot read the certificate's key.
    pub fn add<'s>(
        &mut self,
        certificate: X509,
        of: GrantedType,
        services: impl IntoIterator<Item = ListedService<'s>>,
    ) -> Result<bool, ErrorStack> {
        if is_leaf(&certificate) {
            return Ok(false);
        }
        let services = services.into_iter().filter(|service| service.is_of(of));
        let qualifications = services.flat_map(|service| service.qualifications.iter().cloned());
        self.grants.add(&certificate, of, qualifications)?;
        match of {
            GrantedType::Eseal => self.seals.push(certificate),
            GrantedType::Web => self.websites.push(certificate),
        }
        Ok(true)
    }

    /// The anchors for a type.
    pub fn of(&self, of: GrantedType) -> &[X509] {
        match of {
            GrantedType::Eseal => &self.seals,
            GrantedType::Web => &self.websites,
        }
    }

    /// The anchors for these types. One that serves for both is there twice.
    pub fn of_types(&self, types: CertificateTypes) -> impl Iterator<Item = &X509> {
        let seals = self.seals.iter().filter(move |_| types.eseal);
        seals.chain(self.websites.iter().filter(move |_| types.web))
    }

    /// What the lists say of the anchors, of each type.
    pub const fn grants(&self) -> &Grants {
        &self.grants
    }
}

/// Whether it is an end-entity certificate, by the measure that a TPP's own is judged by (CRT-10). One that cannot be read so may be a CA's,
/// and is none that a TPP could present.
fn is_leaf(certificate: &X509Ref) -> bool {
    certificate.to_der().is_ok_and(|der| {
        X509Certificate::from_der(&der).is_ok_and(|(_, certificate)| is_no_ca(&certificate).is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Anchors, CertificateFault,
        qualification::{Assert, Criteria},
    };
    use portvakt_base::clock::Timestamp;
    use portvakt_development_pki as pki;

    const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

    fn not_qualified() -> [Qualification; 1] {
        [Qualification {
            qualifiers: vec!["NotQualified".to_owned()],
            criteria: Criteria {
                assert: Assert::All,
                key_usages: Vec::new(),
                policies: Vec::new(),
                others: Vec::new(),
                nested: Vec::new(),
            },
        }]
    }

    /// An anchor is never without what its services say; that the operator names it too is another word.
    //= CRT-3 accepted
    //= CRT-3 refused
    #[test]
    fn an_anchor_comes_with_its_services() {
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        let leaf = root.issue(&pki::LeafSpec::default()).unwrap().der;
        let anchor = X509::from_der(root.der()).unwrap();
        let doubt = not_qualified();
        let service = |seals, websites, qualifications| ListedService {
            seals,
            websites,
            qualifications,
        };
        for (services, passes) in [
            (vec![service(true, false, &[])], true),
            (vec![service(true, false, &doubt[..])], false),
            (
                vec![service(true, false, &[]), service(false, true, &doubt[..])],
                true,
            ),
            (
                vec![service(true, false, &[]), service(true, true, &doubt[..])],
                false,
            ),
        ] {
            let mut listed = ListedAnchors::default();
            let added = listed.add(anchor.clone(), GrantedType::Eseal, services);
            assert!(added.unwrap());
            let fault = |own: Vec<X509>| {
                let types = CertificateTypes::default();
                let anchors = Anchors::of_lists(&listed, types, own, Vec::new()).unwrap();
                anchors.path(&leaf, &[], types, NOW).unwrap().fault
            };
            match passes {
                true => assert_eq!(fault(Vec::new()), None),
                false => assert!(matches!(
                    fault(Vec::new()),
                    Some(CertificateFault::Unqualified(_))
                )),
            }
            assert_eq!(fault(vec![anchor.clone()]), None);
        }
    }

    //= CRT-2 refused
    #[test]
    fn the_certificate_of_no_ca_is_no_anchor() {
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        let leaf = root.issue(&pki::LeafSpec::default()).unwrap().der;
        let mut listed = ListedAnchors::default();
        for of in [GrantedType::Eseal, GrantedType::Web] {
            assert!(!listed.add(X509::from_der(&leaf).unwrap(), of, []).unwrap());
        }
        let types = CertificateTypes::default();
        assert_eq!(listed.of_types(types).count(), 0);
        assert_eq!(listed.grants(), &Grants::default());
        let anchor = X509::from_der(root.der()).unwrap();
        assert!(listed.add(anchor, GrantedType::Web, []).unwrap());
        assert_eq!(listed.of_types(types).count(), 1);
        assert!(listed.of(GrantedType::Eseal).is_empty());
        let seals = CertificateTypes {
            eseal: true,
            web: false,
        };
        assert_eq!(listed.of_types(seals).count(), 0);
    }
}
