//! Certificates of a minted CA, judged by grants and qualifications (CRT-3).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{
    Anchors, ListedAnchors, ListedService, Trust,
    qualification::{Assert, Criteria, KeyUsageBit},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use portvakt_base::clock::Timestamp;
use portvakt_development_pki as pki;

const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);
const POLICY: &[u64] = &[1, 2, 3];
const BOTH: CertificateTypes = CertificateTypes {
    eseal: true,
    web: true,
};

fn root() -> pki::Ca {
    pki::Ca::root(&pki::CaSpec::development_root()).unwrap()
}

/// A certificate of a type that names the policy 1.2.3.
fn leaf(root: &pki::Ca, of: pki::QcType) -> Vec<u8> {
    let policy = pki::der_sequence(&[pki::der_sequence(&[pki::der_oid(POLICY)])]);
    let spec = pki::LeafSpec {
        qc_type: Some(of),
        extra_extensions: vec![pki::Extension {
            oid: vec![2, 5, 29, 32],
            critical: false,
            content: policy,
        }],
        ..pki::LeafSpec::default()
    };
    root.issue(&spec).unwrap().der
}

fn x509(der: &[u8]) -> X509 {
    X509::from_der(der).unwrap()
}

fn all() -> Criteria {
    Criteria {
        assert: Assert::All,
        key_usages: Vec::new(),
        policies: Vec::new(),
        others: Vec::new(),
        nested: Vec::new(),
    }
}

fn policies(assert: Assert, sets: &[&[&str]]) -> Criteria {
    let set = |set: &&[&str]| set.iter().map(|policy| (*policy).to_owned()).collect();
    Criteria {
        assert,
        policies: sets.iter().map(set).collect(),
        ..all()
    }
}

fn usages(assert: Assert, bits: &[(&str, bool)]) -> Criteria {
    let bit = |(name, set): &(&str, bool)| KeyUsageBit {
        name: (*name).to_owned(),
        set: *set,
    };
    Criteria {
        assert,
        key_usages: vec![bits.iter().map(bit).collect()],
        ..all()
    }
}

fn qualified(qualifiers: &[&str], criteria: Criteria) -> Qualification {
    Qualification {
        qualifiers: qualifiers.iter().map(|name| (*name).to_owned()).collect(),
        criteria,
    }
}

/// An anchor that identifies a service for each of these types and qualifications.
fn listed(anchor: &X509, granted: &[(GrantedType, Vec<Qualification>)]) -> ListedAnchors {
    let mut listed = ListedAnchors::default();
    for (of, qualifications) in granted {
        let service = ListedService {
            seals: *of == GrantedType::Eseal,
            websites: *of == GrantedType::Web,
            qualifications,
        };
        assert!(listed.add(anchor.clone(), *of, [service]).unwrap());
    }
    listed
}

/// The outcome for a request that is signed by the certificate; the issuer has these grants.
fn judged(
    root: &pki::Ca,
    leaf: &[u8],
    granted: &[(GrantedType, Vec<Qualification>)],
    types: CertificateTypes,
) -> Result<(), CertificateFault> {
    let anchor = x509(root.der());
    let anchors = match granted {
        [] => Anchors::of_operator(vec![anchor], Vec::new()),
        _ => Anchors::of_lists(&listed(&anchor, granted), BOTH, Vec::new(), Vec::new()),
    };
    let trust = Trust::new(anchors.unwrap()).with_types(types);
    let identified = trust.identify(STANDARD.encode(leaf).as_bytes(), None, NOW);
    identified.map(|_| ())
}

