//! Session tickets of several replicas: what they resume, and what they do not (TLS-3, CRT-8).

use super::client_auth::{VERSIONS, call, client, issue, qwac};
use crate::harness::{Call, Gate, GateBuilder, check_error, pki, world};
use portvakt::clock::{Clock, Timestamp};
use rustls::HandshakeKind::{self, Full, Resumed};
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt, sync::Arc};

/// A line of a key file. The secret follows from the id.
fn key(id: u8) -> String {
    let secret = openssl::base64::encode_block(&[id; 32]);
    format!("{id:08x} {secret}\n")
}

/// A gateway with these ticket keys.
fn replica(keys: &str) -> GateBuilder {
    Gate::builder()
        .listener("ticket_keys: tickets")
        .private_file("tickets", keys)
}

/// The kind of the handshake of a call, which succeeds.
fn kind(gate: &Gate, client: &Arc<rustls::ClientConfig>) -> HandshakeKind {
    let (answer, kind) = call(gate, client, &Call::accounts()).unwrap();
    assert_eq!(answer.status, 200, "{:?}", answer.json());
    kind
}

#[test]
fn replicas_with_the_same_keys_resume_each_other_s_sessions() {
    let [one, other] = [(); 2].map(|()| replica(&key(1)).start());
    let [alone, beside] = [(); 2].map(|()| Gate::start());
    for version in VERSIONS {
        let shared = client(version, None, b"http/1.1");
        assert_eq!(kind(&one, &shared), Full);
        assert_eq!(kind(&other, &shared), Resumed);
        assert_eq!(kind(&alone, &shared), Full, "it has keys of its own");
        assert_eq!(kind(&alone, &shared), Resumed);
        assert_eq!(kind(&beside, &shared), Full);
    }
    other.eventually_metric("portvakt_handshakes_total", &["outcome=\"resumed\""], 2.0);
}

#[test]
fn the_newest_key_issues_and_older_ones_are_accepted() {
    let gate = replica(&key(1)).with_a_file().start();
    let [new, old] = [2, 1].map(|id| replica(&key(id)).start());
    for version in VERSIONS {
        let early = client(version, None, b"http/1.1");
        assert_eq!(kind(&gate, &early), Full);
        let rotated = [key(2), key(1)].concat();
        fs::write(gate.folder().join("tickets"), rotated).unwrap();
        assert_eq!(gate.tell("/reload", &json!({})).status, 200);
        assert_eq!(kind(&gate, &early), Resumed);
        let late = client(version, None, b"http/1.1");
        assert_eq!(kind(&gate, &late), Full);
        assert_eq!(kind(&new, &late), Resumed);
        let late = client(version, None, b"http/1.1");
        assert_eq!(kind(&gate, &late), Full);
        assert_eq!(kind(&old, &late), Full, "it does not know the new key");
        fs::write(gate.folder().join("tickets"), key(1)).unwrap();
        assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    }
}

/// A session without a certificate must not become one of a listener that requires a certificate.
//= TLS-3 refused
#[test]
fn a_ticket_holds_only_under_the_client_auth_that_it_was_issued_under() {
    let own = issue(&qwac());
    let modes = ["off", "optional", "required"];
    let gates = modes.map(|mode| {
        let client_auth = format!("client_auth: {mode}");
        replica(&key(1)).listener(&client_auth).start()
    });
    for (issuer, from) in gates.iter().zip(modes) {
        for (other, to) in gates.iter().zip(modes) {
            for version in VERSIONS {
                let shown = (from == "required").then_some(&own);
                let client = client(version, shown, b"http/1.1");
                assert_eq!(kind(issuer, &client), Full);
                other.upstream().take();
                let again = call(other, &client, &Call::accounts());
                if to == "required" && shown.is_none() {
                    assert!(again.is_err(), "{from} {version:?}");
                    assert!(other.upstream().take().is_empty());
                } else {
                    let expected = if from == to { Resumed } else { Full };
                    assert_eq!(again.unwrap().1, expected, "{from} {to} {version:?}");
                }
            }
        }
    }
}

/// A resumed session presents no certificate; the one in the ticket is judged by the anchors of the replica that resumes it.
//= TLS-3 accepted
//= TLS-3 refused
#[test]
fn the_certificate_of_a_ticket_is_judged_again() {
    let own = issue(&qwac());
    let required = || replica(&key(1)).listener("client_auth: required");
    let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
    let [issuer, same] = [(); 2].map(|()| required().start());
    let with_other_anchors = required()
        .listener("client_anchors: web")
        .file("web/root.pem", root.pem())
        .start();
    for version in VERSIONS {
        let client = client(version, Some(&own), b"http/1.1");
        assert_eq!(kind(&issuer, &client), Full);
        assert_eq!(kind(&same, &client), Resumed);
        same.upstream().take();
        for (gate, made, reason) in [
            (
                &same,
                Call::accounts().by(&world().aisp),
                "certificate-identity-mismatch",
            ),
            (
                &with_other_anchors,
                Call::accounts(),
                "certificate-untrusted",
            ),
        ] {
            let (answer, kind) = call(gate, &client, &made).unwrap();
            assert_eq!(kind, Resumed, "{reason}");
            check_error(reason, &answer, 403, "FORBIDDEN", reason);
            assert!(gate.upstream().take().is_empty());
        }
    }
}

#[test]
fn a_ticket_ends_after_twelve_hours() {
    const NOW: u64 = 1_800_000_000;
    let clock = Clock::standing(Timestamp::from_unix(NOW));
    let gate = replica(&key(1)).clock(&clock).start();
    for version in VERSIONS {
        for (at, expected) in [
            (NOW + 43_200, Resumed),
            (NOW + 43_201, Full),
            (NOW - 300, Resumed),
            (NOW - 301, Full),
        ] {
            clock.set(Timestamp::from_unix(NOW));
            let client = client(version, None, b"http/1.1");
            assert_eq!(kind(&gate, &client), Full);
            clock.set(Timestamp::from_unix(at));
            let (_, kind) = call(&gate, &client, &Call::accounts()).unwrap();
            assert_eq!(kind, expected, "{at} {version:?}");
        }
    }
}

#[test]
fn a_key_file_that_others_can_read_is_refused() {
    let start = |mode: u32, text: &str| {
        let gate = replica(&key(1)).with_a_file().start();
        let path = gate.folder().join("tickets");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let answer = gate.tell("/reload", &json!({}));
        (answer.status == 200, answer.json().to_string())
    };
    assert!(start(0o600, &key(2)).0 && start(0o400, &key(2)).0);
    let (taken, text) = start(0o640, &key(2));
    assert!(
        !taken && text.contains("listener.ticket_keys") && text.contains("mode 0640"),
        "{text}"
    );
    let (taken, text) = start(0o600, "secret");
    assert!(
        !taken && text.contains("line 1 is no key") && !text.contains("secret"),
        "{text}"
    );
}
