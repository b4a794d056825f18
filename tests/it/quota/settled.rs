//! QUO-5: calls that the gateway gives back because of the upstream's answer.

use super::{exceeded, use_up};
use crate::harness::{Call, Gate, Protocol, Reply, Upstream, accepted};
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

/// One endpoint takes the request and says nothing, and the other one refuses connections. Each is asked first by one gateway.
//= QUO-1 refused
//= QUO-5 refused
#[test]
fn a_slow_endpoint_may_have_done_it_before_another_is_away() {
    let silent = Upstream::start_at("127.0.7.2:0".parse().unwrap());
    silent.reply(Reply::Silence);
    let (address, port) = (silent.address(), silent.address().port());
    let mut statuses = Vec::new();
    for away in ["127.0.7.1", "127.0.7.3"] {
        let gate = Gate::builder()
            .groups(&format!(
                "{{core: {{endpoints: [{{address: '{address}'}}, {{address: '{away}:{port}'}}], \
                 read_timeout: 200ms, timeout: 20s, ejection: off, retry_percent: 100}}}}"
            ))
            .start();
        let call = Call::balances().only(Protocol::Http1);
        gate.seal(&call);
        for _ in 0..4 {
            statuses.push(gate.send(&call, Protocol::Http1).status);
        }
        exceeded(&gate, &call);
    }
    statuses.sort_unstable();
    statuses.dedup();
    assert_eq!(statuses, [502, 504]);
}

//= QUO-13 refused
//= QUO-11 refused
#[test]
fn a_call_with_which_pages_were_counted_is_not_given_back() {
    let gate = Gate::builder().upstream("read_timeout: 300s").start();
    let list = |query: &str| {
        let call = Call::balances().only(Protocol::Http1);
        call.at(&format!("/v1/accounts/1/transactions?limit=1{query}"))
    };
    gate.seal(&list(""));
    let told = |call: &Call, status: u16| {
        let answer = gate.send(call, Protocol::Http1);
        assert_eq!(answer.status, status);
        answer.header("ratelimit").unwrap()[..16].to_owned()
    };
    let (reply, latch) = answer(500).held();
    gate.upstream().reply(reply);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| told(&list(""), 500));
        latch.arrived(1);
        gate.upstream().reply(answer(200));
        for page in 1..=3 {
            let left = told(&list(&format!("&offset={page}")), 200);
            assert_eq!(left, r#""psu-absent";r=3"#);
        }
        latch.release();
        assert_eq!(first.join().unwrap(), r#""psu-absent";r=3"#);
    });
    assert_eq!(told(&list(""), 200), r#""psu-absent";r=2"#);
    // A failed page may be requested again, and is not a call: the remaining number stays the same.
    for status in [500, 404, 200] {
        gate.upstream().reply(answer(status));
        assert_eq!(told(&list("&offset=1"), status), r#""psu-absent";r=2"#);
    }
}
