//! Property tests of every parser of outside bytes: inputs are valid ones with small changes.
//!
//! The properties themselves are shared with the fuzz targets; see tests/fuzz.

#[path = "../fuzz/parsers.rs"]
mod parsers;

use crate::harness::{Call, world};
use parsers::NOW;
use proptest::{
    collection::vec,
    prelude::{ProptestConfig, Strategy, any},
    sample::{Index, select},
    test_runner::TestRunner,
};

/// Small changes to a run of bytes.
#[derive(Clone, Debug)]
enum Change {
    Replace(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Repeat(Index, Index),
    Cut(Index),
}

/// Bytes with a meaning in some parser.
const TELLING: &[u8] = b"\"\\,;=+ \t\r\n#%/?.:-_()<>{}[]=\x00\x7f\x80\xc3\xa6\xff0Aa";

fn changes() -> impl Strategy<Value = Change> {
    let byte = || proptest::prop_oneof![select(TELLING.to_vec()), any::<u8>()];
    proptest::prop_oneof![
        (any::<Index>(), byte()).prop_map(|(at, byte)| Change::Replace(at, byte)),
        (any::<Index>(), byte()).prop_map(|(at, byte)| Change::Insert(at, byte)),
        any::<Index>().prop_map(Change::Remove),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Repeat(from, to)),
        any::<Index>().prop_map(Change::Cut),
    ]
}

fn change(bytes: &mut Vec<u8>, change: &Change) {
    let length = bytes.len() + 1;
    match change {
        Change::Insert(at, byte) => bytes.insert(at.index(length), *byte),
        Change::Cut(at) => bytes.truncate(at.index(length)),
        Change::Repeat(from, to) => {
            let (from, to) = (from.index(length), to.index(length));
            let run = bytes[from.min(to)..from.max(to)].to_vec();
            bytes.splice(from.min(to)..from.min(to), run);
        }
        Change::Replace(..) | Change::Remove(_) if bytes.is_empty() => {}
        Change::Replace(at, byte) => *at.get_mut(bytes) = *byte,
        Change::Remove(at) => drop(bytes.remove(at.index(bytes.len()))),
    }
}

