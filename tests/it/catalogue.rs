//! Properties of every operation of the catalogue.

use crate::harness::{Call, Gate, Protocol, Reply, world};
use bytes::Bytes;
use portvakt::{
    admission::{self, Admission, Admitted, Framing, Head, Record, Stage, Trial, Verdict},
    clock::{Clock, Timestamp},
    config::Settings,
    interface::{
        TppId,
        headers::PsuId,
        operations::{
            AnsweredBy, Body, Environment, Operation, Required, Role, Sca, Schema, Takes, builtin,
        },
    },
    state::{Bind, ConsentAccounts, Known, PsuRef, StateStore},
    tools::tpp::SignedRequest,
};
use rusqlite::{Connection, OpenFlags, types::Value};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// While the gateway learns (SCA-19).
const NOW: Timestamp = Timestamp::from_unix(1_790_000_000);

/// A PSU-ID that the gateway did not give out, a different one for each number.
fn invented(number: usize) -> String {
    format!("7d2504e0-4f89-41d3-9a0c-{number:012x}")
}

/// A valid request of an operation, for a given PSU.
fn call(operation: &Operation, psu: &str) -> Call {
    let path = operation.path.split('/').map(|segment| match segment {
        "{payment-product}" => "norwegian-domestic-credit-transfers",
        id if id.starts_with('{') => "42",
        literal => literal,
    });
    let target = path.collect::<Vec<_>>().join("/");
    let mut call = Call::bare(operation.method.as_str(), &target);
    if operation.takes == Takes::Whole {
        call = call
            .with("TPP-Redirect-URI", "https://tpp.example/back")
            .with("PSU-ID", psu);
    }
    for required in &operation.required {
        let (Required::One(header) | Required::Either(header, _)) = required;
        let value = match header.written {
            "x-accept-fix" => "amount-as-string",
            "TPP-Session-ID" => "session-1",
            "PSU-IP-Address" => "192.0.2.7",
            _ => continue,
        };
        call = call.with(header.written, value);
    }
    let payment = concat!(
        r#"{"instructedAmount":{"amount":"1.00","currency":"EUR"},"creditorName":"Muster GmbH","#,
        r#""creditorAccount":{"iban":"DE89370400440532013000","currency":"EUR"},"#,
        r#""debtorAccount":{"iban":"NO9386011117947","currency":"NOK"}}"#,
    );
    match (operation.body, operation.schema) {
        (Body::Json, Schema::CrossBorderPayment | Schema::Payment) => call.json(payment),
        (Body::Json, Schema::Basket) => call.json(r#"{"paymentIds":["1"]}"#),
        (Body::Json, Schema::Any) => call.json("{}"),
        (Body::None | Body::Ignored, _) => call,
    }
}

/// Every row that the store keeps about PSUs.
fn stored_rows(gate: &Gate) -> Vec<String> {
    let file = gate.folder().join("state/portvakt.db");
    let sql = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut rows = Vec::new();
    // The mark of a TPP that was seen (CTL-3) is of no PSU.
    for table in ["psu", "context", "token WHERE until < 4294967295"] {
        let mut query = sql.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = query.column_count();
        let found = query.query_map([], |row| {
            let values: Result<Vec<Value>, _> = (0..columns).map(|at| row.get(at)).collect();
            values.map(|values| format!("{table} {values:?}"))
        });
        rows.extend(found.unwrap().map(Result::unwrap));
    }
    rows.sort();
    rows
}

fn learning(clock: &Clock) -> Gate {
    Gate::builder()
        .strangers()
        .clock(clock)
        .sca("unknown_psu: learn")
        .sca("learn_since: 2026-09-01")
        .sca("learn_until: 2026-10-01")
        .start()
}

/// A core that sends every answer header about a PSU.
fn generous(status: u16) -> Reply {
    Reply::json(status, "{}")
        .with("Gateway-Psu-Bound", "yes")
        .with("Gateway-Sca-At", "2026-08-01T10:00:00Z")
        .with("Gateway-Consent-At", "2026-08-01T10:00:00Z")
        .with("Gateway-Consent-Accounts", "*")
}

//= SCA-8 accepted
//= SCA-19 refused
#[test]
fn what_needs_nothing_of_a_psu_changes_nothing_that_is_kept_of_one() {
    let gate = learning(&Clock::standing(NOW));
    let operations = builtin();
    let mut seen = 0;
    for (number, operation) in operations.iter().enumerate() {
        if operation.sca != Sca::None {
            continue;
        }
        let before = stored_rows(&gate);
        for status in [200, 201, 404] {
            gate.upstream().reply(generous(status));
            for protocol in Protocol::ALL {
                let answer = gate.send(&call(operation, &invented(number)), protocol);
                let expected = if operation.answered_by == AnsweredBy::Gateway {
                    200
                } else {
                    status
                };
                assert_eq!(answer.status, expected, "{}: {:?}", operation.name, answer);
                let mut names = answer.headers.iter().map(|(name, _)| name);
                assert!(
                    !names.any(|name| name.to_ascii_lowercase().starts_with("gateway-")),
                    "{}: {:?}",
                    operation.name,
                    answer.headers
                );
                seen += 1;
            }
        }
        assert_eq!(stored_rows(&gate), before, "{}", operation.name);
    }
    assert!(seen > 60, "{seen} requests");
}

//= SCA-19 accepted
#[test]
fn what_is_of_a_psu_is_learned_once_the_core_vouches_for_it() {
    let gate = learning(&Clock::standing(NOW));
    for (number, operation) in builtin().iter().enumerate() {
        if operation.sca == Sca::None || operation.role == Role::Either {
            continue;
        }
        let call = call(operation, &invented(number));
        let before = stored_rows(&gate).len();
        gate.upstream().reply(Reply::json(200, "{}"));
        assert_eq!(gate.send(&call, Protocol::Http1).status, 200);
        assert_eq!(
            stored_rows(&gate).len(),
            before,
            "{}: a core that says nothing binds nobody",
            operation.name
        );
        gate.upstream().reply(generous(200));
        assert_eq!(gate.send(&call, Protocol::Http1).status, 200);
        assert!(stored_rows(&gate).len() > before, "{}", operation.name);
    }
}

/// An admitted request has passed every enabled check, and carries the evidence of each.
fn shows_every_evidence(what: &str, admitted: &Admitted, record: &Record) {
    let off = [Stage::Register, Stage::Revocation];
    let judged: Vec<_> = record.checks().iter().map(|check| check.stage).collect();
    let all = Stage::ALL.iter().copied();
    let all: Vec<_> = all.filter(|stage| !off.contains(stage)).collect();
    assert_eq!(judged, all, "{what}");
    for check in record.checks() {
        assert_eq!(check.verdict, Verdict::Held, "{what}: {:?}", check.stage);
    }
    assert!(
        admitted.tpp().is_some(),
        "{what}: certificate and signature"
    );
    assert!(admitted.signed().is_some(), "{what}: signature");
    assert!(admitted.query().is_some(), "{what}: query");
    assert!(admitted.grant().is_some(), "{what}: SCA");
    assert!(admitted.claim().is_some(), "{what}: request id");
    assert_eq!(admitted.waived().len(), 0, "{what}");
}

/// Requests with one change after signing: each header removed, doubled or with one byte flipped; the target or the body with one byte
/// flipped.
fn mutations(request: &SignedRequest) -> Vec<SignedRequest> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut SignedRequest)| {
        let mut changed = request.clone();
        change(&mut changed);
        all.push(changed);
    };
    for at in 0..request.headers.len() {
        with(&|request| drop(request.headers.remove(at)));
        with(&|request| request.headers.push(request.headers[at].clone()));
        let length = request.headers[at].1.len();
        for place in [0, length / 2, length.saturating_sub(1)] {
            with(&|request| {
                let value = &mut request.headers[at].1;
                *value = flipped(value, place);
            });
        }
    }
    with(&|request| request.target = flipped(&request.target, request.target.len() - 1));
    with(&|request| {
        if let Some(last) = request.body.as_mut().and_then(|body| body.last_mut()) {
            *last ^= 1;
        }
    });
    all
}

