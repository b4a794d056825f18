//! The body of the gateway's own errors (ERR-1, ERR-2), and tppMessages for the operations that have them.

use super::sca_link::links_object;
use crate::interface::{Code, Fault, FaultPlace, Reason, Refusal, operations::Operation};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The longest `text` of tppMessages, in characters (§Message object).
const MAX_TEXT: usize = 512;

/// What every error body says of the gateway itself.
#[derive(Debug)]
pub(super) struct ErrorBodySettings {
    /// ERR-1's `system`.
    pub(super) system: String,
    /// The base of `documentation`, which the reason follows (ERR-10); `None` for no such member.
    pub(super) documentation: Option<String>,
}

/// The body of a refusal (ERR-1), with its id, and with the operation if it is known.
pub(super) fn of(
    refusal: &Refusal,
    id: Uuid,
    origin: &ErrorBodySettings,
    operation: Option<&Operation>,
) -> Value {
    let reason = refusal.reason();
    let mut body = Map::new();
    body.insert("id".into(), json!(id.to_string()));
    body.insert("system".into(), json!(origin.system));
    body.insert("status".into(), json!(refusal.status()));
    if let Some(code) = code(refusal) {
        body.insert("code".into(), json!(code));
    }
    body.insert("message".into(), json!(reason.title()));
    body.insert("reason".into(), json!(reason.slug()));
    if let Some(base) = &origin.documentation {
        let page = format!("{base}{}", reason.slug());
        body.insert("documentation".into(), json!(page));
    }
    if !refusal.faults().is_empty() || refusal.status() == 400 {
        body.insert(
            "faults".into(),
            faults(refusal).map(|found| fault(&found)).collect(),
        );
    }
    if let Some(href) = refusal.sca_redirect() {
        body.insert("_links".into(), links_object(href));
    }
    if let Some(signing_string) = refusal.signing_string() {
        body.insert("signingString".into(), json!(signing_string));
    }
    // A path with an unknown product names an operation of payments, though none of the catalogue's.
    let is_of_payments = operation.is_some_and(|operation| operation.tpp_messages)
        || reason == Reason::ProductUnknown;
    if is_of_payments {
        body.insert(
            "tppMessages".into(),
            faults(refusal).map(|found| message(&found)).collect(),
        );
    }
    Value::Object(body)
}

/// ERR-6: a replaced error of the upstream keeps its status, and the status determines the code.
fn code(refusal: &Refusal) -> Option<&'static str> {
    match (refusal.reason(), refusal.status()) {
        (Reason::UpstreamError, 403) => Some("FORBIDDEN"),
        (Reason::UpstreamError, 404) => Some("RESOURCE_UNKNOWN"),
        (Reason::UpstreamError, 409) => Some("CONFLICT"),
        (Reason::UpstreamError, 400..500) => Some("BAD_REQUEST"),
        _ => refusal.code().map(Code::as_str),
    }
}

/// The faults, or the title if there are none.
fn faults(refusal: &Refusal) -> impl Iterator<Item = Fault> {
    let title = refusal
        .faults()
        .is_empty()
        .then(|| Fault::request(refusal.reason(), refusal.reason().title()));
    refusal.faults().iter().cloned().chain(title)
}

fn fault(fault: &Fault) -> Value {
    let mut value = json!({ "reason": fault.reason.slug(), "text": fault.text });
    let place = match &fault.place {
        FaultPlace::Header(name) => Some(("header", *name)),
        FaultPlace::Query(name) => Some(("query", name.as_str())),
        FaultPlace::Member(path) => Some(("path", path.as_str())),
        FaultPlace::Request | FaultPlace::Body => None,
    };
    if let (Some((member, name)), Some(members)) = (place, value.as_object_mut()) {
        members.insert(member.into(), json!(name));
    }
    value
}

/// §Message object.
fn message(fault: &Fault) -> Value {
    let text: String = fault.text.chars().take(MAX_TEXT).collect();
    // The interface has no code for a required SCA; SCA_NOT_FOUND is the nearest.
    let code = fault.code.unwrap_or(Code::ScaNotFound);
    let mut value = json!({ "category": "ERROR", "code": code.as_str(), "text": text });
    let path = match &fault.place {
        FaultPlace::Header(name) => Some(*name),
        FaultPlace::Query(name) => Some(name.as_str()),
        FaultPlace::Member(path) => Some(path.as_str()),
        FaultPlace::Request | FaultPlace::Body => None,
    };
    if let (Some(path), Some(members)) = (path, value.as_object_mut()) {
        members.insert("path".into(), json!(path));
    }
    value
}
