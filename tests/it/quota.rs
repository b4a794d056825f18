//! QUO-*: four calls in 24 hours without the PSU, and general rates.

/// The keys of the quota.
mod keys;
/// Calls that are given back.
mod settled;

use crate::harness::{Answer, Call, Gate, Protocol, accepted, let_pass, refused};
use portvakt::clock::{Clock, Timestamp};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

const DAY: u64 = 86_400;

/// The three limited operations on one account.
fn limited() -> [Call; 3] {
    [
        Call::balances(),
        Call::accounts().at("/v1/accounts/42/transactions"),
        Call::details()
            .with("X-Request-ID", "")
            .without("X-Request-ID"),
    ]
    .map(|call| call.only(Protocol::Http1))
}

/// Uses a quota up.
fn use_up(gate: &Gate, call: &Call) {
    for _ in 0..4 {
        accepted(gate, call);
    }
}

fn exceeded(gate: &Gate, call: &Call) -> Answer {
    refused(gate, call, 429, "ACCESS_EXCEEDED", "quota-exceeded")
}

fn number(answer: &Answer, name: &str) -> u64 {
    answer.header(name).unwrap().parse().unwrap()
}

//= QUO-1 accepted
//= QUO-1 refused
//= QUO-2 accepted
//= QUO-2 refused
//= QUO-3 accepted
//= QUO-3 refused
#[test]
fn four_calls_in_any_24_hours_to_the_second() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let gate = Gate::builder().clock(&clock).start();
    for call in limited() {
        // A clock that steps back by more than a day is not trusted (REP-1).
        let begun = clock.now().unix();
        let at = |seconds: u64| clock.set(Timestamp::from_unix(begun + seconds));
        at(0);
        accepted(&gate, &call);
        at(10);
        accepted(&gate, &call);
        accepted(&gate, &call);
        at(20);
        accepted(&gate, &call);
        assert_eq!(number(&exceeded(&gate, &call), "retry-after"), DAY - 20);
        at(DAY - 1);
        assert_eq!(number(&exceeded(&gate, &call), "retry-after"), 1);
        at(DAY);
        accepted(&gate, &call);
        assert_eq!(number(&exceeded(&gate, &call), "retry-after"), 10);
        at(DAY + 10);
        accepted(&gate, &call);
        accepted(&gate, &call);
        exceeded(&gate, &call);
        at(DAY + 19);
        exceeded(&gate, &call);
        at(DAY + 20);
        accepted(&gate, &call);
        exceeded(&gate, &call);
    }
}

//= QUO-4 accepted
#[test]
fn with_the_psu_present_there_is_no_limit() {
    let gate = Gate::start();
    for call in limited() {
        use_up(&gate, &call);
        exceeded(&gate, &call);
        for _ in 0..10 {
            let passages = accepted(&gate, &call.clone().present());
            assert_eq!(passages[0].answer.header("ratelimit"), None);
        }
        exceeded(&gate, &call);
    }
}

//= QUO-5 accepted
#[test]
fn no_number_of_concurrent_calls_passes_a_fifth() {
    let gate = Gate::start();
    for call in limited() {
        let held = AtomicUsize::new(0);
        gate.upstream().take();
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    let answer = gate.send(&call, Protocol::Http1);
                    match answer.status {
                        200 => held.fetch_add(1, Ordering::Relaxed),
                        429 => 0,
                        status => panic!("{status}"),
                    };
                });
            }
        });
        assert_eq!(held.into_inner(), 4);
        assert_eq!(gate.upstream().take().len(), 4);
    }
}

//= QUO-6 accepted
#[test]
fn a_refused_request_never_counts() {
    let gate = Gate::start();
    let call = Call::balances().only(Protocol::Http1);
    for _ in 0..3 {
        let unsigned = call
            .clone()
            .altered(|request| request.remove_header("Signature"));
        refused(
            &gate,
            &unsigned,
            400,
            "HTTP_HEADER_REQUIRED",
            "signature-missing",
        );
        let forged = call.clone().altered(|request| {
            request.set_header("PSU-ID", "0192f0c1-5a5b-7def-8000-000000000000")
        });
        refused(&gate, &forged, 400, "FORMAT_ERROR", "signature-mismatch");
        refused(
            &gate,
            &call.clone().off_by(90),
            400,
            "FORMAT_ERROR",
            "date-skewed",
        );
        let query = call.clone().at("/v1/accounts/42/balances?a=1&a=2");
        refused(&gate, &query, 400, "FORMAT_ERROR", "query-malformed");
    }
    use_up(&gate, &call);
    exceeded(&gate, &call);
}

//= QUO-7 accepted
#[test]
fn used_calls_survive_a_restart() {
    let mut gate = Gate::start();
    let call = Call::balances().only(Protocol::Http1);
    accepted(&gate, &call);
    accepted(&gate, &call);
    gate.restart();
    accepted(&gate, &call);
    gate.restart();
    accepted(&gate, &call);
    exceeded(&gate, &call);
    gate.restart();
    exceeded(&gate, &call);
}

