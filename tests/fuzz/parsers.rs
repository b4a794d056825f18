//! What holds of every parser of outside bytes, whatever the bytes are: it ends, it does not panic, and what it accepts
//! reads back as itself.
//!
//! The property tests (tests/it/properties.rs) call these with bytes that are nearly right, the fuzz targets beside this
//! file with bytes that find their own way.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use portvakt::{
    admission::{Framing, Head, Policy, Record, Snapshot, Trial, prove},
    clock::{Clock, Timestamp},
    interface::{
        Fault, Reason,
        headers::{
            self, PsuContext, PsuId, RedirectUri, RequestId, accept, accept_fix, choices,
            connection, content, date, digest, encoded_word, network, redirect_uri,
            signature::Signature,
        },
        operations::{Catalogue, Environment, Operation, Schema, builtin},
        path::{self, Target},
        payload,
        query::Query,
    },
    trust::{
        Anchors, KeyHash, Trust, bundle::BundleDocument, decode, name::Name, qc::QcStatements,
    },
};
use std::sync::LazyLock;

/// A target, by its name.
pub(crate) type Parser = fn(&[u8]);

/// Every target.
pub(crate) const ALL: [(&str, Parser); 14] = [
    ("signature", signature),
    ("encoded_word", encoded_words),
    ("name", names),
    ("digest", digests),
    ("date", dates),
    ("certificate", certificates),
    ("qc_statements", qc_statements),
    ("target", targets),
    ("query", queries),
    ("payload", payloads),
    ("header", each_header),
    ("request", requests),
    ("bundle", bundle_documents),
    ("listed_key", listed_keys),
];

/// Signature (SIG-2, SIG-3, SIG-6): what is read can be written and read again.
pub(crate) fn signature(bytes: &[u8]) {
    let Ok(read) = Signature::parse(bytes) else {
        return;
    };
    assert!(
        read.headers
            .iter()
            .all(|name| read.lists(&name.to_ascii_lowercase()))
    );
    // Where quotation marks stand in the name, the white space that was trimmed may have kept one from ending it.
    if read.issuer.contains(&b'"') {
        return;
    }
    let text = [
        b"keyId=\"SN=",
        read.serial,
        b",CA=",
        read.issuer,
        b"\",algorithm=\"",
        read.algorithm,
        b"\",headers=\"",
        read.headers.join(" ").as_bytes(),
        b"\",signature=\"",
        read.signature,
        b"\"",
    ]
    .concat();
    assert_eq!(Signature::parse(&text).as_ref(), Ok(&read));
}

/// Encoded words (SIG-10): decoded once, never longer than they were, and otherwise left as they are.
pub(crate) fn encoded_words(bytes: &[u8]) {
    if let Ok(decoded) = encoded_word::decode(bytes) {
        assert!(decoded.len() <= bytes.len() * 2);
        if !headers::trim(bytes).starts_with(b"=?") {
            assert_eq!(&*decoded, headers::trim(bytes));
        }
    }
}

/// Names (SIG-4): as DER and as text. A name is spelled by what it prints.
pub(crate) fn names(bytes: &[u8]) {
    static KNOWN: LazyLock<Name> = LazyLock::new(|| Name::from_der(KNOWN_DER).unwrap());
    let _ = KNOWN.compare(bytes);
    if let Ok(name) = Name::from_der(bytes) {
        let text = name.to_string();
        if text.len() <= 4096 {
            assert!(name.compare(text.as_bytes()).is_ok(), "{text}");
        }
    }
}

/// C=NO, O=Bank, CN=a
const KNOWN_DER: &[u8] = b"\x30\x28\x31\x0b\x30\x09\x06\x03\x55\x04\x06\x13\x02NO\
    \x31\x0d\x30\x0b\x06\x03\x55\x04\x0a\x0c\x04Bank\x31\x0a\x30\x08\x06\x03\x55\x04\x03\x0c\x01a";

/// Digest (DIG-1): a header that fits one body fits no other.
pub(crate) fn digests(bytes: &[u8]) {
    if digest::check(bytes, b"{}").is_ok() {
        assert!(digest::check(bytes, b"[]").is_err());
    }
    assert!(digest::check(digest::sha256(bytes).as_bytes(), bytes).is_ok());
}

/// Date (DAT-1): there is one way to write a date.
pub(crate) fn dates(bytes: &[u8]) {
    if let Some(date) = date::parse(bytes) {
        assert_eq!(date::format(date).as_bytes(), bytes);
    }
}

