//! Caches of certificates, and limits on building chains: CRT-1, CRT-12, QUO-12.

use super::{chain::chain, showing};
use crate::harness::{
    Call, Forged, Gate, Protocol, Tpp, accepted, check_error, pki::Ca, pki::CaSpec, refused, world,
};
use openssl::base64::encode_block;
use serde_json::json;
use std::sync::Arc;

/// The call with an invalid signature.
fn forged(call: Call) -> Call {
    call.signature(|signature| {
        let (before, after) = signature.split_once("signature=\"").unwrap();
        format!("{before}signature=\"AAAAAAAA{}", &after[8..])
    })
}

/// A TPP whose issuing CA is only in its own PEM chain, and that CA.
fn behind_an_intermediate() -> (Arc<Tpp>, String) {
    let between = world().root.issue_ca(&CaSpec::default()).unwrap();
    let tpp = Tpp::of(between.issue(&world().leaf()).unwrap());
    (tpp, between.pem())
}

/// The same TPP with an invalid signature on its certificate, different for each number.
fn nobody(number: u32) -> Call {
    let mut der = world().aisp.issued.der.clone();
    let at = der.len() - 4;
    for (byte, other) in der[at..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= other;
    }
    let tpp = Tpp::showing(der, &world().aisp.issued.key_pem);
    Call::plain().by(&tpp).only(Protocol::Http1)
}

fn untrusted(gate: &Gate, call: &Call) {
    refused(gate, call, 403, "FORBIDDEN", "certificate-untrusted");
}

fn mismatched(gate: &Gate, call: Call) {
    let call = forged(call);
    refused(gate, &call, 400, "FORMAT_ERROR", "signature-mismatch");
}

/// The status and the reason of one request over HTTP/1.1.
fn answered(gate: &Gate, call: &Call) -> (u16, String) {
    let answer = gate.send(call, Protocol::Http1);
    (answer.status, answer.reason())
}

//= CRT-12 accepted
//= CRT-12 refused
#[test]
fn a_certificate_is_kept_once_it_has_signed() {
    let gate = Gate::start();
    let (tpp, issuer) = behind_an_intermediate();
    let alone = Call::plain().by(&tpp);
    let with_pool = chain(alone.clone(), &[&tpp.issued.pem, &issuer]);
    untrusted(&gate, &alone);
    // A caller without the key leaves no cache entry.
    mismatched(&gate, with_pool.clone());
    untrusted(&gate, &alone);
    // The chain is cached after its first valid signature, and needs no certificate from the request any more.
    accepted(&gate, &with_pool);
    accepted(&gate, &alone);
    mismatched(&gate, alone);
}

/// Invalid issuer certificates that another caller sends with a TPP's certificate do not affect the TPP.
//= CRT-12 accepted
//= CRT-12 refused
#[test]
fn a_strangers_pool_is_not_held_against_a_tpp() {
    let gate = Gate::start();
    let own = &world().both.issued.pem;
    let broken = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        encode_block(&[0x30, 0x82, 1, 0, 7])
    );
    let call = chain(Call::plain(), &[own, &broken]);
    refused(&gate, &call, 400, "FORMAT_ERROR", "certificate-malformed");
    accepted(&gate, &Call::plain());
    // A CA certificate that forbids what the real one allows.
    let (tpp, issuer) = behind_an_intermediate();
    let spec = CaSpec {
        not_after: time::macros::datetime!(2016-01-01 0:00 UTC),
        ..CaSpec::default()
    };
    let other: Ca = world().root.issue_ca(&spec).unwrap();
    let call = Call::plain().by(&tpp);
    untrusted(
        &gate,
        &chain(call.clone(), &[&tpp.issued.pem, &other.pem()]),
    );
    let flaw = Forged {
        is_ca: false,
        ..Forged::default()
    };
    let twin = flaw.twin_of(&other, &world().root, &world().root_key);
    untrusted(&gate, &chain(call.clone(), &[&tpp.issued.pem, &twin]));
    accepted(&gate, &chain(call, &[&tpp.issued.pem, &issuer]));
}

