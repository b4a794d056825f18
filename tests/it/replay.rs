//! REP-1: a request id is used once.

use crate::harness::{
    Answer, Call, Connection, Gate, Protocol, Reply, Sealed, accepted, eventually, refused, render,
};
use portvakt::{
    clock::{Clock, Timestamp},
    tools::state::{self, StateCommand},
};

fn replayed(gate: &Gate, call: &Call) {
    refused(gate, call, 409, "CONFLICT", "request-replayed");
}

fn with_id(call: Call, id: &str) -> Call {
    call.with("X-Request-ID", id).only(Protocol::Http1)
}

//= REP-1 accepted
//= REP-1 refused
#[test]
fn a_request_id_is_used_once_as_long_as_it_is_remembered() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let gate = Gate::builder().clock(&clock).start();
    let begun = clock.now().unix();
    for (call, id) in [(Call::accounts(), "a"), (Call::payment(), "b")] {
        clock.set(Timestamp::from_unix(begun));
        let call = with_id(call, id);
        accepted(&gate, &call);
        replayed(&gate, &call);
        replayed(&gate, &call.clone().only(Protocol::Http2));
        // Another TPP may use the same id.
        accepted(
            &gate,
            &call.clone().by(if id == "a" {
                &gate.world().aisp
            } else {
                &gate.world().pisp
            }),
        );
        // Each request is signed again.
        let last = if id == "a" { 61 } else { 86_400 };
        clock.set(Timestamp::from_unix(begun + last));
        replayed(&gate, &call);
        clock.set(Timestamp::from_unix(begun + last + 1));
        accepted(&gate, &call);
    }
}

//= REP-1 accepted
#[test]
fn only_what_was_forwarded_is_remembered() {
    let gate = Gate::start();
    let call = with_id(Call::payment(), "c");
    let forged = call
        .clone()
        .signature(|signature| signature.replace("signature=\"", "signature=\"A"));
    refused(&gate, &forged, 400, "FORMAT_ERROR", "signature-mismatch");
    refused(
        &gate,
        &call.clone().off_by(90),
        400,
        "FORMAT_ERROR",
        "date-skewed",
    );
    let broken = call
        .clone()
        .altered(|request| request.body = Some(b"{}".to_vec()));
    refused(&gate, &broken, 400, "FORMAT_ERROR", "digest-mismatch");
    gate.upstream().away(|| {
        assert_eq!(gate.send(&call, Protocol::Http1).status, 502);
        assert_eq!(gate.send(&call, Protocol::Http1).status, 502);
    });
    accepted(&gate, &call);
    replayed(&gate, &call);
    // Forwarded and not answered: the core may have executed the request.
    let call = with_id(Call::payment(), "d");
    gate.upstream().reply(Reply::Close);
    assert_eq!(gate.send(&call, Protocol::Http1).status, 504);
    gate.upstream().reply(Reply::json(200, "{}"));
    replayed(&gate, &call);
}

//= REP-1 refused
#[test]
fn an_unsafe_request_is_remembered_over_a_restart() {
    let mut gate = Gate::start();
    let (payment, list) = (
        with_id(Call::payment(), "e"),
        with_id(Call::accounts(), "f"),
    );
    accepted(&gate, &payment);
    accepted(&gate, &list);
    gate.restart();
    replayed(&gate, &payment);
    accepted(&gate, &list);

    let mut gate = Gate::builder().line("replay: {scope: all}").start();
    accepted(&gate, &list);
    gate.restart();
    replayed(&gate, &list);
}

/// Sends a request whose last byte arrives when the clock is at `ends`.
fn trickled(gate: &Gate, clock: &Clock, sealed: &Sealed, ends: u64) -> Answer {
    let bytes = render(sealed);
    let (last, rest) = bytes.split_last().unwrap();
    let mut connection = Connection::open(gate);
    connection.send(rest).unwrap();
    // One thread serves both connections: once it has answered the other one, it has judged this head.
    for _ in 0..2 {
        let other = Call::bare("GET", "/v1/nothing").only(Protocol::Http1);
        assert_eq!(gate.send(&other, Protocol::Http1).status, 404);
    }
    clock.set(Timestamp::from_unix(ends));
    connection.send(&[*last]).unwrap();
    connection.answer(&sealed.request.method).unwrap()
}

//= REP-1 refused
#[test]
fn a_body_that_trickles_opens_no_request_id_again() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let begun = clock.now().unix();
    let at = |seconds: u64| clock.set(Timestamp::from_unix(begun + seconds));
    for call in [Call::payment(), Call::accounts().json("{}")] {
        let gate = Gate::builder()
            .clock(&clock)
            .listener("min_body_rate: off\n  body_timeout: 60s")
            .start();
        at(0);
        let sealed = gate.seal(&call.off_by(52));
        // The first request is late too: its Date is still valid when its id is claimed.
        assert_eq!(trickled(&gate, &clock, &sealed, begun + 9).status, 200);
        assert_eq!(gate.upstream().take().len(), 1);
        // The head arrives while its Date is valid; the last byte arrives before, at and after the end of that time.
        for (head, last, reason) in [
            (112, 133, "date-skewed"),
            (9, 9, "request-replayed"),
            (112, 112, "request-replayed"),
            (112, 113, "date-skewed"),
            (112, 121, "date-skewed"),
            (112, 124, "date-skewed"),
            (112, 90_000, "date-skewed"),
        ] {
            at(head);
            let answer = trickled(&gate, &clock, &sealed, begun + last);
            assert!(gate.upstream().take().is_empty(), "{head} to {last} s");
            assert_eq!(answer.reason(), reason, "{head} to {last} s");
        }
    }
}

