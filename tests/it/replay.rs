//! REP-1: a request id is used once.

use crate::harness::{Call, Gate, Protocol, Reply, accepted, refused};
use portvakt::clock::{Clock, Timestamp};

fn replayed(gate: &Gate, call: &Call) {
    refused(gate, call, 409, "CONFLICT", "request-replayed");
}

fn with_id(call: Call, id: &str) -> Call {
    call.with("X-Request-ID", id).only(Protocol::Http1)
}

//= REP-1 accepted
//= REP-1 refused
#[test]
fn a_request_id_is_used_once_while_its_date_could_pass() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let gate = Gate::builder().clock(&clock).start();
    let begun = clock.now().unix();
    for (call, id) in [(Call::accounts(), "a"), (Call::payment(), "b")] {
        clock.set(Timestamp::from_unix(begun));
        let call = with_id(call, id);
        accepted(&gate, &call);
        replayed(&gate, &call);
        replayed(&gate, &call.clone().only(Protocol::Http2));
        // The id of another TPP is another id.
        accepted(
            &gate,
            &call.clone().by(if id == "a" {
                &gate.world().aisp
            } else {
                &gate.world().pisp
            }),
        );
        clock.set(Timestamp::from_unix(begun + 120));
        replayed(&gate, &call);
        clock.set(Timestamp::from_unix(begun + 121));
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
    // Sent and not answered: the core may have done it.
    let call = with_id(Call::payment(), "d");
    gate.upstream().reply(Reply::Close);
    assert_eq!(gate.send(&call, Protocol::Http1).status, 502);
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
