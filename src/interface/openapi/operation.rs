//! One operation: its names, its parameters and body, and its requirements in prose.

use super::{answers, components::Components, examples, headers, path::Path, query};
use crate::{
    operations::{
        Agreement, AnsweredBy, Body, Catalogue, Operation, Quota, Required, Role, Sca, Schema,
        Takes,
    },
    payload,
};
use serde_json::{Map, Value, json};

pub(super) fn describe(
    operation: &Operation,
    path: &Path,
    catalogue: &Catalogue,
    components: &mut Components<'_>,
) -> Value {
    let mut parameters = path.parameters(operation, catalogue);
    parameters.extend(query::parameters(operation));
    parameters.extend(headers::parameters(operation, components));
    let mut described = Map::new();
    let mut say = |name: &str, value: Value| described.insert(name.to_owned(), value);
    say("operationId", json!(operation.name));
    say("summary", json!(summary(&operation.name)));
    say("description", json!(description(operation)));
    say("tags", json!([operation.group]));
    if operation.deprecated.is_some() {
        say("deprecated", json!(true));
    }
    say("security", headers::security(operation, components));
    say("parameters", json!(parameters));
    if let Some(body) = body(operation, components) {
        say("requestBody", body);
    }
    say("responses", answers::describe(operation, path, components));
    Value::Object(described)
}

/// The name as words.
fn summary(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => words,
    }
}

fn description(operation: &Operation) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut say = |text: &str| said.push(text.to_owned());
    examples::purpose(&operation.name).map(&mut say);
    say(match operation.role {
        Role::AccountInformation => "Needs the PSD2 role PSP_AI.",
        Role::PaymentInitiation => "Needs the PSD2 role PSP_PI.",
        Role::Either => "Needs the PSD2 role PSP_AI or PSP_PI.",
    });
    match operation.sca {
        Sca::None => {}
        Sca::Identified => say(
            "Needs a PSU that is known to the TPP: the answer is 401 with a scaRedirect link where it is not.",
        ),
        Sca::Consent => say(
            "Needs the PSU's consent: the answer is 401 with a scaRedirect link where there is none, or where its SCA is too old.",
        ),
    }
    if operation.quota == Quota::FourInADay {
        say(
            "Without PSU-IP-Address it can be called four times in 24 hours for each PSU and account.",
        );
    }
    for required in &operation.required {
        if let Required::Either(one, other) = required {
            say(&format!(
                "Requires {}, or {} in its place.",
                one.written, other.written
            ));
        }
    }
    if operation.agreement == Agreement::Open && operation.takes == Takes::Whole {
        say("PSU-Context CORPORATE needs no PSU-Corporate-ID here.");
    }
    match operation.body {
        Body::Json => {}
        Body::None => say("It takes no body."),
        Body::Ignored => say("Its body is ignored."),
    }
    if let Some(deprecated) = &operation.deprecated {
        say(&format!("Deprecated since {}.", deprecated.since));
        if let Some(sunset) = deprecated.sunset {
            say(&format!("It may be gone from {sunset} on."));
        }
        if let Some(successor) = &deprecated.successor {
            say(&format!("Replaced by {successor}."));
        }
    }
    if operation.answered_by == AnsweredBy::Gateway {
        say("The answer is a scaRedirect link.");
    }
    said.join(" ")
}

/// A body that must be JSON. An ignored body may be anything, so it is not described.
fn body(operation: &Operation, components: &mut Components<'_>) -> Option<Value> {
    if operation.body != Body::Json {
        return None;
    }
    let ibans = components.setting.ibans;
    components.schemas(payload::describe::definitions(operation.schema, ibans));
    if !operation.members.is_empty() {
        components.schemas(payload::describe::definitions(
            Schema::CrossBorderPayment,
            ibans,
        ));
        components.schemas(payload::describe::definitions(Schema::Payment, ibans));
    }
    let schema = match payload::describe::name(operation.schema) {
        Some(name) => payload::describe::with_members(name, &operation.members),
        None => json!({ "description": "Any JSON: the interface does not show its members." }),
    };
    let mut json = Map::from_iter([("schema".to_owned(), schema)]);
    if let Some(example) = examples::body(&operation.name) {
        json.insert("example".to_owned(), example);
    }
    Some(json!({ "required": true, "content": { "application/json": json } }))
}
