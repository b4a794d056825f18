//! What each operation of the interface is for, with examples of its body and of its answer.

use serde::Deserialize;
use serde_json::Value;
use std::{collections::HashMap, sync::LazyLock};

/// The texts and examples of one operation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    purpose: String,
    body: Option<Value>,
    answer: Value,
}

/// By the names of operations. A unit test shows that the file parses and has each operation.
static SHOWN: LazyLock<HashMap<String, Shown>> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).unwrap_or_default());

/// What an operation of the interface is for.
pub(super) fn purpose(operation: &str) -> Option<&'static str> {
    Some(&SHOWN.get(operation)?.purpose)
}

/// An example of its body, where it takes one.
pub(super) fn body(operation: &str) -> Option<Value> {
    SHOWN.get(operation)?.body.clone()
}

/// An example of its answer.
pub(super) fn answer(operation: &str) -> Option<Value> {
    Some(SHOWN.get(operation)?.answer.clone())
}
