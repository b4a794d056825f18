//! Keys that are written in several forms (CRT-13).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{CertificateFault, CertificateTypes, GrantedType, grant::Grants};
use openssl::{
    asn1::Asn1Time,
    hash::MessageDigest,
    pkey::Private,
    x509::{X509, X509Builder, X509NameBuilder},
};
use std::process::Command;

/// Runs `openssl`, as those do who write a key in another form.
fn openssl(arguments: &str) {
    let run = Command::new("openssl")
        .args(arguments.split_whitespace())
        .output();
    let run = run.unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{arguments}: {said}");
}

/// The key of a PEM file of a public key.
fn key(path: &str) -> PKey<Public> {
    PKey::public_key_from_pem(&std::fs::read(path).unwrap()).unwrap()
}

//= CRT-13 accepted
#[test]
fn one_key_has_one_hash_in_each_form_of_its_point() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    for curve in ["prime256v1", "secp384r1", "secp521r1", "brainpoolP256r1"] {
        openssl(&format!(
            "ecparam -name {curve} -genkey -noout -out {at}/key"
        ));
        let hashes = ["compressed", "uncompressed", "hybrid"].map(|form| {
            let made = format!("{at}/{form}");
            openssl(&format!(
                "ec -in {at}/key -pubout -conv_form {form} -out {made}"
            ));
            KeyHash::of_key(&key(&made)).unwrap()
        });
        assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{curve}");
        let usual = key(&format!("{at}/uncompressed"));
        let written = usual.public_key_to_der().unwrap();
        assert_eq!(canonical(&usual).unwrap(), written);
        assert_eq!(
            is_canonical(&written),
            curve != "brainpoolP256r1",
            "{curve}"
        );
        let compressed = key(&format!("{at}/compressed")).public_key_to_der();
        assert_ne!(compressed.unwrap(), written, "OpenSSL keeps the form");
    }
}

//= CRT-13 accepted
#[test]
fn one_key_of_rsa_has_one_hash() {
    let rsa = Rsa::generate(2048).unwrap();
    let usual = PKey::public_key_from_der(&rsa.public_key_to_der().unwrap()).unwrap();
    let written = usual.public_key_to_der().unwrap();
    assert!(is_canonical(&written));
    assert_eq!(canonical(&usual).unwrap(), written);
    // The same key with the algorithm RSASSA-PSS, which has no parameters here: the two bytes of NULL go.
    let mut pss = written.clone();
    pss.splice(17..19, []);
    pss[3] -= 2;
    pss[5] -= 2;
    *pss.get_mut(16).unwrap() = 0x0a;
    let pss = PKey::public_key_from_der(&pss).unwrap();
    assert_eq!(pss.id(), Id::RSA_PSS);
    assert_ne!(pss.public_key_to_der().unwrap(), written);
    assert_eq!(
        KeyHash::of_key(&pss).unwrap(),
        KeyHash::of_key(&usual).unwrap()
    );
    let other = Rsa::generate(2048).unwrap().public_key_to_der().unwrap();
    let other = PKey::public_key_from_der(&other).unwrap();
    assert_ne!(
        KeyHash::of_key(&other).unwrap(),
        KeyHash::of_key(&usual).unwrap()
    );
}

//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_curve_without_a_name_has_no_hash() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    openssl(&format!(
        "ecparam -name prime256v1 -genkey -noout -out {at}/key"
    ));
    for (form, has) in [("named_curve", true), ("explicit", false)] {
        openssl(&format!(
            "ec -in {at}/key -pubout -param_enc {form} -out {at}/{form}"
        ));
        assert_eq!(
            KeyHash::of_key(&key(&format!("{at}/{form}"))).is_ok(),
            has,
            "{form}"
        );
    }
    for (algorithm, has) in [("ed25519", true), ("ed448", true), ("x25519", false)] {
        openssl(&format!("genpkey -algorithm {algorithm} -out {at}/key"));
        openssl(&format!("pkey -in {at}/key -pubout -out {at}/public"));
        assert_eq!(KeyHash::of_key(&key(&format!("{at}/public"))).is_ok(), has);
    }
}

/// A certificate of a key, signed by another key.
fn certificate(name: &str, key: &PKeyRef<Public>, issuer: &str, signer: &PKey<Private>) -> X509 {
    let named = |name: &str| {
        let mut builder = X509NameBuilder::new().unwrap();
        builder.append_entry_by_text("CN", name).unwrap();
        builder.build()
    };
    let mut builder = X509Builder::new().unwrap();
    builder.set_subject_name(&named(name)).unwrap();
    builder.set_issuer_name(&named(issuer)).unwrap();
    builder.set_pubkey(key).unwrap();
    let [from, to] = [0, 365].map(|days| Asn1Time::days_from_now(days).unwrap());
    builder.set_not_before(&from).unwrap();
    builder.set_not_after(&to).unwrap();
    builder.sign(signer, MessageDigest::sha256()).unwrap();
    builder.build()
}

/// A CA that is withdrawn can give its key a second certificate, in which the key is written in another form.
//= CRT-3 accepted
//= CRT-3 refused
#[test]
fn a_second_certificate_of_a_withdrawn_key_vouches_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    openssl(&format!(
        "ecparam -name prime256v1 -genkey -noout -out {at}/key"
    ));
    let private = std::fs::read(format!("{at}/key")).unwrap();
    let private = PKey::private_key_from_pem(&private).unwrap();
    let [compressed, usual, hybrid, explicit] = [
        "-conv_form compressed",
        "-conv_form uncompressed",
        "-conv_form hybrid",
        "-param_enc explicit",
    ]
    .map(|form| {
        openssl(&format!("ec -in {at}/key -pubout {form} -out {at}/public"));
        certificate("CA", &key(&format!("{at}/public")), "Root", &private)
    });
    let root = certificate("Root", &usual.public_key().unwrap(), "Root", &private);
    let other = Rsa::generate(2048).unwrap();
    let other = PKey::from_rsa(other).unwrap();
    let other = PKey::public_key_from_der(&other.public_key_to_der().unwrap()).unwrap();
    let leaf = certificate("TPP", &other, "CA", &private);
    let above = certificate("Above", &other, "Above", &private);
    let mut grants = Grants::default();
    grants.add(&above, GrantedType::Eseal, []).unwrap();
    grants.name(KeyHash::of(&usual).unwrap());
    assert_eq!(KeyHash::of(&root).unwrap(), KeyHash::of(&usual).unwrap());
    let judge = |ca: &X509| {
        let members = [leaf.clone(), ca.clone(), above.clone()];
        grants.judge(&members, CertificateTypes::default())
    };
    for second in [&usual, &compressed, &hybrid] {
        assert_eq!(judge(second), Err(CertificateFault::Ungranted));
    }
    assert!(matches!(
        judge(&explicit),
        Err(CertificateFault::Untrusted(_))
    ));
}
