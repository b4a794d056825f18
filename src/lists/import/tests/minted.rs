//! Lists that tests mint, for what the real ones have not.

use super::{fault, import_folder};
use crate::{
    anchors::LeftOut,
    for_tests::mint::{List, Scheme, Service, Signer},
    import::{Fault, Imported},
    list::{Assert, Criteria, KeyUsageBit, Qualification},
};
use std::{fs, sync::LazyLock};

/// Who signs the list of lists of these tests, and who signs Spain's.
static SIGNERS: LazyLock<(Signer, Signer)> = LazyLock::new(|| {
    (
        Signer::new("Commission", Scheme::Ecdsa),
        Signer::new("Spain", Scheme::Ecdsa),
    )
});

const NOW: &str = "2026-07-01T00:00:00Z";

/// Imports files, of which the first is the list of lists, signed by the Commission.
fn import_texts(texts: &[(&str, String)], time: &str) -> Result<Imported, Vec<Fault>> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in texts {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let of_lists = folder.path().join(texts[0].0);
    let pins = [SIGNERS.0.certificate.clone()];
    import_folder(&of_lists, &pins, folder.path(), time)
}

/// Imports Spain's list, signed by the signer whom the list of lists names.
fn import_spain(list: &List, time: &str) -> Result<Imported, Vec<Fault>> {
    let (commission, spain) = &*SIGNERS;
    let of_lists = List::of_lists(&[("ES", &spain.certificate)]);
    let texts = [
        ("eu.xml", of_lists.sign(commission)),
        ("ES.xml", list.sign(spain)),
    ];
    import_texts(&texts, time)
}

/// The names of the services of all anchors.
fn names(imported: &Imported) -> Vec<String> {
    let anchors = imported.anchors.all();
    let services = anchors.flat_map(|(_, anchor)| anchor.services.clone());
    let mut names: Vec<_> = services.map(|it| it.service).collect();
    names.sort();
    names
}

//= CRT-13 accepted
#[test]
fn each_algorithm_signs() {
    for scheme in [Scheme::Rsa, Scheme::Pss, Scheme::Ecdsa] {
        let signer = Signer::new("List of lists", scheme);
        let spain = Signer::new("Spain", scheme);
        let folder = tempfile::tempdir().unwrap();
        let of_lists = folder.path().join("eu.xml");
        let text = List::of_lists(&[("ES", &spain.certificate)]).sign(&signer);
        fs::write(&of_lists, text).unwrap();
        let list = List::national("ES", vec![Service::for_seals("A")]);
        fs::write(folder.path().join("ES.xml"), list.sign(&spain)).unwrap();
        let pins = [signer.certificate.clone()];
        let imported = import_folder(&of_lists, &pins, folder.path(), NOW);
        assert_eq!(names(&imported.unwrap()), ["A"], "{scheme:?}");
    }
}

//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn how_the_signer_is_named() {
    let (commission, spain) = &*SIGNERS;
    let of_lists = List::of_lists(&[("ES", &spain.certificate)]).sign(commission);
    let mut old = Signer::new("Old", Scheme::Ecdsa);
    old.is_v2 = false;
    let mut named = List::of_lists(&[("ES", &old.certificate)]);
    named.version = 6;
    let named = named.sign(commission);
    let mut list = List::national("ES", vec![Service::for_seals("A")]);
    list.version = 5;
    let imported = import_texts(
        &[("eu.xml", named.clone()), ("ES.xml", list.sign(&old))],
        NOW,
    );
    assert_eq!(names(&imported.unwrap()), ["A"]);
    list.version = 6;
    let found = fault(import_texts(
        &[("eu.xml", named), ("ES.xml", list.sign(&old))],
        NOW,
    ));
    assert!(found.contains("SigningCertificateV2"), "{found}");
    // Signed by someone whom the list of lists does not name.
    let found = fault(import_texts(
        &[("eu.xml", of_lists), ("ES.xml", list.sign(&old))],
        NOW,
    ));
    assert!(found.contains("signed by none of the 1 signers"), "{found}");
}

/// The first issue of a list has the number 1.
//= CRT-13 refused
#[test]
fn a_list_of_number_zero() {
    let mut list = List::national("ES", vec![Service::for_seals("A")]);
    list.sequence = 0;
    let found = fault(import_spain(&list, NOW));
    assert!(found.contains("TSLSequenceNumber is 0; "), "{found}");
}

