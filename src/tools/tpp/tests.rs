//! Signing and the command line, with generated certificates; a library that does not sign verifies the signatures.

#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table is as long as its cases"
)]

use super::{SignOptions, TppCommand, TppFault, TppIdentity, Unsigned, run, sign};
use base64::prelude::{BASE64_STANDARD, Engine};
use clap::Parser;
use openssl::ec::{EcGroup, EcKey};
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::symm::Cipher;
use portvakt_development_pki::{Ca, CaSpec, Issued, Key, LeafSpec};
use rsa::RsaPublicKey;
use rsa::pkcs1v15::{Signature, VerifyingKey};
use rsa::pkcs8::DecodePublicKey;
use rsa::sha2::Sha256;
use rsa::signature::Verifier;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::prelude::{FromDer, X509Certificate};

static ISSUED: LazyLock<Issued> = LazyLock::new(|| issue("Ordinary CA"));

/// A leaf of a CA with this name, serial 0x00AB12.
fn issue(organization: &str) -> Issued {
    let ca = CaSpec {
        common_name: "CA".into(),
        organization: organization.into(),
        organization_identifier: None,
        key: Key::EcP256,
        ..CaSpec::default()
    };
    let leaf = LeafSpec {
        serial: Some(vec![0xab, 0x12]),
        ..LeafSpec::default()
    };
    Ca::root(&ca).unwrap().issue(&leaf).unwrap()
}

fn identity() -> TppIdentity {
    TppIdentity::from_pem(&ISSUED.pem, &ISSUED.key_pem).unwrap()
}

/// 1994-11-06 08:49:37 UTC, the example of RFC 7231.
fn moment() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(784_111_777)
}

fn options() -> SignOptions {
    SignOptions::at(moment())
}

fn request(headers: &[(&str, &str)], body: Option<&[u8]>) -> Unsigned {
    Unsigned {
        method: "POST".into(),
        target: "/v1/payments/x?allowLogicalDuplicate=true".into(),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        body: body.map(<[u8]>::to_vec),
    }
}

/// One part of a Signature value.
fn part<'a>(signature: &'a str, key: &str) -> &'a str {
    let (_, rest) = signature.split_once(&format!("{key}=\"")).unwrap();
    rest.split_once("\",")
        .map_or_else(|| rest.strip_suffix('"').unwrap(), |(value, _)| value)
}

fn verifies(issued: &Issued, signing_string: &str, signature: &str) -> bool {
    let (_, certificate) = X509Certificate::from_der(&issued.der).unwrap();
    let key = RsaPublicKey::from_public_key_der(certificate.public_key().raw).unwrap();
    let signature = BASE64_STANDARD.decode(signature).unwrap();
    let signature = Signature::try_from(signature.as_slice()).unwrap();
    let verifier = VerifyingKey::<Sha256>::new(key);
    let signed = signing_string.as_bytes();
    verifier.verify(signed, &signature).is_ok()
}

#[test]
fn sig_2_to_9_the_whole_request_is_as_the_interface_writes_it() {
    let given = [
        ("TPP-Redirect-URI", " https://tpp.example/cb "),
        ("PSU-Corporate-ID", "c"),
        ("X-Request-ID", "r-1"),
        ("PSU-ID", "p"),
        ("PSU-IP-Address", "192.0.2.1"),
    ];
    let signed = sign(&identity(), request(&given, Some(b"{}")), &options()).unwrap();
    assert_eq!(
        signed.signing_string,
        "(request-target): post /v1/payments/x?allowLogicalDuplicate=true\n\
         date: Sun, 06 Nov 1994 08:49:37 GMT\n\
         digest: SHA-256=RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=\n\
         x-request-id: r-1\n\
         psu-id: p\n\
         psu-corporate-id: c\n\
         tpp-redirect-uri: https://tpp.example/cb"
    );
    let signature = signed.header("signature").unwrap();
    assert!(signature.starts_with("keyId=\"SN=AB12,CA="), "{signature}");
    assert_eq!(part(signature, "algorithm"), "rsa-sha256");
    assert_eq!(
        part(signature, "headers"),
        "(request-target) date digest x-request-id psu-id psu-corporate-id tpp-redirect-uri"
    );
    assert!(verifies(
        &ISSUED,
        &signed.signing_string,
        part(signature, "signature")
    ));
    let certificate = signed.header("tpp-signature-certificate").unwrap();
    assert_eq!(BASE64_STANDARD.decode(certificate).unwrap(), ISSUED.der);
}

#[test]
fn sig_7_a_header_that_is_not_there_is_not_signed() {
    let bare = SignOptions {
        add_request_id: false,
        ..options()
    };
    let signed = sign(&identity(), request(&[], None), &bare).unwrap();
    let signature = signed.header("signature").unwrap();
    assert_eq!(part(signature, "headers"), "(request-target) date");
    assert!(signed.header("digest").is_none());
    assert!(signed.header("x-request-id").is_none());
}

