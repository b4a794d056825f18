//! PSU-IDs that are being learned: what the core leaves out is reported before the end of learning (SCA-19).

use super::{observed, observing};
use crate::harness::{Call, Gate, Protocol, Reply, eventually};
use portvakt::admission::ObservableCheck;
use serde_json::json;
use std::fs;

const LEARNING: [&str; 3] = [
    "unknown_psu: learn",
    "learn_since: 2026-01-01",
    "learn_until: 2036-01-01",
];

/// Requests of three PSUs: two reads and a payment.
fn calls() -> [Call; 3] {
    let number = std::cell::Cell::new(0);
    let of_a_new_psu = |call: Call| {
        number.set(number.get() + 1);
        let psu = format!("0192f0c1-5a5b-7def-8000-0000000000{:02}", number.get());
        let call = call.without("TPP-Session-ID").with("PSU-ID", &psu);
        call.only(Protocol::Http1)
    };
    [
        of_a_new_psu(Call::accounts()),
        of_a_new_psu(Call::balances().at("/v1/accounts/7/balances")),
        of_a_new_psu(Call::payment()),
    ]
}

fn statuses(gate: &Gate) -> [u16; 3] {
    calls().map(|call| gate.send(&call, Protocol::Http1).status)
}

/// From now on everything refuses, and nobody is learned.
fn enforce(gate: &Gate) {
    let yaml = gate.yaml().lines();
    let yaml: Vec<_> = yaml
        .filter(|line| !LEARNING.contains(&line.trim()) && !line.starts_with("observe:"))
        .collect();
    fs::write(gate.folder().join("gateway.yaml"), yaml.join("\n")).unwrap();
    let reloaded = gate.tell("/reload", &json!({}));
    assert_eq!(reloaded.json()["reloaded"], true, "{:?}", reloaded.json());
}

/// Whatever the core answers: the requests that were counted are those that enforcement then refuses.
//= FWD-6 accepted
//= FWD-6 refused
//= SCA-19 accepted
//= SCA-19 refused
#[test]
fn what_is_not_learned_is_counted() {
    let bound = ("Gateway-Psu-Bound", "yes");
    let sca = ("Gateway-Sca-At", "2026-10-01T10:00:00Z");
    let consent = ("Gateway-Consent-At", "2026-10-01T10:00:00Z");
    let one = ("Gateway-Consent-Accounts", "7");
    let other = ("Gateway-Consent-Accounts", "8");
    let table = [
        (200, &[][..], [401, 401, 401]),
        (200, &[sca, consent], [401, 401, 401]),
        (200, &[bound], [401, 401, 200]),
        (200, &[bound, consent], [401, 401, 200]),
        (200, &[bound, sca, consent, other], [200, 404, 200]),
        (200, &[bound, sca, consent, one], [200, 200, 200]),
        (404, &[bound, sca, consent], [401, 401, 401]),
        (500, &[], [401, 401, 401]),
    ];
    for checks in ["all", "[]"] {
        for (status, headers, then) in table {
            let gate = LEARNING
                .iter()
                .fold(observing(checks), |gate, line| gate.sca(line));
            let gate = gate.strangers().with_a_file().start();
            let reply = Reply::json(status, "{}");
            let reply = headers
                .iter()
                .fold(reply, |reply, (name, value)| reply.with(name, value));
            gate.upstream().reply(reply);
            assert_eq!(statuses(&gate), [status; 3], "{checks} {headers:?}");
            let refused = then.iter().filter(|status| **status >= 400).count();
            eventually(
                &format!("{checks} {status} {headers:?}: {refused} are counted"),
                || {
                    let seen = gate.metric_at_rest("portvakt_requests_total", &[]);
                    let counted = observed(&gate, ObservableCheck::Sca);
                    seen > 2.9 && (counted - f64::from(u8::try_from(refused).unwrap())).abs() < 0.1
                },
            );
            enforce(&gate);
            gate.upstream().reply(Reply::json(200, "{}"));
            gate.upstream().take();
            assert_eq!(statuses(&gate), then, "{checks} {headers:?}");
            assert_eq!(gate.upstream().take().len(), 3 - refused);
        }
    }
}
