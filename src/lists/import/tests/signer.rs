//! Signers of national lists whose certificates are not as the standard wants them: the list is taken, and a line says so (CRT-13).

use super::at;
use crate::{
    for_tests::mint::{List, Scheme, Service, Signer},
    import::{Imported, Request, import, lists_in},
    minting::Profile,
    second::Verifiers,
};
use std::{collections::BTreeSet, fs};

const USAGE: &str = "0.4.0.2231.3.0";

/// Imports a list of Spain, or of a country that certificates write otherwise, as of a day, and returns what is told of signers.
fn told(territory: &'static str, profile: &Profile<'_>, time: &str) -> (Imported, Vec<String>) {
    let commission = Signer::new("Commission", Scheme::Ecdsa);
    let signer = Signer::of_profile(profile);
    let folder = tempfile::tempdir().unwrap();
    let of_lists = folder.path().join("eu.xml");
    let text = List::of_lists(&[(territory, &signer.certificate)]).sign(&commission);
    fs::write(&of_lists, text).unwrap();
    let list = List::national(territory, vec![Service::for_seals("A")]);
    fs::write(folder.path().join("list.xml"), list.sign(&signer)).unwrap();
    let request = Request {
        list_of_lists: of_lists,
        pins: vec![commission.certificate],
        lists: lists_in(folder.path()).unwrap(),
        leave_out: BTreeSet::new(),
        at: at(time),
        verifiers: Verifiers::default(),
    };
    let mut lines = Vec::new();
    let imported = import(&request, &mut |line| lines.push(line)).unwrap();
    lines.retain(|line| line.contains("the certificate of the list's signer"));
    (imported, lines)
}

const NOW: &str = "2026-07-01T00:00:00Z";

//= CRT-13 accepted
#[test]
fn a_signer_as_the_standard_wants_it() {
    for (territory, country) in [("ES", "ES"), ("EL", "EL"), ("EL", "GR"), ("UK", "GB")] {
        let operator = format!("operator  OF {territory}");
        let profile = Profile {
            subject: &[("C", country), ("O", &operator), ("CN", "signer")],
            usage: USAGE,
            ..Profile::default()
        };
        let (imported, lines) = told(territory, &profile, NOW);
        assert!(lines.is_empty(), "{lines:?}");
        assert_eq!(imported.anchors.all().count(), 1);
    }
}

//= CRT-13 accepted
#[test]
fn a_signer_that_is_unusual_is_told() {
    let usual = Profile {
        subject: &[("C", "ES"), ("O", "Operator of ES")],
        usage: USAGE,
        ..Profile::default()
    };
    let country = [("C", "GR"), ("O", "Operator of ES")];
    let organisation = [("C", "ES"), ("O", "Someone")];
    let clause = " (ETSI TS 119 612, clause 5.7.1): the list is taken, since the list of lists names the certificate";
    for (profile, expected) in [
        (
            Profile {
                subject: &country,
                ..usual
            },
            "has another country than ES",
        ),
        (
            Profile {
                subject: &organisation,
                ..usual
            },
            "has an organisation that is no name of the list's operator",
        ),
        (
            Profile {
                is_ca: true,
                ..usual
            },
            "is that of a CA",
        ),
        (
            Profile { usage: "", ..usual },
            "lacks the extended key usage id-tsl-kp-tslSigning",
        ),
        (
            Profile {
                is_ca: true,
                usage: "1.3.6.1.5.5.7.3.4",
                ..usual
            },
            "is that of a CA, and lacks the extended key usage id-tsl-kp-tslSigning",
        ),
    ] {
        let (imported, lines) = told("ES", &profile, NOW);
        assert_eq!(imported.anchors.all().count(), 1);
        let line = format!("list.xml: the certificate of the list's signer {expected}{clause}");
        assert_eq!(lines, [line]);
    }
}

/// The list was issued on 2026-06-01.
//= CRT-13 accepted
#[test]
fn a_signer_that_has_ended_is_told() {
    let usual = Profile {
        subject: &[("C", "ES"), ("O", "Operator of ES")],
        usage: USAGE,
        ..Profile::default()
    };
    for (begin, end, expected) in [
        ("20260101000000Z", "20270101000000Z", None),
        (
            "20260101000000Z",
            "20260615000000Z",
            Some("ended on 2026-06-15T00:00:00Z: "),
        ),
        (
            "20250101000000Z",
            "20260101000000Z",
            Some(
                "ended on 2026-01-01T00:00:00Z, before the list was issued, on 2026-06-01T00:00:00Z: ",
            ),
        ),
        (
            "20260602000000Z",
            "20270101000000Z",
            Some(
                "begins on 2026-06-02T00:00:00Z, and the list was issued on 2026-06-01T00:00:00Z: ",
            ),
        ),
    ] {
        let profile = Profile {
            begin,
            end,
            ..usual
        };
        let (imported, lines) = told("ES", &profile, NOW);
        assert_eq!(imported.anchors.all().count(), 1);
        let Some(expected) = expected else {
            assert!(lines.is_empty(), "{lines:?}");
            continue;
        };
        let begin = format!("list.xml: the certificate of the list's signer {expected}");
        assert!(
            lines.len() == 1 && lines[0].starts_with(&begin),
            "{lines:?}"
        );
    }
}

/// A signer's certificate may have the identity number of a person: none of it is kept.
//= CRT-13 accepted
#[test]
fn a_signer_is_named_without_what_is_personal() {
    let profile = Profile {
        subject: &[
            ("C", "ES"),
            ("O", "Operator of ES"),
            ("serialNumber", "PNOES-12345678Z"),
            ("SN", "Surname"),
            ("GN", "Given"),
            ("emailAddress", "signer@example.org"),
            ("CN", "List signer"),
        ],
        usage: USAGE,
        ..Profile::default()
    };
    let (imported, _) = told("ES", &profile, NOW);
    let bundle = crate::bundle::describe_import(&imported, &[], at(NOW));
    let list = &bundle.lists[0];
    assert_eq!(list.signer, "C=ES, O=Operator of ES, CN=List signer");
    let signer = &imported.lists["ES"].source.signer;
    assert!(signer.subject().contains("12345678Z"));
    assert_eq!(
        list.signer_sha256,
        portvakt_base::hex::encode(&signer.sha256())
    );
    let debug = format!("{signer:?}");
    assert!(!debug.contains("12345678Z"), "{debug}");
}
