//! SCA-12: random nonces are safe for 2³² tokens under one key. The gateway counts the tokens of each key, and a key at the
//! limit seals no more tokens.

use crate::harness::{Call, Gate, GateBuilder, Protocol, Reply, accepted, needs_sca, refused};
use portvakt::sca::rotate;
use serde_json::json;
use std::fs;

const KEY: &str = "00000007 BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n";

const LIMIT: u64 = 1 << 32;

/// A gate whose key has sealed this number of tokens.
fn gate(sealed: u64) -> GateBuilder {
    Gate::builder()
        .private_file("sca.keys", KEY)
        .private_file("sca.keys.seals", format!("00000007 {sealed}\n"))
}

fn counted(gate: &Gate) -> String {
    fs::read_to_string(gate.folder().join("sca.keys.seals")).unwrap()
}

/// A request that starts an SCA.
fn starts() -> Call {
    Call::accounts()
        .without("PSU-ID")
        .with("TPP-Redirect-URI", "https://tpp.example/back")
        .only(Protocol::Http1)
}

/// Refused like without a state store, and the core received nothing.
fn seals_nothing(gate: &Gate, call: &Call) {
    let answer = refused(gate, call, 503, "SYSTEM_ERROR", "state-unavailable");
    assert!(answer.json()["_links"].is_null());
}

//= SCA-12 refused
#[test]
fn a_key_that_is_used_up_seals_nothing() {
    let gate = gate(LIMIT - 2).with_a_file().start();
    assert_eq!(gate.control("/readyz").status, 200);
    let near = gate.metric_at_rest("portvakt_sca_token_seals", &["00000007"]);
    let alert = gate.metric_at_rest("portvakt_sca_token_seals_alert", &[]);
    assert!(near > alert && alert > 2_147_483_647.0, "{near} {alert}");
    for _ in 0..2 {
        needs_sca(&gate, &starts());
    }
    assert_eq!(counted(&gate), format!("00000007 {LIMIT}\n"));
    let full = gate.metric_at_rest("portvakt_sca_token_seals", &["00000007"]);
    let limit = gate.metric_at_rest("portvakt_sca_token_seals_limit", &[]);
    assert!((full - limit).abs() < 0.1, "{full} {limit}");
    // No link of the gateway's own, no link for the core, and no link added to an answer of the core.
    seals_nothing(&gate, &starts());
    seals_nothing(
        &gate,
        &Call::payment().with("TPP-Redirect-URI", "https://tpp.example/back"),
    );
    gate.upstream().reply(Reply::json(401, "{}"));
    let call = Call::accounts().with("TPP-Redirect-URI", "https://tpp.example/back");
    let answer = gate.send(&call, Protocol::Http1);
    assert_eq!(answer.status, 503, "{:?}", answer.json());
    // Requests without a link succeed.
    gate.upstream().reply(Reply::json(200, "{}"));
    accepted(&gate, &Call::accounts());
    let ready = gate.control("/readyz");
    assert_eq!(ready.status, 503);
    let why = ready.json()["notWell"].to_string();
    assert!(
        why.contains("00000007") && why.contains("rotate-key"),
        "{why}"
    );
    assert!(gate.metric_at_rest("portvakt_not_ready", &["cause=\"sca\""]) > 0.9);
    // Both steps of a rotation; then the new key seals.
    for _ in 0..2 {
        rotate(&gate.folder().join("sca.keys"), gate.now()).unwrap();
        assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    }
    assert_eq!(gate.control("/readyz").status, 200);
    needs_sca(&gate, &starts());
    assert!(counted(&gate).starts_with(&format!("00000007 {LIMIT}\n")));
    assert_eq!(counted(&gate).lines().count(), 2);
}

//= SCA-12 accepted
#[test]
fn a_count_outlives_its_gateway_and_its_reloads() {
    let mut gate = gate(5).start();
    needs_sca(&gate, &starts());
    let one = gate.metric_at_rest("portvakt_sca_token_seals", &["00000007"]);
    assert!((one - 6.0).abs() < 0.1, "{one}");
    accepted(
        &gate,
        &Call::payment()
            .with("TPP-Redirect-URI", "https://tpp.example/back")
            .only(Protocol::Http1),
    );
    let two = gate.metric_at_rest("portvakt_sca_token_seals", &["00000007"]);
    assert!((two - 7.0).abs() < 0.1, "{two}");
    gate.restart();
    let after = gate.metric_at_rest("portvakt_sca_token_seals", &["00000007"]);
    assert!(after >= two, "{after}");
    // A start without new tokens does not change the counter.
    let file = counted(&gate);
    gate.restart();
    assert_eq!(counted(&gate), file);
}

#[test]
fn a_count_that_cannot_be_kept_stops_what_it_counts() {
    let gate = gate(5).start();
    let path = gate.folder().join("sca.keys.seals");
    fs::write(&path, "nonsense\n").unwrap();
    seals_nothing(&gate, &starts());
    assert_eq!(gate.control("/readyz").status, 503);
    fs::write(&path, "00000007 5\n").unwrap();
    assert_eq!(gate.control("/readyz").status, 200);
    needs_sca(&gate, &starts());
}

#[test]
fn a_file_of_counts_that_is_none_is_said_at_the_start() {
    let fault = gate(5)
        .private_file("sca.keys.seals", "nonsense\n")
        .try_start()
        .err()
        .expect("a fault");
    assert!(
        fault.contains("sca.token_seals: ") && fault.contains("line 1 is no count"),
        "{fault}"
    );
}
