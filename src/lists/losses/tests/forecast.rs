//! The forecast is by the rules of the gateway: the nearest CA that a list names decides, and what it refuses today is no loss.

use super::{NOW, Place, ca, leaf, line, service, write};
use crate::{Certificate, bundle::GatewayConfig, for_tests::mint::Service};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use openssl::{rsa::Rsa, x509::X509};
use portvakt_development_pki::{Ca, CaSpec, Key, LeafSpec};
use portvakt_trust::{Anchors, Trust};

/// A CA that a list names and that is granted nothing vouches for nothing, and its root does not vouch for what it issued.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_ca_below_a_granted_root_is_withdrawn() {
    let root = ca("Root");
    let below = CaSpec {
        common_name: "Below".into(),
        ..CaSpec::default()
    };
    let below = root.issue_ca(&below).unwrap();
    let seen = line("PSDNO-FSA-1", "2026-06-30", &leaf(&below), &[below.der()]);
    let of_root = || service("Of the root", &root, &["ForeSeals"]);
    let granted = || service("Below", &below, &["ForeSeals"]);
    let withdrawn = || Service {
        states: vec![
            ("withdrawn", "2026-06-01T00:00:00Z"),
            ("granted", "2020-01-01T00:00:00Z"),
        ],
        ..granted()
    };
    let signatures = || service("Signatures", &below, &["ForeSignatures"]);
    let unknown = || {
        Service {
        extensions: "<Extension Critical=\"true\"><New xmlns=\"https://lists.example/new\"></New></Extension>".to_owned(),
        ..granted()
    }
    };
    // Its state alone counts: not whether it was granted before, nor where it stands in the list.
    for (before, after, named) in [
        (
            vec![of_root(), granted()],
            vec![of_root(), withdrawn()],
            "Below, withdrawn since 2026-06-01T00:00:00Z: ",
        ),
        (
            vec![of_root()],
            vec![withdrawn(), of_root()],
            "Below, withdrawn since ",
        ),
        (
            vec![of_root()],
            vec![of_root(), signatures()],
            "Signatures, granted since ",
        ),
        (
            vec![of_root()],
            vec![of_root(), unknown()],
            "Below, granted since ",
        ),
    ] {
        let text = forecast(before, after, &seen);
        assert!(
            text.contains("\ncertificates judged: 1; 1 would lose trust"),
            "{text}"
        );
        assert!(text.contains(named), "{text}");
        assert!(
            text.contains("grants it no service for seals or web sites"),
            "{text}"
        );
    }
    // Another service of the same key is granted, or the withdrawal is undone.
    for (before, after) in [
        (vec![of_root()], vec![of_root(), withdrawn(), granted()]),
        (vec![of_root(), withdrawn()], vec![of_root(), granted()]),
        (vec![of_root(), withdrawn()], vec![of_root()]),
    ] {
        let text = forecast(before, after, &seen);
        let expected = "\n  none\ncertificates judged: 1; 0 would lose trust, 1 are trusted";
        assert!(text.contains(expected), "{text}");
    }
}

/// The lines of a certificate's TPP, by a bundle and another one that is held.
fn forecast(before: Vec<Service>, after: Vec<Service>, line: &str) -> String {
    let place = Place::new();
    write(&place.bundles, before, 0, false);
    write(&place.bundles, after, 1, true);
    place.losses(&[place.seen("seen", line)], &[])
}

/// A CA may be listed beside its root: it decides on what it issued, and is named.
//= CRT-3 accepted
//= CRT-3 refused
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn the_nearest_ca_that_is_listed_decides() {
    let root = ca("Root");
    let below = CaSpec {
        common_name: "Below".into(),
        ..CaSpec::default()
    };
    let below = root.issue_ca(&below).unwrap();
    let seen = line("PSDNO-FSA-1", "2026-06-30", &leaf(&below), &[below.der()]);
    let of_root = || service("Of the root", &root, &["ForeSeals"]);
    let seals = || service("Seals", &below, &["ForeSeals"]);
    let web = || service("Web sites", &below, &["ForWebSiteAuthentication"]);
    let other = service("Another", &ca("Another"), &["ForeSeals"]);
    // The root vouches still, but the CA below it is newly listed for the other type.
    let text = forecast(vec![of_root()], vec![of_root(), web()], &seen);
    let (losing, _) = text
        .split_once("\ncertificates judged: 1; 1 would lose trust")
        .unwrap();
    let expected = "for websites: Web sites: the trusted lists grant its issuer no service for seals (QcType eseal)";
    assert!(losing.ends_with(expected), "{text}");
    let (_, named) = losing.split_once(", last seen 2026-06-30: NO ").unwrap();
    assert!(named.contains("CN=Below"), "{text}");
    assert!(!named.contains("Of the root"), "{text}");
    // Both go: the nearest vouched.
    let text = forecast(vec![of_root(), seals()], vec![other], &seen);
    assert!(text.contains(", for seals: Seals\ncertificates"), "{text}");
    // The root goes, or the CA below it does: the other vouches. What a list refused may pass, which is no loss.
    for (before, after) in [
        (vec![of_root()], vec![seals()]),
        (vec![of_root(), seals()], vec![of_root()]),
        (vec![of_root(), web()], vec![of_root()]),
    ] {
        let text = forecast(before, after, &seen);
        let expected = "\n  none\ncertificates judged: 1; 0 would lose trust, 1 are trusted";
        assert!(text.contains(expected), "{text}");
    }
    // Neither vouches today.
    let text = forecast(vec![of_root(), web()], vec![of_root(), web()], &seen);
    let expected = "\n  none\ncertificates judged: 1; 0 would lose trust, 0 are trusted, 1 are";
    assert!(text.contains(expected), "{text}");
}

