//! A JSON Schema of the configuration, from which editors complete keys and show their description.
//!
//! Invariant: the schema is made from what the readers ask for while they read a document with every key, so it cannot differ from them.
//! Deliberately not here: conditions between keys but for `upstream` and `upstreams`, ranges of durations and sizes, and whether a file exists; `portvakt check` tells these.

use super::document::Document;
use super::expected::Expected;
use super::inspection::Inspection;
use super::reference::{self, REFERENCE, descriptions};
use super::root;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Keys whose default the reference cannot show, with any value. Several documents, because some keys exclude each other, and others
/// require each other only where one of them stands.
const OTHERS: [&str; 8] = [
    include_str!("other_keys.yaml"),
    include_str!("hsm_keys.yaml"),
    include_str!("hsm_pin_files.yaml"),
    "control: {socket: x, token: x, metrics_token: x, readiness_token: x, operate_token: x, events_token: x}\n\
     state: {postgres: {url: x, password: x}}\n\
     upstream: {address: x, host: x, networks: [x], name_servers: [x], tls: {ca: x, name: x, certificate: x, key: x},\n\
     \x20 health: {path: /, status: 200, interval: 1s, timeout: 1s, healthy_after: 2, unhealthy_after: 2},\n\
     \x20 max_answer_size_by_group: {x: 1MiB}, answer_headers: [x]}\n",
    "upstream: {tls: {ca: x, certificate: x, key: {pkcs11: {module: x, token: x, label: x, pin: x, sessions: 8, timeout: 2s}}}}\n",
    "upstream: {tls: {ca: x, certificate: x, key: {pkcs11: {module: x, token: x, label: x, pin_file: x}}}}\n",
    "upstream: {tls: {ca: x}}\nresponse_signing: {body_limit: 1KiB}\n",
    "upstreams: {x: {endpoints: [{address: x}], tls: {ca: x}}}\n",
];

/// A place in the configuration: what may stand there.
#[derive(Debug, Default)]
struct SchemaNode {
    kinds: Vec<Expected>,
    keys: BTreeMap<String, SchemaNode>,
    /// The elements of a list, or the values of a mapping with any keys.
    inner: Option<Box<SchemaNode>>,
}

/// The schema, draft 7, which editors know best.
pub fn schema() -> Value {
    let mut whole = SchemaNode::default();
    let mut notes = Notes {
        descriptions: descriptions(),
        required: BTreeMap::new(),
    };
    for document in recorded() {
        notes.require(&document);
        for (path, expected) in document {
            whole.take(&path, expected);
        }
    }
    let mut schema = whole.schema("", &notes);
    if let Value::Object(members) = &mut schema {
        let mut head = Map::new();
        head.insert(
            "$schema".to_owned(),
            json!("http://json-schema.org/draft-07/schema#"),
        );
        head.insert("title".to_owned(), json!("Portvakt's configuration"));
        head.append(members);
        let one = ["upstream", "upstreams"].map(|key| json!({ "required": [key] }));
        head.insert("oneOf".to_owned(), json!(one));
        *members = head;
    }
    schema
}

/// What is known of paths beside their kinds.
struct Notes {
    descriptions: BTreeMap<String, String>,
    /// The required keys of each section: those that are required wherever the section stands.
    required: BTreeMap<String, BTreeSet<&'static str>>,
}

impl Notes {
    fn require(&mut self, document: &[(String, Expected)]) {
        let entries = document
            .iter()
            .filter(|(_, kind)| *kind == Expected::Entries);
        let entries: Vec<_> = entries.map(|(path, _)| path.as_str()).collect();
        let document = document.iter();
        let document = document.map(|(path, expected)| (shape(path, &entries), expected));
        let document: Vec<_> = document.collect();
        let mut found: BTreeMap<&str, BTreeSet<&'static str>> = BTreeMap::new();
        for (path, expected) in &document {
            match expected {
                Expected::Section => drop(found.entry(path).or_default()),
                Expected::Key(key, true) => {
                    found.entry(path).or_default().insert(key);
                }
                _ => {}
            }
        }
        let is_section = |path: &str| {
            let mut all = document.iter();
            all.any(|(at, kind)| **kind == Expected::Section && at == path)
        };
        for (path, keys) in found.into_iter().filter(|(path, _)| is_section(path)) {
            let known = self.required.entry(path.to_owned());
            let known = known.or_insert_with(|| keys.clone());
            known.retain(|key| keys.contains(key));
        }
    }
}

