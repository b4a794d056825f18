//! The name of any issuer, as OpenSSL and Java print it, identifies its certificate; a changed name does not (SIG-4).

use crate::{
    harness::missing,
    signers::{found, java_command},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use openssl::{
    asn1::Asn1Time,
    ec::{EcGroup, EcKey},
    hash::MessageDigest,
    nid::Nid,
    pkey::{PKey, Private},
    x509::{X509, X509Name},
};
use portvakt::trust::name::Name;
use proptest::{
    collection::vec, prelude::Strategy, sample::select, strategy::ValueTree,
    test_runner::TestRunner,
};
use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    sync::LazyLock,
};

/// The number of tested names.
const NAMES: usize = 300;

/// OpenSSL prints every nth name only, because each takes four processes.
const OPENSSL_PRINTS: usize = 4;

/// The tags of string types in names.
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const IA5: u8 = 0x16;

/// Attribute types as DER, with the string type that CAs use for them.
const TYPES: [(&[u8], u8); 14] = [
    (&[0x55, 4, 3], UTF8),
    (&[0x55, 4, 10], UTF8),
    (&[0x55, 4, 11], UTF8),
    (&[0x55, 4, 7], PRINTABLE),
    (&[0x55, 4, 8], UTF8),
    (&[0x55, 4, 6], PRINTABLE),
    (&[0x55, 4, 5], PRINTABLE),
    (&[0x55, 4, 97], UTF8),
    (&[0x55, 4, 4], UTF8),
    (&[0x55, 4, 42], UTF8),
    (&[0x55, 4, 12], UTF8),
    (&[0x55, 4, 9], UTF8),
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25],
        IA5,
    ),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], IA5),
];

/// Pieces of values: characters that need an escape, characters outside ASCII, and text that resembles syntax.
const PIECES: &[&str] = &[
    "a",
    "Bank",
    "7",
    "-",
    ".",
    " ",
    "  ",
    ",",
    "+",
    "\"",
    "\\",
    "<",
    ">",
    ";",
    "=",
    "#",
    "CN=x",
    ",O=y",
    "/",
    "\u{e6}",
    "\u{f8}",
    "\u{10d}",
    "\u{1f512}",
    "%20",
];
/// PrintableString and IA5String allow fewer characters (X.680, 41.4).
const PLAIN_PIECES: &[&str] = &[
    "a", "Bank", "7", "-", ".", " ", ",", "+", "=", "/", "(", ":",
];

/// An attribute: its place in [`TYPES`] and its value.
type Attribute = (usize, String);
/// A name in the order of the certificate: RDNs, each a set of attributes.
type Rdns = Vec<Vec<Attribute>>;

fn attribute() -> impl Strategy<Value = Attribute> {
    (0..TYPES.len()).prop_flat_map(|kind| {
        let pieces = if TYPES[kind].1 == UTF8 {
            PIECES
        } else {
            PLAIN_PIECES
        };
        vec(select(pieces), 1..5).prop_map(move |pieces| (kind, format!("v{}", pieces.concat())))
    })
}

/// Names, some with an RDN of two attributes of different types.
fn names() -> impl Strategy<Value = Rdns> {
    let rdn = vec(attribute(), 1..3).prop_map(|mut attributes| {
        attributes.dedup_by_key(|(kind, _)| *kind);
        attributes
    });
    vec(rdn, 1..7)
}

fn der(rdns: &Rdns) -> Vec<u8> {
    let set = |rdn: &Vec<Attribute>| {
        let mut attributes: Vec<_> = rdn
            .iter()
            .map(|(kind, value)| {
                let (oid, tag) = TYPES[*kind];
                tlv(0x30, &[tlv(0x06, oid), tlv(tag, value.as_bytes())].concat())
            })
            .collect();
        // DER sorts a SET.
        attributes.sort();
        tlv(0x31, &attributes.concat())
    };
    tlv(0x30, &rdns.iter().flat_map(set).collect::<Vec<_>>())
}

fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap();
    let head = match length {
        0..=0x7f => vec![tag, u8::try_from(length).unwrap()],
        0x80..=0xff => vec![tag, 0x81, u8::try_from(length).unwrap()],
        _ => [&[tag, 0x82][..], &length.to_be_bytes()].concat(),
    };
    [&head, content].concat()
}

