//! What a bundle may be after others (CRT-13): no list goes back, also one that was left out or missing in between, and no more than a tenth
//! of the anchors go at once.

use portvakt_trust::bundle::{BundleDocument, EarlierList, ListEntry, Use};
use std::collections::{BTreeMap, BTreeSet};

/// Why a bundle may not follow another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Regression {
    /// A list has a lower sequence number, or an earlier time of issue.
    #[error(
        "{territory}: sequence {sequence}, issued {issued}, is older than the last one that was imported (sequence {last_sequence}, \
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
    /// A list has the number and the time of an issue that was imported, and other bytes.
    #[error(
        "{territory}: sequence {sequence}, issued {issued}, is another file than the one of this number that was imported; a new issue has a new \
         number (ETSI TS 119 612, clause 5.3.2): fetch it again, and ask the operator of the list which one counts"
    )]
    OtherContent {
        /// The country.
        territory: String,
        /// The number.
        sequence: u64,
        /// When it was issued.
        issued: String,
    },
    /// A list of the last bundle is not among the files.
    #[error(
        "{0}: its list was in the last bundle and is not among the files; fetch it, or allow it with --allow-shrink, as where the country left the list of lists"
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

/// The last issue of each list that these bundles have or know.
pub fn known<'b>(bundles: impl IntoIterator<Item = &'b BundleDocument>) -> Vec<EarlierList> {
    let mut known = BTreeMap::<String, EarlierList>::new();
    for bundle in bundles {
        let lists = bundle.lists.iter().chain([&bundle.list_of_lists]);
        let issues = lists.map(issue).chain(bundle.earlier.iter().cloned());
        for issue in issues {
            let last = known.entry(issue.territory.clone());
            let last = last.or_insert_with(|| issue.clone());
            if (issue.sequence, issue.issued) > (last.sequence, last.issued) {
                *last = issue;
            }
        }
    }
    known.into_values().collect()
}

fn issue(list: &ListEntry) -> EarlierList {
    EarlierList {
        territory: list.territory.clone(),
        sequence: list.sequence,
        issued: list.issued,
        sha256: list.sha256.clone(),
    }
}

/// Checks a bundle against the last one, and its lists against the issues that are known.
pub fn check(
    last: Option<&BundleDocument>,
    known: &[EarlierList],
    next: &BundleDocument,
    allow_shrink: bool,
) -> Vec<Regression> {
    let mut faults = Vec::new();
    for issue in known {
        let list = next.list(&issue.territory);
        faults.extend(list.and_then(|list| older(issue, list)));
    }
    let Some(last) = last else {
        return faults;
    };
    let gone = last
        .lists
        .iter()
        .filter(|list| next.list(&list.territory).is_none());
    let gone = gone.filter(|_| !allow_shrink);
    faults.extend(gone.map(|list| Regression::Gone(list.territory.clone())));
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

fn older(before: &EarlierList, list: &ListEntry) -> Option<Regression> {
    if list.sequence < before.sequence || list.issued < before.issued {
        return Some(Regression::Older {
            territory: list.territory.clone(),
            sequence: list.sequence,
            issued: list.issued.to_string(),
            last_sequence: before.sequence,
            last_issued: before.issued.to_string(),
        });
    }
    let is_same = (list.sequence, list.issued) == (before.sequence, before.issued);
    (is_same && list.sha256 != before.sha256).then(|| Regression::OtherContent {
        territory: list.territory.clone(),
        sequence: list.sequence,
        issued: list.issued.to_string(),
    })
}