/// A path with `[]` for each element of a list, and for each key of a mapping with any keys, which `entries` are.
fn shape(path: &str, entries: &[&str]) -> String {
    let own = entries.iter().find_map(|entries| {
        let key = path.strip_prefix(entries)?.strip_prefix('.')?;
        let end = key.find(['.', '[']).unwrap_or(key.len());
        Some(format!("{entries}[]{}", key.get(end..)?))
    });
    let path = own.as_deref().unwrap_or(path);
    path.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// What the readers ask for while they read every key, by document.
fn recorded() -> Vec<Vec<(String, Expected)>> {
    let all = read_all().into_iter();
    all.map(|inspection| inspection.record().take()).collect()
}

/// The inspections of documents that have every key between them.
fn read_all() -> Vec<Inspection> {
    let mut all = Vec::new();
    let reference = reference::uncommented(REFERENCE);
    for text in OTHERS.into_iter().chain([reference.as_str()]) {
        let inspection = Inspection::recording();
        if let Ok(document) = Document::read("", text) {
            // The files of these documents do not exist: their faults say nothing.
            let _ = root::read(
                document.root(&inspection),
                &inspection,
                Path::new("/nowhere"),
            );
        }
        all.push(inspection);
    }
    all
}

impl SchemaNode {
    /// Notes one thing that a reader asks for at `path` below this place.
    fn take(&mut self, path: &str, expected: Expected) {
        let path = path.trim_start_matches('.');
        if path.is_empty() {
            match expected {
                Expected::Key(key, _) => {
                    self.key(key);
                }
                kind if !self.kinds.contains(&kind) => self.kinds.push(kind),
                _ => {}
            }
            return;
        }
        if let Some((_, rest)) = path.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            return self.inner.get_or_insert_default().take(rest, expected);
        }
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let (key, rest) = path.split_at_checked(end).unwrap_or((path, ""));
        if self.kinds.contains(&Expected::Entries) {
            // The key itself was read as text too.
            if expected != Expected::Text || !rest.is_empty() {
                self.inner.get_or_insert_default().take(rest, expected);
            }
            return;
        }
        self.key(key).take(rest, expected);
    }

    fn key(&mut self, key: &str) -> &mut Self {
        self.keys.entry(key.to_owned()).or_default()
    }

    fn schema(&self, path: &str, notes: &Notes) -> Value {
        let is_open = self.kinds.contains(&Expected::Entries);
        let mut forms: Vec<Value> = self
            .kinds
            .iter()
            .filter(|kind| !is_open || **kind != Expected::Section)
            .map(|kind| self.form(kind, path, notes))
            .collect();
        let mut schema = match forms.len() {
            0 => Map::new(),
            1 => forms.pop().and_then(into_members).unwrap_or_default(),
            _ => into_members(json!({ "anyOf": forms })).unwrap_or_default(),
        };
        // The keys of a group are those of the short form.
        let text = notes.descriptions.get(path);
        let short = path.replacen("upstreams[]", "upstream", 1);
        if let Some(text) = text.or_else(|| notes.descriptions.get(&short)) {
            schema.insert("description".to_owned(), json!(text));
        }
        Value::Object(schema)
    }

    fn form(&self, kind: &Expected, path: &str, notes: &Notes) -> Value {
        let inner = || match &self.inner {
            Some(inner) => inner.schema(&format!("{path}[]"), notes),
            None => json!(true),
        };
        match kind {
            Expected::Key(..) => json!(true),
            Expected::Section => {
                let keys = self.keys.iter().map(|(key, place)| {
                    let path = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    (key.clone(), place.schema(&path, notes))
                });
                let keys: Map<_, _> = keys.collect();
                let required = notes.required.get(path).cloned().unwrap_or_default();
                let mut kinds = vec!["object"];
                if required.is_empty() {
                    kinds.push("null");
                }
                json!({
                    "type": kinds,
                    "properties": keys,
                    "required": required,
                    "additionalProperties": false,
                })
            }
            Expected::Entries => {
                json!({ "type": ["object", "null"], "additionalProperties": inner() })
            }
            Expected::List => json!({ "type": ["array", "null"], "items": inner() }),
            Expected::Text => json!({ "type": ["string", "number", "boolean"], "minLength": 1 }),
            Expected::Boolean => json!({ "type": "boolean" }),
            Expected::Integer(from, to) => {
                let number = |text: &String| text.parse::<i64>().map_or(Value::Null, Value::from);
                json!({ "type": "integer", "minimum": number(from), "maximum": number(to) })
            }
            Expected::Duration => json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" }),
            Expected::Size => {
                json!({ "type": ["string", "integer"], "pattern": "^[0-9]+([KMG]iB)?$" })
            }
            Expected::Words(words) => json!({ "enum": words }),
        }
    }
}

