//! CAs whose keys a list writes otherwise than a usual certificate does (CRT-13): each is named by the hash that a usual certificate of the key
//! has.

use super::judge;
use crate::{Certificate, for_tests::mint::Service};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use openssl::{pkey::PKey, rsa::Rsa, x509::X509};
use portvakt_trust::KeyHash;
use std::{fs, process::Command};

/// A CA with a usual certificate, and the elements in which a list may have its key otherwise.
struct Ca {
    usual: KeyHash,
    elements: Vec<(&'static str, String)>,
}

/// Runs `openssl`, which writes keys in forms that no program of ours writes.
fn openssl(arguments: &str) {
    let mut run = Command::new("openssl");
    let run = run.args(arguments.split_whitespace()).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{arguments}: {said}");
}

fn element(der: &[u8]) -> String {
    let base64 = STANDARD.encode(der);
    format!("<X509Certificate>{base64}</X509Certificate>")
}

fn key_value(inner: &str) -> String {
    format!("<ds:KeyValue xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\">{inner}</ds:KeyValue>")
}

/// A certificate of a key pair in PEM, as DER.
fn certificate(folder: &str, key: &str) -> Vec<u8> {
    let out = format!("{folder}/{key}.der");
    openssl(&format!(
        "req -x509 -new -key {folder}/{key} -subj /CN=CA -days 30 -outform DER -out {out}"
    ));
    fs::read(out).unwrap()
}

fn rsa() -> Ca {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    let rsa = Rsa::generate(2048).unwrap();
    let key = PKey::from_rsa(rsa.clone()).unwrap();
    fs::write(format!("{at}/key"), key.private_key_to_pem_pkcs8().unwrap()).unwrap();
    let usual = certificate(at, "key");
    // rsaEncryption becomes id-RSAES-OAEP and RSASSA-PSS, whose parameters are then wrong too.
    let encryption = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
    let place = usual.windows(9).position(|it| it == encryption).unwrap() + 8;
    let other = |last| {
        let mut der = usual.clone();
        der[place] = last;
        element(&der)
    };
    let [modulus, exponent] = [rsa.n(), rsa.e()].map(|it| STANDARD.encode(it.to_vec()));
    let value = format!(
        "<ds:RSAKeyValue><ds:Modulus>{modulus}</ds:Modulus><ds:Exponent>{exponent}</ds:Exponent></ds:RSAKeyValue>"
    );
    Ca {
        usual: KeyHash::of(&X509::from_der(&usual).unwrap()).unwrap(),
        elements: vec![
            ("id-RSAES-OAEP", other(7)),
            ("RSASSA-PSS", other(10)),
            ("trailing bytes", element(&[&*usual, b"\0\0"].concat())),
            ("ds:KeyValue of RSA", key_value(&value)),
        ],
    }
}

fn curve() -> Ca {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    openssl(&format!(
        "ecparam -name prime256v1 -genkey -noout -out {at}/named"
    ));
    openssl(&format!(
        "ec -in {at}/named -param_enc explicit -out {at}/explicit"
    ));
    let [usual, explicit] = ["named", "explicit"].map(|key| certificate(at, key));
    let read = X509::from_der(&usual).unwrap();
    assert!(
        Certificate::from_der(explicit.clone())
            .unwrap()
            .key()
            .is_err()
    );
    // The point is the end of the key.
    let key = read.public_key().unwrap().public_key_to_der().unwrap();
    let point = STANDARD.encode(&key[key.len() - 65..]);
    let value = format!(
        "<k:ECKeyValue xmlns:k=\"http://www.w3.org/2009/xmldsig11#\"><k:NamedCurve URI=\"urn:oid:1.2.840.10045.3.1.7\"/><k:PublicKey>{point}</k:PublicKey></k:ECKeyValue>"
    );
    Ca {
        usual: KeyHash::of(&read).unwrap(),
        elements: vec![
            ("explicit parameters", element(&explicit)),
            ("ds:KeyValue of a point", key_value(&value)),
        ],
    }
}

//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn each_form_of_a_key_is_named_by_its_numbers() {
    for Ca { usual, elements } in [rsa(), curve()] {
        for (what, other) in elements {
            for status in ["withdrawn", "granted"] {
                let service = Service {
                    states: vec![(status, "2026-01-01T00:00:00Z")],
                    ..Service::for_seals("A")
                };
                let own = element(service.certificate.as_ref().unwrap().der());
                let (named, told) = judge(&service, &own, &other);
                assert_eq!(named, [usual], "{what}, {status}: {told}");
                // Without an anchor something is missing of a granted service.
                assert_eq!(told.is_empty(), status == "withdrawn", "{what}: {told}");
            }
        }
    }
}

/// Where a granted service has a usual certificate of the key too, that is its anchor, and nothing is named.
//= CRT-13 accepted
#[test]
fn an_anchor_beside_another_form_of_its_key() {
    let Ca { usual, elements } = curve();
    let service = Service::for_seals("A");
    let own = element(service.certificate.as_ref().unwrap().der());
    let (_, value) = &elements[1];
    let beside = format!("{own}</DigitalId><DigitalId>{value}");
    assert_eq!(judge(&service, &own, &beside).0, [usual], "another key");
    let of_service = service.certificate.as_ref().unwrap();
    let trailing = element(&[of_service.der(), b"\0"].concat());
    let beside = format!("{own}</DigitalId><DigitalId>{trailing}");
    let (named, told) = judge(&service, &own, &beside);
    assert!(named.is_empty(), "{named:?}");
    assert_eq!(told, "1 of its certificates cannot be read");
}

/// What has no numbers that can be compared is told.
//= CRT-13 refused
#[test]
fn what_cannot_be_compared_is_told() {
    let service = Service {
        states: vec![("withdrawn", "2026-01-01T00:00:00Z")],
        ..Service::for_seals("A")
    };
    let own = element(service.certificate.as_ref().unwrap().der());
    for other in [
        key_value(""),
        key_value("<ds:DSAKeyValue/>"),
        // A point on a curve that is written by its parameters, a point in the form of RFC 4050, and a key in DER.
        key_value(
            "<k:ECKeyValue xmlns:k=\"http://www.w3.org/2009/xmldsig11#\"><k:ECParameters/><k:PublicKey>BAAA</k:PublicKey></k:ECKeyValue>",
        ),
        key_value(
            "<e:ECDSAKeyValue xmlns:e=\"http://www.w3.org/2001/04/xmldsig-more#\"><e:DomainParameters><e:NamedCurve URN=\"urn:oid:1.2.840.10045.3.1.7\"/></e:DomainParameters></e:ECDSAKeyValue>",
        ),
        key_value(
            "<k:DEREncodedKeyValue xmlns:k=\"http://www.w3.org/2009/xmldsig11#\">MAAA</k:DEREncodedKeyValue>",
        ),
        key_value(
            "<ds:RSAKeyValue><ds:Modulus>AAAA</ds:Modulus><ds:Exponent>AQAB</ds:Exponent></ds:RSAKeyValue>",
        ),
        key_value(
            "<ds:RSAKeyValue><ds:Modulus>%</ds:Modulus><ds:Exponent>AQAB</ds:Exponent></ds:RSAKeyValue>",
        ),
    ] {
        let (named, told) = judge(&service, &own, &other);
        assert!(named.is_empty(), "{other}");
        assert!(
            told.starts_with(
                "withdrawn, and 1 of its certificates and keys cannot be read or compared"
            ),
            "{told}"
        );
    }
}
