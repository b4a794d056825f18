//! What is wrong with the document of a bundle: its limits, and where it contradicts itself.

use crate::qualification::MAX_DEPTH;
use portvakt_base::clock::Timestamp;
use std::collections::BTreeSet;

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

/// The territory of the list of lists.
const EU: &str = "EU";

/// How far the clock of a list's operator may be ahead of that of the import, in seconds.
const MAX_AHEAD: u64 = 3_600;

/// What a document says of a list.
#[derive(Clone, Copy, Debug)]
pub struct DescribedList<'d> {
    /// Its country; `EU` for the list of lists.
    pub territory: &'d str,
    /// When it was issued.
    pub issued: Timestamp,
    /// When the next one is due; none if it is closed.
    pub next_update: Option<Timestamp>,
}

/// What a document says of itself.
#[derive(Clone, Copy, Debug)]
pub struct DescribedBundle<'d, L, A> {
    /// The territory of the list of lists.
    pub list_of_lists: &'d str,
    /// When it was made.
    pub made: Timestamp,
    /// The time as of which lists and services were judged.
    pub as_of: Timestamp,
    /// Its lists, the list of lists among them.
    pub lists: L,
    /// The SHA-256 of each of its anchors.
    pub anchors: A,
}

/// Judges whether a document contradicts itself.
///
/// # Errors
/// The first contradiction.
pub fn judge_document<'d>(
    described: DescribedBundle<
        'd,
        impl IntoIterator<Item = DescribedList<'d>>,
        impl IntoIterator<Item = &'d str>,
    >,
) -> Result<(), DocumentFault> {
    let DescribedBundle { made, as_of, .. } = described;
    if as_of > made {
        return Err(DocumentFault::AsOfAhead { made, as_of });
    }
    if described.list_of_lists != EU {
        return Err(DocumentFault::NotOfEu(described.list_of_lists.to_owned()));
    }
    let mut seen = BTreeSet::new();
    for list in described.lists {
        if !seen.insert(list.territory) {
            return Err(DocumentFault::ListTwice(list.territory.to_owned()));
        }
        judge_times(list, made)?;
    }
    let mut seen = BTreeSet::new();
    let mut anchors = described.anchors.into_iter();
    match anchors.find(|anchor| !seen.insert(anchor.to_ascii_lowercase())) {
        Some(anchor) => Err(DocumentFault::AnchorTwice(anchor.to_owned())),
        None => Ok(()),
    }
}

fn judge_times(list: DescribedList<'_>, made: Timestamp) -> Result<(), DocumentFault> {
    let (territory, issued) = (list.territory.to_owned(), list.issued);
    match list.next_update {
        _ if issued.unix() > made.unix().saturating_add(MAX_AHEAD) => {
            Err(DocumentFault::IssuedAhead {
                territory,
                issued,
                made,
            })
        }
        Some(next_update) if next_update < issued => Err(DocumentFault::NextBeforeIssue {
            territory,
            issued,
            next_update,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod contradictions {
    use super::*;

    //= CRT-8 accepted
    //= CRT-8 refused
    #[test]
    fn what_contradicts_itself() {
        let at = Timestamp::from_unix;
        let judge =
            |made, as_of, lists: &[(&'static str, u64, Option<u64>)], anchors: &[&'static str]| {
                let lists = lists.iter().map(|(territory, issued, next)| DescribedList {
                    territory,
                    issued: at(*issued),
                    next_update: next.map(at),
                });
                judge_document(DescribedBundle {
                    list_of_lists: EU,
                    made: at(made),
                    as_of: at(as_of),
                    lists,
                    anchors: anchors.iter().copied(),
                })
            };
        let all = [("EU", 1, Some(9)), ("NO", 1, None), ("SE", 2, Some(2))];
        assert_eq!(judge(2, 2, &all, &["aa", "ab"]), Ok(()));
        assert_eq!(judge(2, 1, &[], &[]), Ok(()));
        assert_eq!(
            judge(1, 2, &[], &[]),
            Err(DocumentFault::AsOfAhead {
                made: at(1),
                as_of: at(2)
            })
        );
        for territories in [["NO", "SE", "NO"], ["NO", "NO", "SE"]] {
            let fault = judge(2, 2, &territories.map(|one| (one, 1, None)), &[]);
            assert_eq!(fault, Err(DocumentFault::ListTwice("NO".to_owned())));
        }
        let ahead = |issued| judge(2, 2, &[("NO", issued, None)], &[]);
        assert_eq!(ahead(2 + MAX_AHEAD), Ok(()));
        assert!(matches!(
            ahead(3 + MAX_AHEAD),
            Err(DocumentFault::IssuedAhead { .. })
        ));
        let next = judge(2, 2, &[("NO", 2, Some(1))], &[]);
        assert!(matches!(next, Err(DocumentFault::NextBeforeIssue { .. })));
        let twice = judge(2, 2, &[], &["ab", "aa", "AB"]);
        assert_eq!(twice, Err(DocumentFault::AnchorTwice("AB".to_owned())));
    }
}
