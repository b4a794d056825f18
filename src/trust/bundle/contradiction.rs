//! Where the document of a bundle contradicts itself: what no import writes, by times, lists and anchors.
//!
//! Deliberately not here: the forms of single values, and what certificates say.

use super::{
    document::{AnchorEntry, BundleDocument, ListEntry, Use},
    fault::{DocumentFault, MAX_ANCHORS},
    lines::Place,
};
use portvakt_base::clock::Timestamp;
use std::collections::BTreeSet;

/// The territory of the list of lists.
const EU: &str = "EU";

/// How far the clock of a list's operator may be ahead of that of the import, in seconds.
const MAX_AHEAD: u64 = 3_600;

/// A contradiction, and where it stands.
#[derive(Debug)]
pub(super) struct Contradiction {
    /// The place.
    pub(super) place: Place,
    /// What is wrong there.
    pub(super) fault: DocumentFault,
}

/// Judges whether a document contradicts itself. The first contradiction is returned.
pub(super) fn judge_document(of: &BundleDocument) -> Result<(), Contradiction> {
    let found = |place, fault| Contradiction { place, fault };
    let (made, as_of) = (of.made, of.as_of);
    if as_of > made {
        let fault = DocumentFault::AsOfAhead { made, as_of };
        return Err(found(Place::AsOf, fault));
    }
    if of.list_of_lists.territory != EU {
        let fault = DocumentFault::NotOfEu(of.list_of_lists.territory.clone());
        return Err(found(Place::ListOfLists, fault));
    }
    let own = judge_times(&of.list_of_lists, made);
    own.map_err(|fault| found(Place::ListOfLists, fault))?;
    let mut lists = BTreeSet::from([EU]);
    for (at, list) in of.lists.iter().enumerate() {
        let judged = match lists.insert(&list.territory) {
            true => judge_times(list, made),
            false => Err(DocumentFault::ListTwice(list.territory.clone())),
        };
        judged.map_err(|fault| found(Place::List(at), fault))?;
    }
    judge_absent(of, &lists)?;
    judge_anchors(of, &lists)?;
    judge_others(of, &lists)
}

fn judge_times(list: &ListEntry, made: Timestamp) -> Result<(), DocumentFault> {
    let (territory, issued) = (list.territory.clone(), list.issued);
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

/// The lists that it says it has not.
fn judge_absent(of: &BundleDocument, lists: &BTreeSet<&str>) -> Result<(), Contradiction> {
    let missing = of.missing.iter().map(String::as_str).enumerate();
    let earlier = of.earlier.iter().map(|it| it.territory.as_str());
    let missing = missing.map(|(at, it)| (Place::Missing(at), "missing", it));
    let earlier = earlier
        .enumerate()
        .map(|(at, it)| (Place::Earlier(at), "earlier", it));
    let mut seen = BTreeSet::new();
    for (place, key, territory) in missing.chain(earlier) {
        let of = territory.to_owned();
        let fault = match () {
            () if lists.contains(territory) => DocumentFault::ListThere { key, territory: of },
            () if !seen.insert((key, territory)) => {
                DocumentFault::CountryTwice { key, territory: of }
            }
            () => continue,
        };
        return Err(Contradiction { place, fault });
    }
    Ok(())
}

fn judge_anchors(of: &BundleDocument, lists: &BTreeSet<&str>) -> Result<(), Contradiction> {
    if of.anchors.len() > MAX_ANCHORS {
        return Err(Contradiction {
            place: Place::Anchor(MAX_ANCHORS),
            fault: DocumentFault::TooManyAnchors(of.anchors.len()),
        });
    }
    let (mut seen, mut files) = (BTreeSet::new(), BTreeSet::new());
    for (at, anchor) in of.anchors.iter().enumerate() {
        let fault = match () {
            () if !seen.insert(&anchor.sha256) => {
                Some(DocumentFault::AnchorTwice(anchor.sha256.clone()))
            }
            () => judge_files(anchor, &mut files),
        };
        let place = Place::Anchor(at);
        fault.map_or(Ok(()), |fault| Err(Contradiction { place, fault }))?;
        for (number, service) in anchor.services.iter().enumerate() {
            let territory = service.territory.clone();
            let (since, as_of) = (service.granted_since, of.as_of);
            let fault = match () {
                () if !is_national(lists, &territory) => DocumentFault::NoList {
                    what: "a service",
                    territory,
                },
                () if since > as_of => DocumentFault::GrantedAhead {
                    territory,
                    since,
                    as_of,
                },
                () => continue,
            };
            let place = Place::Service(at, number);
            return Err(Contradiction { place, fault });
        }
    }
    Ok(())
}

/// The files of an anchor, each of which only one anchor has.
fn judge_files<'d>(
    anchor: &'d AnchorEntry,
    files: &mut BTreeSet<(Use, &'d str)>,
) -> Option<DocumentFault> {
    let file = anchor.file.as_str();
    if file.is_empty() || file.starts_with('.') || file.contains(['/', '\0']) {
        return Some(DocumentFault::NoFileName(file.to_owned()));
    }
    if anchor.uses.is_empty() {
        return Some(DocumentFault::ForNothing(anchor.sha256.clone()));
    }
    let mut uses = anchor.uses.iter();
    let is_twice = uses.any(|of| !files.insert((*of, file)));
    is_twice.then(|| DocumentFault::FileTwice(file.to_owned()))
}

/// The CAs and the services that are no anchors.
fn judge_others(of: &BundleDocument, lists: &BTreeSet<&str>) -> Result<(), Contradiction> {
    let mut seen = BTreeSet::new();
    for (at, named) in of.named.iter().enumerate() {
        let (territory, key) = (named.territory.clone(), named.key_sha256);
        let fault = match () {
            () if !is_national(lists, &territory) => DocumentFault::NoList {
                what: "a CA",
                territory,
            },
            () if !seen.insert((&named.territory, key)) => {
                DocumentFault::NamedTwice { territory, key }
            }
            () => continue,
        };
        let place = Place::Named(at);
        return Err(Contradiction { place, fault });
    }
    let mut left_out = of.left_out.iter();
    let at = left_out.position(|it| !is_national(lists, &it.territory));
    let fault = at.and_then(|at| Some((at, of.left_out.get(at)?.territory.clone())));
    fault.map_or(Ok(()), |(at, territory)| {
        let fault = DocumentFault::NoList {
            what: "a service that is left out",
            territory,
        };
        let place = Place::LeftOut(at);
        Err(Contradiction { place, fault })
    })
}

/// Whether there is a list of this country. The list of lists has no services.
fn is_national(lists: &BTreeSet<&str>, territory: &str) -> bool {
    territory != EU && lists.contains(territory)
}
