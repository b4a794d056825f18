//! QUO-5: what the upstream's answer gives back.

use super::{exceeded, use_up};
use crate::harness::{Call, Gate, Protocol, Reply, accepted};
use portvakt::clock::{Clock, Timestamp};

fn answer(status: u16) -> Reply {
    let json = ("Content-Type".to_owned(), "application/json".to_owned());
    Reply::Answer(status, vec![json], b"{}".to_vec())
}

//= QUO-5 accepted
#[test]
fn answers_that_give_a_call_back() {
    let clock = Clock::standing(Timestamp::from_unix(1_790_000_000));
    let gate = Gate::builder().clock(&clock).start();
    let call = Call::balances().only(Protocol::Http1);
    accepted(&gate, &call);
    for status in [401, 404, 429, 500, 502, 503, 599] {
        gate.upstream().reply(answer(status));
        let answer = gate.send(&call, Protocol::Http1);
        assert_eq!(answer.status, status);
        assert_eq!(
            answer.header("ratelimit"),
            Some(r#""psu-absent";r=3;t=86400"#),
            "{status}"
        );
    }
    gate.upstream().reply(Reply::Close);
    assert_eq!(gate.send(&call, Protocol::Http1).status, 502);
    gate.upstream().reply(answer(200));
    for _ in 0..3 {
        accepted(&gate, &call);
    }
    exceeded(&gate, &call);
}

//= QUO-5 accepted
#[test]
fn the_only_call_is_given_back_whole() {
    let gate = Gate::start();
    let call = Call::balances().only(Protocol::Http1);
    gate.seal(&call);
    gate.upstream().reply(answer(404));
    let told = gate.send(&call, Protocol::Http1);
    assert_eq!(told.header("ratelimit"), Some(r#""psu-absent";r=4;t=0"#));
}

//= QUO-5 refused
#[test]
fn answers_that_do_not() {
    let gate = Gate::start();
    for (account, status) in [200, 204, 301, 400, 403, 409].into_iter().enumerate() {
        let call = Call::balances()
            .at(&format!("/v1/accounts/{account}/balances"))
            .only(Protocol::Http1);
        gate.seal(&call);
        gate.upstream().reply(answer(status));
        for _ in 0..4 {
            assert_eq!(gate.send(&call, Protocol::Http1).status, status);
        }
        exceeded(&gate, &call);
    }
    gate.upstream().reply(answer(200));
}

//= QUO-5 accepted
#[test]
fn an_upstream_that_is_away_costs_nothing() {
    let gate = Gate::start();
    let call = Call::balances().only(Protocol::Http1);
    gate.seal(&call);
    gate.upstream().away(|| {
        for _ in 0..6 {
            assert_eq!(gate.send(&call, Protocol::Http1).status, 502);
        }
    });
    use_up(&gate, &call);
    exceeded(&gate, &call);
}

//= QUO-5 accepted
#[test]
fn a_slow_upstream_may_have_done_it() {
    let gate = Gate::builder().upstream("read_timeout: 200ms").start();
    let call = Call::balances().only(Protocol::Http1);
    gate.seal(&call);
    gate.upstream().reply(Reply::Silence);
    for _ in 0..4 {
        assert_eq!(gate.send(&call, Protocol::Http1).status, 504);
    }
    exceeded(&gate, &call);
}
