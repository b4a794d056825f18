//! Records which keys a configuration may have, and which values: what the readers ask for. A JSON Schema is made from it.

use std::cell::RefCell;

/// What a reader asks for at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// This key of a mapping, and whether it is required.
    Key(&'static str, bool),
    /// A mapping of known keys.
    Section,
    /// A mapping whose keys the operator chooses.
    Entries,
    /// A list.
    List,
    /// Any scalar.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number from the first to the last.
    Integer(String, String),
    /// A duration with its unit.
    Duration,
    /// A size in bytes, or with a unit.
    Size,
    /// One of these words.
    Words(Vec<String>),
}

/// What was asked for so far, by the paths of keys, in order; nothing unless recording is on.
#[derive(Debug, Default)]
pub(super) struct Record(Option<RefCell<Vec<(String, Expected)>>>);

impl Record {
    /// A record that is on.
    pub(super) fn on() -> Self {
        Self(Some(RefCell::default()))
    }

    /// Notes what a reader asks for.
    pub(super) fn note(&self, path: &str, expected: impl FnOnce() -> Expected) {
        if let Some(record) = &self.0 {
            record.borrow_mut().push((path.to_owned(), expected()));
        }
    }

    /// Everything that was noted.
    pub(super) fn take(&self) -> Vec<(String, Expected)> {
        let record = self.0.as_ref();
        record.map(RefCell::take).unwrap_or_default()
    }
}
