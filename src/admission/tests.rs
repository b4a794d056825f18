//! The pipeline without a listener: what observe mode lets pass, and what may then not be believed (FWD-6's types).

#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table is as long as its cases"
)]

use super::{Admitted, Framing, Head, Policy, Record, Snapshot, Stage, Verdict, admit};
use crate::{
    clock::{Clock, Timestamp},
    development_pki as pki,
    interface::{
        Reason, Refusal,
        operations::{Catalogue, Environment, builtin},
    },
    state::Store,
    tools::tpp::{SignOptions, SignedRequest, TppIdentity, Unsigned, sign},
    trust::{Anchors, Trust},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use openssl::x509::X509;

const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

/// A signed request, and the anchor above its certificate.
fn signed() -> (SignedRequest, X509) {
    let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
    let tpp = root.issue(&pki::LeafSpec::default()).unwrap();
    let identity = TppIdentity::from_pem(&tpp.pem, &tpp.key_pem).unwrap();
    let headers = [("Host", "a"), ("TPP-Redirect-URI", "https://tpp.example/")];
    let request = Unsigned {
        method: "GET".into(),
        target: "/v1/accounts".into(),
        headers: headers
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec(),
        body: None,
    };
    let signed = sign(&identity, request, &SignOptions::at(NOW.system_time())).unwrap();
    (signed, X509::from_der(root.der()).unwrap())
}

/// Judges a request `late` seconds after it was signed, with these reasons observed.
fn judge(
    signed: &SignedRequest,
    anchor: Option<X509>,
    late: u64,
    observed: &[Reason],
) -> (Result<Admitted, Refusal>, Record) {
    let mut policy = Policy::new(Environment::Sandbox);
    policy.observed = observed.to_vec();
    let world = Snapshot {
        policy,
        catalogue: Catalogue::new(Environment::Sandbox, builtin()).unwrap(),
        trust: Trust::new(Anchors::new(anchor.into_iter().collect(), Vec::new()).unwrap()),
    };
    let pairs = signed.headers.iter();
    let headers: HeaderMap = pairs
        .map(|(name, value)| {
            (
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect();
    let method = signed.method.parse().unwrap();
    let head = Head {
        method: &method,
        target: signed.target.as_bytes(),
        headers: &headers,
        authority: None,
        framing: Framing::Frames,
        peer: None,
        slot: None,
    };
    let mut record = Record::open(&Clock::standing(Timestamp::from_unix(NOW.unix() + late)));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let verdict = runtime.block_on(admit(
        &head,
        &mut Bytes::new(),
        &world,
        &Store::Stateless,
        &mut record,
    ));
    (verdict, record)
}

#[test]
fn what_holds_is_admitted_and_recorded() {
    let (signed, anchor) = signed();
    let (verdict, record) = judge(&signed, Some(anchor), 60, &[]);
    let admitted = verdict.unwrap();
    assert_eq!(
        admitted.tpp().unwrap().certificate().tpp_id(),
        "PSDNO-FSA-123456"
    );
    assert!(admitted.signed().unwrap().covers_request_target());
    assert!(
        admitted.grant().is_none() && admitted.claim().is_none(),
        "nothing earns them yet"
    );
    let stages: Vec<_> = record.checks().iter().map(|check| check.stage).collect();
    assert_eq!(stages, Stage::ALL);
    assert!(
        record
            .checks()
            .iter()
            .all(|check| check.verdict == Verdict::Held)
    );
}

#[test]
fn an_observed_refusal_passes_and_is_listed() {
    let (signed, anchor) = signed();
    let (refused, record) = judge(&signed, Some(anchor.clone()), 61, &[]);
    assert_eq!(refused.unwrap_err().reason(), Reason::DateSkewed);
    assert_eq!(
        record.checks().last().unwrap().verdict,
        Verdict::Refused(Reason::DateSkewed)
    );
    let (observed, _) = judge(&signed, Some(anchor), 61, &[Reason::DateSkewed]);
    let admitted = observed.unwrap();
    assert_eq!(admitted.waived().collect::<Vec<_>>(), [Reason::DateSkewed]);
    assert!(
        admitted.tpp().is_some(),
        "who it is does not rest on the date"
    );
}

#[test]
fn nothing_is_believed_that_rests_on_an_observed_certificate() {
    let (signed, _) = signed();
    let (observed, record) = judge(&signed, None, 0, &[Reason::CertificateUntrusted]);
    let admitted = observed.unwrap();
    assert!(admitted.tpp().is_none() && admitted.signed().is_none());
    assert!(record.certificate().is_none());
    let skipped = record
        .checks()
        .iter()
        .filter(|check| check.verdict == Verdict::Skipped)
        .map(|check| check.stage);
    assert_eq!(skipped.collect::<Vec<_>>(), [Stage::Role, Stage::Signature]);
}

#[test]
fn nothing_is_believed_that_rests_on_an_observed_signature() {
    let (mut signed, anchor) = signed();
    signed.set_header("TPP-Redirect-URI", "https://elsewhere.example/");
    let (observed, _) = judge(&signed, Some(anchor), 0, &[Reason::SignatureMismatch]);
    let admitted = observed.unwrap();
    assert!(
        admitted.tpp().is_none(),
        "a certificate alone says nothing of the caller"
    );
    assert_eq!(
        admitted.waived().collect::<Vec<_>>(),
        [Reason::SignatureMismatch]
    );
}
