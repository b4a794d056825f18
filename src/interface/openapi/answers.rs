//! The answers of operations: the interface's result where it shows one, and every refusal that an operation can get, by
//! status, with the reasons that have it (ERR-1 to ERR-6).

use super::{
    components::Components,
    examples,
    links::links,
    path::Path,
    results::{self, Success},
};
use crate::{
    Code, Reason,
    operations::{AnsweredBy, Body, Operation, Quota, Sca, Takes},
    payload::describe::reference,
};
use serde_json::{Map, Value, json};

/// The answers of an operation, by status.
pub(super) fn describe(
    operation: &Operation,
    path: &Path,
    components: &mut Components<'_>,
) -> Value {
    let mut answers = Map::new();
    let result = results::of(operation, components);
    let status = result.status.clone();
    answers.insert(status, success(operation, result, components));
    for status in statuses(operation, path) {
        answers.insert(status.to_string(), refusal(status, components));
    }
    if operation.answered_by == AnsweredBy::Upstream {
        answers.insert("default".to_owned(), other(components));
    }
    Value::Object(answers)
}

/// The statuses that an operation can be refused with, in their order.
fn statuses(operation: &Operation, path: &Path) -> Vec<u16> {
    let reasons = Reason::ALL.iter().copied();
    let possible = reasons.filter(|reason| can_be(*reason, operation, path));
    let mut statuses: Vec<_> = possible.map(Reason::status).collect();
    if path.has_ids() {
        // The core's RESOURCE_UNKNOWN.
        statuses.push(404);
    }
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

/// Whether an operation can be refused for a reason.
fn can_be(reason: Reason, operation: &Operation, path: &Path) -> bool {
    match reason {
        Reason::OperationUnknown | Reason::MethodNotAllowed => false,
        Reason::ProductUnknown => path.has_product(),
        Reason::MediaTypeUnsupported => operation.body != Body::Ignored,
        // The core can demand SCA of any PSU (SCA-14).
        Reason::ScaRequired => operation.takes == Takes::Whole,
        Reason::AccountUnknown => operation.sca == Sca::Consent && path.has_ids(),
        Reason::UpstreamError
        | Reason::UpstreamUnreachable
        | Reason::UpstreamTimeout
        | Reason::OutcomeUnknown => operation.answered_by == AnsweredBy::Upstream,
        _ => true,
    }
}

fn success(operation: &Operation, result: Success, components: &mut Components<'_>) -> Value {
    let mut headers = Map::new();
    headers.insert(
        "X-Request-ID".to_owned(),
        header("X-Request-ID", components),
    );
    if operation.quota == Quota::FourInADay {
        for name in ["RateLimit", "RateLimit-Policy"] {
            headers.insert(name.to_owned(), header(name, components));
        }
    }
    let mut content = json_of(result.schema);
    if let Some(example) = examples::answer(&operation.name)
        && operation.answer.is_none()
        && let Some(Value::Object(json)) = content.get_mut("application/json")
    {
        json.insert("example".to_owned(), example);
    }
    json!({ "description": result.text, "headers": headers, "content": content })
}

/// A reference to the refusals of a status.
fn refusal(status: u16, components: &mut Components<'_>) -> Value {
    let key = status.to_string();
    let shared = json!({ "$ref": format!("#/components/responses/{key}") });
    if components.responses.contains_key(&key) {
        return shared;
    }
    // ERR-6: an error of the core that is replaced keeps its status.
    let reasons = Reason::ALL
        .iter()
        .filter(|reason| reason.status() == status || matches!(reason, Reason::UpstreamError));
    let slugs: Vec<_> = reasons.map(|reason| reason.slug()).collect();
    let text = format!("Refused, or an error of the core: {}.", slugs.join(", "));
    components.schema("Error", error);
    links(components);
    let mut names = vec!["X-Request-ID"];
    match status {
        429 => names.extend(["Retry-After", "RateLimit", "RateLimit-Policy"]),
        503 => names.push("Retry-After"),
        _ => {}
    }
    let headers: Map<String, Value> = names
        .into_iter()
        .map(|name| (name.to_owned(), header(name, components)))
        .collect();
    let described = json!({
        "description": text,
        "headers": headers,
        // Generators of clients cannot merge schemas: one schema describes every refusal.
        "content": json_of(reference("Error")),
    });
    components.responses.insert(key, described);
    shared
}

/// The other answers of the core.
fn other(components: &mut Components<'_>) -> Value {
    components.schema("Error", error);
    links(components);
    let described = json!({
        "description": "Another error of the core, passed on where it is JSON.",
        "content": json_of(reference("Error")),
    });
    components.responses.entry("other").or_insert(described);
    json!({ "$ref": "#/components/responses/other" })
}

fn json_of(schema: Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

/// A reference to a header of answers.
fn header(name: &str, components: &mut Components<'_>) -> Value {
    let text = match name {
        "Retry-After" => "Seconds after which the same request can pass.",
        "RateLimit" => {
            "The calls without the PSU that are left (r) and the seconds until there is one more (t)."
        }
        "RateLimit-Policy" => {
            "The calls without the PSU that can be made in a window (q) of so many seconds (w)."
        }
        _ => "As in the request.",
    };
    let kind = if name == "Retry-After" {
        "integer"
    } else {
        "string"
    };
    let described = json!({ "description": text, "schema": { "type": kind } });
    components.headers.entry(name).or_insert(described);
    json!({ "$ref": format!("#/components/headers/{name}") })
}

/// ERR-1. An error of the core that is passed on has no reason, and may have less.
fn error() -> Value {
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let reasons: Vec<_> = Reason::ALL.iter().map(|reason| reason.slug()).collect();
    let code = json!({ "type": "string", "enum": codes });
    let reason = json!({ "type": "string", "enum": reasons });
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "Names this occurrence." },
            "system": { "type": "string", "description": "The system that found it." },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "code": code,
            "message": { "type": "string", "description": "A sentence on the reason." },
            "reason": { "type": "string", "enum": reasons, "description": "Why the gateway refused the request; it never changes its meaning. An error of the core has none." },
            "documentation": { "type": "string", "format": "uri", "description": "The bank's page about the reason, where the bank has such pages." },
            "faults": {
                "type": "array",
                "description": "Everything that was wrong at this stage.",
                "items": {
                    "type": "object",
                    "required": ["reason", "text"],
                    "properties": { "reason": reason, "text": text, "header": text, "query": text, "path": text },
                },
            },
            "tppMessages": {
                "type": "array",
                "description": "The same in the form of payments and signing baskets.",
                "items": {
                    "type": "object",
                    "required": ["category", "code"],
                    "properties": {
                        "category": { "type": "string", "enum": ["ERROR", "WARNING"] },
                        "code": code,
                        "path": text,
                        "text": { "type": "string", "maxLength": 512 },
                    },
                },
            },
            "signingString": { "type": "string", "description": "What the gateway verified the signature over, without personal values; in the sandbox only." },
            "_links": reference("Links"),
        },
    })
}
