//! CAs that lists name and that are not granted (CRT-13).

// Keys in other forms than a usual certificate's.
mod forms;

use super::import_folder;
use crate::for_tests::mint::{List, Scheme, Service, Signer, sign};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use portvakt_trust::KeyHash;
use std::fs;

/// Imports Spain's list with this service and a granted one, in whose text something is replaced: the keys that are named, and the reasons why
/// something is missing.
fn judge(service: &Service, from: &str, to: &str) -> (Vec<KeyHash>, String) {
    let [commission, spain] = ["Commission", "Spain"].map(|name| Signer::new(name, Scheme::Ecdsa));
    let folder = tempfile::tempdir().unwrap();
    let of_lists = folder.path().join("eu.xml");
    let text = List::of_lists(&[("ES", &spain.certificate)]).sign(&commission);
    fs::write(&of_lists, text).unwrap();
    let list = List::national("ES", vec![service.clone(), Service::for_seals("B")]);
    let content = list.content();
    assert!(content.contains(from));
    let text = sign(&content.replace(from, to), &spain);
    fs::write(folder.path().join("ES.xml"), text).unwrap();
    let pins = [commission.certificate.clone()];
    let imported = import_folder(&of_lists, &pins, folder.path(), "2026-07-01T00:00:00Z");
    let anchors = imported.unwrap().anchors;
    let named = anchors.named().map(|(_, key, _)| key).collect();
    let told = anchors.left_out().iter().map(|it| it.reason.clone());
    (named, told.collect())
}

/// A CA that is not granted is named by its key, also where the rest of its certificate cannot be read or the grant begins later; what
/// cannot be named is told.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn cas_that_are_not_granted_are_named_or_told() {
    let service = |states: &[(&'static str, &'static str)]| Service {
        states: states.to_vec(),
        ..Service::for_seals("A")
    };
    let withdrawn = [("withdrawn", "2026-01-01T00:00:00Z")];
    let later = service(&[("granted", "2026-07-02T00:00:00Z")]);
    let readable = service(&withdrawn);
    let certificate = readable.certificate.clone().unwrap();
    let base64 = STANDARD.encode(certificate.der());
    // The last byte of the subject's only name is the tag of its text, and no tag at all.
    let mut damaged = certificate.der().to_vec();
    let at = damaged
        .windows(3)
        .rposition(|it| it == [0x55, 4, 3])
        .unwrap();
    damaged[at + 3] = 0x1f;
    let damaged = STANDARD.encode(damaged);
    let none = STANDARD.encode("no certificate");
    let key = certificate.key().unwrap();
    let told = |expected: &str, (named, told): (Vec<KeyHash>, String)| {
        assert!(named.is_empty() && told.starts_with(expected), "{told}");
    };
    assert_eq!(
        judge(&readable, &base64, &base64),
        (vec![key], String::new())
    );
    assert_eq!(
        judge(&readable, &base64, &damaged),
        (vec![key], String::new())
    );
    let of_later = later.certificate.as_ref().unwrap().key().unwrap();
    assert_eq!(judge(&later, "A", "A"), (vec![of_later], String::new()));
    let one = "withdrawn, and 1 of its certificates and keys cannot be read or compared, so that a CA with that key is not named";
    told(one, judge(&readable, &base64, &none));
    let element = format!("<X509Certificate>{base64}</X509Certificate>");
    let only = "withdrawn, and without a certificate or a key, so that its CA is not named";
    told(only, judge(&readable, &element, "<X509SKI>AAAA</X509SKI>"));
    let granted = service(&[("granted", "2020-01-01T00:00:00Z")]);
    let own = STANDARD.encode(granted.certificate.as_ref().unwrap().der());
    told(
        "1 of its certificates cannot be read",
        judge(&granted, &own, &none),
    );
}
