//! The development PKI's output, read by independent programs: x509-parser and OpenSSL.

use crate::mint;
use openssl::stack::Stack;
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::{X509, X509StoreContext};
use portvakt_base::hex;
use portvakt_development_pki::{
    Ca, CaSpec, Extension, Key, LeafSpec, QC_STATEMENTS, QcType, Role, der_oid, der_sequence,
    der_utf8,
};
use rcgen::date_time_ymd;
use rsa::pkcs8::{EncodePrivateKey, LineEnding};
use rsa::traits::PublicKeyParts;
use std::os::unix::fs::PermissionsExt;
use x509_parser::prelude::{FromDer, X509Certificate};

fn chain_holds(root: &Ca, issuing: &Ca, leaf: &[u8]) -> bool {
    let mut store = X509StoreBuilder::new().unwrap();
    store.add_cert(X509::from_der(root.der()).unwrap()).unwrap();
    let store = store.build();
    let mut pool = Stack::new().unwrap();
    pool.push(X509::from_der(issuing.der()).unwrap()).unwrap();
    let leaf = X509::from_der(leaf).unwrap();
    let mut context = X509StoreContext::new().unwrap();
    context
        .init(&store, &leaf, &pool, |context| context.verify_cert())
        .unwrap()
}

fn authorities() -> (Ca, Ca) {
    let root = Ca::root(&CaSpec::development_root()).unwrap();
    let issuing = root.issue_ca(&CaSpec::default()).unwrap();
    (root, issuing)
}

fn extension(der: &[u8], oid: &str) -> Option<(bool, Vec<u8>)> {
    let (_, certificate) = X509Certificate::from_der(der).unwrap();
    let found = certificate
        .extensions()
        .iter()
        .find(|extension| extension.oid.to_id_string() == oid)?;
    Some((found.critical, found.value.to_vec()))
}

#[test]
fn a_default_leaf_chains_to_its_root_and_says_what_it_shall() {
    let (root, issuing) = authorities();
    let leaf = issuing.issue(&LeafSpec::default()).unwrap();
    assert!(chain_holds(&root, &issuing, &leaf.der));
    let (rest, certificate) = X509Certificate::from_der(&leaf.der).unwrap();
    assert!(rest.is_empty());
    let issuer = certificate.issuer();
    assert_eq!(
        issuer.iter_organization().next().unwrap().as_str().unwrap(),
        "Portvakt Prøve-CA, utvikling"
    );
    assert!(!certificate.is_ca());
    assert!(
        certificate
            .key_usage()
            .unwrap()
            .unwrap()
            .value
            .digital_signature()
    );
    let key = leaf.key_pem;
    assert!(key.starts_with("-----BEGIN PRIVATE KEY-----"));
    let pkey = openssl::pkey::PKey::private_key_from_pem(key.as_bytes()).unwrap();
    assert!(
        X509::from_der(&leaf.der)
            .unwrap()
            .public_key()
            .unwrap()
            .public_eq(&pkey)
    );
}

#[test]
fn the_qc_statements_are_those_of_etsi_ts_119_495() {
    let (_, issuing) = authorities();
    let spec = LeafSpec {
        roles: Some(vec![Role::AccountInformation]),
        qc_type: Some(QcType::Web),
        nca_name: "N".into(),
        nca_id: "NO-FSA".into(),
        key: Key::EcP256,
        ..LeafSpec::default()
    };
    let leaf = issuing.issue(&spec).unwrap();
    // Written out by hand from the standards: the arcs 1862 and 19495 are 8e46 and 819827 in base 128.
    let compliance = "3008 0606 04008e460101";
    let web = "3013 0606 04008e460106 3009 0607 04008e46010603";
    let psd2 = "302a 0606 040081982702 3020 3013 3011 0607 04008198270103 0c06 5053505f4149 0c01 4e 0c06 4e4f2d465341";
    let expected: String = format!("304b {compliance} {web} {psd2}")
        .split(' ')
        .collect();
    let (critical, content) = extension(&leaf.der, "1.3.6.1.5.5.7.1.3").unwrap();
    assert_eq!(hex::encode(&content), expected);
    assert!(!critical);
}

#[test]
fn statements_left_out_leave_no_extension() {
    let (_, issuing) = authorities();
    let spec = LeafSpec {
        roles: None,
        qc_type: None,
        qc_compliance: false,
        key: Key::EcP256,
        ..LeafSpec::default()
    };
    let leaf = issuing.issue(&spec).unwrap();
    assert!(extension(&leaf.der, "1.3.6.1.5.5.7.1.3").is_none());
}

