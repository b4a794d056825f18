use super::*;
use crate::{
    Reason,
    headers::{TABLE, identity::IdentityForm},
    operations::{
        Answer, Body, Deprecated, Environment, Lookup, Parameter, ParameterKind, Role, builtin,
    },
    payload::Ibans,
};
use http::Method;
use std::{collections::HashSet, sync::LazyLock};

fn described(environment: Environment) -> (Catalogue, Value) {
    let mut operations = builtin();
    let mut added = operation("card-block", Method::PUT, "/v1/cards/{id}/block/{id}");
    added.query = vec![Parameter::new("reason", ParameterKind::Text).required()];
    operations.push(added);
    let mut own = operation("own-read", Method::GET, "/v1/accounts/{mine}/cards");
    own.deprecated = Some(Deprecated {
        since: jiff::civil::date(2027, 1, 31),
        sunset: None,
        successor: None,
    });
    operations.push(own);
    let catalogue = Catalogue::new(environment, operations).unwrap();
    let description = describe(&catalogue, &setting(environment));
    (catalogue, description)
}

fn setting(environment: Environment) -> Setting<'static> {
    static IBANS: LazyLock<Ibans> = LazyLock::new(Ibans::default);
    Setting {
        environment,
        system: "portvakt",
        authority: "localhost:8443",
        identity: IdentityForm::NORWEGIAN,
        body_limit: 65_536,
        ibans: &IBANS,
    }
}

fn operation(name: &str, method: Method, path: &str) -> crate::operations::Operation {
    crate::operations::Operation::added(name, method, path, "cards", Role::Either)
}

/// Every operation, with its method and its path.
fn operations(description: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = description["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, item)| {
        let item = item.as_object().unwrap().iter();
        item.map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    });
    all.collect()
}

/// A parameter, found behind its reference.
fn resolve<'a>(description: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => description
            .pointer(reference.strip_prefix('#').unwrap())
            .unwrap(),
        None => value,
    }
}

fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