//= CRT-12 accepted
#[test]
fn telemetry_names_who_signed_and_each_once() {
    let gate = Gate::start();
    let series = || {
        let text = String::from_utf8(gate.control("/metrics").body).unwrap();
        let name = "portvakt_tpp_certificate_end_timestamp_seconds{";
        text.lines().filter(|line| line.starts_with(name)).count()
    };
    mismatched(&gate, Call::plain());
    assert_eq!(series(), 0);
    accepted(&gate, &Call::plain());
    let pem = &world().both.issued.pem;
    for spelling in [pem.replace('\n', " "), encode_block(pem.as_bytes())] {
        accepted(&gate, &showing(Call::plain(), &spelling));
    }
    assert_eq!(series(), 1);
}

//= QUO-12 accepted
//= QUO-12 refused
#[test]
fn strangers_get_so_many_chains_and_known_tpps_need_none() {
    let gate = Gate::builder()
        .line("rates: {chains_per_address: 2, chains: 1000}")
        .start();
    accepted(&gate, &Call::plain());
    let mut number = 0;
    let mut stranger = || {
        number += 1;
        answered(&gate, &nobody(number))
    };
    let first = stranger();
    assert_eq!(first, (403, "certificate-untrusted".into()));
    let mut other = 1_000;
    let refusal = gate.exceed(|| {
        other += 1;
        nobody(other)
    });
    assert_eq!(
        (refusal.status, refusal.reason()),
        (503, "too-many-at-once".into())
    );
    // From the same address: a known TPP with any spelling, and a caller who presents its certificate without the key.
    let pem = world().both.issued.pem.replace('\n', " ");
    for _ in 0..20 {
        stranger();
        accepted(&gate, &Call::plain());
        accepted(&gate, &showing(Call::plain(), &pem));
        mismatched(&gate, showing(Call::plain(), &pem));
    }
    // A TPP that is not known yet gets Retry-After.
    gate.upstream().take();
    let late = Call::plain().by(&world().aisp);
    let answer = (0..50)
        .map(|_| {
            stranger();
            gate.send(&late, Protocol::Http1)
        })
        .find(|answer| answer.status != 200 && answer.reason() != "certificate-untrusted");
    if let Some(answer) = answer {
        check_error("late", &answer, 503, "SYSTEM_ERROR", "too-many-at-once");
        assert!(answer.header("retry-after").is_some());
    }
}

//= QUO-12 accepted
//= CRT-12 accepted
#[test]
fn who_is_known_stays_so_over_a_reload() {
    let gate = Gate::builder()
        .with_a_file()
        .line("rates: {chains_per_address: off, chains: 1}")
        .start();
    accepted(&gate, &Call::plain());
    for round in 0..3 {
        assert_eq!(gate.tell("/reload", &json!({})).status, 200);
        // Independently of the answer, no cache entry remains.
        for number in 0..2 {
            answered(&gate, &nobody(round * 2 + number));
        }
        accepted(&gate, &Call::plain());
    }
}

/// The part of HTTP-9 that concerns this header.
//= CRT-1 accepted
//= CRT-1 refused
#[test]
fn a_certificate_of_16_kib_and_one_byte() {
    let gate = Gate::start();
    let pool = |count: usize| {
        let whole = world().both.issued.pem.clone() + &world().issuing.pem().repeat(count);
        whole.replace('\n', " ")
    };
    let most = (1..7).rev().map(pool).find(|text| text.len() < 16_000);
    let most = most.unwrap();
    let room = 16 * 1024 - most.len();
    // Text stands before each certificate, 1 KiB at most.
    let padded = |more: usize| {
        let mut left = room + more;
        let parts = most.split("-----BEGIN").map(|part| {
            let text = "x".repeat(left.min(1_000));
            left -= text.len();
            part.to_owned() + &text
        });
        let parts: Vec<_> = parts.collect();
        (parts.join("-----BEGIN"), left)
    };
    for (more, holds) in [(0, true), (1, false)] {
        let (text, left) = padded(more);
        assert_eq!((text.len(), left), (16 * 1024 + more, 0));
        let call = showing(Call::plain(), &text);
        if holds {
            accepted(&gate, &call);
        } else {
            refused(&gate, &call, 431, "BAD_REQUEST", "headers-too-large");
        }
    }
}
