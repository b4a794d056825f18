//! What may be wrong with the document of a bundle, and its limits. Deliberately not here: where it contradicts itself (`contradiction`).

use crate::{KeyHash, qualification::MAX_DEPTH};
use portvakt_base::clock::Timestamp;

/// The name of the document in the folder of a bundle.
pub const DOCUMENT: &str = "bundle.yaml";

/// The link to the bundle in use, in the folder of all.
pub const CURRENT: &str = "current";

/// The version of the format that is written and read. In version 1 the hash of a key depended on how a certificate wrote it, and the CAs that
/// lists name could be missing.
pub const FORMAT: u64 = 2;

/// The most anchors of a bundle. The lists of all countries have some hundreds of granted services that issue certificates.
pub const MAX_ANCHORS: usize = 10_000;

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
    /// Another fault, and its line.
    #[error("line {line}: {fault}")]
    At {
        /// The line.
        line: u64,
        /// The fault.
        fault: Box<Self>,
    },
    /// It has bytes that are not UTF-8.
    #[error("line {line}: it is not UTF-8")]
    NotUtf8 {
        /// The line.
        line: u64,
    },
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
    /// Something has a tag, which hides from the parser that a key stands twice.
    #[error("line {line}: something has the tag {tag:?} of YAML; an import writes no tags")]
    Tag {
        /// The line.
        line: u64,
        /// The tag.
        tag: String,
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
    /// It is of another format.
    #[error(
        "it has the format {0}, and this version reads {own}; import anew with the portvakt-lists of this version",
        own = FORMAT
    )]
    Format(u64),
    /// Anchors beyond [`MAX_ANCHORS`].
    #[error("it lists {0} anchors; at most {most} are read", most = MAX_ANCHORS)]
    TooManyAnchors(usize),
    /// Two anchors have one file, or one anchor names a use twice.
    #[error("it lists {0:?} twice")]
    FileTwice(String),
    /// The name of an anchor's file leads out of its folder, or is hidden.
    #[error(
        "it lists the file {0:?}, which is no name of a visible file; an import writes none such"
    )]
    NoFileName(String),
    /// It is not of the schema, in the parser's words.
    #[error("it does not say what a bundle's document says: {0}")]
    NoDocument(String),
    /// Its list of lists is one of a country.
    #[error("its list of lists is that of {0}; expected that of EU")]
    NotOfEu(String),
    /// It has two lists of one country.
    #[error("it names the list of {0} twice; an import names each list once")]
    ListTwice(String),
    /// It has an anchor twice.
    #[error("it lists the anchor {0} twice; an import lists each once, with all its services")]
    AnchorTwice(String),
    /// A service, a CA or a service that is left out is of a country of which it has no list.
    #[error("it names {what} of {territory}, and has no list of {territory} in lists")]
    NoList {
        /// What it names.
        what: &'static str,
        /// The country.
        territory: String,
    },
    /// It names a country under `missing` or `earlier`, and has a list of it.
    #[error("it names {territory} under {key}, and has the list of {territory} in lists")]
    ListThere {
        /// The key.
        key: &'static str,
        /// The country.
        territory: String,
    },
    /// It names a country twice under `missing` or `earlier`.
    #[error("it names {territory} twice under {key}")]
    CountryTwice {
        /// The key.
        key: &'static str,
        /// The country.
        territory: String,
    },
    /// It names a CA of a country twice.
    #[error(
        "it names the CA of {territory} with the key {key} twice under named; an import names each once"
    )]
    NamedTwice {
        /// The country.
        territory: String,
        /// The hash of the key.
        key: KeyHash,
    },
    /// An anchor serves for nothing.
    #[error("it lists the anchor {0} for nothing; expected for: with seals, websites or both")]
    ForNothing(String),
    /// A service of an anchor is granted since a time after that as of which lists were judged.
    #[error(
        "it says that a service of {territory} is granted since {since}, which is after the lists were judged, as of {as_of}; an import lists no such service"
    )]
    GrantedAhead {
        /// The country.
        territory: String,
        /// Since when it is granted.
        since: Timestamp,
        /// The time as of which lists and services were judged.
        as_of: Timestamp,
    },
    /// A list was issued after the import.
    #[error(
        "the list of {territory} was issued on {issued}, which is after the bundle was made, at {made}; a clock is wrong, or somebody wrote this"
    )]
    IssuedAhead {
        /// The country of the list.
        territory: String,
        /// When it was issued.
        issued: Timestamp,
        /// When the bundle was made.
        made: Timestamp,
    },
    /// The update of a list was due before it was issued.
    #[error(
        "the list of {territory} was issued on {issued}, and its next update was due before that, on {next_update}; an import refuses it"
    )]
    NextBeforeIssue {
        /// The country of the list.
        territory: String,
        /// When it was issued.
        issued: Timestamp,
        /// When the next one was due.
        next_update: Timestamp,
    },
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
