//! The tree that YAML is deserialised into: values with their line and column.
//!
//! Invariant: a scalar keeps its text (`NO` stays `NO`, `0600` stays `0600`, regardless of their YAML type), and a mapping
//! keeps every entry of the parser, in order. Deliberately not here: the meaning of keys.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, Options, Spanned};

use super::fault::{FilePosition, shortened};
use super::inspection::Inspection;

/// The fault of a duplicate key.
pub(super) const STANDS_TWICE: &str = "duplicate key";

/// A value and its position. For an alias the position is the alias's own, since the operator has to change that line.
pub(super) struct Node {
    pub(super) line: u64,
    pub(super) column: u64,
    pub(super) content: Content,
}

/// The content of a node.
pub(super) enum Content {
    /// An absent value, `~` or `null`.
    Null,
    /// A scalar that YAML reads as a number or boolean, as written. Only this variant may become a number or a boolean.
    Typed(String),
    /// Any other scalar, with quotes removed and escapes resolved.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in the order of the file, duplicates included.
    Mapping(Vec<Entry>),
}

/// One entry of a mapping.
pub(super) struct Entry {
    pub(super) key: Node,
    pub(super) value: Node,
}

impl Entry {
    /// The key if it is a scalar; the document reports other keys.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.key.content {
            Content::Typed(text) | Content::Text(text) => Some(text),
            Content::Null | Content::List(_) | Content::Mapping(_) => None,
        }
    }
}

/// The most levels of a file, many more than any key needs. A reload reads it on a thread with a stack of 2 MiB, which 64 levels overflowed
/// in code without optimisation.
const LEVELS: usize = 24;

impl Node {
    /// Parses a document without its byte order mark: byte offsets refer to `text`.
    ///
    /// With [`DuplicateKeyPolicy::LastWins`], every entry of a mapping is kept, except that the parser unifies keys that YAML
    /// reads as the same number.
    pub(super) fn parse(text: &str, duplicates: DuplicateKeyPolicy) -> Result<Self, Error> {
        let mut options = Options::default();
        options.duplicate_keys = duplicates;
        // Merged entries would have misleading positions. As an ordinary key, `<<` is reported as unknown, with the other
        // faults.
        options.merge_keys = MergeKeyPolicy::AsOrdinary;
        options.non_finite_float_policy = NonFiniteFloatPolicy::PassThrough;
        options.strict_booleans = true;
        options.reject_unsupported_tags = true;
        options.with_snippet = false;
        options.budget = serde_saphyr::budget! { max_depth: LEVELS };
        Ok(Self::new(
            serde_saphyr::from_str_with_options(text, options)?,
            text,
        ))
    }

    /// Replaces parsed scalars by their text in the file.
    fn new(raw: Spanned<Raw>, text: &str) -> Self {
        let shown = if raw.referenced == Location::UNKNOWN {
            raw.defined
        } else {
            raw.referenced
        };
        let content = match raw.value {
            Raw::Null => Content::Null,
            Raw::Typed(value) => {
                Content::Typed(written(raw.defined, text).map_or(value, str::to_owned))
            }
            Raw::Text(value) => Content::Text(value),
            Raw::List(items) => Content::List(
                items
                    .into_iter()
                    .map(|item| Self::new(item, text))
                    .collect(),
            ),
            Raw::Mapping(entries) => Content::Mapping(
                entries
                    .into_iter()
                    .map(|(key, value)| Entry {
                        key: Self::new(key, text),
                        value: Self::new(value, text),
                    })
                    .collect(),
            ),
        };
        Self {
            line: shown.line().max(1),
            column: shown.column().max(1),
            content,
        }
    }

    /// The position of this node, with its path below the parent.
    pub(super) fn place(&self, file: &Arc<str>, path: String) -> FilePosition {
        FilePosition {
            file: Arc::clone(file),
            line: self.line,
            column: self.column,
            path,
        }
    }

    /// Reports duplicate keys and keys that are not scalars, in this node and below. The parser bounds the nesting.
    pub(super) fn report_keys(&self, here: &FilePosition, inspection: &Inspection) {
        match &self.content {
            Content::Null | Content::Typed(_) | Content::Text(_) => {}
            Content::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.report_keys(
                        &item.place(&here.file, element_path(&here.path, index)),
                        inspection,
                    );
                }
            }
            Content::Mapping(entries) => {
                let mut seen = HashSet::new();
                for entry in entries {
                    let Some(name) = entry.name() else {
                        inspection.report(
                            entry.key.place(&here.file, here.path.clone()),
                            "a key must be a scalar",
                        );
                        continue;
                    };
                    let place = entry.key.place(&here.file, key_path(&here.path, name));
                    entry.value.report_keys(&place, inspection);
                    if !seen.insert(name) {
                        inspection.report(place, STANDS_TWICE);
                    }
                }
            }
        }
    }
}

/// The path of a key under `parent`. A key that is not a plain word is quoted and shortened, so that a path is unambiguous,
/// short, and free of control characters.
pub(super) fn key_path(parent: &str, key: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let shown = if (1..=60).contains(&key.len()) && key.chars().all(is_word) {
        Cow::Borrowed(key)
    } else {
        Cow::Owned(format!("{:?}", shortened(key)))
    };
    if parent.is_empty() {
        shown.into_owned()
    } else {
        format!("{parent}.{shown}")
    }
}

/// The path of an element of the list `parent`, counted from 0.
pub(super) fn element_path(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// The text of a scalar in the file.
fn written(location: Location, text: &str) -> Option<&str> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    text.get(start..start.checked_add(length)?)
        .map(str::trim)
        .filter(|written| !written.is_empty())
}

/// The value as serde delivers it.
enum Raw {
    Null,
    Typed(String),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Mapping(Vec<(Spanned<Raw>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Mapping(entries))
    }
}
