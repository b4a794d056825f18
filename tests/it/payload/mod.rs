//! Bodies, through the listener: PAY-1 to PAY-16. What every member may hold is a matter of tables beside the rules; here
//! each rule shows that what it refuses reaches nobody, and that what it accepts reaches the core byte for byte.

/// PAY-1, PAY-2, PAY-15, PAY-16.
mod body;
/// Payments that a generator makes, and what one fault makes of them.
pub(crate) mod generated;
/// PAY-3 to PAY-14.
mod members;

use crate::harness::{Answer, Call, Gate, refused};
use serde_json::{Value, json};

/// A cross-border payment with every member, above the limit of PAY-11.
pub(super) fn payment() -> Value {
    json!({
        "instructedAmount": {"amount": "150000.00", "currency": "NOK"},
        "creditorName": "Werkzeugbau Müller GmbH",
        "creditorAgent": "COBADEFFXXX",
        "creditorAccount": {"iban": "DE89370400440532013000", "currency": "EUR"},
        "creditorAddress": {"street": "Musterweg", "buildingNumber": "1", "postalCode": "10115", "city": "Berlin", "country": "DE"},
        "debtorAccount": {"iban": "NO9386011117947", "currency": "NOK"},
        "remittanceInformationUnstructured": "Faktura 4711 😀",
        "purposeCode": "INVS",
        "requestedExecutionDate": "2999-12-31",
        "regulatoryReportingCode": "14",
        "regulatoryReportingInformation": "Machine tools",
    })
}

/// The payment with one member changed, by a path with points; `null` takes it out.
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

/// The call is refused for these members, in this order, and says so to both kinds of readers.
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