/// The output formats of OpenSSL's command line: RFC 2253, with UTF-8 unescaped, with long names, with OIDs.
fn by_openssl(der: &[u8]) -> Vec<String> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("named.pem");
    fs::write(&file, named(der)).unwrap();
    let render = |options: &str| {
        let mut openssl = Command::new("openssl");
        let command = openssl.args(["x509", "-noout", "-issuer", "-nameopt", options, "-in"]);
        let printed = String::from_utf8(command.arg(&file).output().unwrap().stdout).unwrap();
        let text = printed
            .trim_end_matches('\n')
            .strip_prefix("issuer=")
            .unwrap();
        text.to_owned()
    };
    [
        "RFC2253",
        "RFC2253,-esc_msb",
        "RFC2253,lname",
        "RFC2253,oid",
    ]
    .map(render)
    .to_vec()
}

/// A certificate whose issuer has this name.
fn named(der: &[u8]) -> Vec<u8> {
    static KEY: LazyLock<PKey<Private>> = LazyLock::new(|| {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
        PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
    });
    let mut builder = X509::builder().unwrap();
    builder
        .set_issuer_name(&X509Name::from_der(der).unwrap())
        .unwrap();
    builder.set_pubkey(&KEY).unwrap();
    builder
        .set_not_before(&Asn1Time::days_from_now(0).unwrap())
        .unwrap();
    builder
        .set_not_after(&Asn1Time::days_from_now(1).unwrap())
        .unwrap();
    builder.sign(&KEY, MessageDigest::sha256()).unwrap();
    builder.build().to_pem().unwrap()
}

/// The names as Java prints them, all in one process; `None` without Java.
fn by_java(ders: &[Vec<u8>]) -> Vec<Vec<String>> {
    let Some(mut java) = java_command() else {
        missing("java cannot be had on this machine");
        return ders.iter().map(|_| Vec::new()).collect();
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/signers/Names.java");
    let mut child = java
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: Vec<_> = ders.iter().map(|der| STANDARD.encode(der)).collect();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.join("\n").as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let decode = |text: &str| String::from_utf8(STANDARD.decode(text).unwrap()).unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let renderings: Vec<Vec<String>> = printed
        .lines()
        .map(|line| line.split(' ').map(decode).collect())
        .collect();
    assert_eq!(renderings.len(), ders.len());
    renderings
}

//= SIG-4 accepted
//= SIG-4 refused
#[test]
fn a_name_in_every_rendering_names_its_certificate_and_no_neighbour() {
    let mut runner = TestRunner::deterministic();
    let names: Vec<Rdns> = (0..NAMES)
        .map(|_| names().new_tree(&mut runner).unwrap().current())
        .collect();
    let ders: Vec<_> = names.iter().map(der).collect();
    let java = by_java(&ders);
    let mut wrong = Vec::new();
    let has_openssl = found("openssl").is_some();
    for (index, ((rdns, der), mut texts)) in names.iter().zip(&ders).zip(java).enumerate() {
        let own = Name::from_der(der).unwrap();
        if has_openssl && index % OPENSSL_PRINTS == 0 {
            texts.extend(by_openssl(der));
        }
        for text in &texts {
            if let Err(mismatch) = own.compare(text.as_bytes()) {
                wrong.push(format!("{rdns:?} is not named by {text}: {mismatch}"));
            }
            for neighbour in neighbours(rdns) {
                if Name::from_der(&self::der(&neighbour))
                    .unwrap()
                    .compare(text.as_bytes())
                    .is_ok()
                {
                    wrong.push(format!("{neighbour:?} is named by {text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The names with one attribute changed: its value, its type, or its presence.
fn neighbours(rdns: &Rdns) -> Vec<Rdns> {
    let mut neighbours = Vec::new();
    for (at, rdn) in rdns.iter().enumerate() {
        for place in 0..rdn.len() {
            let mut value = rdns.clone();
            value[at][place].1.push('x');
            let mut kind = rdns.clone();
            kind[at][place].0 = (kind[at][place].0 + 1) % TYPES.len();
            neighbours.extend([value, kind]);
        }
        if rdns.len() > 1 {
            let mut missing = rdns.clone();
            missing.remove(at);
            neighbours.push(missing);
        }
    }
    neighbours
}
