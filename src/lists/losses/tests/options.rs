//! What is said of a gateway on the command line: the types that may sign, and the files of certificates that it has seen.

use super::{GatewayConfig, NOW, Place, ca, leaf, line, qwac, service, set_mode, write};
use crate::losses::SeenCertificates;
use portvakt_trust::CertificateTypes;
use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

/// The forecast is for the types that may sign by the gateway's configuration.
//= CRT-3 accepted
//= CRT-3 refused
#[test]
fn the_types_that_may_sign() {
    let (seals, web) = (ca("Seals"), ca("Web sites"));
    let place = Place::new();
    let services = vec![
        service("For seals", &seals, &["ForeSeals"]),
        service("For web sites", &web, &["ForWebSiteAuthentication"]),
    ];
    write(&place.bundles, services, 0, false);
    let other = vec![service("Another", &ca("Another"), &["ForeSeals"])];
    write(&place.bundles, other, 1, true);
    let lines = [
        line("PSDNO-FSA-1", "2026-06-30", &leaf(&seals), &[]),
        line("PSDNO-FSA-2", "2026-06-30", &qwac(&web), &[]),
    ];
    let seen = place.seen("seen", &lines.concat());
    let (lost, refused) = (
        "\n  PSDNO-FSA-{}: certificate ",
        "refused already, whatever the bundle has, ",
    );
    for (eseal, of_seal, of_web) in [
        (None, true, true),
        (Some(true), true, false),
        (Some(false), false, true),
    ] {
        let types = CertificateTypes {
            eseal: eseal.unwrap_or(true),
            web: !eseal.unwrap_or(false),
        };
        let config = GatewayConfig {
            types,
            ..GatewayConfig::default()
        };
        let text = place.losses_by(std::slice::from_ref(&seen), config);
        let (losing, rest) = text.split_once("\ncertificates judged: 2; ").unwrap();
        for (number, is_lost) in [("1", of_seal), ("2", of_web)] {
            let own = lost.replace("{}", number);
            assert_eq!(losing.contains(&own), is_lost, "{types:?}: {text}");
            assert_eq!(rest.contains(&own), !is_lost, "{types:?}: {text}");
        }
        assert_eq!(rest.contains(refused), eseal.is_some(), "{text}");
        let why = match eseal {
            Some(true) => ": its QcType is not eseal",
            Some(false) => ": its QcType is not web",
            None => "2 would lose trust",
        };
        assert!(rest.contains(why), "{text}");
    }
}

/// Whose file is believed, and how old it is; one that others can write is not.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn the_files_that_are_believed() {
    let one = ca("One");
    let place = Place::new();
    let services = vec![service("One", &one, &["ForeSeals"])];
    write(&place.bundles, services, 0, false);
    let lines = [
        line("PSDNO-FSA-1", "2026-06-30", &leaf(&one), &[]),
        line("PSDNO-FSA-2", "2026-05-02", &leaf(&one), &[]),
        "{}\n".to_owned(),
    ];
    let seen = place.seen("seen", &lines.concat());
    let none = place.seen("none", "");
    let owner = fs::metadata(&seen).unwrap().uid();
    let text = place.losses(&[seen.clone(), none.clone()], &[]);
    let whose = |path: &Path| {
        let path = path.display();
        format!("believed: {path} of the user with uid {owner}: ")
    };
    for expected in [
        format!("{}2 certificates, the newest of 2026-06-30\n", whose(&seen)),
        format!("{}0 certificates\n", whose(&none)),
    ] {
        assert!(text.contains(&expected), "{text}");
    }
    for (mode, is_believed) in [(0o600, true), (0o440, true), (0o620, false), (0o602, false)] {
        set_mode(&seen, mode);
        match SeenCertificates::read(std::slice::from_ref(&seen), NOW) {
            Ok(_) => assert!(is_believed, "{mode:o}"),
            Err(fault) => {
                let fault = fault.to_string();
                let expected = format!("seen: its mode {mode:04o} lets others than its owner say");
                assert!(!is_believed && fault.contains(&expected), "{fault}");
            }
        }
    }
}
