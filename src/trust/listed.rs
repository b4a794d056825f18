//! The anchors of trusted lists, each with what the lists say of it (CRT-3, CRT-13).
//!
//! Invariants: an anchor is added together with its services, so that none passes for the operator's own, which vouches for each type; one of
//! them is of the type that it is listed for, so that none vouches without the conditions of a service; what is no CA's certificate is no
//! anchor, since it would admit its own holder (CRT-2). Deliberately not here: where the anchors are read, and what their services mean for a
//! certificate (`grant`).

use super::{
    CertificateTypes, GrantedType, Grants, KeyHash, judgement::is_no_ca,
    qualification::Qualification,
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

/// Why a certificate is not taken as an anchor of trusted lists.
#[derive(Debug, thiserror::Error)]
pub enum ListingFault {
    /// No service that it identifies is for the type: nothing would say under which conditions it vouches.
    #[error("it is listed for {name}, and none of its services is for {name}", name = .0.name())]
    NoService(GrantedType),
    /// OpenSSL cannot read its key.
    #[error(transparent)]
    Key(#[from] ErrorStack),
}

/// The anchors of trusted lists, by the type of certificate for which they serve, and the grants of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// None of the services is for the type, or OpenSSL cannot read the certificate's key.
    pub fn add<'s>(
        &mut self,
        certificate: X509,
        of: GrantedType,
        services: impl IntoIterator<Item = ListedService<'s>>,
    ) -> Result<bool, ListingFault> {
        let services = services.into_iter().filter(|service| service.is_of(of));
        let mut services = services.peekable();
        if services.peek().is_none() {
            return Err(ListingFault::NoService(of));
        }
        if is_leaf(&certificate) {
            return Ok(false);
        }
        let qualifications = services.flat_map(|service| service.qualifications.iter().cloned());
        self.grants.add(&certificate, of, qualifications)?;
        match of {
            GrantedType::Eseal => self.seals.push(certificate),
            GrantedType::Web => self.websites.push(certificate),
        }
        Ok(true)
    }

    /// Adds an issuer that lists name and that has perhaps no grant, such as a CA whose service was withdrawn: nothing above it vouches for
    /// what it issued. Grants that it has stay.
    pub fn name(&mut self, issuer: KeyHash) {
        self.grants.name(issuer);
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

    /// The anchors with the public key of a certificate, of each type: a service vouches for a key, whichever certificate has it. None if
    /// OpenSSL cannot read the key.
    pub fn with_key_of(&self, certificate: &X509Ref) -> impl Iterator<Item = &X509> {
        let key = KeyHash::of(certificate).ok();
        let all = self.seals.iter().chain(&self.websites);
        all.filter(move |anchor| key.is_some() && KeyHash::of(anchor).ok() == key)
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

    const fn service(
        seals: bool,
        websites: bool,
        qualifications: &[Qualification],
    ) -> ListedService<'_> {
        ListedService {
            seals,
            websites,
            qualifications,
        }
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
            let leaf = X509::from_der(&leaf).unwrap();
            assert!(!listed.add(leaf, of, [service(true, true, &[])]).unwrap());
        }
        let types = CertificateTypes::default();
        assert_eq!(listed.of_types(types).count(), 0);
        assert_eq!(listed.grants(), &Grants::default());
        let anchor = X509::from_der(root.der()).unwrap();
        let services = [service(false, true, &[])];
        assert!(listed.add(anchor, GrantedType::Web, services).unwrap());
        assert_eq!(listed.of_types(types).count(), 1);
        assert!(listed.of(GrantedType::Eseal).is_empty());
        let seals = CertificateTypes {
            eseal: true,
            web: false,
        };
        assert_eq!(listed.of_types(seals).count(), 0);
    }

    /// An anchor without a service of its type would vouch without the conditions of one.
    //= CRT-3 accepted
    //= CRT-3 refused
    #[test]
    fn an_anchor_has_a_service_of_its_type() {
        use GrantedType::{Eseal, Web};
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        let anchor = X509::from_der(root.der()).unwrap();
        for (of, services, is_taken) in [
            (Eseal, vec![], false),
            (Eseal, vec![service(false, true, &[])], false),
            (Eseal, vec![service(false, false, &[])], false),
            (Eseal, vec![service(true, false, &[])], true),
            (Web, vec![service(true, false, &[])], false),
            (
                Web,
                vec![service(true, false, &[]), service(false, true, &[])],
                true,
            ),
        ] {
            let mut listed = ListedAnchors::default();
            match listed.add(anchor.clone(), of, services) {
                Ok(added) => assert!(is_taken && added, "{of:?}"),
                Err(fault) => {
                    let name = of.name();
                    let expected =
                        format!("it is listed for {name}, and none of its services is for {name}");
                    assert!(!is_taken, "{of:?}");
                    assert_eq!(fault.to_string(), expected);
                    assert_eq!(listed, ListedAnchors::default());
                }
            }
        }
    }

    /// A service vouches for the key of its anchor. A chain does not end at an anchor that is not valid, if there is another one.
    //= CRT-3 accepted
    //= CRT-3 refused
    #[test]
    fn an_anchor_that_has_ended_vouches_by_its_key() {
        use GrantedType::{Eseal, Web};
        let key = openssl::rsa::Rsa::generate(2048).unwrap();
        let key = String::from_utf8(key.private_key_to_pem().unwrap()).unwrap();
        let ca = |not_after| {
            let key = pki::Key::RsaPem(key.clone());
            let spec = pki::CaSpec::development_root();
            pki::Ca::root(&pki::CaSpec {
                key,
                not_after,
                ..spec
            })
            .unwrap()
        };
        let ended = ca(time::macros::datetime!(2025-01-01 0:00 UTC));
        let valid = ca(time::macros::datetime!(2040-01-01 0:00 UTC));
        let leaf = valid.issue(&pki::LeafSpec::default()).unwrap().der;
        let [ended, valid] = [ended, valid].map(|ca| X509::from_der(ca.der()).unwrap());
        let mut listed = ListedAnchors::default();
        let services = [service(true, false, &[])];
        assert!(listed.add(ended.clone(), Eseal, services).unwrap());
        let services = [service(false, true, &[])];
        assert!(listed.add(valid.clone(), Web, services).unwrap());
        let both: Vec<_> = listed.with_key_of(&valid).collect();
        assert_eq!(both, [&ended, &valid]);
        let seals = CertificateTypes {
            eseal: true,
            web: false,
        };
        for (types, end, is_valid) in [
            (CertificateTypes::default(), &valid, true),
            (seals, &ended, false),
        ] {
            let anchors = Anchors::of_lists(&listed, types, Vec::new(), Vec::new()).unwrap();
            let path = anchors.path(&leaf, &[], types, NOW).unwrap();
            assert_eq!(path.fault, None);
            assert_eq!(path.members.last(), Some(end));
            let found = path.validity().unwrap();
            assert_eq!(found.iter().all(|one| one.contains(NOW)), is_valid);
        }
    }

    /// What the lists alone say, where the operator's own anchor lies between.
    //= CRT-3 accepted
    //= CRT-3 refused
    #[test]
    fn an_anchor_of_the_operator_below_a_listed_one() {
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        let issuing = root.issue_ca(&pki::CaSpec::default()).unwrap();
        let leaf = issuing.issue(&pki::LeafSpec::default()).unwrap().der;
        let doubt = not_qualified();
        let mut listed = ListedAnchors::default();
        let services = [service(true, false, &doubt)];
        let anchor = X509::from_der(root.der()).unwrap();
        assert!(listed.add(anchor, GrantedType::Eseal, services).unwrap());
        let types = CertificateTypes::default();
        let own = vec![X509::from_der(issuing.der()).unwrap()];
        let anchors = Anchors::of_lists(&listed, types, own, Vec::new()).unwrap();
        let path = anchors.path(&leaf, &[], types, NOW).unwrap();
        assert_eq!((path.fault, path.members.len()), (None, 2));
        let alone = anchors.by_lists_alone(&listed, types).unwrap();
        let path = alone.path(&leaf, &[], types, NOW).unwrap();
        assert_eq!(path.members.len(), 3);
        assert!(matches!(path.fault, Some(CertificateFault::Unqualified(_))));
    }
}
