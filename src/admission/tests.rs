//! The pipeline without a listener: requests that observe mode lets pass, and facts that then must not be trusted (FWD-6).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table is as long as its cases"
)]

use super::{
    Admission, Admitted, Enforcement, Framing, Fresh, Head, ObservableCheck, Policy, Record,
    Snapshot, Stage, TppChecks, Trial, Verdict, WhenUnknown, authorise, prove,
};
use crate::{
    clock::{Clock, Timestamp},
    gateway::{assertion, forward},
    interface::{
        ForbiddenTpp, PermittedTpp, Reason, Refusal, TppId,
        headers::PsuId,
        operations::{Catalogue, Environment, builtin},
    },
    sca::{Links, TokenKeys},
    signing::{AssertionKey, AssertionSigner},
    state::{Bind, ConsentAccounts, Known, PsuRef, StateSettings, StateStore},
    tools::tpp::{SignOptions, SignedRequest, TppIdentity, Unsigned, sign},
    trust::{Anchors, Revocation, Trust, revocation::RevocationSettings},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use openssl::x509::X509;
use portvakt_development_pki as pki;
use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

/// The PSU who owns the accounts.
const PSU: Known<PsuId> =
    Known::by_bank(PsuId::from_bits(0x3f25_04e0_4f89_41d3_9a0c_0305_e82c_3301));

/// A signed request, and the anchor of its certificate.
fn signed() -> (SignedRequest, X509) {
    signed_with(&[], &SignOptions::at(NOW.system_time()))
}

/// A signed request with more headers, signed with these options.
fn signed_with(more: &[(&str, &str)], options: &SignOptions) -> (SignedRequest, X509) {
    let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
    let tpp = root.issue(&pki::LeafSpec::default()).unwrap();
    let signed = signed_by(&tpp, more, options);
    (signed, X509::from_der(root.der()).unwrap())
}

/// A TPP's identity from its text.
fn tpp(id: &str) -> TppId {
    TppId::parse(id).unwrap()
}

/// A TPP in every spelling, from its text.
fn forbidden(id: &str) -> ForbiddenTpp {
    ForbiddenTpp::parse(id).unwrap()
}

fn signed_by(tpp: &pki::Issued, more: &[(&str, &str)], options: &SignOptions) -> SignedRequest {
    let identity = TppIdentity::from_pem(&tpp.pem, &tpp.key_pem).unwrap();
    let psu = PSU.get().hyphenated();
    let headers = [
        ("Host", "a"),
        ("TPP-Redirect-URI", "https://tpp.example/"),
        ("PSU-ID", &psu),
    ];
    let request = Unsigned {
        method: "GET".into(),
        target: "/v1/accounts".into(),
        headers: headers
            .iter()
            .chain(more)
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        body: None,
    };
    sign(&identity, request, options).unwrap()
}

/// Judges a request `late` seconds after it was signed, with these checks observed.
fn judge(
    signed: &SignedRequest,
    anchor: Option<X509>,
    late: u64,
    observed: &[ObservableCheck],
) -> (Result<Admitted, Refusal>, Record) {
    let mut policy = Policy::new(Environment::Sandbox);
    policy.enforcement = observing(observed);
    judge_by(signed, anchor, late, policy)
}

/// Judges a request by a policy.
fn judge_by(
    signed: &SignedRequest,
    anchor: Option<X509>,
    late: u64,
    policy: Policy,
) -> (Result<Admitted, Refusal>, Record) {
    let anchors = Anchors::of_operator(anchor.into_iter().collect(), Vec::new()).unwrap();
    judge_in(signed, Trust::new(anchors), late, policy)
}

/// Only observes these checks, for every TPP.
fn observing(checks: &[ObservableCheck]) -> Enforcement {
    let observed: BTreeSet<_> = checks.iter().copied().collect();
    Enforcement::new(observed, TppChecks::default())
}

/// Judges a request by a policy and a trust.
fn judge_in(
    signed: &SignedRequest,
    trust: Trust,
    late: u64,
    policy: Policy,
) -> (Result<Admitted, Refusal>, Record) {
    let snapshot = Snapshot::new(
        policy,
        Catalogue::new(Environment::Sandbox, builtin()).unwrap(),
        trust,
    );
    let headers = signed.header_map().unwrap();
    let method = signed.method.parse().unwrap();
    let framing = Framing::Frames {
        other_scheme: false,
    };
    let head = Head::unconnected(&method, signed.target.as_bytes(), &headers, framing);
    let clock = Clock::standing(Timestamp::from_unix(NOW.unix() + late));
    let mut record = Record::open();
    let trial = Trial::open(&snapshot, &clock, &mut record);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let verdict = runtime.block_on(async {
        let (links, store) = state(folder.path()).await;
        let proven = prove(&head, &mut Bytes::new(), trial).await?;
        authorise(proven, &links, &store, &snapshot).await
    });
    let verdict = verdict.map(|admission| match admission {
        Admission::Forward(admitted) => *admitted,
        Admission::Answer(answer) => panic!("{answer:?}"),
    });
    (verdict, record)
}

/// Links, and a store with the PSU.
async fn state(folder: &Path) -> (Arc<Links>, StateStore) {
    let keys = TokenKeys::read_or_make(&folder.join("keys"), NOW).unwrap();
    let lifetime = Duration::from_secs(900);
    let page = "https://bank.example/sca";
    let links = Links::new(page, lifetime, Environment::Sandbox, keys);
    let settings = StateSettings::new(folder.join("state.db"), folder.join("hash.key"));
    let store = StateStore::open(&settings).unwrap();
    let bind = Bind {
        imported: false,
        who: PsuRef {
            tpp: &tpp("PSDNO-FSA-123456"),
            psu: PSU,
        },
        corporate: None,
        last_sca: NOW,
        consent: Some((NOW, &ConsentAccounts::All)),
        customer: None,
    };
    store.bind(bind).await.unwrap();
    (Arc::new(links), store)
}

#[test]
fn what_holds_is_admitted_and_recorded() {
    let (signed, anchor) = signed();
    let (verdict, record) = judge(&signed, Some(anchor), 60, &[]);
    let admitted = verdict.unwrap();
    assert_eq!(
        admitted.tpp().unwrap().certificate().tpp_id().as_str(),
        "PSDNO-FSA-123456"
    );
    assert!(admitted.signed().unwrap().covers_request_target());
    assert_eq!(admitted.grant().unwrap().psu(), Some(PSU));
    assert!(admitted.claim().is_some());
    let stages: Vec<_> = record.checks().iter().map(|check| check.stage).collect();
    // The registers and the revocation check are switched off, so these stages are not judged.
    let off = [Stage::Register, Stage::Revocation];
    let all = Stage::ALL.iter().copied();
    let all: Vec<_> = all.filter(|stage| !off.contains(stage)).collect();
    assert_eq!(stages, all);
    for check in record.checks() {
        assert_eq!(check.verdict, Verdict::Held, "{check:?}");
    }
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
    let (observed, _) = judge(&signed, Some(anchor), 61, &[ObservableCheck::Date]);
    let admitted = observed.unwrap();
    assert_eq!(admitted.waived(), [Reason::DateSkewed]);
    assert!(
        admitted.tpp().is_some(),
        "who it is does not rest on the date"
    );
}

/// FWD-6: a check is observed for one TPP, and refuses the requests of others.
#[test]
fn a_check_is_observed_for_one_tpp() {
    let (mut signed, anchor) = signed();
    signed.set_header("TPP-Redirect-URI", "https://elsewhere.example/");
    for (tpp, passes) in [("PSDNO-FSA-123456", true), ("PSDNO-FSA-1", false)] {
        let own = BTreeSet::from([ObservableCheck::Signature]);
        let mut of_tpps = TppChecks::default();
        of_tpps.add(PermittedTpp::parse(tpp).unwrap(), own);
        let mut policy = Policy::new(Environment::Sandbox);
        policy.enforcement = Enforcement::new(BTreeSet::new(), of_tpps);
        let (verdict, _) = judge_by(&signed, Some(anchor.clone()), 0, policy);
        assert_eq!(verdict.is_ok(), passes, "{tpp}");
    }
}

/// CRT-6, CRT-7: in production, a snapshot without one of these checks admits nothing.
#[test]
fn production_without_registers_admits_nothing() {
    let (signed, anchor) = signed();
    let policy = Policy::new(Environment::Production);
    let (verdict, record) = judge_by(&signed, Some(anchor), 0, policy);
    assert_eq!(verdict.unwrap_err().reason(), Reason::Internal);
    assert!(record.holds(Stage::Signature) && !record.holds(Stage::Body));
}

#[test]
fn nothing_is_believed_that_rests_on_an_observed_certificate() {
    let (signed, _) = signed();
    let (observed, record) = judge(&signed, None, 0, &[ObservableCheck::Certificate]);
    let admitted = observed.unwrap();
    assert!(admitted.tpp().is_none() && admitted.signed().is_none());
    assert!(record.certificate().is_none());
    let skipped = record
        .checks()
        .iter()
        .filter(|check| check.verdict == Verdict::Skipped)
        .map(|check| check.stage);
    assert_eq!(
        skipped.collect::<Vec<_>>(),
        [
            Stage::Role,
            Stage::Signature,
            Stage::TppRate,
            Stage::Redirect,
            Stage::Sca,
            Stage::Claim
        ]
    );
}

#[test]
fn nothing_is_believed_that_rests_on_an_observed_signature() {
    let (mut signed, anchor) = signed();
    signed.set_header("TPP-Redirect-URI", "https://elsewhere.example/");
    let (observed, _) = judge(&signed, Some(anchor), 0, &[ObservableCheck::Signature]);
    let admitted = observed.unwrap();
    assert!(
        admitted.tpp().is_none(),
        "a certificate alone says nothing of the caller"
    );
    assert_eq!(admitted.waived(), [Reason::SignatureMismatch]);
    let claims = asserted(&admitted);
    assert_eq!(claims["gateway-observed"], "signature-mismatch");
    let names = claims.as_object().unwrap().keys();
    let told: Vec<_> = names.filter(|name| rests_on_sender(name)).collect();
    assert!(told.is_empty(), "{told:?}");
}

/// Whether a fact rests on the identity of the sender.
fn rests_on_sender(name: &str) -> bool {
    let of_sender = [
        "psu",
        "gateway-tpp",
        "gateway-sca",
        "gateway-psu",
        "gateway-signed",
        "gateway-history",
    ];
    of_sender.iter().any(|start| name.starts_with(start))
}

/// The facts that the gateway asserts to the core (FWD-1).
fn asserted(admitted: &Admitted) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let key = AssertionKey::read_or_make(&folder.path().join("key")).unwrap();
    let signer = AssertionSigner::new(key, None, "bank", "core");
    let fresh = Fresh::of_any_age(admitted);
    let mut draft = forward::upstream_head(&fresh, &"core".parse().unwrap()).unwrap();
    assertion::insert(&signer, admitted, draft.head_mut(), NOW).unwrap();
    let head = draft.release(&fresh).unwrap();
    let token = head
        .headers
        .get("gateway-assertion")
        .unwrap()
        .to_str()
        .unwrap();
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

/// Judges a TPP-Redirect-URI by hosts that the operator allows.
fn judge_with_hosts(id: &str, host: &str) -> Result<Admitted, Refusal> {
    let (signed, anchor) = signed();
    let mut policy = Policy::new(Environment::Sandbox);
    policy
        .redirect_hosts
        .insert(forbidden(id), vec!["other.example".into(), host.into()]);
    judge_by(&signed, Some(anchor), 0, policy).0
}

//= HDR-8 accepted
#[test]
fn a_tpp_names_a_host_of_its_own() {
    assert!(judge_with_hosts("PSDNO-FSA-123456", "TPP.example").is_ok());
    assert!(judge_with_hosts("PSDNO-FSA-1", "evil.example").is_ok());
}

//= HDR-8 refused
#[test]
fn a_tpp_names_a_host_that_is_not_its_own() {
    let refusal = judge_with_hosts("PSDNO-FSA-123456", "evil.example").unwrap_err();
    assert_eq!(refusal.reason(), Reason::HeaderMalformed);
    let text = &refusal.faults()[0].text;
    assert!(text.contains("other.example, evil.example"), "{text}");
}

/// CAs write the id with or without spaces and dashes, and a register treats both as one TPP.
//= HDR-8 accepted
//= HDR-8 refused
#[test]
fn a_tpp_has_its_hosts_in_every_spelling_of_its_id() {
    for id in [
        "PSDNO-FSA-123456",
        "PSDNO-FSA-123-456",
        "PSDNO-FSA-12 34 56",
    ] {
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        let spec = pki::LeafSpec {
            organization_identifier: Some(id.into()),
            ..pki::LeafSpec::default()
        };
        let tpp = root.issue(&spec).unwrap();
        let judge = |host: &str| {
            let signed = signed_by(&tpp, &[], &SignOptions::at(NOW.system_time()));
            let mut policy = Policy::new(Environment::Sandbox);
            let hosts = vec![host.into()];
            policy
                .redirect_hosts
                .insert(forbidden("PSDNO-FSA-123456"), hosts);
            let (_, record) = judge_by(&signed, X509::from_der(root.der()).ok(), 0, policy);
            record.holds(Stage::Redirect)
        };
        assert!(judge("tpp.example"), "{id}");
        assert!(!judge("other.example"), "{id}");
    }
}

/// A caller who cannot sign as a TPP does not learn its registered hosts.
#[test]
fn hosts_are_judged_after_the_signature() {
    let (mut signed, anchor) = signed();
    signed.set_header("TPP-Redirect-URI", "https://elsewhere.example/");
    let mut policy = Policy::new(Environment::Sandbox);
    let hosts = vec!["other.example".into()];
    policy
        .redirect_hosts
        .insert(forbidden("PSDNO-FSA-123456"), hosts);
    let (verdict, _) = judge_by(&signed, Some(anchor), 0, policy);
    assert_eq!(verdict.unwrap_err().reason(), Reason::SignatureMismatch);
}

//= SIG-10 accepted
#[test]
fn a_signature_in_encoded_words() {
    let (mut signed, anchor) = signed();
    let plain = signed.header("Signature").unwrap().to_owned();
    let word = |part: &[u8]| format!("=?utf-8?B?{}?=", STANDARD.encode(part));
    let folded: Vec<_> = plain.as_bytes().chunks(45).map(word).collect();
    for value in [word(plain.as_bytes()), folded.join(" ")] {
        signed.set_header("Signature", &value);
        let (verdict, _) = judge(&signed, Some(anchor.clone()), 0, &[]);
        assert!(verdict.unwrap().tpp().is_some(), "{value}");
    }
}

//= SIG-10 refused
#[test]
fn a_signature_in_words_that_cannot_be_decoded_or_are_encoded_twice() {
    let (mut signed, anchor) = signed();
    let plain = signed.header("Signature").unwrap().to_owned();
    let word = |text: &str| format!("=?utf-8?B?{}?=", STANDARD.encode(text));
    let twice = word(&word(&plain));
    for value in [twice, format!("{} x", word(&plain)), "=?x?B??=".into()] {
        signed.set_header("Signature", &value);
        let (verdict, _) = judge(&signed, Some(anchor.clone()), 0, &[]);
        let refusal = verdict.unwrap_err();
        assert_eq!(refusal.reason(), Reason::SignatureMalformed, "{value}");
    }
}

//= SIG-15 accepted
#[test]
fn a_request_target_that_is_not_signed_is_counted_under_its_tpp() {
    let (covered, anchor) = signed();
    let (verdict, record) = judge(&covered, Some(anchor), 0, &[]);
    assert!(verdict.is_ok() && record.left_target_unsigned().is_none());
    let mut options = SignOptions::at(NOW.system_time());
    options.headers = Some(vec![
        "Date".into(),
        "psu-id".into(),
        "tpp-redirect-uri".into(),
        "x-request-id".into(),
    ]);
    let (uncovered, anchor) = signed_with(&[], &options);
    let (verdict, record) = judge(&uncovered, Some(anchor), 0, &[]);
    let admitted = verdict.unwrap();
    assert_eq!(
        admitted.signed().unwrap().headers(),
        "date psu-id tpp-redirect-uri x-request-id"
    );
    assert_eq!(
        record.left_target_unsigned(),
        Some(&tpp("PSDNO-FSA-123456"))
    );
}

//= HDR-16 accepted
#[test]
fn what_is_on_goes_upstream_whether_named_or_not() {
    let options = SignOptions::at(NOW.system_time());
    let longer = ("x-accept-fix", "longer-names");
    let table = [
        (vec![], [false; 4]),
        (vec![longer], [false, false, true, false]),
    ];
    for (more, named) in table {
        let (signed, anchor) = signed_with(&more, &options);
        let (verdict, record) = judge(&signed, Some(anchor), 0, &[]);
        let admitted = verdict.unwrap();
        let sent = admitted.headers().iter();
        let sent: Vec<_> = sent
            .filter(|(name, _)| name == "x-accept-fix")
            .map(|(_, value)| value.to_str().unwrap())
            .collect();
        assert_eq!(
            sent,
            [
                "amount-as-string,cardaccount-switch-originalamount-and-transactionamount,longer-names,cash-account-type-iso"
            ]
        );
        assert_eq!(record.named_fixes().flags(), &named);
    }
}

/// Judges a request by a trust in which the issuer revoked the certificate; if `lists` is empty, the revocation status is unknown.
fn judge_revocation(
    lists: Vec<Vec<u8>>,
    signed: &SignedRequest,
    anchor: X509,
    observed: &[ObservableCheck],
) -> (Result<Admitted, Refusal>, Record) {
    let settings = RevocationSettings {
        lists,
        ..RevocationSettings::default()
    };
    let trust = Trust::new(Anchors::of_operator(vec![anchor], Vec::new()).unwrap())
        .with_revocation(Some(Arc::new(Revocation::new(settings).unwrap())));
    let mut policy = Policy::new(Environment::Sandbox);
    policy.revocation_unknown = WhenUnknown::Closed;
    policy.enforcement = observing(observed);
    judge_in(signed, trust, 0, policy)
}

/// CRT-6, FWD-6: an observed request with a revoked certificate authenticates nobody.
#[test]
fn a_revoked_certificate_that_is_observed_is_nobody_s() {
    let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
    let spec = pki::LeafSpec {
        serial: Some(vec![0x41, 7]),
        ..pki::LeafSpec::default()
    };
    let tpp = root.issue(&spec).unwrap();
    let signed = signed_by(&tpp, &[], &SignOptions::at(NOW.system_time()));
    let anchor = || X509::from_der(root.der()).unwrap();
    let at = |seconds: u64| {
        time::OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap()).unwrap()
    };
    let list = |revoked: &[Vec<u8>]| {
        let (from, to) = (at(NOW.unix() - 60), at(NOW.unix() + 60));
        vec![root.crl(revoked, from, to).unwrap()]
    };
    let (good, _) = judge_revocation(list(&[]), &signed, anchor(), &[]);
    let good = good.unwrap();
    assert!(good.tpp().is_some() && good.unrevoked().unwrap().is_known());

    let revoked = || list(&[vec![0x41, 7]]);
    let (refused, record) = judge_revocation(revoked(), &signed, anchor(), &[]);
    assert_eq!(refused.unwrap_err().reason(), Reason::CertificateRevoked);
    assert!(!record.holds(Stage::Revocation) && record.holds(Stage::Signature));
    let only = [ObservableCheck::Revocation];
    let (observed, record) = judge_revocation(revoked(), &signed, anchor(), &only);
    let observed = observed.unwrap();
    assert!(observed.tpp().is_none() && observed.unrevoked().is_none());
    assert_eq!(observed.waived(), [Reason::CertificateRevoked]);
    // The state of the PSU is neither read nor claimed for such a sender, and the core gets no fact about the PSU.
    assert!(observed.grant().is_none() && observed.claim().is_none());
    let claims = asserted(&observed);
    let names = claims.as_object().unwrap().keys();
    let told: Vec<_> = names.filter(|name| rests_on_sender(name)).collect();
    assert!(told.is_empty(), "{told:?}");
    assert!(!record.revocation_is_unknown());

    // The request is refused if the status is unknown.
    let (unknown, _) = judge_revocation(Vec::new(), &signed, anchor(), &[]);
    assert_eq!(unknown.unwrap_err().reason(), Reason::RevocationUnavailable);
}
