//! The owner of a certificate and the roles in it: CRT-1, CRT-3 to CRT-5, CRT-9.

/// Upper bounds on times.
mod bounds;
/// CRT-2.
mod chain;
/// CRT-6, CRT-11: before every source has answered.
mod cold;
/// CRT-1: one spelling.
mod distinguished;
/// CRT-10.
mod encoding;
/// A measurement: the latency of known TPPs while responders of other TPPs fail.
mod faults;
/// CRT-12: the caches of certificates and chains.
mod kept;
/// CRT-7.
mod register;
/// CRT-14.
mod registers;
/// CRT-6, CRT-11, CRT-12.
mod revocation;
/// Strict parsing of QcStatements.
mod statements;
/// `certificate_policy: tolerant`.
mod tolerant;
/// CRT-6: authorised signers of revocation data.
mod vouched;

use crate::harness::{
    Call, Gate, Tpp, World, accepted, identified,
    pki::{Key, KeyUsagePurpose, LeafSpec, QcType, Role},
    refused, world,
};
use openssl::base64::encode_block;
use portvakt::hex;
use std::sync::LazyLock;

/// The same call with another spelling of its certificate.
fn showing(call: Call, certificate: &str) -> Call {
    call.with("TPP-Signature-Certificate", certificate)
}

//= CRT-1 accepted
#[test]
fn spellings_of_a_certificate() {
    let gate = Gate::start();
    let (der, pem) = (&world().both.issued.der, &world().both.issued.pem);
    let encoded: String = pem.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let spellings = [
        encode_block(der),
        encode_block(pem.as_bytes()),
        encode_block(pem.replace('\n', "\r\n").as_bytes()),
        pem.replace('\n', ""),
        pem.trim_end().replace('\n', " "),
        encoded,
        // A `+` stays a `+`: the encoding is percent-encoding, not that of forms.
        pem.replace('\n', "%0A"),
        // OpenSSL and Java write text before the PEM armour.
        format!("subject=CN = x issuer=CN = y {}", pem.replace('\n', " ")),
        encode_block(format!("Bag Attributes\n    friendlyName: x\n{pem}").as_bytes()),
    ];
    assert!(pem.contains('+'));
    for spelling in spellings {
        for passage in accepted(&gate, &showing(Call::accounts(), &spelling)) {
            assert_eq!(
                passage.seen.header("gateway-tpp-id"),
                Some("PSDNO-FSA-123456")
            );
        }
    }
}

//= CRT-1 refused
#[test]
fn what_is_no_certificate() {
    let gate = Gate::start();
    let (der, pem) = (&world().both.issued.der, &world().both.issued.pem);
    let base64 = encode_block(der);
    let hex = hex::encode(der);
    let bad = [
        "x".to_owned(),
        "AAAA".to_owned(),
        base64[..base64.len() - 8].to_owned(),
        base64.replace('+', "-").replace('/', "_").replace('=', "") + "*",
        hex,
        encode_block(&der[..der.len() - 1]),
        encode_block(base64.as_bytes()),
        pem.replace('\n', " ")
            .replace("-----END CERTIFICATE-----", ""),
        pem.replace('\n', " ").replace("CERTIFICATE", "PRIVATE KEY"),
        "-----BEGIN CERTIFICATE----- -----END CERTIFICATE-----".to_owned(),
        "%2D%2D%zz".to_owned(),
        // More than 1 KiB of text around it.
        "x".repeat(1_025) + &pem.replace('\n', " "),
        pem.replace('\n', " ") + &"x".repeat(1_025),
        encode_block(("x".repeat(1_025) + pem).as_bytes()),
    ];
    for certificate in bad {
        let answer = refused(
            &gate,
            &showing(Call::accounts(), &certificate),
            400,
            "FORMAT_ERROR",
            "certificate-malformed",
        );
        assert_eq!(
            answer.json()["faults"][0]["header"],
            "TPP-Signature-Certificate"
        );
    }
}

/// A leaf that differs from a valid one.
fn leaf(change: impl FnOnce(&mut LeafSpec)) -> Call {
    let mut spec = world().leaf();
    change(&mut spec);
    Call::accounts().by(&world().issue(&spec))
}

