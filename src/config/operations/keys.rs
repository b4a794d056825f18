//! Keys that both kinds of entries share, and keys that no entry has.

use jiff::civil::Date;
use serde_json::Value as Json;

use crate::config::section::Section;
use crate::config::value::Value;
use crate::interface::operations::{Answer, Deprecated, Uncarried};

/// The longest name, in bytes. A name is a metric label, and a header value on every request.
pub(super) const MAX_NAME: usize = 64;

/// The deprecation of an operation (FWD-5). Each key that the file leaves out keeps its built-in value.
pub(super) fn read_deprecated(
    section: &mut Section<'_>,
    built_in: Option<&Deprecated>,
) -> Option<Deprecated> {
    let Some(mut section) = section.optional_section("deprecated") else {
        return built_in.cloned();
    };
    let [since, sunset] = ["since", "sunset"].map(|key| {
        let value = section.optional(key)?;
        value.parse::<Date>("a day such as 2027-01-31")
    });
    let successor = section.optional("successor");
    let successor = successor.and_then(|value| name_or_group(&value).map(str::to_owned));
    let since = since.or(built_in.map(|built_in| built_in.since));
    if since.is_none() && !section.has("since") {
        section.fault("since", "missing key: the day since when it is deprecated");
    }
    if since
        .zip(sunset)
        .is_some_and(|(since, sunset)| sunset < since)
    {
        section.fault("sunset", "it is before the day of deprecation");
    }
    section.finish();
    let since = since?;
    // The built-in sunset never comes before the day that the file writes.
    let built_in_sunset = built_in.and_then(|built_in| built_in.sunset);
    let built_in_sunset = built_in_sunset.map(|sunset| sunset.max(since));
    Some(Deprecated {
        since,
        sunset: sunset.or(built_in_sunset),
        successor: successor.or(built_in.and_then(|built_in| built_in.successor.clone())),
    })
}

/// The core's answer, for the description of the interface: its status, and the schema of its body as a text of JSON.
pub(super) fn read_answer(section: &mut Section<'_>) -> Option<Answer> {
    let mut section = section.optional_section("answer")?;
    let status = section
        .required("status")
        .and_then(|value| value.integer(200..=299));
    let schema = section.required("schema").and_then(|value| {
        let schema: Json = value.parse("a JSON Schema, as a text of JSON")?;
        if !schema.is_object() {
            return value.refuse("a JSON Schema that is an object, as a text of JSON");
        }
        if has_reference(&schema) {
            return value
                .refuse("a JSON Schema without $ref: the description has other components");
        }
        Some(schema)
    });
    section.finish();
    Some(Answer {
        status: status?,
        schema: schema?,
    })
}

fn has_reference(schema: &Json) -> bool {
    match schema {
        Json::Object(members) => {
            members.contains_key("$ref") || members.values().any(has_reference)
        }
        Json::Array(entries) => entries.iter().any(has_reference),
        _ => false,
    }
}

/// Reads one of a few words, for an optional key.
pub(super) fn choice<T: Clone>(
    section: &mut Section<'_>,
    key: &'static str,
    names: &[(&str, T)],
) -> Option<T> {
    section.optional(key).and_then(|value| value.one_of(names))
}

/// Reports everything that an operation cannot carry (QUO-16), each at its key. Returns whether there is something.
pub(super) fn report(section: &Section<'_>, faults: Vec<Uncarried>) -> bool {
    let any = !faults.is_empty();
    for Uncarried { key, text } in faults {
        section.fault(key, text);
    }
    any
}

/// Refuses keys that would switch off a header or the signature, which every operation requires (HTTP-11).
pub(super) fn refuse_fixed_keys(section: &mut Section<'_>) {
    for key in ["required", "signed", "takes"] {
        if section.has(key) {
            section.fault(
                key,
                "unknown key: which headers an operation requires, and that it is signed, cannot be changed (HDR-5, SIG-1)",
            );
        }
    }
}

/// A name or a group: both become metric labels and header values.
pub(super) fn name_or_group<'a>(value: &Value<'a>) -> Option<&'a str> {
    let text = value.as_str()?;
    let is_valid = text.len() <= MAX_NAME
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if is_valid {
        return Some(text);
    }
    value.refuse("a name of at most 64 lower-case letters, digits and hyphens, such as card-list")
}
