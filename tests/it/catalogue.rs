//! What holds of every operation of the catalogue, whichever it is.

use crate::harness::{Call, Gate, Protocol, Reply};
use portvakt::{
    clock::{Clock, Timestamp},
    interface::operations::{
        AnsweredBy, Body, Operation, Required, Role, Sca, Schema, Takes, builtin,
    },
};
use rusqlite::{Connection, OpenFlags, types::Value};

/// While the gateway learns (SCA-19).
const NOW: Timestamp = Timestamp::from_unix(1_790_000_000);

/// A PSU-ID that nobody gave out, another one for each number.
fn invented(number: usize) -> String {
    format!("7d2504e0-4f89-41d3-9a0c-{number:012x}")
}

/// A request that holds, for whatever PSU.
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

/// Everything that is kept of PSUs, row by row.
fn kept(gate: &Gate) -> Vec<String> {
    let file = gate.folder().join("state/portvakt.db");
    let sql = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut rows = Vec::new();
    for table in ["psu", "context", "token"] {
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

/// A core that says of every PSU all that a core can say.
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
        let before = kept(&gate);
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
        assert_eq!(kept(&gate), before, "{}", operation.name);
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
        let before = kept(&gate).len();
        gate.upstream().reply(Reply::json(200, "{}"));
        assert_eq!(gate.send(&call, Protocol::Http1).status, 200);
        assert_eq!(
            kept(&gate).len(),
            before,
            "{}: a core that says nothing binds nobody",
            operation.name
        );
        gate.upstream().reply(generous(200));
        assert_eq!(gate.send(&call, Protocol::Http1).status, 200);
        assert!(kept(&gate).len() > before, "{}", operation.name);
    }
}