#[test]
fn dig_1_an_empty_body_has_a_digest_and_a_given_digest_stays() {
    let signed = sign(&identity(), request(&[], Some(b"")), &options()).unwrap();
    let nothing = "SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    assert_eq!(signed.header("digest"), Some(nothing));
    let given = [("digest", "SHA-256=wrong"), ("DATE", "yesterday")];
    let signed = sign(&identity(), request(&given, Some(b"")), &options()).unwrap();
    assert!(
        signed
            .signing_string
            .contains("\ndate: yesterday\ndigest: SHA-256=wrong\n")
    );
}

#[test]
fn rep_1_each_request_gets_an_id_of_its_own() {
    let id = || {
        let signed = sign(&identity(), request(&[], None), &options()).unwrap();
        signed.header("x-request-id").unwrap().to_owned()
    };
    assert_ne!(id(), id());
}

#[test]
fn sig_6_and_8_given_names_are_signed_in_order_missing_and_repeated_ones_too() {
    let given = [("Accept", "a"), ("accept", " b ")];
    let chosen = SignOptions {
        headers: Some(vec!["Accept".into(), "x-missing".into(), "date".into()]),
        ..options()
    };
    let signed = sign(&identity(), request(&given, None), &chosen).unwrap();
    assert_eq!(
        signed.signing_string,
        "accept: a, b\nx-missing: \ndate: Sun, 06 Nov 1994 08:49:37 GMT"
    );
    let signature = signed.header("signature").unwrap();
    assert_eq!(part(signature, "headers"), "Accept x-missing date");
    assert!(verifies(
        &ISSUED,
        &signed.signing_string,
        part(signature, "signature")
    ));
}

#[test]
fn sig_10_an_issuer_outside_ascii_makes_an_encoded_word() {
    let issued = issue("Prøve-CA, utvikling");
    let mut identity = TppIdentity::from_pem(&issued.pem, &issued.key_pem).unwrap();
    let options = SignOptions {
        key_id: Some("SN=AB12,CA=O=Prøve".into()),
        ..options()
    };
    let signed = sign(&identity, request(&[], None), &options).unwrap();
    let signature = signed.header("signature").unwrap();
    let word = signature.strip_prefix("=?utf-8?B?").unwrap();
    let inner = BASE64_STANDARD
        .decode(word.strip_suffix("?=").unwrap())
        .unwrap();
    let inner = String::from_utf8(inner).unwrap();
    assert_eq!(part(&inner, "keyId"), "SN=AB12,CA=O=Prøve");
    assert!(verifies(
        &issued,
        &signed.signing_string,
        part(&inner, "signature")
    ));
    // The same certificate without an override: whatever the text of the name, the header is ASCII.
    identity = TppIdentity::from_pem(&issued.pem, &issued.key_pem).unwrap();
    let signed = sign(&identity, request(&[], None), &SignOptions::at(moment())).unwrap();
    assert!(signed.header("signature").unwrap().is_ascii());
}

#[test]
fn a_signature_is_replaced_and_an_altered_request_no_longer_verifies() {
    let given = [("Signature", "old")];
    let mut signed = sign(&identity(), request(&given, None), &options()).unwrap();
    let count = |name: &str| {
        signed
            .headers
            .iter()
            .filter(|(known, _)| known == name)
            .count()
    };
    assert_eq!(count("Signature"), 1);
    let signature = part(signed.header("signature").unwrap(), "signature").to_owned();
    let altered = signed.signing_string.replace("GMT", "UTC");
    assert!(!verifies(&ISSUED, &altered, &signature));
    signed.set_header("X-REQUEST-ID", "other");
    assert_eq!(signed.header("x-request-id"), Some("other"));
    signed.remove_header("date");
    assert_eq!(signed.header("Date"), None);
}

#[test]
fn invalid_requests_are_not_signed() {
    let fault = |request| sign(&identity(), request, &options()).unwrap_err();
    let bent = |bend: fn(&mut Unsigned)| {
        let mut request = request(&[], None);
        bend(&mut request);
        request
    };
    for target in ["", "v1", "/a b", "/a#b", "/ø", "/a\r\nX: y"] {
        let mut request = request(&[], None);
        request.target = target.into();
        assert!(matches!(fault(request), TppFault::Target(_)), "{target:?}");
    }
    let newline = request(&[("X-A", "b\r\nX-C: d")], None);
    assert!(matches!(fault(newline), TppFault::Header(_)));
    let space = request(&[("X A", "b")], None);
    assert!(matches!(fault(space), TppFault::Header(_)));
    assert!(matches!(
        fault(bent(|r| r.method.clear())),
        TppFault::Method(_)
    ));
    let before = UNIX_EPOCH - Duration::from_secs(1);
    let early = sign(&identity(), request(&[], None), &SignOptions::at(before));
    assert!(matches!(early, Err(TppFault::Date)));
}

