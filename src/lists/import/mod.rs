//! The import: from files to verified lists and their anchors (CRT-13).
//!
//! Invariant: everything in [`Imported`] comes from lists whose signature was verified: the list of lists by the pinned signers and pivots,
//! each national list by the signers that the list of lists names for its country. One fault refuses the import. One document is in
//! memory at a time, beside the list of lists. Deliberately not here: the bundle before (`bundle`).

// Why an import is refused.
mod fault;
// Files of lists and certificates.
mod file;

// From the pinned signers to the list of lists.
mod pivots;
// What is unusual about a signer.
mod signer;
// What is asked for.
mod request;

pub use fault::Fault;
pub use file::{ListFile, certificates, lists_in, pins};
pub(crate) use pivots::file_of;
pub use request::Request;

use crate::{
    anchors::Anchors,
    certificate::Certificate,
    fault::Refusal,
    list::{Claim, ListType, Pointer, Scheme, TrustedList},
    signature::Signed,
};
use pivots::{check_list_of_lists, is_pivot, verify_list_of_lists};
use portvakt_base::clock::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// A list that was verified, without its services.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of its file.
    pub file: String,
    /// The SHA-256 of the file.
    pub sha256: [u8; 32],
    /// Whose list it is, its number and its times.
    pub scheme: Scheme,
    /// The certificate of its signer.
    pub signer: Certificate,
}

/// How many services have this type and state now: (type, state), without the beginnings that all have.
pub type Counts = BTreeMap<(String, String), u64>;

/// A national list that was verified.
#[derive(Clone, Debug)]
pub struct National {
    /// The list.
    pub source: Source,
    /// How many services it has of each type and state.
    pub counts: Counts,
}

/// What was imported.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The list of lists.
    pub list_of_lists: Source,
    /// The files of pivots that led to its signer, the oldest first.
    pub pivots: Vec<String>,
    /// The national lists, by country.
    pub lists: BTreeMap<String, National>,
    /// The anchors.
    pub anchors: Anchors,
    /// Countries that the list of lists names, and whose list was not among the files, with its address.
    pub missing: BTreeMap<String, String>,
    /// The time as of which lists and services were judged.
    pub at: Timestamp,
}

/// Imports lists. `progress` gets a line for each step.
///
/// # Errors
/// Each file that is refused, and why.
pub fn import(request: &Request, progress: &mut dyn FnMut(String)) -> Result<Imported, Vec<Fault>> {
    progress(format!("reading {}", request.list_of_lists.display()));
    let file = ListFile::read(&request.list_of_lists).map_err(one)?;
    let verified = verify_list_of_lists(&file, request).map_err(one)?;
    let refuse = |refusal| one(Fault::of(&file.path, refusal));
    let list = TrustedList::read(&verified.signed).map_err(refuse)?;
    check_list_of_lists(&list).map_err(refuse)?;
    check_next_update(&list.scheme, request.at).map_err(refuse)?;
    let source = Source::new(&file, &verified.signed, &list.scheme);
    progress(source.describe());
    source.remarks(request.at).for_each(&mut *progress);
    for pin in unnamed(&request.pins, &list) {
        progress(format!(
            "a pinned signer whom the list of lists does not name any more: {}",
            pin.signer_name()
        ));
    }
    let mut import = Import {
        pointers: national_pointers(&list),
        information: &list.scheme.information,
        own: file.sha256,
        request,
        lists: BTreeMap::new(),
        left_out: BTreeSet::new(),
        anchors: Anchors::default(),
    };
    let mut faults = Vec::new();
    for path in &request.lists {
        if let Err(fault) = import.take(path, progress) {
            faults.push(fault);
        }
    }
    faults.extend(import.unknown_countries());
    if !faults.is_empty() {
        return Err(faults);
    }
    let missing = import.missing();
    Ok(Imported {
        list_of_lists: source,
        pivots: verified.pivots,
        lists: import.lists,
        anchors: import.anchors,
        missing,
        at: request.at,
    })
}

fn one(fault: Fault) -> Vec<Fault> {
    vec![fault]
}

/// The pinned signers that are not among those whom the list of lists names for itself.
fn unnamed<'p>(pins: &'p [Certificate], list: &TrustedList) -> Vec<&'p Certificate> {
    let own = list.pointers.iter();
    let own = own.filter(|pointer| pointer.list_type == ListType::ListOfLists);
    let named: Vec<_> = own.flat_map(|pointer| &pointer.signers).collect();
    pins.iter().filter(|pin| !named.contains(pin)).collect()
}

/// The pointers to national lists, by country. A country may have several addresses, and so several pointers.
fn national_pointers(list: &TrustedList) -> BTreeMap<&str, Vec<&Pointer>> {
    let mut by_country: BTreeMap<&str, Vec<&Pointer>> = BTreeMap::new();
    for pointer in &list.pointers {
        if pointer.list_type == ListType::National {
            let country = by_country.entry(&pointer.territory);
            country.or_default().push(pointer);
        }
    }
    by_country
}

/// The import of national lists.
struct Import<'a> {
    request: &'a Request,
    pointers: BTreeMap<&'a str, Vec<&'a Pointer>>,
    /// Where the list of lists says that its pivots are.
    information: &'a [String],
    /// The SHA-256 of the list of lists.
    own: [u8; 32],
    lists: BTreeMap<String, National>,
    /// The countries of files that were left out.
    left_out: BTreeSet<String>,
    anchors: Anchors,
}