//= CRT-3 accepted
//= CRT-3 refused
#[test]
fn a_service_is_granted_for_the_type() {
    use GrantedType::{Eseal, Web};
    let root = root();
    let (seal, web) = (
        leaf(&root, pki::QcType::Eseal),
        leaf(&root, pki::QcType::Web),
    );
    let both = CertificateTypes::default();
    let judge = |leaf: &[u8], of: &[GrantedType], types| {
        let granted: Vec<_> = of.iter().map(|of| (*of, Vec::new())).collect();
        judged(&root, leaf, &granted, types)
    };
    // An anchor that no list names is the operator's own.
    for of in [&[][..], &[Eseal], &[Eseal, Web]] {
        assert_eq!(judge(&seal, of, both), Ok(()), "{of:?}");
    }
    for of in [&[][..], &[Web], &[Eseal, Web]] {
        assert_eq!(judge(&web, of, both), Ok(()), "{of:?}");
        assert_eq!(judge(&web, of, CertificateTypes::WEB), Ok(()), "{of:?}");
    }
    let not_for = |leaf: &[u8], of, expected: &str| {
        let fault = judge(leaf, &[of], both).unwrap_err();
        assert!(fault.to_string().contains(expected), "{fault}");
        assert_eq!(
            fault.reason(),
            portvakt_interface::Reason::CertificateWrongType
        );
    };
    not_for(&seal, Web, "no service for seals");
    not_for(&web, Eseal, "no service for web sites");
    // What may not sign by its type is refused for that.
    let fault = judge(&seal, &[Web], CertificateTypes::WEB).unwrap_err();
    assert_eq!(fault, CertificateFault::WrongType("its QcType is not web"));
}

//= CRT-3 accepted
//= CRT-3 refused
#[test]
fn qualifications_of_the_issuers_service() {
    let root = root();
    let seal = leaf(&root, pki::QcType::Eseal);
    let judge = |qualification: Qualification| {
        let granted = [(GrantedType::Eseal, vec![qualification])];
        judged(&root, &seal, &granted, CertificateTypes::default())
    };
    let own = policies(Assert::All, &[&["1.2.3"]]);
    let other = policies(Assert::All, &[&["1.2.4"]]);
    for (qualifiers, criteria, passes) in [
        (&["NotQualified"][..], &own, false),
        (&["QCForLegalPerson", "NotQualified"], &own, false),
        (&["NotQualified"], &other, true),
        (&["QCForESeal"], &own, true),
        (&["QCForESig"], &own, false),
        (&["QCForWSA"], &own, false),
        // Of two types nobody can say which.
        (&["QCForESig", "QCForESeal"], &own, false),
        (&["QCForESig"], &other, true),
        (&["QCWithQSCD", "QCForLegalPerson"], &own, true),
        // Other spellings than the lists have.
        (&["http://example.org/SvcInfoExt/NotQualified"], &own, false),
        (&[" notqualified"], &own, false),
        (&["QualifiedNot", "NotQualified/x"], &own, true),
    ] {
        let outcome = judge(qualified(qualifiers, criteria.clone()));
        assert_eq!(outcome.is_ok(), passes, "{qualifiers:?}: {outcome:?}");
        if let Err(fault) = outcome {
            assert!(
                matches!(fault, CertificateFault::Unqualified(_)),
                "{fault:?}"
            );
        }
    }
    // Two services of one issuer: either may say that it is not qualified.
    let granted = [
        (GrantedType::Eseal, Vec::new()),
        (
            GrantedType::Eseal,
            vec![qualified(&["NotQualified"], own.clone())],
        ),
    ];
    assert!(judged(&root, &seal, &granted, CertificateTypes::default()).is_err());
    // What the lists say of web sites is nothing to a seal.
    let granted = [
        (GrantedType::Eseal, Vec::new()),
        (GrantedType::Web, vec![qualified(&["NotQualified"], own)]),
    ];
    assert_eq!(
        judged(&root, &seal, &granted, CertificateTypes::default()),
        Ok(())
    );
}