#[test]
fn every_operation_stands_in_it_once_with_what_it_takes() {
    for environment in [Environment::Production, Environment::Sandbox] {
        let (catalogue, description) = described(environment);
        let all = operations(&description);
        assert_eq!(all.len(), catalogue.operations().len());
        for operation in catalogue.operations() {
            let named = |other: &&(&str, &str, &Value)| other.2["operationId"] == *operation.name;
            let found: Vec<_> = all.iter().filter(named).collect();
            let [(method, path, shown)] = found[..] else {
                panic!("{}: {found:?}", operation.name)
            };
            assert_eq!(method.to_uppercase(), operation.method.as_str());
            assert_eq!(
                path.matches('/').count(),
                operation.path.matches('/').count()
            );
            assert_eq!(shown["tags"][0], *operation.group);
            let parameters: Vec<_> = shown["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .map(|value| resolve(&description, value))
                .collect();
            let stands = |place: &str, name: &str, required: bool| {
                let same = |other: &&&Value| other["in"] == place && other["name"] == name;
                let found: Vec<_> = parameters.iter().filter(same).collect();
                found.len() == 1 && found[0]["required"] == required
            };
            for parameter in &operation.query {
                assert!(
                    stands("query", &parameter.name, parameter.required),
                    "{} {}",
                    operation.name,
                    parameter.name
                );
            }
            for header in TABLE
                .iter()
                .filter(|header| headers::is_required(operation, header))
            {
                assert!(
                    stands("header", header.written, true),
                    "{} {}",
                    operation.name,
                    header.written
                );
            }
            let signing = shown["security"][0].as_object().unwrap();
            assert_eq!(
                signing.contains_key("Digest"),
                operation.body == Body::Json,
                "{}",
                operation.name
            );
            for name in ["Date", "Signature", "TPP-Signature-Certificate"] {
                assert!(signing.contains_key(name), "{} {name}", operation.name);
            }
            let mut names = HashSet::new();
            assert!(parameters.iter().all(|parameter| {
                names.insert((parameter["in"].as_str(), parameter["name"].as_str()))
            }));
            for segment in placeholders(path) {
                assert!(
                    stands("path", segment, true),
                    "{} {segment}",
                    operation.name
                );
            }
        }
    }
}

#[test]
fn every_header_has_a_form_except_those_of_http() {
    let setting = setting(Environment::Sandbox);
    let without = TABLE
        .iter()
        .filter(|header| headers::form(header, &setting).is_none())
        .map(|header| header.written);
    assert_eq!(
        without.collect::<Vec<_>>(),
        [
            "Accept",
            "Host",
            "Content-Type",
            "Content-Encoding",
            "Content-Language"
        ]
    );
}

/// A new operation has its answer in `results.rs` or `simulated.rs`, and its purpose and examples in `examples.json`.
#[test]
fn every_operation_is_described_whole() {
    for operation in builtin() {
        let name = &operation.name;
        assert!(examples::purpose(name).is_some(), "{name}");
        assert!(examples::answer(name).is_some(), "{name}");
        let is_json = operation.body == Body::Json;
        assert_eq!(examples::body(name).is_some(), is_json, "{name}");
    }
    let (_, description) = described(Environment::Sandbox);
    let open: Vec<_> = operations(&description)
        .into_iter()
        .filter(|(_, _, shown)| shown["responses"].get("2XX").is_some())
        .map(|(_, _, shown)| shown["operationId"].clone())
        .collect();
    // The two that the test adds.
    assert_eq!(open, ["card-block", "own-read"]);
}

#[test]
fn a_deployment_declares_its_own_answer() {
    let mut list = builtin()
        .into_iter()
        .find(|one| one.name == "account-list")
        .unwrap();
    list.answer = Some(Answer {
        status: 207,
        schema: json!({ "type": "object", "title": "own" }),
    });
    let catalogue = Catalogue::new(Environment::Production, vec![list]).unwrap();
    let description = describe(&catalogue, &setting(Environment::Production));
    let answers = &description["paths"]["/v1/accounts"]["get"]["responses"];
    let json = &answers["207"]["content"]["application/json"];
    assert_eq!(json["schema"]["title"], "own");
    assert_eq!(json.get("example"), None);
    assert_eq!(answers.get("200"), None);
}

#[test]
fn every_reason_and_every_reference() {
    let (_, description) = described(Environment::Sandbox);
    let reasons = &description["components"]["schemas"]["Error"]["properties"]["reason"]["enum"];
    let slugs: Vec<_> = Reason::ALL.iter().map(|reason| reason.slug()).collect();
    assert_eq!(*reasons, json!(slugs));
    let mut used = HashSet::new();
    references(&description, &mut used);
    for reference in &used {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(description.pointer(pointer).is_some(), "{reference}");
    }
    for (kind, components) in description["components"].as_object().unwrap() {
        // Operations name security schemes without a reference.
        if kind == "securitySchemes" {
            continue;
        }
        for name in components.as_object().unwrap().keys() {
            assert!(
                used.contains(&format!("#/components/{kind}/{name}")),
                "{kind} {name}"
            );
        }
    }
}

fn references(value: &Value, found: &mut HashSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.insert(reference.clone());
            }
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(elements) => elements.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn products_lead_where_they_are_described() {
    let (_, description) = described(Environment::Sandbox);
    let products = |path: &str, method: &str| {
        description["paths"][path][method]["parameters"][0]["schema"]["enum"].clone()
    };
    assert_eq!(
        products("/v1/payments/{payment-product}", "post"),
        json!([
            "norwegian-domestic-credit-transfers",
            "instant-norwegian-credit-transfers-straks"
        ])
    );
    let status = products("/v1/payments/{payment-product}/{payment-id}/status", "get");
    assert_eq!(status.as_array().unwrap().len(), 3);
}

#[test]
fn what_is_deprecated_and_what_production_lacks() {
    let (_, description) = described(Environment::Production);
    let all = operations(&description);
    let deprecated = all
        .iter()
        .filter(|(_, _, operation)| operation["deprecated"] == true);
    let mut names: Vec<_> = deprecated
        .map(|(_, _, operation)| operation["operationId"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["consent-create", "own-read"]);
    assert!(
        all.iter()
            .all(|(_, path, _)| !path.starts_with("/v1/sandbox"))
    );
    let (_, description) = described(Environment::Sandbox);
    // One path, although the catalogue calls its id by two names.
    let item = &description["paths"]["/v1/sandbox/accounts/{mockAccountId}/transactions"];
    assert_eq!(item.as_object().unwrap().len(), 2);
    let named = |method: &str, name: &str| {
        let parameter = &item[method]["parameters"][0];
        assert_eq!(parameter["name"], "mockAccountId");
        parameter["description"].as_str().unwrap().contains(name)
    };
    assert!(named("post", "mockCardAccountId") && !named("get", "calls it"));
}

/// Every link of an answer: its address and its verbs.
fn links<'a>(answer: &'a Value, found: &mut Vec<(&'a str, &'a Value)>) {
    match answer {
        Value::Object(members) => {
            if let Some(href) = members.get("href") {
                found.push((href.as_str().unwrap(), &members["verbs"]));
            }
            members.values().for_each(|member| links(member, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| links(element, found)),
        _ => {}
    }
}

//= SBX-8 accepted
#[test]
fn the_links_of_examples_lead_to_operations() {
    let (catalogue, _) = described(Environment::Sandbox);
    for operation in builtin() {
        let answer = examples::answer(&operation.name).unwrap();
        let mut found = Vec::new();
        links(&answer, &mut found);
        // The others lead a browser to the bank.
        for (href, verbs) in found.iter().filter(|(href, _)| href.starts_with('/')) {
            let target = crate::path::Target::parse(href.as_bytes()).unwrap();
            for verb in verbs.as_array().unwrap() {
                let method = verb.as_str().unwrap().parse().unwrap();
                let leads = catalogue.find(&method, &target);
                assert!(matches!(leads, Lookup::Found(_)), "{verb} {href}");
            }
        }
    }
}