#[test]
fn each_fact_of_a_specification_is_in_the_certificate() {
    let (root, issuing) = authorities();
    let spec = LeafSpec {
        serial: Some(vec![0x80, 0x01]),
        is_ca: true,
        key: Key::EcP256,
        crl_urls: vec!["http://crl.example/ca.crl".into()],
        not_after: date_time_ymd(2021, 1, 1),
        extra_extensions: vec![Extension {
            oid: vec![1, 3, 6, 1, 4, 1, 99999, 1],
            critical: true,
            content: vec![5, 0],
        }],
        ..LeafSpec::default()
    };
    let leaf = issuing.issue(&spec).unwrap();
    let (_, certificate) = X509Certificate::from_der(&leaf.der).unwrap();
    assert_eq!(certificate.raw_serial(), [0, 0x80, 0x01]);
    assert!(certificate.is_ca());
    assert_eq!(
        certificate.validity().not_after.timestamp(),
        date_time_ymd(2021, 1, 1).unix_timestamp()
    );
    assert_eq!(
        extension(&leaf.der, "1.3.6.1.4.1.99999.1"),
        Some((true, vec![5, 0]))
    );
    assert!(extension(&leaf.der, "2.5.29.31").is_some());
    assert!(!chain_holds(&root, &issuing, &leaf.der));
}

#[test]
fn two_serials_differ() {
    let (_, issuing) = authorities();
    let spec = LeafSpec {
        key: Key::EcP256,
        ..LeafSpec::default()
    };
    let serial = |der: &[u8]| {
        X509Certificate::from_der(der)
            .unwrap()
            .1
            .raw_serial()
            .to_vec()
    };
    let (one, other) = (issuing.issue(&spec).unwrap(), issuing.issue(&spec).unwrap());
    assert_ne!(serial(&one.der), serial(&other.der));
}

#[test]
fn a_given_key_of_any_size_is_certified() {
    let (root, issuing) = authorities();
    let weak = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1024).unwrap();
    let pkcs1 = rsa::pkcs1::EncodeRsaPrivateKey::to_pkcs1_pem(&weak, LineEnding::LF).unwrap();
    for pem in [weak.to_pkcs8_pem(LineEnding::LF).unwrap(), pkcs1] {
        let spec = LeafSpec {
            key: Key::RsaPem(pem.to_string()),
            ..LeafSpec::default()
        };
        let leaf = issuing.issue(&spec).unwrap();
        let public = X509::from_der(&leaf.der).unwrap().public_key().unwrap();
        assert_eq!(public.rsa().unwrap().n().to_vec(), weak.n().to_bytes_be());
        assert!(chain_holds(&root, &issuing, &leaf.der));
    }
    let nonsense = LeafSpec {
        key: Key::RsaPem("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n".into()),
        ..LeafSpec::default()
    };
    assert!(issuing.issue(&nonsense).is_err());
}

#[test]
fn a_crl_names_the_revoked_serial() {
    let (_, issuing) = authorities();
    let crl = issuing
        .crl(
            &[vec![0x17]],
            date_time_ymd(2025, 1, 1),
            date_time_ymd(2035, 1, 1),
        )
        .unwrap();
    let crl = openssl::x509::X509Crl::from_der(&crl).unwrap();
    let revoked = crl.get_revoked().unwrap();
    let serial = revoked[0].serial_number().to_bn().unwrap();
    assert_eq!(serial.to_vec(), [0x17]);
    let key = X509::from_der(issuing.der()).unwrap().public_key().unwrap();
    assert!(crl.verify(&key).unwrap());
}

#[test]
fn der_lengths_and_identifiers() {
    assert_eq!(der_sequence(&[]), [0x30, 0]);
    assert_eq!(der_utf8(&"a".repeat(127)).get(..2), Some(&[0x0c, 127][..]));
    assert_eq!(
        der_utf8(&"a".repeat(128)).get(..3),
        Some(&[0x0c, 0x81, 128][..])
    );
    assert_eq!(
        der_utf8(&"a".repeat(256)).get(..4),
        Some(&[0x0c, 0x82, 1, 0][..])
    );
    assert_eq!(der_oid(&QC_STATEMENTS), [6, 8, 0x2b, 6, 1, 5, 5, 7, 1, 3]);
    assert_eq!(der_oid(&[2, 5, 4, 97]), [6, 3, 0x55, 4, 97]);
}

#[test]
fn keys_print_as_stars() {
    let secret = format!("{:?}", Key::RsaPem("secret".into()));
    assert_eq!(secret, "RsaPem(***)");
}

#[test]
fn a_minted_folder_is_whole_private_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("pki");
    let now = time::OffsetDateTime::now_utc();
    mint::run(&out, false, now).unwrap();
    let key = out.join("tpp-both.key");
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = std::fs::read(&key).unwrap();
    mint::run(&out, false, now).unwrap();
    assert_eq!(std::fs::read(&key).unwrap(), before);
    // A demo of next year gets new certificates without a word.
    mint::run(&out, false, now + time::Duration::days(397)).unwrap();
    assert_ne!(std::fs::read(&key).unwrap(), before);
}
