//! The keys of assertions and of SCA links rotate by reloads: requests before and after each step are served, the core always knows the
//! key, and tokens of the old key are read.

use super::{configure, reload};
use crate::harness::{Call, Gate, accepted, needs_sca, write_private};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use portvakt::{sca, signing::AssertionKey};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

/// The key that signs the assertion of a request, by its id; the gateway publishes it.
fn signs(gate: &Gate) -> String {
    let passage = accepted(gate, &Call::accounts()).remove(0);
    let assertion = passage.seen.header("gateway-assertion").unwrap();
    let header = BASE64_URL_SAFE_NO_PAD.decode(assertion.split('.').next().unwrap());
    let header: Value = serde_json::from_slice(&header.unwrap()).unwrap();
    let id = header["kid"].as_str().unwrap().to_owned();
    assert!(published(gate).contains(&id));
    id
}

fn published(gate: &Gate) -> BTreeSet<String> {
    let keys = gate.control("/.well-known/jwks.json").json();
    let ids = keys["keys"].as_array().unwrap().iter();
    ids.map(|key| key["kid"].as_str().unwrap().to_owned())
        .collect()
}

//= FWD-1 accepted
//= CRT-8 accepted
#[test]
fn the_key_of_assertions_rotates_by_two_reloads() {
    let gate = Gate::builder()
        .with_a_file()
        .line("assertion: {key: state/a.key}")
        .start();
    let first = signs(&gate);
    let text = gate.yaml().to_owned();
    let next = gate.folder().join("state/b.key");
    AssertionKey::read_or_make(&next).unwrap();
    let step = |section: &str| {
        configure(
            &gate,
            &text.replace("assertion: {key: state/a.key}", section),
        );
        assert_eq!(reload(&gate), json!([]));
    };
    step("assertion: {key: state/a.key, previous: state/b.key}");
    assert_eq!(signs(&gate), first);
    let both = published(&gate);
    assert_eq!(both.len(), 2);
    step("assertion: {key: state/b.key, previous: state/a.key}");
    let second = signs(&gate);
    assert_ne!(second, first);
    assert_eq!(published(&gate), both);
    step("assertion: {key: state/b.key}");
    assert_eq!(signs(&gate), second);
    assert_eq!(published(&gate), BTreeSet::from([second.clone()]));
    // The content of the file counts, and a lost file is no reason for a new key.
    let old = fs::read(gate.folder().join("state/a.key")).unwrap();
    write_private(&next, &old);
    assert_eq!(reload(&gate), json!([]));
    assert_eq!(signs(&gate), first);
    fs::remove_file(&next).unwrap();
    let answer = gate.tell("/reload", &json!({}));
    assert_eq!(answer.status, 422);
    assert!(answer.json()["faults"].to_string().contains("b.key"));
    assert!(!next.exists());
    assert_eq!(signs(&gate), first);
}

//= SCA-12 accepted
//= CRT-8 accepted
#[test]
fn the_keys_of_links_rotate_by_two_reloads() {
    let gate = Gate::builder().with_a_file().start();
    let token = || {
        let call = Call::accounts().without("PSU-ID");
        let call = call.with("TPP-Redirect-URI", "https://tpp.example/back");
        let answer = needs_sca(&gate, &call).json();
        let href = answer["_links"]["scaRedirect"]["href"].as_str().unwrap();
        href.split_once("?request=").unwrap().1.to_owned()
    };
    let read = |token: &str| gate.tell("/sca/read", &json!({ "request": token })).status;
    let mut tokens = vec![token()];
    // The new key opens; the new key seals, and the old one still opens.
    for _ in 0..2 {
        sca::rotate(&gate.folder().join("sca.keys"), gate.now()).unwrap();
        assert_eq!(reload(&gate), json!([]));
        tokens.push(token());
        let status: Vec<_> = tokens.iter().map(|token| read(token)).collect();
        assert!(status.iter().all(|status| *status == 200), "{status:?}");
    }
    // A later rotation drops the oldest key, and its tokens with it.
    sca::rotate(&gate.folder().join("sca.keys"), gate.now()).unwrap();
    assert_eq!(reload(&gate), json!([]));
    assert_ne!(read(&tokens[0]), 200);
    assert_eq!(read(&tokens[2]), 200);
}