//= CRT-13 accepted
#[test]
fn only_granted_services_for_seals_and_websites() {
    let mut websites = Service::for_seals("Websites");
    websites.additional = vec!["ForeSignatures", "ForWebSiteAuthentication"];
    let mut both = Service::for_seals("Both");
    both.additional = vec!["ForeSeals", "ForWebSiteAuthentication"];
    let mut signatures = Service::for_seals("Signatures");
    signatures.additional = vec!["ForeSignatures"];
    let mut withdrawn = Service::for_seals("Withdrawn");
    withdrawn.states = vec![
        ("withdrawn", "2026-06-01T00:00:00Z"),
        ("granted", "2020-01-01T00:00:00Z"),
    ];
    let mut stamps = Service::for_seals("Time stamps");
    stamps.service_type = "TSA/QTST";
    let mut national = Service::for_seals("National");
    national.states = vec![("recognisedatnationallevel", "2020-01-01T00:00:00Z")];
    let list = List::national(
        "ES",
        vec![
            Service::for_seals("Seals"),
            websites,
            both,
            signatures,
            withdrawn,
            stamps,
            national,
        ],
    );
    let imported = import_spain(&list, NOW).unwrap();
    assert_eq!(names(&imported), ["Both", "Seals", "Websites"]);
    let uses = |name: &str| {
        let mut all = imported.anchors.all();
        let found = all
            .find(|(_, it)| it.services[0].service == name)
            .unwrap()
            .1;
        (found.uses.seals, found.uses.websites)
    };
    assert_eq!(
        (uses("Seals"), uses("Websites"), uses("Both")),
        ((true, false), (false, true), (true, true))
    );
    let counts = &imported.lists["ES"].counts;
    assert_eq!(counts[&("CA/QC".to_owned(), "granted".to_owned())], 4);
    assert_eq!(counts[&("CA/QC".to_owned(), "withdrawn".to_owned())], 1);
    // Before it was withdrawn.
    let before = import_spain(&list, "2026-05-31T23:59:59Z").unwrap();
    assert_eq!(names(&before), ["Both", "Seals", "Websites", "Withdrawn"]);
    // Before all of them.
    assert!(names(&import_spain(&list, "2019-12-31T00:00:00Z").unwrap()).is_empty());
}

/// A history that is newer than the current state does not bring back what is withdrawn.
#[test]
fn the_current_state_wins() {
    let mut service = Service::for_seals("A");
    service.states = vec![
        ("withdrawn", "2024-01-01T00:00:00Z"),
        ("granted", "2025-01-01T00:00:00Z"),
    ];
    let imported = import_spain(&List::national("ES", vec![service]), NOW).unwrap();
    assert!(names(&imported).is_empty());
}

//= CRT-13 accepted
#[test]
fn qualifications_are_kept() {
    let mut service = Service::for_seals("A");
    let sie =
        "xmlns:sie=\"http://uri.etsi.org/TrstSvc/SvcInfoExt/eSigDir-1999-93-EC-TrustedList/#\"";
    let uri = "http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/NotQualified";
    service.extensions = format!(
        "<Extension Critical=\"true\"><sie:Qualifications {sie}><sie:QualificationElement><sie:Qualifiers><sie:Qualifier uri=\"{uri}\"></sie:Qualifier></sie:Qualifiers><sie:CriteriaList assert=\"atLeastOne\"><sie:KeyUsage><sie:KeyUsageBit name=\"nonRepudiation\">true</sie:KeyUsageBit></sie:KeyUsage><sie:PolicySet><sie:PolicyIdentifier><xades:Identifier xmlns:xades=\"http://uri.etsi.org/01903/v1.3.2#\" Qualifier=\"OIDAsURN\">urn:oid:1.2.3</xades:Identifier></sie:PolicyIdentifier></sie:PolicySet></sie:CriteriaList></sie:QualificationElement></sie:Qualifications></Extension>"
    );
    // XAdES has PolicyIdentifier in its own namespace; the element that matters is Identifier.
    let imported = import_spain(&List::national("ES", vec![service]), NOW).unwrap();
    let (_, anchor) = imported.anchors.all().next().unwrap();
    let expected = Qualification {
        qualifiers: vec!["NotQualified".to_owned()],
        criteria: Criteria {
            assert: Assert::AtLeastOne,
            key_usages: vec![vec![KeyUsageBit {
                name: "nonRepudiation".to_owned(),
                set: true,
            }]],
            policies: vec![vec!["1.2.3".to_owned()]],
            others: Vec::new(),
            nested: Vec::new(),
        },
    };
    assert_eq!(anchor.services[0].qualifications, [expected]);
}

//= CRT-13 refused
#[test]
fn an_unknown_critical_extension() {
    let mut service = Service::for_seals("A");
    let extension = |critical: &str| {
        format!("<Extension Critical=\"{critical}\"><OnlyOnSundays></OnlyOnSundays></Extension>")
    };
    service.extensions = extension("false");
    let list = List::national("ES", vec![service.clone()]);
    assert_eq!(names(&import_spain(&list, NOW).unwrap()), ["A"]);
    service.extensions = extension("true");
    let list = List::national("ES", vec![service]);
    let imported = import_spain(&list, NOW).unwrap();
    assert!(names(&imported).is_empty());
    let [LeftOut { reason, .. }] = imported.anchors.left_out() else {
        panic!("{:?}", imported.anchors.left_out());
    };
    assert!(reason.contains("OnlyOnSundays"), "{reason}");
}