//= CRT-3 accepted
#[test]
fn seals_and_website_certificates() {
    let gate = Gate::start();
    accepted(&gate, &leaf(|spec| spec.qc_type = Some(QcType::Eseal)));
    accepted(&gate, &leaf(|spec| spec.qc_type = Some(QcType::Web)));
    accepted(
        &gate,
        &leaf(|spec| spec.key_usages = vec![KeyUsagePurpose::DigitalSignature]),
    );
    accepted(
        &gate,
        &leaf(|spec| spec.key_usages = vec![KeyUsagePurpose::ContentCommitment]),
    );
}

//= CRT-3 accepted
//= CRT-3 refused
#[test]
fn only_the_types_that_are_listed() {
    let kinds = [("eseal", QcType::Eseal), ("web", QcType::Web)];
    for (listed, _) in kinds {
        let types = format!("certificate_types: [{listed}]");
        let gate = Gate::builder().trust(&types).start();
        for (name, kind) in kinds {
            let call = leaf(|spec| spec.qc_type = Some(kind));
            if name == listed {
                accepted(&gate, &call);
                continue;
            }
            let answer = refused(&gate, &call, 403, "FORBIDDEN", "certificate-wrong-type");
            let text = answer.json()["faults"].to_string() + &answer.json()["message"].to_string();
            assert!(text.contains("type"), "{text}");
        }
    }
}

//= CRT-3 refused
#[test]
fn certificates_of_another_type() {
    let gate = Gate::start();
    let calls = [
        leaf(|spec| spec.qc_compliance = false),
        leaf(|spec| spec.qc_type = None),
        leaf(|spec| spec.qc_type = Some(QcType::Esign)),
        leaf(|spec| spec.key_usages = vec![KeyUsagePurpose::KeyEncipherment]),
        leaf(|spec| spec.key_usages = Vec::new()),
        // No QcStatements at all.
        leaf(|spec| (spec.qc_compliance, spec.qc_type, spec.roles) = (false, None, None)),
    ];
    for call in calls {
        refused(&gate, &call, 403, "FORBIDDEN", "certificate-wrong-type");
    }
}

//= CRT-4 accepted
#[test]
fn the_identity_of_a_tpp() {
    let gate = Gate::start();
    let identifiers = [
        ("PSDNO-FSA-123456", "PSDNO-FSA-123456"),
        (" psdfi-finfsa-29884997 ", "PSDFI-FINFSA-29884997"),
        ("PSDDE-BAFIN-A B/1", "PSDDE-BAFIN-A B/1"),
    ];
    for (written, keyed) in identifiers {
        for passage in accepted(
            &gate,
            &leaf(|spec| spec.organization_identifier = Some(written.into())),
        ) {
            assert_eq!(passage.seen.header("gateway-tpp-id"), Some(keyed));
        }
    }
}

//= CRT-4 refused
#[test]
fn certificates_without_a_psd2_identity() {
    let gate = Gate::start();
    let identifiers = [
        None,
        Some("NTRNO-123456"),
        Some("VATNO-123456"),
        Some("PSDNO-FSA"),
        Some("PSDNO-FSA-"),
        Some("PSDNOR-FSA-1"),
        Some("PSDNO--1"),
    ];
    for identifier in identifiers {
        let call = leaf(|spec| spec.organization_identifier = identifier.map(str::to_owned));
        refused(&gate, &call, 403, "FORBIDDEN", "certificate-not-psd2");
    }
    let statements = [
        leaf(|spec| spec.roles = None),
        leaf(|spec| spec.roles = Some(Vec::new())),
        leaf(|spec| spec.nca_name = String::new()),
        leaf(|spec| spec.nca_id = String::new()),
    ];
    for call in statements {
        refused(&gate, &call, 403, "FORBIDDEN", "certificate-not-psd2");
    }
}

/// The good leaf with another subject.
fn subject(identifiers: &[&str]) -> Call {
    let (der, key) = (&world().both.issued.der, &world().both.issued.key_pem);
    let der = identified(der, &world().issuing_key, identifiers);
    Call::plain().by(&Tpp::showing(der, key))
}

//= CRT-4 accepted
//= CRT-4 refused
#[test]
fn nobody_is_written_as_somebody_else() {
    let gate = Gate::start();
    accepted(&gate, &subject(&["PSDNO-FSA-123456"]));
    for other in [
        // By Unicode's rules the capital of the long s is an S, and the fullwidth digits are digits.
        &["P\u{17f}DNO-F\u{17f}A-123456"][..],
        &["psdno-f\u{17f}a-123456"],
        &["PSDNO-FSA-\u{ff11}23456"],
        &["PSDNO-FSA-123456\u{a0}"],
        &["PSDNO-FSA-12345\u{200b}6"],
        // With two values, neither is authoritative.
        &["PSDNO-FSA-123456", "PSDNO-FSA-111111"],
        &["PSDNO-FSA-111111", "PSDNO-FSA-123456"],
        &["PSDNO-FSA-123456", "PSDNO-FSA-123456"],
        &["PSDNO-FSA-123456", "NTRNO-123456"],
        &["\u{e6}", "PSDNO-FSA-123456"],
    ] {
        refused(
            &gate,
            &subject(other),
            403,
            "FORBIDDEN",
            "certificate-not-psd2",
        );
    }
}

