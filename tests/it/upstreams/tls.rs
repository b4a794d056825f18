//! TLS to the core: files that change under load (FWD-3).

use crate::harness::{
    Call, Connection, Gate, Over, TlsFront, Upstream, ca, check_error, client_certificate,
    eventually, tls_server, write_private,
};
use serde_json::{Value, json};
use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

/// The faults of a reload; none if it succeeded.
fn reload(gate: &Gate) -> Value {
    let answer = gate.tell("/reload", &json!({}));
    match answer.status {
        200 => Value::Null,
        _ => answer.json(),
    }
}

/// Every file of TLS to the core is replaced, each by one reload, while requests run: the CA of the core, the client certificate with its
/// key, and the key alone, which is refused and noticed.
//= FWD-3 accepted
//= FWD-3 refused
#[test]
fn files_of_tls_to_the_core_are_reloaded_under_load() {
    let core = Upstream::start();
    let [old, new, clients] = ["The old CA", "The new CA", "Clients"].map(ca);
    let front = TlsFront::start(tls_server(&old, &clients), core.address());
    let first = client_certificate(&clients);
    let gate = Gate::builder()
        .groups(&format!(
            "{{core: {{endpoints: [{{address: '{}'}}], tls: {{ca: core.pem, name: localhost, certificate: client.pem, key: client.key}}}}}}",
            front.address()
        ))
        .file("core.pem", old.pem())
        .file("client.pem", first.pem.clone())
        .private_file("client.key", first.key_pem.clone())
        .with_a_file()
        .start();
    let write = |name: &str, text: &str| write_private(&gate.folder().join(name), text);
    let (over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let more = |count: usize| {
        let goal = sent.load(Ordering::Relaxed) + count;
        eventually("requests go on", || sent.load(Ordering::Relaxed) >= goal);
    };
    thread::scope(|scope| {
        let ends = Over(&over);
        for call in [Call::accounts(), Call::payment()] {
            let (gate, over, sent) = (&gate, &over, &sent);
            scope.spawn(move || {
                let mut connection = Connection::open(gate);
                while !over.load(Ordering::Relaxed) {
                    let answer = connection.exchange(&gate.seal(&call)).unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.reason());
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        more(10);
        assert_eq!(front.last(), first.der);
        let mut shown = first;
        for round in 0..10 {
            // The key alone: the reload names it, and the old pair stays in use.
            let next = client_certificate(&clients);
            write("client.key", &next.key_pem);
            let faults = reload(&gate).to_string();
            assert!(
                faults.contains("tls.key") && faults.contains("not that of the certificate"),
                "{faults}"
            );
            more(4);
            assert_eq!(front.last(), shown.der, "{round}");
            write("client.pem", &next.pem);
            assert_eq!(reload(&gate), Value::Null);
            eventually("the new certificate is shown", || front.last() == next.der);
            more(4);
            shown = next;
            // Both CAs, then the core's new certificate, then the new CA alone; and back.
            let [from, to] = if round % 2 == 0 {
                [&old, &new]
            } else {
                [&new, &old]
            };
            write("core.pem", &(from.pem() + &to.pem()));
            assert_eq!(reload(&gate), Value::Null);
            more(4);
            front.serve_with(tls_server(to, &clients));
            write("core.pem", &to.pem());
            assert_eq!(reload(&gate), Value::Null);
            more(4);
        }
        drop(ends);
    });
    // A CA that did not issue the core's certificate: nothing is sent.
    core.take();
    write("core.pem", &clients.pem());
    assert_eq!(reload(&gate), Value::Null);
    let answer = super::get(&gate);
    crate::harness::check_error(
        "another CA",
        &answer,
        502,
        "SYSTEM_ERROR",
        "upstream-unreachable",
    );
    assert!(core.take().is_empty());
}

/// With TLS 1.3 the core's refusal comes after the gateway's part of the handshake, when the request may already be on its way.
//= FWD-3 accepted
//= FWD-3 refused
//= ERR-4 refused
#[test]
fn a_core_that_refuses_the_client_certificate_has_taken_no_request() {
    let core = Upstream::start();
    let [own, clients, others] = ["The CA", "Clients", "Others"].map(ca);
    let front = TlsFront::start(tls_server(&own, &clients), core.address());
    let good = TlsFront::start(tls_server(&own, &others), core.address());
    let [wrong, shown] = [", certificate: client.pem, key: client.key", ""].map(|keys| {
        let shown = client_certificate(&others);
        let gate = |endpoints: &str| {
            Gate::builder()
                .groups(&format!(
                    "{{core: {{endpoints: [{endpoints}], ejection: off, retry_percent: 100, \
                     tls: {{ca: core.pem, name: localhost{keys}}}}}}}"
                ))
                .file("core.pem", own.pem())
                .file("client.pem", shown.pem.clone())
                .private_file("client.key", shown.key_pem.clone())
                .start()
        };
        let bad = format!("{{address: '{}'}}", front.address());
        let both = format!("{bad}, {{address: '{}'}}", good.address());
        [gate(&bad), gate(&both)]
    });
    for gate in [&wrong[0], &shown[0]] {
        for _ in 0..8 {
            let answers = [super::get(gate), super::pay(gate)];
            for answer in answers {
                check_error(
                    "refused",
                    &answer,
                    502,
                    "SYSTEM_ERROR",
                    "upstream-unreachable",
                );
            }
        }
        let failures = gate.metric_at_rest("portvakt_upstream_failures_total", &["kind=\"tls\""]);
        assert!(failures > 15.9, "{failures}");
    }
    assert!(core.take().is_empty());
    // The other endpoint takes the certificate: no request was made at the first one, so a payment goes there.
    for _ in 0..8 {
        assert_eq!(super::pay(&wrong[1]).status, 200);
        assert_eq!(super::get(&wrong[1]).status, 200);
    }
    assert_eq!(core.take().len(), 16);
}