impl Import<'_> {
    /// Reads a file; takes it if it is a national list.
    fn take(&mut self, path: &Path, progress: &mut dyn FnMut(String)) -> Result<(), Fault> {
        if is_pivot(path, self.information) {
            return Ok(());
        }
        let file = ListFile::read(path)?;
        if file.sha256 == self.own {
            return Ok(());
        }
        let refuse = |refusal| Fault::of(path, refusal);
        let claim = Claim::read(&file.document).map_err(refuse)?;
        if claim.list_type() == ListType::ListOfLists {
            progress(format!("{}: another list of lists: not used", file.name()));
            return Ok(());
        }
        if self.request.leave_out.contains(claim.territory()) {
            progress(format!(
                "{}: {} is left out",
                file.name(),
                claim.territory()
            ));
            self.left_out.insert(claim.territory().to_owned());
            return Ok(());
        }
        let source = self.verify(&file, &claim).map_err(refuse)?;
        progress(source.describe());
        source.remarks(self.request.at).for_each(progress);
        Ok(())
    }

    /// Verifies a national list and takes its anchors.
    fn verify(&mut self, file: &ListFile, claim: &Claim) -> Result<Source, Refusal> {
        let country = claim.territory();
        let pointers = self.pointers.get(country).ok_or_else(|| {
            Refusal::new(format_args!(
                "the list of lists names no list of {country}, or no more: remove this file; the anchors that the last bundle has of this list go then, which takes --allow-shrink"
            ))
        })?;
        if let Some(other) = self.lists.get(country) {
            return Err(Refusal::new(format_args!(
                "a second list of {country}: {} is one too; remove one of them",
                other.source.file
            )));
        }
        let signers: Vec<_> = pointers
            .iter()
            .flat_map(|pointer| pointer.signers.clone())
            .collect();
        let signed = self.request.verifiers.verify(&file.document, &signers)?;
        let list = TrustedList::read(&signed)?;
        let scheme = &list.scheme;
        // The tree did not change since the claim was read; this keeps the reader of it right.
        if scheme.territory != country || scheme.list_type != ListType::National {
            return Err(Refusal::new("another list than the file claims"));
        }
        check_next_update(scheme, self.request.at)?;
        self.anchors.add(&list, self.request.at);
        let source = Source::new(file, &signed, scheme);
        let national = National {
            source: source.clone(),
            counts: count(&list),
        };
        self.lists.insert(country.to_owned(), national);
        Ok(source)
    }

    /// Refuses countries to leave out that neither the list of lists nor a file names: one that is misspelt would leave out nothing.
    fn unknown_countries(&self) -> Option<Fault> {
        let all = self.request.leave_out.iter().map(String::as_str);
        let unknown: Vec<&str> = all
            .filter(|it| !self.pointers.contains_key(*it) && !self.left_out.contains(*it))
            .collect();
        if unknown.is_empty() {
            return None;
        }
        let mut known: BTreeSet<&str> = self.pointers.keys().copied().collect();
        known.extend(self.left_out.iter().map(String::as_str));
        let known: Vec<&str> = known.into_iter().collect();
        Some(Fault::Whole(Refusal::new(format_args!(
            "--leave-out {}: there is no such list; there are those of {}",
            unknown.join(", "),
            known.join(", ")
        ))))
    }

    fn missing(&self) -> BTreeMap<String, String> {
        let without = self.pointers.iter().filter(|(country, _)| {
            !self.lists.contains_key(**country) && !self.request.leave_out.contains(**country)
        });
        without
            .filter_map(|(country, pointers)| {
                let address = pointers.first()?.location.clone();
                Some(((*country).to_owned(), address))
            })
            .collect()
    }
}

impl Source {
    fn new(file: &ListFile, signed: &Signed<'_>, scheme: &Scheme) -> Self {
        Self {
            file: file.name(),
            sha256: file.sha256,
            scheme: scheme.clone(),
            signer: signed.signer().clone(),
        }
    }

    /// The lines about its signer, as of a time.
    fn remarks(&self, at: Timestamp) -> impl Iterator<Item = String> {
        let lines = signer::remarks(&self.signer, &self.file, &self.scheme, at);
        lines.into_iter()
    }

    /// One line for people.
    fn describe(&self) -> String {
        let scheme = &self.scheme;
        let next = match scheme.next_update {
            Some(next) => format!("next update by {next}"),
            None => "closed".to_owned(),
        };
        format!(
            "{}: {} of {}, version {}, sequence {}, issued {}, {next}: signature verified",
            self.file,
            scheme.list_type,
            scheme.territory,
            scheme.version.number(),
            scheme.sequence,
            scheme.issued,
        )
    }
}

/// A list serves up to its NextUpdate; one that is closed has none.
fn check_next_update(scheme: &Scheme, at: Timestamp) -> Result<(), Refusal> {
    match scheme.next_update {
        Some(next) if next < at => Err(Refusal::new(format_args!(
            "out of date: its next update was due on {next}, and it is judged as of {at}; fetch it again, or judge it as of an \
             earlier time (--at)"
        ))),
        _ => Ok(()),
    }
}

fn count(list: &TrustedList) -> Counts {
    let mut counts = Counts::new();
    for service in &list.services {
        let state = &service.current;
        let key = (state.service_type.clone(), state.status.clone());
        *counts.entry(key).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests;