/// Replaces the letter or digit at this position by another one.
fn flipped(text: &str, place: usize) -> String {
    let change = |(at, character): (usize, char)| match character {
        _ if at != place => character,
        '0'..='8' | 'a'..='y' | 'A'..='Y' => char::from_u32(character as u32 + 1).unwrap(),
        '9' => '0',
        'z' => 'a',
        'Z' => 'A',
        other => other,
    };
    text.char_indices().map(change).collect()
}

//= SIG-11 refused
#[test]
fn nothing_is_admitted_without_the_evidence_of_every_check() {
    let gate = Gate::builder().for_program();
    let settings = Settings::parse("gateway.yaml", gate.yaml(), gate.folder()).unwrap();
    let world = settings.reloadable.snapshot;
    let links = settings
        .reloadable
        .sca
        .links(Environment::Sandbox, NOW)
        .unwrap();
    let (links, store) = (
        Arc::new(links),
        StateStore::open(&settings.fixed.state).unwrap(),
    );
    let clock = Clock::standing(NOW);
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let judge = |request: &SignedRequest| {
        let headers = request.header_map().unwrap();
        let method = request.method.parse().unwrap();
        let framing = Framing::Frames {
            other_scheme: false,
        };
        let head = Head::unconnected(&method, request.target.as_bytes(), &headers, framing);
        let mut body = Bytes::from(request.body.clone().unwrap_or_default());
        let mut record = Record::open();
        let trial = Trial::open(&world, &clock, &mut record);
        let judged = runtime.block_on(async {
            let proven = admission::prove(&head, &mut body, trial).await?;
            admission::authorise(proven, &links, &store, &world).await
        });
        (judged, record)
    };
    let psu = world_psu(&runtime, &store);
    let (mut admitted, mut refused) = (0, 0);
    for operation in builtin() {
        let sealed = call(&operation, &psu).seal(NOW);
        let what = &operation.name;
        match judge(&sealed.request) {
            (Ok(Admission::Forward(good)), record) => shows_every_evidence(what, &good, &record),
            (Ok(Admission::Answer(_)), _) => assert_eq!(operation.answered_by, AnsweredBy::Gateway),
            (Err(refusal), _) => panic!("{what}: {refusal:?}"),
        }
        // Each changed request is a new one: a claimed request id would be a second reason to refuse.
        let fresh = call(&operation, &psu).seal(NOW).request;
        for at in 0..mutations(&fresh).len() {
            let fresh = call(&operation, &psu).seal(NOW).request;
            let changed = mutations(&fresh).remove(at);
            match judge(&changed) {
                (Ok(Admission::Forward(good)), record) => {
                    shows_every_evidence(what, &good, &record);
                    admitted += 1;
                }
                (Ok(Admission::Answer(_)), record) => assert!(record.holds(Stage::Signature)),
                (Err(_), _) => refused += 1,
            }
        }
    }
    // Some changes are in headers that are not signed.
    assert!(
        admitted > 10 && refused > 500,
        "{admitted} admitted, {refused} refused"
    );
}

/// The PSU of the TPP, who has consented to everything.
fn world_psu(runtime: &Runtime, store: &StateStore) -> String {
    let psu = world().both.psu();
    let tpp = TppId::parse(&world().both.id().unwrap()).unwrap();
    let bind = Bind {
        imported: false,
        who: PsuRef {
            tpp: &tpp,
            psu: Known::by_bank(PsuId::parse(psu.as_bytes()).unwrap()),
        },
        corporate: None,
        last_sca: NOW,
        consent: Some((NOW, &ConsentAccounts::All)),
        customer: None,
    };
    runtime.block_on(store.bind(bind)).unwrap();
    psu
}