/// The certificate header (CRT-1), and a certificate that nobody trusts.
pub(crate) fn certificates(bytes: &[u8]) {
    if let Ok(presented) = decode::decode(bytes) {
        let again = decode::decode(STANDARD.encode(&presented.leaf).as_bytes());
        assert!(again.is_ok_and(
            |again| presented.leaf.starts_with(b"-----") || again.leaf == presented.leaf
        ));
    }
    assert!(WORLD.trust.identify(bytes, None, NOW).is_err());
    assert!(
        WORLD
            .trust
            .identify(STANDARD.encode(bytes).as_bytes(), None, NOW)
            .is_err()
    );
}

/// QcStatements (CRT-3, CRT-4): a PSD2 statement names its authority.
pub(crate) fn qc_statements(bytes: &[u8]) {
    if let Ok(Some(psd2)) = QcStatements::parse(bytes).map(|statements| statements.psd2) {
        assert!(!psd2.nca_id.is_empty() && !psd2.nca_name.is_empty());
    }
}

/// Request targets (HTTP-10): what passes has no segment that two servers could read in two ways.
pub(crate) fn targets(bytes: &[u8]) {
    let Ok(target) = Target::parse(bytes) else {
        return;
    };
    for segment in target.segments() {
        let decoded = path::decode(segment);
        assert!(
            !matches!(&*decoded, "" | "." | "..")
                && decoded.bytes().all(|byte| byte.is_ascii_graphic())
                && !decoded.contains(['/', '\\', ';', '%', '?', '#'])
        );
    }
    let _ = WORLD.catalogue.find(&Method::GET, &target);
}

/// Queries (QRY-1 to QRY-4): what is left without offset and limit is a query of the same list.
pub(crate) fn queries(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Query::read(Some(text), &LIST, false) {
        Ok(query) => {
            let rest = query.without_page(&LIST);
            let again = Query::read(Some(&rest), &LIST, false).unwrap();
            assert_eq!((again.offset(), again.limit()), (None, None));
            assert_eq!(again.date_from(), query.date_from());
            assert_eq!(again.without_page(&LIST), rest);
        }
        Err(faults) => assert!(faults.iter().all(|fault| !fault.text.is_empty())),
    }
}

/// Bodies (PAY-1 to PAY-14): what passes is JSON to another reader too, and what that reader writes passes, unless it is
/// nested too deep. Faults are bounded.
pub(crate) fn payloads(bytes: &[u8]) {
    let today = jiff::civil::date(2026, 1, 15);
    let judged = |bytes: &[u8], schema| {
        payload::check(bytes, schema, &[], today, &payload::Ibans::default())
            .err()
            .unwrap_or_default()
    };
    let is_malformed = |faults: &[Fault]| {
        let mut reasons = faults.iter().map(|fault| fault.reason);
        reasons.any(|reason| reason == Reason::PayloadMalformed)
    };
    let any = judged(bytes, Schema::Any);
    let is_json = !is_malformed(&any);
    if is_json {
        assert!(serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok());
    }
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) {
        let faults = judged(value.to_string().as_bytes(), Schema::Any);
        assert!(
            !is_malformed(&faults) || faults.iter().all(|fault| fault.text.contains("32 levels"))
        );
        // PAY-17.
        assert!(!any.is_empty() || !has_odd_text(&value));
    }
    for (_, schema) in Schema::NAMES {
        let faults = judged(bytes, *schema);
        let malformed = is_malformed(&faults);
        assert_eq!(malformed, !is_json);
        assert!(faults.len() <= 40 && (!malformed || faults.len() == 1));
        assert!(!faults.is_empty() || any.is_empty());
        assert!(faults.iter().all(|fault| fault.text.chars().count() <= 512));
    }
}

/// A name or a text with a control character that stands nowhere (PAY-17).
fn has_odd_text(value: &serde_json::Value) -> bool {
    let is_odd = |text: &str| {
        text.chars()
            .any(|one| one.is_control() && !"\r\n\t".contains(one))
    };
    match value {
        serde_json::Value::String(text) => is_odd(text),
        serde_json::Value::Array(values) => values.iter().any(has_odd_text),
        serde_json::Value::Object(members) => {
            let mut members = members.iter();
            members.any(|(name, value)| is_odd(name) || has_odd_text(value))
        }
        _ => false,
    }
}

