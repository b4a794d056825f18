//! Bodies, through the listener: PAY-1 to PAY-16. Tables beside the rules test the values of every member. These tests show for
//! each rule that a refused body reaches nobody, and that an accepted body reaches the core unchanged.

/// PAY-1, PAY-2, PAY-15, PAY-16.
mod body;
/// Generated payments, valid and with one fault.
pub(crate) mod generated;
/// PAY-3 to PAY-14.
mod members;
/// Products that a bank configures.
mod products;

use crate::harness::{Answer, Call, Gate, refused};
use portvakt::interface::payload::describe;
use serde_json::{Value, json};

/// A cross-border payment with every member, above the limit of PAY-11, in characters of every width.
pub(super) fn payment() -> Value {
    let mut payment = describe::example();
    payment["creditorName"] = json!("Werkzeugbau Müller GmbH");
    payment["remittanceInformationUnstructured"] = json!("Faktura 4711 😀");
    payment["requestedExecutionDate"] = json!("2999-12-31");
    payment
}

/// The payment with one member changed, named by a path with dots; `null` removes the member.
pub(super) fn changed(path: &str, value: Value) -> Value {
    let mut payment = payment();
    let mut parent = &mut payment;
    let mut names: Vec<_> = path.split('.').collect();
    let last = names.pop().unwrap();
    for name in names {
        parent = &mut parent[name];
    }
    let members = parent.as_object_mut().unwrap();
    if value.is_null() {
        members.shift_remove(last);
    } else {
        members.insert(last.into(), value);
    }
    payment
}

/// The creation of a cross-border payment.
fn cross_border(payment: &Value) -> Call {
    Call::cross_border().json(&payment.to_string())
}

/// The creation of a basket.
fn basket(ids: &Value) -> Call {
    Call::basket().json(&json!({ "paymentIds": ids }).to_string())
}

/// Asserts that the call is refused for these members, in this order, in both forms of the error body.
fn refused_for(gate: &Gate, call: &Call, code: &str, paths: &[&str]) -> Answer {
    let answer = refused(gate, call, 400, code, "payload-invalid");
    let json = answer.json();
    for list in ["faults", "tppMessages"] {
        let named = json[list].as_array().unwrap().iter();
        let named: Vec<_> = named.map(|one| one["path"].as_str().unwrap()).collect();
        assert_eq!(named, paths, "{list}");
    }
    answer
}
