//! What an import and the gateway agree on about a bundle of trusted lists: the name, format and limits of `bundle.yaml`, and the texts of its
//! faults.
//!
//! `portvakt-lists` writes the document and reads it again, and the gateway reads it, each by a schema of its own. Invariant: both refuse a
//! document for the same limits and the same contradictions, in the same words. Deliberately not here: the schemas, and the parser of YAML,
//! which this crate does not link.

use super::qualification::MAX_DEPTH;
use portvakt_base::clock::Timestamp;
use std::collections::BTreeSet;

/// The name of the document in the folder of a bundle.
pub const DOCUMENT: &str = "bundle.yaml";

/// The version of the format that is written and read.
pub const FORMAT: u64 = 1;

/// The longest document, in bytes. That of Spain's list of 2026 alone has 64 KiB.
pub const MAX_DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;

/// The longest file of an anchor, in bytes: one certificate, with a line for each of its services before it.
pub const MAX_ANCHOR_BYTES: u64 = 256 * 1024;

/// The most values of a document. That of Spain's list of 2026, one of the longest, has 1 767 lines.
pub const MAX_NODES: usize = 1_000_000;

/// The most events of the parser: a mapping or a list has two, its start and its end.
pub const MAX_EVENTS: usize = 2 * MAX_NODES;

/// The deepest nesting of mappings and lists. Criteria of a qualification, as deep as an import writes them, need 25.
pub const MAX_NESTING: usize = 64;

/// What is wrong with a document. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentFault {
    /// A mapping has a key twice.
    #[error("line {line}: the key {key:?} stands twice in one mapping")]
    KeyTwice {
        /// The line of the second.
        line: u64,
        /// The key.
        key: String,
    },
    /// A mapping has a key twice that is no text.
    #[error("line {line}: a key stands twice in one mapping")]
    OtherKeyTwice {
        /// The line of the second.
        line: u64,
    },
    /// Mappings and lists beyond [`MAX_NESTING`].
    #[error(
        "line {line}: mappings and lists are nested more than {most} deep, the most that is read; an import writes at most {criteria} levels of criteria",
        most = MAX_NESTING,
        criteria = MAX_DEPTH
    )]
    TooDeep {
        /// The line.
        line: u64,
    },
    /// Values beyond [`MAX_NODES`].
    #[error(
        "line {line}: the document has more than {most} values, the most that is read; import fewer lists (--leave-out)",
        most = MAX_NODES
    )]
    TooManyValues {
        /// The line.
        line: u64,
    },
    /// Another limit of the parser.
    #[error(
        "line {line}: the document has more aliases, anchors of YAML or text than is read; an import writes no aliases"
    )]
    TooMuch {
        /// The line.
        line: u64,
    },
    /// It is not of the schema, in the parser's words.
    #[error("it does not say what a bundle's document says: {0}")]
    NoDocument(String),
    /// It has two lists of one country.
    #[error("it names the list of {0} twice; an import names each list once")]
    ListTwice(String),
    /// Its lists were judged as of a time after the import.
    #[error(
        "its lists were judged as of {as_of}, which is after it was made, at {made}; no import does that"
    )]
    AsOfAhead {
        /// When it was made.
        made: Timestamp,
        /// The time as of which lists and services were judged.
        as_of: Timestamp,
    },
}

/// Judges what a document says of itself, apart from its anchors. `territories` are the countries of its lists, the list of lists among them.
///
/// # Errors
/// [`DocumentFault::AsOfAhead`] or [`DocumentFault::ListTwice`].
pub fn judge_document<'t>(
    made: Timestamp,
    as_of: Timestamp,
    territories: impl IntoIterator<Item = &'t str>,
) -> Result<(), DocumentFault> {
    if as_of > made {
        return Err(DocumentFault::AsOfAhead { made, as_of });
    }
    let mut seen = BTreeSet::new();
    let mut territories = territories.into_iter();
    match territories.find(|territory| !seen.insert(*territory)) {
        Some(territory) => Err(DocumentFault::ListTwice(territory.to_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= CRT-8 accepted
    //= CRT-8 refused
    #[test]
    fn what_contradicts_itself() {
        let at = Timestamp::from_unix;
        assert_eq!(judge_document(at(2), at(2), ["EU", "NO", "SE"]), Ok(()));
        assert_eq!(judge_document(at(2), at(1), []), Ok(()));
        assert_eq!(
            judge_document(at(1), at(2), []),
            Err(DocumentFault::AsOfAhead {
                made: at(1),
                as_of: at(2)
            })
        );
        for territories in [["NO", "SE", "NO"], ["NO", "NO", "SE"]] {
            let fault = judge_document(at(2), at(2), territories);
            assert_eq!(fault, Err(DocumentFault::ListTwice("NO".to_owned())));
        }
    }
}