/// The gateway refuses a request below an anchor that has ended.
//= CRT-2 refused
#[test]
fn an_anchor_that_has_ended_in_the_new_bundle() {
    let key = Rsa::generate(2048).unwrap().private_key_to_pem().unwrap();
    let key = String::from_utf8(key).unwrap();
    let until = |not_after| {
        let spec = CaSpec {
            key: Key::RsaPem(key.clone()),
            not_after,
            ..CaSpec::default()
        };
        Ca::root(&spec).unwrap()
    };
    let valid = until(CaSpec::default().not_after);
    let ended = until(CaSpec::default().not_before + time::Duration::days(1));
    let of = |ca: &Ca| vec![service("Of a CA", ca, &["ForeSeals"])];
    let seen = line("PSDNO-FSA-1", "2026-06-30", &leaf(&valid), &[]);
    let text = forecast(of(&valid), of(&ended), &seen);
    let expected = "for seals: Of a CA: a certificate of its chain has ended or has not begun\ncertificates judged: 1; 1 would lose trust";
    assert!(text.contains(expected), "{text}");
    let text = forecast(of(&ended), of(&valid), &seen);
    assert!(text.contains("0 would lose trust, 1 are trusted"), "{text}");
}

/// What the gateway refuses by what a certificate says of itself, whatever the bundle has, is refused today.
//= CRT-3 accepted
//= CRT-3 refused
#[test]
fn what_is_refused_already_is_no_loss() {
    let ca = ca("Goes");
    let of_ca = vec![service("Goes", &ca, &["ForeSeals"])];
    let other = vec![service("Another", &super::ca("Another"), &["ForeSeals"])];
    let anchor = X509::from_der(ca.der()).unwrap();
    let gateway = Trust::new(Anchors::of_operator(vec![anchor], Vec::new()).unwrap());
    let spec = LeafSpec::default;
    let specs = [
        (spec(), None),
        (
            LeafSpec {
                key_usages: Vec::new(),
                ..spec()
            },
            Some("its key usage has neither digitalSignature nor nonRepudiation"),
        ),
        (
            LeafSpec {
                qc_compliance: false,
                ..spec()
            },
            Some("it does not say QcCompliance"),
        ),
        (
            LeafSpec {
                qc_type: None,
                ..spec()
            },
            Some("its QcType is neither eseal nor web"),
        ),
        (
            LeafSpec {
                roles: None,
                ..spec()
            },
            Some("it has no PSD2 statement"),
        ),
        (
            LeafSpec {
                organization_identifier: None,
                ..spec()
            },
            Some("its subject has no organizationIdentifier"),
        ),
    ];
    for (spec, refused) in specs {
        let der = ca.issue(&spec).unwrap().der;
        let presented = STANDARD.encode(&der);
        let judged = gateway.identify(presented.as_bytes(), None, NOW);
        assert_eq!(judged.is_err(), refused.is_some(), "{refused:?}");
        let certificate = Certificate::from_der(der).unwrap();
        let seen = line("PSDNO-FSA-1", "2026-06-30", &certificate, &[]);
        let text = forecast(of_ca.clone(), other.clone(), &seen);
        let (losing, rest) = text.split_once("\ncertificates judged: 1; ").unwrap();
        let own = "\n  PSDNO-FSA-1: certificate ";
        assert_eq!(losing.contains(own), refused.is_none(), "{text}");
        if let Some(why) = refused {
            assert_eq!(judged.unwrap_err().to_string(), why);
            let (_, named) = rest.split_once("\nrefused already, ").unwrap();
            assert!(named.contains(own) && named.ends_with(why), "{text}");
        }
    }
}

/// An anchor of the operator's own makes the chain, and the new bundle names the CA below it.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_ca_below_an_anchor_of_the_operators_own_is_withdrawn() {
    let root = ca("The bank's own");
    let below = CaSpec {
        common_name: "Below".into(),
        ..CaSpec::default()
    };
    let below = root.issue_ca(&below).unwrap();
    let seen = line("PSDNO-FSA-1", "2026-06-30", &leaf(&below), &[below.der()]);
    let other = || service("Another", &ca("Another"), &["ForeSeals"]);
    let withdrawn = Service {
        states: vec![("withdrawn", "2026-06-01T00:00:00Z")],
        ..service("Below", &below, &["ForeSeals"])
    };
    let place = Place::new();
    write(&place.bundles, vec![other()], 0, false);
    write(&place.bundles, vec![other(), withdrawn], 1, true);
    let seen = place.seen("seen", &seen);
    let [of_root, of_below] =
        [&root, &below].map(|ca| [Certificate::from_der(ca.der().to_vec()).unwrap()]);
    let by = |own| {
        let config = GatewayConfig {
            own,
            ..GatewayConfig::default()
        };
        place.losses_by(std::slice::from_ref(&seen), config)
    };
    let text = by(&of_root);
    assert!(text.contains("judged: 1; 1 would lose trust"), "{text}");
    assert!(
        text.contains("Below, withdrawn since 2026-06-01T00:00:00Z: "),
        "{text}"
    );
    // An anchor of the operator's own that is the CA itself comes before the lists.
    let text = by(&of_below);
    assert!(
        text.contains("judged: 1; 0 would lose trust, 1 are trusted"),
        "{text}"
    );
    // Without the anchor at hand the certificate is named all the same.
    let text = by(&[]);
    let (_, named) = text
        .split_once("\ntrusted by neither bundle, and refused by this one")
        .unwrap();
    assert!(named.contains("PSDNO-FSA-1"), "{text}");
}