/// Another spelling of a policy may mean one that the certificate names.
//= CRT-3 refused
#[test]
fn a_policy_has_one_spelling() {
    let root = root();
    let der = leaf(&root, pki::QcType::Eseal);
    let (certificate, _) = judgement::read(&der).unwrap();
    let own = Judged::of(&certificate);
    let meets = |policy: &str| policies(Assert::All, &[&[policy]]).meets(&own);
    assert_eq!(meets("1.2.3"), Meets::Yes);
    for another in ["1.2.4", "1.2.3.0", "2.999.0", "0.0"] {
        assert_eq!(meets(another), Meets::No, "{another}");
    }
    for doubtful in [
        "01.2.3", "1.2.3.", ".1.2.3", "1..2.3", "1.2.03", "1.99.3", "3.2.3", "1", "1.+2.3",
    ] {
        assert_eq!(meets(doubtful), Meets::Unknown, "{doubtful}");
    }
}

#[test]
fn criteria_of_every_kind() {
    use Meets::{No, Unknown, Yes};
    let root = root();
    let der = leaf(&root, pki::QcType::Eseal);
    let (certificate, _) = judgement::read(&der).unwrap();
    let own = Judged::of(&certificate);
    let unknown = || Criteria {
        others: vec!["ExtendedKeyUsage".to_owned()],
        ..all()
    };
    let within = |assert, nested: Vec<Criteria>| Criteria {
        assert,
        nested,
        ..all()
    };
    let has = || policies(Assert::All, &[&["1.2.3"]]);
    let has_not = || policies(Assert::All, &[&["1.2.4"]]);
    let (signs, both) = (("digitalSignature", true), ("nonRepudiation", true));
    for (criteria, expected) in [
        (all(), Yes),
        (policies(Assert::AtLeastOne, &[]), No),
        (policies(Assert::None, &[]), Yes),
        (has(), Yes),
        (policies(Assert::All, &[&["1.2.3", "1.2.4"]]), No),
        (policies(Assert::All, &[&["1.2.3"], &["1.2.4"]]), No),
        (policies(Assert::AtLeastOne, &[&["1.2.4"], &["1.2.3"]]), Yes),
        (policies(Assert::All, &[&["urn:oid:1.2.3"]]), Unknown),
        (policies(Assert::All, &[&["x", "1.2.4"]]), No),
        (policies(Assert::All, &[&[""]]), Unknown),
        (policies(Assert::None, &[&["1.2.4"]]), Yes),
        (policies(Assert::None, &[&["1.2.4"], &["1.2.3"]]), No),
        (usages(Assert::All, &[signs, both]), Yes),
        (usages(Assert::All, &[signs, ("keyCertSign", true)]), No),
        (usages(Assert::All, &[("crlSign", false)]), Yes),
        (usages(Assert::All, &[("contentCommitment", true)]), Unknown),
        (
            usages(
                Assert::All,
                &[("contentCommitment", true), ("crlSign", true)],
            ),
            No,
        ),
        (unknown(), Unknown),
        (within(Assert::All, vec![unknown(), has_not()]), No),
        (within(Assert::All, vec![unknown(), has()]), Unknown),
        (within(Assert::AtLeastOne, vec![unknown(), has()]), Yes),
        (
            within(Assert::AtLeastOne, vec![unknown(), has_not()]),
            Unknown,
        ),
        (within(Assert::None, vec![unknown(), has()]), No),
        (within(Assert::None, vec![unknown(), has_not()]), Unknown),
    ] {
        assert_eq!(criteria.meets(&own), expected, "{criteria:?}");
    }
    let deep = (0..20).fold(has_not(), |inner, _| within(Assert::All, vec![inner]));
    assert_eq!(deep.meets(&own), Unknown);
    // A doubt refuses.
    for criteria in [unknown(), deep] {
        for qualifier in ["NotQualified", "QCForESig"] {
            let qualification = qualified(&[qualifier], criteria.clone());
            let granted = [(GrantedType::Eseal, vec![qualification])];
            let outcome = judged(&root, &der, &granted, CertificateTypes::default());
            assert!(outcome.is_err(), "{qualifier}");
        }
    }
}