fn into_members(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expiring::Expiring;

    /// What the files and folders of the other keys hold neither ends nor fills.
    const ENDLESS: [(&str, &str); 23] = [
        ("listener.key", KEY),
        ("listener.other_certificates[].key", KEY),
        ("control.key", KEY),
        ("upstream.tls.key", KEY),
        ("upstreams[].tls.key", KEY),
        ("state.postgres.tls.key", KEY),
        ("response_signing.key", KEY),
        (
            "listener.ticket_keys",
            "old keys cost resumed sessions no request",
        ),
        ("control.token_file", TOKEN),
        ("control.metrics_token_file", TOKEN),
        ("control.readiness_token_file", TOKEN),
        ("control.operate_token_file", TOKEN),
        ("control.events_token_file", TOKEN),
        ("state.postgres.password_file", TOKEN),
        ("control.socket", "a socket"),
        ("sca.token_seals", "counted for sca.token_keys"),
        (
            "assertion.key",
            "good for far more assertions than a gateway makes",
        ),
        ("assertion.previous", "the same"),
        ("state.hash_key", "hashes, so nothing is used up"),
        ("state.events.customer_key", "hashes, so nothing is used up"),
        ("registers.local", "the bank's own list has no date"),
        (
            "revocation.addresses[].issuer",
            "its name and key are compared, whatever its period",
        ),
        ("operations", "a catalogue"),
    ];

    const KEY: &str = "its certificate ends, the key does not";
    const TOKEN: &str = "valid until it is replaced";

    /// Whatever a key names ends, fills, or does neither: a new key has to say which.
    #[test]
    fn every_file_ends_or_is_known_not_to() {
        let mut named = BTreeSet::new();
        for inspection in read_all() {
            let record = inspection.record().take();
            let entries = record.iter();
            let entries = entries.filter(|(_, kind)| *kind == Expected::Entries);
            let entries: Vec<_> = entries.map(|(path, _)| path.as_str()).collect();
            for file in inspection.named() {
                let key = shape(&file.place.path, &entries);
                // A library, and a PIN that is valid until it is replaced. The shape of a key has no digits.
                if !key.contains(".pkcs.") {
                    named.insert(key);
                }
            }
        }
        let ending = Expiring::ALL.iter().flat_map(|kind| kind.keys());
        let known: BTreeSet<_> = ending
            .copied()
            .chain(ENDLESS.map(|(key, _)| key))
            .map(str::to_owned)
            .collect();
        assert_eq!(named, known);
    }

    /// Every key has a type. A new key needs its default in config/gateway.yaml, or a line in other_keys.yaml.
    #[test]
    fn every_key_is_typed() {
        fn untyped(schema: &Value, path: &str, found: &mut Vec<String>) {
            let keys = schema["properties"].as_object();
            for (key, schema) in keys.into_iter().flatten() {
                let path = format!("{path}.{key}");
                // A single word means that only the word of "a word or a number" was read.
                let words = schema["enum"].as_array().map_or(2, Vec::len);
                let is_typed = ["type", "enum", "anyOf"]
                    .iter()
                    .any(|word| !schema[word].is_null());
                let is_typed = is_typed && words > 1;
                if !is_typed {
                    found.push(path.clone());
                }
                untyped(schema, &path, found);
            }
        }
        let mut found = Vec::new();
        let schema = schema();
        untyped(&schema, "", &mut found);
        assert_eq!(found, Vec::<String>::new());
        assert_eq!(
            schema["required"],
            json!(["environment", "listener", "sca", "trust"])
        );
        let listener = &schema["properties"]["listener"]["properties"];
        assert_eq!(listener["head_timeout"]["type"], "string");
        let threads = listener["threads"]["anyOf"].as_array().unwrap();
        assert!(threads.contains(&json!({ "enum": ["auto"] })));
        assert!(
            listener["max_connections"]["description"]
                .as_str()
                .unwrap()
                .starts_with("The maximum number of open connections")
        );
        let group = &schema["properties"]["upstreams"]["additionalProperties"];
        assert_eq!(group["required"], json!(["endpoints"]));
        let keys = &group["properties"];
        assert_eq!(keys["endpoints"]["items"]["required"], json!(["address"]));
        let text = keys["read_timeout"]["description"].as_str().unwrap();
        assert!(text.starts_with("The time limit of the head"), "{text}");
    }
}