/// Every other header with rules of its own.
pub(crate) fn each_header(bytes: &[u8]) {
    for environment in [Environment::Production, Environment::Sandbox] {
        if redirect_uri::split(bytes, environment).is_ok() {
            let value = HeaderValue::from_bytes(bytes).unwrap();
            let uri = RedirectUri::parse(&value, environment).unwrap();
            assert!(uri.as_str().as_bytes() == bytes && !uri.host().is_empty());
            assert!(bytes.is_ascii() && bytes.len() <= 2000);
        }
    }
    if let Some(id) = PsuId::parse(bytes) {
        let upper = bytes.to_ascii_uppercase();
        assert_eq!(PsuId::parse(&upper), Some(id));
    }
    if let Some(port) = network::port(bytes) {
        assert!(port > 0);
    }
    let _ = (
        network::address(bytes),
        network::is_location(bytes),
        PsuContext::parse(bytes),
        choices::redirect_preferred(bytes),
    );
    let _ = (
        choices::is_psu_method(bytes),
        accept_fix::parse([bytes]).is_ok(),
        content::utf8_json(bytes).is_ok(),
    );
    let Ok(value) = HeaderValue::from_bytes(bytes) else {
        return;
    };
    if let Some(id) = RequestId::parse(&value) {
        assert_eq!(id.as_bytes(), headers::trim(bytes));
    }
    let map = HeaderMap::from_iter([
        (http::header::ACCEPT, value.clone()),
        (http::header::CONNECTION, value),
    ]);
    let _ = (
        accept::allows_json(&map),
        connection::refused_nomination(&map),
    );
}

/// A whole request, as lines: nothing that a stranger sends is admitted.
pub(crate) fn requests(bytes: &[u8]) {
    let (head, body) = bytes
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .map_or((bytes, &[][..]), |at| bytes.split_at(at + 4));
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut words = lines.next().unwrap_or_default().split(|byte| *byte == b' ');
    let Ok(method) = Method::from_bytes(words.next().unwrap_or_default()) else {
        return;
    };
    let target = words.next().unwrap_or_default();
    let mut map = HeaderMap::new();
    for line in lines {
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let name = HeaderName::from_bytes(halves.next().unwrap_or_default());
        let value = HeaderValue::from_bytes(halves.next().unwrap_or_default().trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            map.append(name, value);
        }
    }
    let framing = Framing::Lines {
        raw: head,
        target_rewritten: false,
    };
    let head = Head::unconnected(&method, target, &map, framing);
    let clock = Clock::standing(NOW);
    let mut record = Record::open();
    let trial = Trial::open(&WORLD, &clock, &mut record);
    let mut body = Bytes::copy_from_slice(body);
    let proven = RUNTIME.block_on(prove(&head, &mut body, trial));
    assert!(proven.is_err());
}

/// bundle.yaml, which the gateway reads (CRT-8, CRT-13): what is read contradicts nothing, and each fault has its line.
pub(crate) fn bundle_documents(bytes: &[u8]) {
    match BundleDocument::from_bytes(bytes) {
        Ok(document) => assert_eq!(document.judge(), Ok(())),
        Err(fault) => assert!(fault.to_string().contains("line "), "{fault}"),
    }
}

/// Keys of trusted lists (CRT-13), in the forms that no chain may have: as DER, and as numbers. A hash reads back as itself.
pub(crate) fn listed_keys(bytes: &[u8]) {
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    let found = [
        KeyHash::of_listed_key(bytes),
        KeyHash::of_rsa_numbers(first, rest),
        KeyHash::of_point("1.2.840.10045.3.1.7", bytes),
        KeyHash::of_point(&String::from_utf8_lossy(first), rest),
    ];
    for key in found.into_iter().flatten() {
        assert_eq!(KeyHash::parse(&key.to_string()), Some(key));
    }
}

/// The second as of which everything is judged.
pub(crate) const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

/// A world without an anchor.
static WORLD: LazyLock<Snapshot> = LazyLock::new(|| {
    Snapshot::new(
        Policy::new(Environment::Sandbox),
        Catalogue::new(Environment::Sandbox, builtin()).unwrap(),
        Trust::new(Anchors::of_operator(Vec::new(), Vec::new()).unwrap()),
    )
});

/// The transaction list.
static LIST: LazyLock<Operation> = LazyLock::new(|| {
    let mut all = builtin().into_iter();
    all.find(|operation| operation.name == "transaction-list")
        .unwrap()
});

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
});
