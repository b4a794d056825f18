//! Bodies: for each rule, values just within the limit and just beyond it.

// PAY-1.
mod json;
// PAY-3 to PAY-13.
mod members;
// ERR-10.
mod misspelt;
// Products that a deployment configures.
mod products;
// The sets, compared with the interface.
mod sets;

use super::*;
use serde_json::{Value, json};

/// The date by which bodies are checked.
fn today() -> Date {
    jiff::civil::date(2026, 1, 15)
}

/// A cross-border payment with every member, above the limit of PAY-11.
fn payment() -> Value {
    let mut payment = describe::example();
    payment["requestedExecutionDate"] = json!(today().to_string());
    payment
}

/// The payment with one member changed, by a path with slashes; `None` removes the member.
fn changed(path: &str, value: Option<Value>) -> Value {
    let mut payment = payment();
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = match parent {
        "" => &mut payment,
        parent => payment.pointer_mut(&format!("/{parent}")).unwrap(),
    };
    let members = parent.as_object_mut().unwrap();
    match value {
        Some(value) => drop(members.insert(name.into(), value)),
        None => drop(members.shift_remove(name)),
    }
    payment
}

/// The violations of a body, as `path: text`.
fn wrong(body: &[u8], schema: Schema) -> Vec<String> {
    wrong_of(body, schema, &[])
}

/// The same, for a product with these members.
fn wrong_of(body: &[u8], schema: Schema, members: &[Member]) -> Vec<String> {
    let Err(faults) = check(body, schema, members, today(), &Ibans::default()) else {
        return Vec::new();
    };
    assert!(!faults.is_empty(), "refused for nothing");
    let shown = |fault: &Fault| match &fault.place {
        crate::FaultPlace::Member(path) => format!("{path}: {}", fault.text),
        _ => format!("{}: {}", fault.reason.slug(), fault.text),
    };
    faults.iter().map(shown).collect()
}

/// The paths of the violations of a value.
fn paths(value: &Value, schema: Schema) -> Vec<String> {
    let wrong = wrong(value.to_string().as_bytes(), schema).into_iter();
    wrong
        .map(|text| text.split(':').next().unwrap().to_owned())
        .collect()
}