//= QUO-8 accepted
//= QUO-8 refused
#[test]
fn without_the_psu_history_ends_90_days_back() {
    // 2026-09-21T13:33:20Z
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000 - 2));
    let gate = Gate::builder().clock(&clock).start();
    let list = |query: &str| {
        Call::accounts()
            .at(&format!("/v1/accounts/42/transactions{query}"))
            .only(Protocol::Http1)
    };
    let seen = accepted(&gate, &list("?dateFrom=2026-06-23"))
        .remove(0)
        .seen;
    assert_eq!(seen.header("gateway-history-from"), None);
    let seen = accepted(&gate, &list("?limit=5")).remove(0).seen;
    assert_eq!(seen.header("gateway-history-from"), Some("2026-06-23"));
    let answer = refused(
        &gate,
        &list("?dateFrom=2026-06-22"),
        400,
        "PERIOD_INVALID",
        "history-too-old",
    );
    assert_eq!(answer.json()["faults"][0]["query"], "dateFrom");
}

//= QUO-11 accepted
#[test]
fn answers_say_what_is_left() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let gate = Gate::builder().clock(&clock).start();
    for call in limited() {
        let said: Vec<_> = (0..4)
            .map(|_| {
                let answer = accepted(&gate, &call).remove(0).answer;
                assert_eq!(
                    answer.header("ratelimit-policy"),
                    Some(r#""psu-absent";q=4;w=86400"#)
                );
                answer.header("ratelimit").unwrap().to_owned()
            })
            .collect();
        let expected = [3, 2, 1, 0].map(|left| format!(r#""psu-absent";r={left};t=86400"#));
        assert_eq!(said, expected);
        let answer = exceeded(&gate, &call);
        assert_eq!(
            answer.header("ratelimit"),
            Some(r#""psu-absent";r=0;t=86400"#)
        );
        assert_eq!(number(&answer, "retry-after"), DAY);
    }
    let list = accepted(&gate, &Call::accounts()).remove(0).answer;
    assert_eq!(list.header("ratelimit"), None, "it is not limited");
}

//= QUO-12 accepted
//= QUO-12 refused
#[test]
fn general_rates() {
    let gate = Gate::builder()
        .line("rates: {per_tpp: 1, per_address: off}")
        .start();
    // Certificates are public: a caller that only presents one does not use its TPP's rate.
    let forged = Call::accounts().signature(|signature| signature.replace('=', "a="));
    for _ in 0..10 {
        assert_eq!(gate.send(&forged, Protocol::Http1).status, 400);
    }
    accepted(&gate, &Call::accounts().only(Protocol::Http1));
    let answer = gate.exceed(Call::accounts);
    assert_eq!(answer.json()["code"], "SYSTEM_ERROR");
    assert_eq!(answer.json()["reason"], "rate-limited");
    assert_eq!(answer.header("retry-after"), Some("1"));
    // One TPP does not use the rate of another.
    accepted(
        &gate,
        &Call::accounts()
            .by(&gate.world().aisp)
            .only(Protocol::Http1),
    );

    let gate = Gate::builder()
        .line("rates: {per_address: 1, per_tpp: off, unsafe_per_tpp: off}")
        .start();
    gate.upstream().take();
    // Also of requests that cheaper checks refuse.
    let unknown = Call::bare("GET", "/v1/unknown");
    let skewed = Call::accounts().off_by(-3_600);
    let malformed = Call::accounts().with("Accept", "text/plain");
    for refused in [&forged, &unknown, &skewed, &malformed] {
        let answer = gate.exceed(|| refused.clone());
        assert_eq!(answer.json()["reason"], "rate-limited");
        assert_eq!(answer.header("retry-after"), Some("1"));
        // The rates go by the machine's monotonic time.
        let_pass(Duration::from_millis(1_100));
        assert_ne!(gate.send(refused, Protocol::Http1).status, 429);
    }
    assert!(gate.upstream().take().is_empty());
}

/// A TPP that changes much is held before it fills the disks; what it reads goes on, and so do other TPPs.
//= QUO-12 accepted
//= QUO-12 refused
#[test]
fn changes_have_a_rate_of_their_own() {
    let gate = Gate::builder()
        .line("rates: {per_tpp: off, per_address: off, unsafe_per_tpp: 2}")
        .start();
    let change = || {
        let call = Call::new("PUT", "/v1/tpp/contact").json("{}");
        call.only(Protocol::Http1)
    };
    let payment = || Call::payment().only(Protocol::Http1);
    // Whoever is held back by one operation is by each.
    let mut number = 0;
    let limited = gate.exceed(|| {
        number += 1;
        if number % 2 == 0 { change() } else { payment() }
    });
    let id = limited.header("x-request-id");
    assert!(id.is_some());
    let forwarded = gate.upstream().take();
    let ids = forwarded
        .iter()
        .map(|request| request.header("x-request-id"));
    assert!(ids.into_iter().all(|forwarded| forwarded != id));
    assert_eq!(limited.json()["code"], "SYSTEM_ERROR");
    assert_eq!(limited.json()["reason"], "rate-limited");
    assert_eq!(limited.header("retry-after"), Some("1"));
    for _ in 0..20 {
        accepted(&gate, &Call::plain().only(Protocol::Http1));
    }
    accepted(&gate, &change().by(&gate.world().pisp));
}
