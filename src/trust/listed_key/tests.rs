//! Keys in the forms that no chain may have (CRT-13).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use super::*;
use std::process::Command;

/// Writes a public key of a new key pair on a curve, once by the curve's name and once by its parameters, as DER.
fn named_and_explicit(curve: &str) -> [Vec<u8>; 2] {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    let openssl = |arguments: &str| {
        let mut run = Command::new("openssl");
        let run = run.args(arguments.split_whitespace()).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{arguments}: {said}");
    };
    openssl(&format!(
        "ecparam -name {curve} -genkey -noout -out {at}/key"
    ));
    ["named_curve", "explicit"].map(|form| {
        openssl(&format!(
            "ec -in {at}/key -pubout -param_enc {form} -outform DER -out {at}/public"
        ));
        std::fs::read(format!("{at}/public")).unwrap()
    })
}

/// The hash that a usual certificate of a key has.
fn usual(der: &[u8]) -> KeyHash {
    KeyHash::of_key(&PKey::public_key_from_der(der).unwrap()).unwrap()
}

/// Replaces the bytes of a sequence of DER, whose length stays.
fn replaced(der: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = der.windows(from.len()).position(|it| it == from).unwrap();
    let mut der = der.to_vec();
    der.splice(at..at + from.len(), to.iter().copied());
    der
}

//= CRT-13 accepted
#[test]
fn a_key_on_a_curve_has_the_hash_of_its_numbers() {
    for curve in ["prime256v1", "secp384r1", "secp521r1", "brainpoolP256r1"] {
        let [named, explicit] = named_and_explicit(curve);
        let expected = Some(usual(&named));
        assert_eq!(KeyHash::of_listed_key(&named), expected, "{curve}");
        assert_eq!(KeyHash::of_listed_key(&explicit), expected, "{curve}");
        // id-ecDH (1.3.132.1.12) has two bytes less, in itself and around it.
        let mut rest = &*explicit;
        let mut inner = Element::take(&mut rest).unwrap().content;
        let mut algorithm = Element::take(&mut inner).unwrap().content;
        Element::take(&mut algorithm).unwrap();
        let key = Element::take(&mut inner).unwrap().whole;
        let mut of_named = Element::take(&mut &*named).unwrap().content;
        let mut of_named = Element::take(&mut of_named).unwrap().content;
        Element::take(&mut of_named).unwrap();
        for parameters in [algorithm, of_named] {
            let algorithm = [b"\x06\x05\x2b\x81\x04\x01\x0c", parameters];
            let algorithm = element(tag::SEQUENCE, &algorithm).unwrap();
            let other = element(tag::SEQUENCE, &[&algorithm, key]).unwrap();
            let read = PKey::public_key_from_der(&other);
            assert!(read.is_err(), "{curve}: only our own reader takes it");
            assert_eq!(KeyHash::of_listed_key(&other), expected, "{curve}");
        }
        let point = Element::only(key).unwrap().content;
        let oid = dotted(Element::only(of_named).unwrap().content).unwrap();
        assert_eq!(KeyHash::of_point(&oid, &point[1..]), expected);
    }
}

//= CRT-13 accepted
#[test]
fn a_key_of_rsa_has_the_hash_of_its_numbers() {
    let rsa = Rsa::generate(2048).unwrap();
    let written = rsa.public_key_to_der().unwrap();
    let expected = Some(usual(&written));
    assert_eq!(KeyHash::of_listed_key(&written), expected);
    // rsaEncryption, id-RSAES-OAEP, RSASSA-PSS whose parameters are NULL, and an algorithm that nobody knows.
    for last in [7, 10, 99] {
        let from = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
        let mut to = *from;
        to[8] = last;
        let other = replaced(&written, from, &to);
        assert_eq!(KeyHash::of_listed_key(&other), expected, "{last}");
    }
    let (modulus, exponent) = (rsa.n().to_vec(), rsa.e().to_vec());
    assert_eq!(KeyHash::of_rsa_numbers(&modulus, &exponent), expected);
    let padded = [&[0, 0], &*modulus].concat();
    assert_eq!(KeyHash::of_rsa_numbers(&padded, &exponent), expected);
}

//= CRT-13 refused
#[test]
fn what_has_no_numbers_has_no_hash() {
    let [named, explicit] = named_and_explicit("prime256v1");
    // Another prime, so that it is no curve with a name; a point that is not on its curve; and bytes that are cut off.
    let prime = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1];
    let other = replaced(&explicit, &prime, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 7]);
    let mut beside = named.clone();
    *beside.last_mut().unwrap() ^= 1;
    for der in [
        &*other,
        &beside,
        &named[..40],
        b"",
        b"\x30\0",
        b"\x30\x02\x30\0",
    ] {
        assert_eq!(KeyHash::of_listed_key(der), None);
    }
    assert_eq!(KeyHash::of_rsa_numbers(&[], &[3]), None);
    assert_eq!(KeyHash::of_rsa_numbers(&[5], &[0]), None);
    assert_eq!(KeyHash::of_rsa_numbers(&[1; MAX_RSA_BYTES + 1], &[3]), None);
    for curve in ["", "1.2.840.10045.3.1.7.9", "P-256", "2.5.4.3", "1.2\0"] {
        assert_eq!(KeyHash::of_point(curve, &[4]), None, "{curve:?}");
    }
}