//= CRT-13 refused
#[test]
fn lists_that_do_not_belong_together() {
    let (commission, spain) = &*SIGNERS;
    let of_lists = List::of_lists(&[("ES", &spain.certificate)]).sign(commission);
    let list = List::national("ES", vec![Service::for_seals("A")]);
    let france = List::national("FR", Vec::new()).sign(spain);
    let found = fault(import_texts(
        &[("eu.xml", of_lists.clone()), ("FR.xml", france)],
        NOW,
    ));
    // It names the file, and says what to do with it.
    let expected = "FR.xml: the list of lists names no list of FR, or no more: remove this file; ";
    assert!(found.contains(expected), "{found}");
    let texts = [
        ("eu.xml", of_lists.clone()),
        ("ES.xml", list.sign(spain)),
        ("ES2.xml", list.sign(spain)),
    ];
    let found = fault(import_texts(&texts, NOW));
    assert!(found.contains("a second list of ES"), "{found}");
    // A national list in place of the list of lists.
    let found = fault(import_texts(&[("eu.xml", list.sign(commission))], NOW));
    assert!(found.contains("expected the list of lists"), "{found}");
    // The list of lists of someone else.
    let found = fault(import_texts(
        &[("eu.xml", List::of_lists(&[]).sign(spain))],
        NOW,
    ));
    assert!(found.contains("signed by none of the 1 signers"), "{found}");
}

//= CRT-13 refused
#[test]
fn parts_that_are_missing_or_wrong() {
    let list = List::national("ES", vec![Service::for_seals("A")]);
    for (part, by, reason) in [
        (
            "Identifier>6<",
            "Identifier>4<",
            "list version 4; expected 5 or 6",
        ),
        (
            "SequenceNumber>7<",
            "SequenceNumber>+7<",
            "no whole number: +7",
        ),
        ("<SchemeName></SchemeName>", "", "no SchemeName"),
        (
            "2026-06-01T00:00:00Z</List",
            "2026-06-01T00:00:00</List",
            "no time in UTC",
        ),
        (
            "Territory>ES<",
            "Territory>../x<",
            "no territory of two capital letters",
        ),
        (
            "<ServiceStatus>",
            "<ServiceStatus></ServiceStatus><ServiceStatus>",
            "a second ServiceStatus",
        ),
        (
            "TSLType/EUgeneric",
            "TSLType/CClist",
            "a list of another type",
        ),
        (" Critical=\"true\"", "", "an extension without Critical"),
        (
            "</SchemeInformation>",
            "</SchemeInformation><Other></Other>",
            "Other in the root element",
        ),
    ] {
        let content = list.content();
        assert!(content.contains(part), "{part}");
        refuses(&content.replacen(part, by, 1), reason);
    }
    for name in [
        "TSPInformation",
        "TSPServices",
        "ServiceInformation",
        "ServiceDigitalIdentity",
        "StatusStartingTime",
        "NextUpdate",
        "SchemeTerritory",
    ] {
        let content = list.content();
        let renamed = content
            .replace(&format!("<{name}>"), "<Other>")
            .replace(&format!("</{name}>"), "</Other>");
        assert_ne!(content, renamed, "{name}");
        refuses(&renamed, &format!("no {name} in "));
    }
}

/// Checks that Spain's list with this content, signed, is refused.
fn refuses(content: &str, reason: &str) {
    let (commission, spain) = &*SIGNERS;
    let of_lists = List::of_lists(&[("ES", &spain.certificate)]).sign(commission);
    let text = crate::for_tests::mint::sign(content, spain);
    let found = fault(import_texts(&[("eu.xml", of_lists), ("ES.xml", text)], NOW));
    println!("{found}");
    assert!(
        found.contains(reason) && found.contains("ES.xml: line "),
        "{reason}: {found}"
    );
}

//= CRT-13 accepted
#[test]
fn closed_lists() {
    let (commission, spain) = &*SIGNERS;
    let mut of_lists = List::of_lists(&[("ES", &spain.certificate)]);
    of_lists.next_update = None;
    let mut list = List::national("ES", vec![Service::for_seals("A")]);
    list.next_update = None;
    let texts = [
        ("eu.xml", of_lists.sign(commission)),
        ("ES.xml", list.sign(spain)),
    ];
    let imported = import_texts(&texts, "2040-01-01T00:00:00Z").unwrap();
    assert_eq!(names(&imported), ["A"]);
}
