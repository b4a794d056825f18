//! Malformed QcStatements: strict refuses them; a tolerant sandbox logs the faults that it accepts (CRT-3, CRT-4, CRT-9).

use super::leaf;
use crate::harness::{
    Call, Gate, Protocol, accepted,
    pki::{Extension, QC_STATEMENTS, der_oid, der_sequence, der_utf8},
    refused,
};
use serde_json::{Value, json};
use std::process::Command;

fn role(number: u64, name: &str) -> Vec<Vec<u8>> {
    vec![der_oid(&[0, 4, 0, 19495, 1, number]), der_utf8(name)]
}

fn psd2(roles: &[Vec<u8>], nca: &str) -> Vec<u8> {
    let info = der_sequence(&[der_sequence(roles), der_utf8("NCA"), der_utf8(nca)]);
    der_sequence(&[der_oid(&[0, 4, 0, 19495, 2]), info])
}

/// QcCompliance and QcType eseal, and this statement after them.
fn whole(statement: Vec<u8>) -> Vec<u8> {
    let kind = der_oid(&[0, 4, 0, 1862, 1, 6]);
    der_sequence(&[
        der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 1])]),
        der_sequence(&[kind, der_sequence(&[der_oid(&[0, 4, 0, 1862, 1, 6, 2])])]),
        statement,
    ])
}

/// A call by a TPP whose certificate has these QcStatements.
fn saying(content: Vec<u8>) -> Call {
    leaf(|spec| {
        (spec.qc_compliance, spec.qc_type, spec.roles) = (false, None, None);
        spec.extra_extensions = vec![Extension {
            oid: QC_STATEMENTS.to_vec(),
            critical: false,
            content,
        }];
    })
}

/// Each malformed form, by its name in the log.
fn shapes() -> Vec<(&'static str, Call)> {
    let one = der_sequence(&role(3, "PSP_AI"));
    let flat = [role(2, "PSP_PI"), role(3, "PSP_AI")].concat();
    vec![
        ("roles-flattened", saying(whole(psd2(&flat, "NO-FSA")))),
        (
            "statement-unwrapped",
            saying(psd2(std::slice::from_ref(&one), "NO-FSA")),
        ),
        ("nca-id-malformed", saying(whole(psd2(&[one], "Germany")))),
    ]
}

//= CRT-4 accepted
//= CRT-4 refused
//= CRT-9 accepted
#[test]
fn malformed_statements() {
    let strict = Gate::start();
    let tolerant = Gate::builder().line("certificate_policy: tolerant").start();
    for (name, call) in shapes() {
        refused(&strict, &call, 403, "FORBIDDEN", "certificate-not-psd2");
        let before = tolerant.metric_at_rest("portvakt_tolerated_total", &[name]);
        for passage in accepted(&tolerant, &call) {
            let roles = passage.seen.header("gateway-tpp-roles").unwrap();
            assert!(roles.contains("PSP_AI"), "{name}: {roles}");
        }
        let counted = tolerant.metric_at_rest("portvakt_tolerated_total", &[name]) - before;
        assert!((1.5..2.5).contains(&counted), "{name}: {counted}");
    }
    // A statement without a role identifies the TPP, and gives no role.
    let none = saying(whole(psd2(&[], "NO-FSA")));
    refused(&strict, &none, 403, "FORBIDDEN", "certificate-not-psd2");
    refused(&tolerant, &none, 403, "FORBIDDEN", "role-missing");
    // A correct statement has nothing to log, and an unreadable one is not tolerated either.
    accepted(&tolerant, &Call::accounts());
    let garbage = saying(vec![0x30, 0x00]);
    refused(
        &tolerant,
        &garbage,
        403,
        "FORBIDDEN",
        "certificate-wrong-type",
    );
    assert!(tolerant.metric_at_rest("portvakt_tolerated_total", &[]) < 8.5);
}

#[test]
fn what_is_tolerated_stands_in_the_log() {
    let builder = Gate::builder().line("certificate_policy: tolerant");
    let (gate, program) = builder.start_program();
    let calls: Vec<_> = shapes().into_iter().map(|(_, call)| call).collect();
    for call in calls.iter().chain([&Call::accounts()]) {
        assert_eq!(gate.send(call, Protocol::Http1).status, 200);
    }
    let id = program.id().to_string();
    Command::new("kill").args(["-TERM", &id]).status().unwrap();
    let output = program.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let named: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["tolerated"].clone())
        .collect();
    let expected = [
        json!(["roles-flattened"]),
        json!(["statement-unwrapped"]),
        json!(["nca-id-malformed"]),
        Value::Null,
    ];
    assert_eq!(named, expected);
}