//= REP-1 accepted
//= REP-1 refused
#[test]
fn a_clock_that_stepped_back_by_more_than_a_day_is_not_believed_until_an_operator_says_so() {
    const METRIC: &str = "portvakt_state_clock_stepped_back";
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let begun = clock.now().unix();
    let at = |seconds: i64| clock.set(Timestamp::from_unix(begun.saturating_add_signed(seconds)));
    let mut gate = Gate::builder().clock(&clock).with_a_file().start();
    let refuses = |gate: &Gate| {
        for call in [Call::payment(), Call::plain()] {
            refused(gate, &call, 503, "SYSTEM_ERROR", "state-unavailable");
        }
        let ready = gate.control("/readyz");
        assert_eq!(ready.status, 503);
        let cause = ready.json()["notWell"][0].as_str().unwrap().to_owned();
        assert!(
            cause.contains("the clock stepped back by more than 24 hours"),
            "{cause}"
        );
        gate.eventually_metric(METRIC, &[], 1.0);
    };
    let payment = Call::payment().only(Protocol::Http1);
    let first = gate.seal(&payment);
    assert_eq!(
        gate.send_sealed(&first, Protocol::Http1).unwrap().status,
        200
    );
    at(-86_400);
    accepted(&gate, &payment);
    gate.eventually_metric(METRIC, &[], 0.0);

    at(-86_401);
    refuses(&gate);
    gate.restart();
    refuses(&gate);
    let file = gate.folder().join("state/portvakt.db");
    eventually("the store keeps that the clock stepped back", || {
        let sql = rusqlite::Connection::open(&file).unwrap();
        let kept = "SELECT count(*) FROM meta WHERE name = 'clock_stepped_back'";
        sql.query_row(kept, [], |row| row.get::<_, u32>(0)).unwrap() == 1
    });
    // Nor if the clock is corrected without a restart.
    at(10);
    gate.restart();
    refuses(&gate);

    at(-86_401);
    let command = StateCommand::AcceptClock {
        config: gate.folder().join("gateway.yaml"),
    };
    let mut told = Vec::new();
    state::run(&command, clock.now(), &mut told).unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(
        told.starts_with("2026-09-20T14:13:19Z is taken for right, after 2026-09-21T14:13:"),
        "{told}"
    );
    eventually("it is ready", || gate.control("/readyz").status == 200);
    accepted(&gate, &payment);
    accepted(&gate, &Call::plain());
    gate.eventually_metric(METRIC, &[], 0.0);
    // When the clock reaches the same time again, the earlier ids are still known.
    at(0);
    let again = gate.send_sealed(&first, Protocol::Http1).unwrap();
    assert_eq!(again.reason(), "request-replayed");
}

//= REP-1 refused
#[test]
fn an_id_passes_once_whatever_the_method() {
    let gate = Gate::start();
    // Identical bytes, if the signature does not cover the method.
    for (name, [one, other]) in [("g", [false, true]), ("h", [true, false])] {
        let signed = ["date", "x-request-id", "tpp-redirect-uri"];
        let call = with_id(Call::plain().signing(&signed), name);
        let mut sealed = gate.seal(&call);
        let targets = [
            ("GET", "/v1/payments/norwegian-domestic-credit-transfers/7"),
            (
                "POST",
                "/v1/payments/norwegian-domestic-credit-transfers/7/authorisations",
            ),
        ];
        for (is_unsafe, status) in [(one, 200), (other, 409), (one, 409)] {
            let (method, target) = targets[usize::from(is_unsafe)];
            sealed.request.method = method.into();
            sealed.request.target = target.into();
            let answer = gate.send_sealed(&sealed, Protocol::Http1).unwrap();
            assert_eq!(answer.status, status, "{method}: {}", answer.json());
        }
        assert_eq!(gate.upstream().take().len(), 1);
    }
    // If no connection to the core was made, the request passes with either retention, once.
    let payment = with_id(Call::payment(), "i");
    let list = with_id(Call::accounts(), "i");
    gate.seal(&payment);
    gate.upstream().away(|| {
        assert_eq!(gate.send(&payment, Protocol::Http1).status, 502);
        assert_eq!(gate.send(&list, Protocol::Http1).status, 502);
    });
    accepted(&gate, &list);
    replayed(&gate, &payment);
}

//= REP-1 refused
#[test]
fn a_restart_before_the_clock_stepped_back_opens_nothing() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let begun = clock.now().unix();
    let mut gate = Gate::builder().clock(&clock).with_a_file().start();
    let list = Call::accounts().only(Protocol::Http1);
    let first = gate.seal(&list);
    let answer = gate.send_sealed(&first, Protocol::Http1).unwrap();
    assert_eq!(answer.status, 200);
    clock.set(Timestamp::from_unix(begun + 600));
    accepted(&gate, &list);
    accepted(&gate, &Call::payment());
    gate.restart();
    clock.set(Timestamp::from_unix(begun));
    gate.upstream().take();
    let again = gate.send_sealed(&first, Protocol::Http1).unwrap();
    assert_eq!(
        (again.status, again.reason()),
        (503, "state-unavailable".into())
    );
    assert!(gate.upstream().take().is_empty());
    assert_eq!(gate.control("/readyz").status, 503);
    // Unsafe requests go on, and safe ones as soon as the clock has caught up.
    accepted(&gate, &Call::payment());
    clock.set(Timestamp::from_unix(begun + 661));
    accepted(&gate, &list);
}
