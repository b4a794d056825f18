//! Two gateways on one database, end to end, with clocks that are 30 s apart.

/// Upper bounds on times.
mod bounds;

use super::Data;
use crate::{
    harness::{
        Answer, Call, Gate, Program, Protocol, accepted, eventually, eventually_is, let_pass,
        needs_sca, postgres, refused,
    },
    state::PostgresSchema,
};
use portvakt::clock::{Clock, Stopwatch, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

const PSU: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";

/// The time at the second gateway; the first is ahead.
const THEN: u64 = 1_790_000_000;

/// Two gateways with the same keys and the same database, and the database's schema. `None` where PostgreSQL is not installed.
fn gateways() -> Option<([Gate; 2], PostgresSchema)> {
    let host = postgres()?.folder().display();
    let data = PostgresSchema::new();
    let state = format!(
        "postgres: {{url: 'postgres://{}@/postgres?host={host}'}}",
        data.user()
    );
    let builder = |now| {
        Gate::builder()
            .strangers()
            .clock(&Clock::standing(Timestamp::from_unix(now)))
            .state(&state)
    };
    let here = builder(THEN + 30).start();
    let key = |name| fs::read(here.folder().join(name)).unwrap();
    let there = builder(THEN)
        .private_file("state/hash.key", key("state/hash.key"))
        .private_file("sca.keys", key("sca.keys"))
        .start();
    Some(([here, there], data))
}

fn accounts() -> Call {
    Call::accounts()
        .present()
        .with("PSU-ID", PSU)
        .only(Protocol::Http1)
}

fn under(session: &str) -> Call {
    accounts().with("TPP-Session-ID", session)
}

/// Completes the SCA of an answer, at any gateway.
fn complete(gate: &Gate, answer: &Answer) {
    let json = answer.json();
    let link = json["_links"]["scaRedirect"]["href"].as_str().unwrap();
    let (_, token) = link.split_once("request=").unwrap();
    let said = json!({ "psu_id": PSU, "context": "PRIVATE", "request": token });
    let answer = gate.tell("/sca/complete", &said);
    assert_eq!(answer.status, 200, "{}", answer.json());
}

fn who(gate: &Gate) -> Value {
    json!({ "tpp": gate.world().both.id(), "psu_id": PSU })
}

/// Waits until a gateway asks for SCA.
fn soon_needs_sca(gate: &Gate, call: &Call) -> Answer {
    eventually_is("the status", 401, || {
        gate.send(call, Protocol::Http1).status
    });
    needs_sca(gate, call)
}

/// Sends one signed request to both gateways many times at once; returns how often it was accepted, and how often it was forwarded.
fn at_once(gates: &[Gate; 2], calls: &[Call]) -> (usize, usize) {
    for gate in gates {
        gate.upstream().take();
    }
    let accepted = std::thread::scope(|scope| {
        let sending = calls.iter().enumerate().map(|(number, call)| {
            let gate = &gates[number % 2];
            let sealed = call.seal(gates[1].now());
            scope.spawn(move || gate.send_sealed(&sealed, Protocol::Http1).unwrap().status)
        });
        let sending: Vec<_> = sending.collect();
        let answers = sending.into_iter().map(|sending| sending.join().unwrap());
        answers.filter(|status| (200..300).contains(status)).count()
    });
    let forwarded = gates.iter().map(|gate| gate.upstream().take().len()).sum();
    (accepted, forwarded)
}

//= SCA-3 accepted
//= SCA-6 refused
//= SCA-13 refused
#[test]
fn sessions_and_bindings_are_those_of_both() {
    let Some(([here, there], _data)) = gateways() else {
        return;
    };
    // The link of one gateway is completed at the other.
    let answer = needs_sca(&here, &under("S"));
    complete(&there, &answer);
    for gate in [&here, &there] {
        accepted(gate, &under("S"));
    }
    // A new session ends the old one.
    let answer = needs_sca(&there, &under("T"));
    complete(&there, &answer);
    soon_needs_sca(&here, &under("S"));
    accepted(&here, &under("T"));
    // A token is spent at both.
    let json = answer.json();
    let link = json["_links"]["scaRedirect"]["href"].as_str().unwrap();
    let (_, token) = link.split_once("request=").unwrap();
    let failed = json!({
        "request": token, "system": "bank", "status": 400, "code": "PSU_CREDENTIALS_INVALID", "message": "no"
    });
    assert_eq!(here.tell("/sca/fail", &failed).status, 409);
    for what in ["session", "consents"] {
        let mut said = who(&here);
        said["what"] = what.into();
        accepted(&there, &accounts());
        assert_eq!(here.tell("/psu/withdraw", &said).status, 200);
        let call = if what == "session" {
            under("T")
        } else {
            accounts()
        };
        soon_needs_sca(&there, &call);
    }
    here.introduce(who(&here));
    accepted(&there, &accounts());
    // Another TPP does not get the PSU at either.
    for gate in [&here, &there] {
        let call = accounts().by(&gate.world().aisp);
        gate.upstream().take();
        assert!(gate.send(&call, Protocol::Http1).status >= 400);
        assert!(gate.upstream().take().is_empty());
    }
}

/// Sends until a gateway refuses a call because the TPP is blocked.
fn soon_blocked(gate: &Gate, call: &Call) {
    eventually_is("the status", 403, || {
        gate.send(call, Protocol::Http1).status
    });
    refused(gate, call, 403, "FORBIDDEN", "tpp-blocked");
}

fn block(gate: &Gate, path: &str) {
    let mut said = json!({ "tpp": gate.world().both.id() });
    if path == "/tpp/block" {
        said["reason"] = "fraud".into();
    }
    let answer = gate.tell(path, &said);
    assert_eq!(answer.status, 200, "{}", answer.json());
}

//= CTL-2 accepted
//= CTL-2 refused
//= SCA-23 refused
#[test]
fn a_block_at_one_gateway_holds_at_the_other() {
    let Some(([here, there], _data)) = gateways() else {
        return;
    };
    let link = needs_sca(&there, &under("S")).json();
    let link = link["_links"]["scaRedirect"]["href"].as_str().unwrap();
    let link = json!({ "request": link.split_once("request=").unwrap().1 });
    here.introduce(who(&here));
    let payment = Call::payment().with("PSU-ID", PSU).only(Protocol::Http1);
    let others = Call::accounts().by(&there.world().aisp);
    for [one, other] in [[&here, &there], [&there, &here]] {
        accepted(other, &accounts());
        block(one, "/tpp/block");
        soon_blocked(other, &accounts());
        refused(other, &payment, 403, "FORBIDDEN", "tpp-blocked");
        let read = other.tell("/sca/read", &link);
        assert_eq!(read.status, 409, "{}", read.json());
        assert_ne!(other.send(&others, Protocol::Http1).status, 403);
        block(one, "/tpp/unblock");
        eventually_is("the status", 200, || {
            other.send(&accounts(), Protocol::Http1).status
        });
        accepted(other, &payment);
    }
}

//= QUO-1 refused
//= REP-1 refused
#[test]
fn four_calls_and_one_payment_are_those_of_both() {
    let Some((gates, _data)) = gateways() else {
        return;
    };
    let [here, there] = &gates;
    here.introduce(who(here));
    let balances = |account: u32| {
        Call::balances()
            .at(&format!("/v1/accounts/{account}/balances"))
            .with("PSU-ID", PSU)
            .only(Protocol::Http1)
    };
    for gate in [here, there, here, there] {
        accepted(gate, &balances(1));
    }
    for gate in &gates {
        refused(gate, &balances(1), 429, "ACCESS_EXCEEDED", "quota-exceeded");
    }
    for round in 2..12 {
        assert_eq!(at_once(&gates, &vec![balances(round); 24]), (4, 4));
        let payment = Call::payment()
            .with("PSU-ID", PSU)
            .with("X-Request-ID", &format!("payment-{round}"));
        assert_eq!(at_once(&gates, &vec![payment; 16]), (1, 1));
    }
}

//= HDR-14 refused
#[test]
fn the_contexts_of_a_psu_are_kept_here_too() {
    if let Some(([here, _], _data)) = gateways() {
        crate::sca::contexts(&here);
    }
}

/// A gateway that is stopped under load does not hold the others up, and does not answer from what it knew when it goes on.
//= SCA-13 refused
#[test]
fn a_frozen_gateway_asks_again_when_it_goes_on() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let (user, host) = (data.user(), server.folder().display());
    let state = format!("postgres: {{url: 'postgres://{user}@/postgres?host={host}'}}");
    let there = Gate::builder().strangers().state(&state).start();
    let key = fs::read(there.folder().join("state/hash.key")).unwrap();
    let builder = Gate::builder().strangers().state(&state);
    let (here, program) = builder.private_file("state/hash.key", key).start_program();
    let program = Program(program);
    let signal = |signal| kill_process(Pid::from_child(&program.0), signal).unwrap();
    let payment = Call::payment().with("PSU-ID", PSU).only(Protocol::Http1);
    let mut withdrawal = who(&there);
    withdrawal["what"] = "consents".into();
    there.introduce(who(&there));
    for _ in 0..3 {
        accepted(&here, &accounts());
        let (over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
        let began = Stopwatch::start();
        let is_over = || over.load(Ordering::Relaxed) || began.elapsed() > Duration::from_secs(60);
        let (paid, withdrawn, late) = std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over() {
                        let _ = here.send_sealed(&here.seal(&payment), Protocol::Http1);
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            eventually("there is load", || sent.load(Ordering::Relaxed) >= 8);
            signal(Signal::STOP);
            let paid = there.send(&payment, Protocol::Http1).status;
            let withdrawn = there.tell("/psu/withdraw", &withdrawal).status;
            // Its last proof must be too old when it goes on: older than a second.
            let_pass(Duration::from_millis(1_500));
            // It waits in the socket when the gateway goes on, where the machine is not slow.
            let late = scope.spawn(|| here.send_sealed(&here.seal(&accounts()), Protocol::Http1));
            let_pass(Duration::from_millis(300));
            signal(Signal::CONT);
            let late = late.join().unwrap().map(|answer| answer.status);
            over.store(true, Ordering::Relaxed);
            (paid, withdrawn, late)
        });
        assert_eq!((paid, withdrawn), (200, 200));
        assert!([Ok(401), Ok(503)].contains(&late), "{late:?}");
        there.introduce(who(&there));
        eventually_is("the status", 200, || {
            here.send(&accounts(), Protocol::Http1).status
        });
    }
}
