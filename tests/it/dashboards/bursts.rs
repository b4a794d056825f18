//! Prometheus sees no increase to the first value of a series. So each series by which an alert counts exists before its first event: from the
//! start of the gateway, or, of a TPP, from its first verified request.

use super::{alerts, recorded};
use crate::harness::{Call, Gate, Protocol, Reply, accepted, eventually_is};
use std::collections::BTreeSet;

/// A counter that an alert reads: its name, and the alternatives of each label that the alert compares.
type Counter = (String, Vec<(String, Vec<String>)>);

/// The selectors inside of `rate()` and `increase()`.
fn counters() -> Vec<Counter> {
    let exprs: Vec<_> = alerts()
        .into_iter()
        .chain(recorded())
        .map(|rule| rule.expr)
        .collect();
    let calls = exprs.iter().flat_map(|expr| {
        let after = |function| expr.split(function).skip(1);
        after("rate(").chain(after("increase("))
    });
    calls.map(counter).collect()
}

fn counter(call: &str) -> Counter {
    let selector = call.split('[').next().unwrap();
    let (name, labels) = selector.split_once('{').unwrap_or((selector, ""));
    let labels = labels.trim_end_matches('}').split(", ");
    let compared = labels.filter_map(|label| {
        let (name, value) = label.split_once('=')?;
        // A label that must differ finds the others.
        if name.ends_with('!') {
            return None;
        }
        let value = value.trim_matches(['~', '"']);
        Some((
            name.to_owned(),
            value.split('|').map(str::to_owned).collect(),
        ))
    });
    (name.to_owned(), compared.collect())
}

/// The series of these counters, without their values.
fn series(gate: &Gate, names: &BTreeSet<String>) -> BTreeSet<String> {
    let text = String::from_utf8(gate.control("/metrics").body).unwrap();
    let of_counter = |line: &&str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        names.contains(name)
    };
    let lines = text.lines().filter(of_counter);
    lines
        .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
        .collect()
}

#[test]
fn what_alerts_count_begins_before_its_first_event() {
    let gate = Gate::builder()
        .line("revocation: {check: on, unreachable: open}")
        .start();
    let plain = || Call::plain().only(Protocol::Http1);
    accepted(&gate, &plain());
    gate.eventually_metric("portvakt_tpp_requests_total", &["PSDNO"], 1.0);
    let counters = counters();
    assert!(counters.len() > 40, "{counters:?}");
    let names: BTreeSet<_> = counters.iter().map(|(name, _)| name.clone()).collect();
    let before = series(&gate, &names);
    for (name, compared) in &counters {
        let own: Vec<_> = before
            .iter()
            .filter(|series| series.split('{').next() == Some(name))
            .collect();
        assert!(!own.is_empty(), "{name}");
        for (label, values) in compared {
            // One of these is how the other version of Prometheus writes the same bound.
            let values = values.iter().filter(|value| *value != "30.0");
            for value in values {
                let found = format!("{label}=\"{}", value.trim_end_matches(".*"));
                assert!(
                    own.iter().any(|series| series.contains(&found)),
                    "{name} {found}"
                );
            }
        }
    }
    first_events(&gate);
    eventually_is("the last event is counted", 1.0, || {
        gate.metric_now("portvakt_upstream_responses_total", &["\"tpp\"", "5xx"])
    });
    let after = series(&gate, &names);
    let late: Vec<_> = after.difference(&before).collect();
    assert!(
        late.is_empty(),
        "these begin with their first event: {late:?}"
    );
}

/// One event of each kind that a caller or the core can cause.
fn first_events(gate: &Gate) {
    let plain = || Call::plain().only(Protocol::Http1);
    let send = |call: &Call| gate.send(call, Protocol::Http1).reason();
    let sealed = gate.seal(&Call::payment().only(Protocol::Http1));
    let twice = [(); 2].map(|()| gate.send_sealed(&sealed, Protocol::Http1).unwrap());
    assert_eq!(twice[1].reason(), "request-replayed");
    assert_eq!(send(&plain().off_by(90)), "date-skewed");
    let altered = plain().altered(|request| {
        request.set_header("X-Request-ID", "2f2e7d2e-5e3c-4b9b-8a76-2e37d0c3c001");
    });
    assert_eq!(send(&altered), "signature-mismatch");
    let balances = Call::balances().only(Protocol::Http1);
    for _ in 0..4 {
        accepted(gate, &balances);
    }
    assert_eq!(send(&balances), "quota-exceeded");
    gate.upstream()
        .away(|| assert_eq!(send(&plain()), "upstream-unreachable"));
    gate.upstream().reply(Reply::json(500, "{}"));
    assert_eq!(gate.send(&plain(), Protocol::Http1).status, 500);
}