/// A CA that no list names, below two that are listed: one for seals, one for web sites. The order of the certificates decides nothing.
//= CRT-3 accepted
#[test]
fn a_chain_to_a_service_that_vouches_is_found() {
    let key = openssl::rsa::Rsa::generate(2048).unwrap();
    let key = String::from_utf8(key.private_key_to_pem().unwrap()).unwrap();
    let named = |name: &str| pki::CaSpec {
        common_name: name.into(),
        path_length: None,
        ..pki::CaSpec::default()
    };
    let [seals, sites] = ["Seals", "Web sites"].map(|name| pki::Ca::root(&named(name)).unwrap());
    let below = pki::CaSpec {
        key: pki::Key::RsaPem(key),
        ..named("Below")
    };
    let [by_seals, by_sites] = [&seals, &sites].map(|ca| ca.issue_ca(&below).unwrap());
    let (of_seals, of_sites) = (x509(seals.der()), x509(sites.der()));
    let mut grants = Grants::default();
    grants.add(&of_seals, GrantedType::Eseal, []).unwrap();
    grants.add(&of_sites, GrantedType::Web, []).unwrap();
    let types = CertificateTypes::default();
    let seal = leaf(&by_seals, pki::QcType::Eseal);
    let web = leaf(&by_sites, pki::QcType::Web);
    for pool in [[&by_seals, &by_sites], [&by_sites, &by_seals]] {
        let anchors = vec![of_seals.clone(), of_sites.clone()];
        let anchors = Anchors::with_grants(anchors, Vec::new(), grants.clone()).unwrap();
        let pool = pool.map(|ca| ca.der().to_vec());
        for (leaf, end) in [(&seal, &of_seals), (&web, &of_sites)] {
            let path = anchors.path(leaf, &pool, types, NOW).unwrap();
            assert_eq!(path.fault, None);
            assert!(path.members.last() == Some(end));
        }
        // With one of the two alone there is no other chain.
        let path = anchors.path(&web, &pool[..1], types, NOW).unwrap();
        let is_unqualified = matches!(path.fault, Some(CertificateFault::Unqualified(_)));
        assert_eq!(
            is_unqualified,
            pool[0] != by_sites.der(),
            "{:?}",
            path.fault
        );
    }
}

/// The nearest issuer that lists name decides, whatever stands above it, and whichever of its certificates is the anchor.
#[test]
fn the_nearest_issuer_that_is_listed() {
    let root = root();
    let issuing = root.issue_ca(&pki::CaSpec::default()).unwrap();
    let leaf = leaf(&issuing, pki::QcType::Eseal);
    let (top, below) = (x509(root.der()), x509(issuing.der()));
    let not_qualified = || vec![qualified(&["NotQualified"], all())];
    for (of_top, of_below, passes) in [
        (Some(Vec::new()), None, true),
        (Some(not_qualified()), None, false),
        (Some(not_qualified()), Some(Vec::new()), true),
        (Some(Vec::new()), Some(not_qualified()), false),
        (None, Some(not_qualified()), false),
    ] {
        let mut grants = Grants::default();
        let (is_top, is_below) = (of_top.is_some(), of_below.is_some());
        for (anchor, of) in [(&top, of_top), (&below, of_below)] {
            if let Some(of) = of {
                grants.add(anchor, GrantedType::Eseal, of).unwrap();
            }
        }
        // The root alone is the anchor.
        let anchors = |grants: &Grants| {
            Anchors::with_grants(vec![top.clone()], vec![below.clone()], grants.clone()).unwrap()
        };
        let path = anchors(&grants)
            .path(&leaf, &[], CertificateTypes::default(), NOW)
            .unwrap();
        assert_eq!(path.fault.is_none(), passes, "{is_top} {is_below}");
        assert_eq!(path.members.len(), 3);
        // The operator's own word needs no list.
        grants.forget(&top).unwrap();
        grants.forget(&below).unwrap();
        let path = anchors(&grants).path(&leaf, &[], CertificateTypes::default(), NOW);
        assert_eq!(path.unwrap().fault, None);
    }
}
