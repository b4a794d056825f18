//! What a browser sends to the bank's pages: the fields of a form or a query, and the language that it prefers.

use super::super::language::Language;
use axum::http::{HeaderMap, header};

/// The fields of a form, in order. Names may repeat.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub(in super::super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The values of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.as_str())
    }

    /// The first value of a name; empty without one.
    pub(super) fn get<'a>(&'a self, name: &'a str) -> &'a str {
        self.all(name).next().unwrap_or_default()
    }
}

/// The language of the answer.
pub(super) fn language(headers: &HeaderMap) -> Language {
    let accepted = headers.get(header::ACCEPT_LANGUAGE);
    let accepted = accepted.and_then(|value| value.to_str().ok());
    Language::preferred(accepted.unwrap_or_default())
}
