//! What a bundle may be after another (CRT-13): no list goes back, and no more than a tenth of the anchors go at once.

use super::document::{BundleDocument, ListEntry, Use};
use std::collections::BTreeSet;

/// Why a bundle may not follow another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Regression {
    /// A list has a lower sequence number, or an earlier time of issue.
    #[error(
        "{territory}: sequence {sequence}, issued {issued}, is older than that of the last bundle (sequence {last_sequence}, \
         issued {last_issued}); fetch it again"
    )]
    Older {
        /// The country.
        territory: String,
        /// The number.
        sequence: u64,
        /// When it was issued.
        issued: String,
        /// The number in the last bundle.
        last_sequence: u64,
        /// When that was issued.
        last_issued: String,
    },
    /// A list of the last bundle is not among the files.
    #[error(
        "{0}: its list was in the last bundle and is not among the files; fetch it, or allow it with --allow-shrink"
    )]
    Gone(String),
    /// Over a tenth of the anchors of the last bundle go, whatever new ones come.
    #[error(
        "{gone} of the {last} anchors for {of} of the last bundle go: over a tenth; look at the difference, and allow it with --allow-shrink"
    )]
    Shrunk {
        /// The folder.
        of: &'static str,
        /// How many go.
        gone: usize,
        /// How many in the last bundle.
        last: usize,
    },
}

/// Checks a bundle against the last one.
pub fn check(last: &BundleDocument, next: &BundleDocument, allow_shrink: bool) -> Vec<Regression> {
    let mut faults = Vec::new();
    for before in std::iter::once(&last.list_of_lists).chain(&last.lists) {
        match next.list(&before.territory) {
            Some(list) => faults.extend(older(before, list)),
            None if allow_shrink => {}
            None => faults.push(Regression::Gone(before.territory.clone())),
        }
    }
    for of in Use::ALL {
        let before = digests(last, of);
        // New anchors do not make up for those that go: a TPP below one of these loses trust.
        let gone = before.difference(&digests(next, of)).count();
        // Over a tenth: ten times what went is more than there was.
        if !allow_shrink && gone.saturating_mul(10) > before.len() {
            faults.push(Regression::Shrunk {
                of: of.folder(),
                gone,
                last: before.len(),
            });
        }
    }
    faults
}

/// The SHA-256 of each anchor that serves for a use, by which the difference is shown too.
fn digests(bundle: &BundleDocument, of: Use) -> BTreeSet<&str> {
    let anchors = bundle.anchors.iter();
    let serving = anchors.filter(|anchor| anchor.uses.contains(&of));
    serving.map(|anchor| anchor.sha256.as_str()).collect()
}

fn older(before: &ListEntry, list: &ListEntry) -> Option<Regression> {
    if list.sequence < before.sequence || list.issued < before.issued {
        return Some(Regression::Older {
            territory: list.territory.clone(),
            sequence: list.sequence,
            issued: list.issued.to_string(),
            last_sequence: before.sequence,
            last_issued: before.issued.to_string(),
        });
    }
    None
}