/// Calls with the roles that may make them: PSP_AI, PSP_PI.
fn by_role() -> Vec<(Call, bool, bool)> {
    let payments = "/v1/payments/norwegian-domestic-credit-transfers";
    vec![
        (Call::accounts(), true, false),
        (Call::new("GET", "/v1/accounts/42/balances"), true, false),
        (
            Call::new("GET", "/v1/accounts/42/transactions"),
            true,
            false,
        ),
        (Call::details(), true, false),
        (Call::new("POST", "/v1/consents"), true, false),
        (Call::new("POST", "/v1/bank-offered-consents"), true, false),
        (Call::payment(), false, true),
        (Call::cross_border(), false, true),
        (
            Call::new("GET", &format!("{payments}/7/status")),
            false,
            true,
        ),
        (
            Call::new("POST", &format!("{payments}/7/authorisations")),
            false,
            true,
        ),
        (Call::basket(), false, true),
        (Call::new("GET", "/v1/signing-baskets/7"), false, true),
        (Call::new("GET", "/v1/users"), false, true),
        (Call::new("GET", "/v1/agreements"), true, true),
        (Call::sandbox_transactions(), true, true),
        (Call::bare("GET", "/v1/sandbox/customers"), true, true),
    ]
}

//= CRT-5 accepted
//= CRT-5 refused
#[test]
fn roles_decide_what_a_tpp_may_call() {
    let gate = Gate::builder().core_answers().start();
    for (call, account_information, payment_initiation) in by_role() {
        accepted(&gate, &call);
        for (tpp, may) in [
            (&world().aisp, account_information),
            (&world().pisp, payment_initiation),
        ] {
            let call = call.clone().by(tpp);
            if may {
                accepted(&gate, &call);
            } else {
                refused(&gate, &call, 403, "FORBIDDEN", "role-missing");
            }
        }
    }
}

//= CRT-5 refused
#[test]
fn other_roles_open_nothing() {
    let gate = Gate::start();
    let spec = LeafSpec {
        roles: Some(vec![Role::AccountServicing, Role::CardIssuing]),
        ..world().leaf()
    };
    let tpp = world().issue(&spec);
    for (call, ..) in by_role() {
        refused(&gate, &call.by(&tpp), 403, "FORBIDDEN", "role-missing");
    }
}

/// A second PKI with the same names.
static OTHER: LazyLock<World> = LazyLock::new(World::mint);

//= CRT-9 accepted
//= CRT-9 refused
#[test]
fn a_certificate_of_one_environment_at_the_gateway_of_another() {
    let (one, other) = (Gate::start(), Gate::builder().world(&OTHER).start());
    accepted(&one, &Call::accounts());
    accepted(&other, &Call::accounts().by(&OTHER.both));
    refused(
        &one,
        &Call::accounts().by(&OTHER.both),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
    refused(
        &other,
        &Call::accounts().by(&world().both),
        403,
        "FORBIDDEN",
        "certificate-untrusted",
    );
}

/// Production does not start without its checks.
//= CRT-9 refused
#[test]
fn production_needs_every_check() {
    let fault = Gate::builder()
        .environment("production")
        .try_start()
        .err()
        .expect("a fault");
    assert!(
        fault.contains("production checks revocation")
            && fault.contains("production checks registers"),
        "{fault}"
    );
    let fault = Gate::builder()
        .environment("staging")
        .try_start()
        .err()
        .expect("a fault");
    assert!(fault.contains("sandbox"), "{fault}");
}

//= CRT-9 accepted
#[test]
fn the_environment_is_told_to_the_upstream() {
    for passage in accepted(&Gate::start(), &Call::accounts()) {
        assert_eq!(passage.seen.header("gateway-environment"), Some("sandbox"));
    }
}

/// A given key, so that a certificate needs no new one.
fn shared_key() -> Key {
    Key::RsaPem(world().tpp_key.clone())
}