#[test]
fn an_identity_is_a_pair_and_hides_its_key() {
    let other = issue("Other");
    let mixed = TppIdentity::from_pem(&ISSUED.pem, &other.key_pem);
    assert!(matches!(mixed, Err(TppFault::KeyMismatch)));
    let no_key = TppIdentity::from_pem(&ISSUED.pem, "nothing");
    assert!(matches!(no_key, Err(TppFault::Key)));
    let no_certificate = TppIdentity::from_pem(&ISSUED.key_pem, &ISSUED.key_pem);
    assert!(matches!(no_certificate, Err(TppFault::Certificate)));
    // No key on a curve, and none with a passphrase, for which nobody is asked.
    let curve = EcKey::generate(&EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap());
    let curve = PKey::from_ec_key(curve.unwrap()).unwrap();
    let rsa = PKey::private_key_from_pem(ISSUED.key_pem.as_bytes()).unwrap();
    let cipher = Cipher::aes_256_cbc();
    for pem in [
        curve.private_key_to_pem_pkcs8(),
        rsa.private_key_to_pem_pkcs8_passphrase(cipher, b"secret"),
        rsa.rsa()
            .unwrap()
            .private_key_to_pem_passphrase(cipher, b"secret"),
    ] {
        let pem = String::from_utf8(pem.unwrap()).unwrap();
        let fault = TppIdentity::from_pem(&ISSUED.pem, &pem);
        assert!(matches!(fault, Err(TppFault::Key)));
    }
    let pkcs1 = rsa.rsa().unwrap().private_key_to_pem().unwrap();
    assert!(TppIdentity::from_pem(&ISSUED.pem, str::from_utf8(&pkcs1).unwrap()).is_ok());
    let marked = format!("# a comment\n{}", ISSUED.key_pem);
    assert!(TppIdentity::from_pem(&format!("# a comment\n{}", ISSUED.pem), &marked).is_ok());
    assert!(format!("{:?}", identity()).contains("key: \"***\""));
}

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: TppCommand,
}

/// The command's output at [`moment`], with [`ISSUED`].
fn printed(arguments: &[&str]) -> Result<String, TppFault> {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    std::fs::write(&cert, &ISSUED.pem).unwrap();
    std::fs::write(&key, &ISSUED.key_pem).unwrap();
    let (verb, rest) = arguments.split_first().unwrap();
    let mut line = vec![
        "tpp",
        verb,
        "--cert",
        cert.to_str().unwrap(),
        "--key",
        key.to_str().unwrap(),
    ];
    line.extend(rest);
    let mut out = Vec::new();
    let code = run(&Cli::parse_from(line).command, moment(), &mut out)?;
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn the_command_adds_convenient_headers() {
    let url = "https://localhost:8443/v1/payments/x?y=%20";
    let text = printed(&["sign", "-d", "{}", "--psu-present", "post", url]).unwrap();
    assert!(text.starts_with("POST /v1/payments/x?y=%20\n"), "{text}");
    for line in [
        "PSU-IP-Address: 192.0.2.10\n",
        "TPP-Redirect-URI: https://tpp.example/callback\n",
        "Content-Type: application/json\n",
        "Date: Sun, 06 Nov 1994 08:49:37 GMT\n",
        "\nsigning string:\n(request-target): post /v1/payments/x?y=%20\ndate: ",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn the_bare_command_adds_only_the_headers_of_signing() {
    let text = printed(&[
        "call",
        "--dry-run",
        "--bare",
        "-d",
        "{}",
        "POST",
        "https://h",
    ])
    .unwrap();
    assert!(text.starts_with("POST /\nDate: "), "{text}");
    assert!(text.ends_with("\n(request-target): post /\ndate: Sun, 06 Nov 1994 08:49:37 GMT\ndigest: SHA-256=RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=\n"), "{text}");
}

#[test]
fn the_command_signs_host_as_the_url_names_it() {
    let text = printed(&["sign", "--sign-only", "host,date", "GET", "https://h:1/a"]).unwrap();
    assert!(
        text.contains("signing string:\nhost: h:1\ndate: Sun"),
        "{text}"
    );
}

#[test]
fn the_command_prints_curl() {
    let text = printed(&[
        "call",
        "--curl",
        "-H",
        "X-Request-ID: r",
        "GET",
        "https://h/a",
    ])
    .unwrap();
    assert!(text.starts_with("curl --path-as-is"), "{text}");
    assert!(text.contains("-H 'X-Request-ID: r'"), "{text}");
}

#[test]
fn the_command_refuses_invalid_urls_and_headers() {
    for url in ["h/a", "https:///a", "https://h/a#b"] {
        assert!(
            matches!(printed(&["sign", "GET", url]), Err(TppFault::Target(_))),
            "{url}"
        );
    }
    let header = printed(&["sign", "-H", "no colon", "GET", "https://h/a"]);
    assert!(matches!(header, Err(TppFault::Header(_))));
    let file = printed(&["sign", "-d", "@/nowhere/at/all", "POST", "https://h/a"]);
    assert!(matches!(file, Err(TppFault::File { .. })));
}