/// Valid inputs of a parser.
fn seeds(parser: &str) -> Vec<Vec<u8>> {
    let request = Call::cross_border().seal(NOW).request;
    let header = |name: &str| request.header(name).unwrap().as_bytes().to_vec();
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    match parser {
        "signature" => vec![header("signature"), br#"keyId="SN=1A,CA=O="Bank, a.s.", CN=x", algorithm="rsa-sha256",headers="date",signature="AA==""#.to_vec()],
        "encoded_word" => texts(&["=?utf-8?B?a2V5SWQ=?=", "=?ISO-8859-1?Q?key=49d=E6_?= =?utf-8?q?x?=", "keyId=\"\""]),
        "name" => {
            let der = openssl::x509::X509::from_der(world().issuing.der()).unwrap().issuer_name().to_der().unwrap();
            let mut seeds: Vec<Vec<u8>> = texts(&[r#"CN=a,O="B\"ank, a.s.",2.5.4.97=#0c024142;C=NO"#, "CN=a, O=Bank + OU=x, C=NO", "C=NO,O=B%C3%A6nk"]);
            seeds.push(der);
            seeds
        }
        "digest" => vec![header("digest"), b"SHA-512=AAAA, md5=x,sha-256=RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=".to_vec()],
        "date" => texts(&["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]),
        "certificate" => vec![header("tpp-signature-certificate"), world().both.issued.pem.clone().into_bytes(), world().both.issued.der.clone()],
        "qc_statements" => vec![qc_statements_of(&world().both.issued.der)],
        "target" => texts(&["/v1/accounts/a%3Ab/transactions?dateFrom=2026-01-01", "/v1/payments/x/y%40/status", "/v1/%C3%A6/..%2e"]),
        "query" => texts(&[
            "dateFrom=2026-01-01&dateTo=2026-01-31&offset=200&limit=200&bookingStatus=both",
            "%64ateFrom=2026%2D01-01&x=%C3%A6&&limit%5B%5D=1;offset=2",
            "withBalance=true",
        ]),
        "payload" => vec![
            crate::payload::payment().to_string().into_bytes(),
            br#"{"paymentIds": ["1", "\u00e6\ud83d\ude00"], "x": [-1.5E+7, true, null, {"y": {}}]}"#.to_vec(),
            b"{\"creditorName\":\"\xc3\xa6\",\"creditorName\":[[[[[[[[[[]]]]]]]]]]}".to_vec(),
        ],
        "header" => texts(&[
            "https://tpp.example:8443/back?x=%70su-id&y=1",
            "http://[::1]:80/",
            "0192F0C1-5a5b-7def-8000-1234567890ab",
            "GEO:59.91;10.75",
            "2001:db8::1",
            "65535",
            "PRIVATE",
            "amount-as-string, longer-names",
            "application/json;q=0.5, text/*",
            "close, psu-id",
        ]),
        "request" => {
            let lines: String = request.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let head = format!("{} {} HTTP/1.1\r\n{lines}\r\n", request.method, request.target);
            vec![[head.as_bytes(), request.body.as_deref().unwrap_or_default()].concat()]
        }
        "bundle" => vec![bundle().into_bytes()],
        "listed_key" => {
            let key = |der: &[u8]| openssl::x509::X509::from_der(der).unwrap().public_key().unwrap();
            let curve = openssl::ec::EcGroup::from_curve_name(openssl::nid::Nid::X9_62_PRIME256V1).unwrap();
            let curve = openssl::ec::EcKey::generate(&curve).unwrap();
            let curve = openssl::pkey::PKey::from_ec_key(curve).unwrap();
            vec![key(world().issuing.der()).public_key_to_der().unwrap(), curve.public_key_to_der().unwrap()]
        }
        other => panic!("no seeds for {other}"),
    }
}

/// The document of a bundle with each of its parts.
fn bundle() -> String {
    let list = "operator: o, version: 6, sequence: 7, issued: 2026-07-01T07:00:00Z, next_update: null, sha256: @, signer: CN=s, signer_sha256: @";
    let service = "territory: 'NO', provider: p, service: s";
    let text = format!(
        "format: 2\nmade: 2026-07-16T08:00:00Z\nas_of: 2026-07-16T08:00:00Z\nlist_of_lists: {{territory: EU, {list}}}\n\
         lists:\n- {{territory: 'NO', {list}, services: [{{type: CA/QC, state: granted, count: 1}}]}}\nmissing:\n- ES\n\
         earlier:\n- {{territory: SE, sequence: 1, issued: 2026-07-01T07:00:00Z, sha256: @}}\n\
         anchors:\n- sha256: @\n  subject: CN=a\n  not_after: 2030-01-01T00:00:00Z\n  file: NO-a.pem\n  for:\n  - seals\n  services:\n  \
         - {{{service}, granted_since: 2020-01-01T00:00:00Z, for: [seals], qualifications: [{{qualifiers: [QCForESeal], criteria: {{assert: all}}}}]}}\n\
         named:\n- {{{service}, key_sha256: @, state: withdrawn, since: 2020-01-01T00:00:00Z}}\n\
         left_out:\n- {{{service}, reason: r}}\nend: true\n"
    );
    let text = text.replace('@', &"0f".repeat(32));
    assert!(portvakt::trust::bundle::BundleDocument::read(&text).is_ok());
    text
}

/// Writes the seeds of the fuzzer, if PORTVAKT_SEEDS names a folder.
fn keep(parser: &str, seeds: &[Vec<u8>]) {
    let Some(folder) = std::env::var_os("PORTVAKT_SEEDS") else {
        return;
    };
    let folder = std::path::Path::new(&folder).join(parser);
    std::fs::create_dir_all(&folder).unwrap();
    for (index, seed) in seeds.iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{index}")), seed).unwrap();
    }
}

fn qc_statements_of(der: &[u8]) -> Vec<u8> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).unwrap();
    let extensions = certificate.extensions();
    let found = extensions
        .iter()
        .find(|extension| extension.oid.to_id_string() == portvakt::trust::qc::EXTENSION);
    found.unwrap().value.to_vec()
}

#[test]
fn no_bytes_get_the_better_of_a_parser() {
    for (name, parser) in parsers::ALL {
        let seeds = seeds(name);
        seeds.iter().for_each(|seed| parser(seed));
        keep(name, &seeds);
        let inputs = (select(seeds), vec(changes(), 1..6));
        let mut runner = TestRunner::new(ProptestConfig {
            cases: 2_000,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let outcome = runner.run(&inputs, |(mut bytes, changes)| {
            changes.iter().for_each(|made| change(&mut bytes, made));
            parser(&bytes);
            Ok(())
        });
        assert!(outcome.is_ok(), "{name}: {outcome:?}");
    }
}
