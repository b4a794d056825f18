//! The interface as an OpenAPI 3.1 description, generated from the data that the checks use: the catalogue with a deployment's own
//! operations, the header table, the query parameters, the rules of bodies, the reasons.
//!
//! Invariant: the description forbids nothing that the gateway admits, and contains each operation of the catalogue once. Rules that
//! OpenAPI cannot express (signatures, headers that depend on others) are described in prose. Deliberately not here: answers of the core
//! that the interface does not show.

// The parts that operations share.
mod components;

// One operation: its names, parameters, body and answers.
mod operation;
// Paths, as OpenAPI distinguishes them.
mod path;

// The request.
mod headers;
mod query;

// The answers.
mod answers;
mod links;
mod results;
mod shapes;
mod simulated;

// What an operation is for, and examples of its body and its answer.
mod examples;

// The description as a page.
pub mod page;

pub use components::Setting;

use super::{operations::Catalogue, payload};
use components::Components;
use path::Spellings;
use serde_json::{Map, Value, json};

/// Describes a catalogue.
pub fn describe(catalogue: &Catalogue, setting: &Setting<'_>) -> Value {
    let mut components = Components::new(setting);
    let mut spellings = Spellings::default();
    let mut paths: Map<String, Value> = Map::new();
    let mut groups: Vec<&str> = Vec::new();
    for operation in catalogue.operations() {
        if !groups.contains(&operation.group.as_str()) {
            groups.push(&operation.group);
        }
        let path = spellings.spell(operation);
        let described = operation::describe(operation, &path, catalogue, &mut components);
        let item = paths.entry(path.text).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(operation.method.as_str().to_ascii_lowercase(), described);
        }
    }
    let tags = groups.into_iter().map(tag);
    json!({
        "openapi": "3.1.1",
        "info": info(setting),
        "servers": [server(setting)],
        "tags": tags.collect::<Vec<_>>(),
        "paths": paths,
        "components": components.into_value(),
    })
}

fn info(setting: &Setting<'_>) -> Value {
    let environment = setting.environment.name();
    json!({
        "title": format!("PSD2 interface, {environment}"),
        "summary": "Accounts, payments and signing baskets for registered third-party providers (TPPs).",
        "description": prose(setting),
        "version": env!("CARGO_PKG_VERSION"),
        "contact": { "name": setting.system },
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    })
}

/// The rules that OpenAPI cannot express.
fn prose(setting: &Setting<'_>) -> String {
    let limit = setting.body_limit;
    let depth = payload::MAX_DEPTH;
    let signed = crate::headers::SIGNED.map(|header| header.name.as_str());
    let (last, others) = signed.split_last().unwrap_or((&"", &[]));
    let others = others.join(", ");
    format!(
        "Every request is signed with the key of a qualified eIDAS certificate; there are no bearer tokens and no API keys.\n\n\
         **Signature** is `keyId=\"SN=<serial>,CA=<issuer>\",algorithm=\"rsa-sha256\",headers=\"<names>\",signature=\"<base64>\"`. \
         `<serial>` is the certificate's serial number in hexadecimal and `<issuer>` its issuer's name per RFC 2253; the \
         certificate itself stands in TPP-Signature-Certificate. `<names>` lists what is signed, in lower case and in signing order: \
         of {others} and {last} all that are in the request, and \
         `(request-target)` where method and path are signed too. The signing string has one line `name: value` for each, \
         joined by newlines. A value outside ASCII is sent as an RFC 2047 encoded word around the whole header.\n\n\
         **Date** deviates at most 60 seconds from the gateway's clock. **Digest** is SHA-256 or SHA-512 of the body exactly as \
         it is sent. **X-Request-ID** is new for each call. A header that may stand once and stands twice is refused.\n\n\
         **Bodies** are JSON in UTF-8 of at most {limit} bytes, without duplicate members and at most {depth} levels deep; \
         application/*+json is taken as application/json is. An operation without a body takes `{{}}` too.\n\n\
         **Refusals** name a `reason` that never changes its meaning, and list everything that was wrong at one stage. A path \
         that is no operation gets 404 operation-unknown, a method that a path does not have 405 method-not-allowed. What is \
         no HTTP at all is answered 400 without a body. Every answer carries the request's X-Request-ID."
    )
}

fn server(setting: &Setting<'_>) -> Value {
    json!({
        "url": "https://{authority}",
        "description": setting.environment.name(),
        "variables": { "authority": {
            "default": setting.authority,
            "description": "Host and port by which TPPs reach the gateway.",
        } },
    })
}

fn tag(group: &str) -> Value {
    let text = match group {
        "accounts" => "Accounts, balances and transactions that the PSU consented to.",
        "payments" => "Payments: creating, authorising, following them.",
        "signing-baskets" => "Payments that are signed together.",
        "users" => "PSUs of a TPP that only initiates payments.",
        "agreements" => "The corporate agreements of a PSU.",
        "consents" => "Consent to account information, given at the bank.",
        "tpp" => "The TPP's own contact address.",
        "sandbox" => "Mock data of the sandbox.",
        _ => "Operations of this deployment.",
    };
    json!({ "name": group, "description": text })
}

#[cfg(test)]
mod tests;
