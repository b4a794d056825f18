//! From the pinned signers to the signer of the list of lists, by pivots.
//!
//! The Official Journal names the first signers. When they change, the Commission publishes a pivot: an issue of the list of lists, signed
//! by a signer known before, whose pointer to the list of lists names the signers from then on. The list of lists names its pivots in
//! SchemeInformationURI, the newest first, and the Official Journal after those that count from it.
//!
//! Question: must pivots be followed if a pinned signer signed the list of lists itself? Answer: no. Whoever has a pinned key can write any
//! SchemeInformationURI, so pivots cannot take trust away from a pin; the operator does, by other pins. A new Official Journal resets
//! the chain in the same way.
//!
//! What the second verifier says against a list that this program has verified ends the import: no other chain makes up for it.

use super::{
    fault::Fault,
    file::{ListFile, name_of},
    request::Request,
};
use crate::{
    certificate::Certificate,
    fault::Refusal,
    list::{Claim, ListType, TrustedList},
    second::{Objection, Verifiers},
    signature::Signed,
};
use std::path::Path;

/// The most pivots of one list. That of 2026 has five.
const MAX_PIVOTS: usize = 32;

/// The host of the Official Journal.
const JOURNAL: &str = "https://eur-lex.europa.eu/";

/// A list of lists whose signature was verified, and the pivots that led to its signer, the oldest first.
#[derive(Debug)]
pub(super) struct Verified<'a> {
    /// The list.
    pub(super) signed: Signed<'a>,
    /// The names of the files of pivots.
    pub(super) pivots: Vec<String>,
}

/// Verifies a list of lists by the pinned signers, or by those whom pivots of the folder name.
///
/// # Errors
/// Neither a pinned signer nor one of the pivots signed it, or it was altered; a pivot that it names is missing or refused; or the second
/// verifier objects to one of them, which is the reason alone.
pub(super) fn verify_list_of_lists<'a>(
    list: &'a ListFile,
    request: &Request,
) -> Result<Verified<'a>, Fault> {
    let refuse = |refusal| Fault::of(&list.path, refusal);
    let claim = Claim::read(&list.document).map_err(refuse)?;
    let first = match request.verifiers.verify(&list.document, &request.pins) {
        Ok(signed) => {
            let pivots = Vec::new();
            return Ok(Verified { signed, pivots });
        }
        Err(Objection::Second(refusal)) => return Err(refuse(refusal)),
        Err(Objection::Own(refusal)) => refusal,
    };
    let mut last = None;
    for chain in chains(claim.information()).map_err(refuse)? {
        match follow(&chain, list, request) {
            Ok(verified) => return Ok(verified),
            Err(Stop::Second(fault)) => return Err(fault),
            Err(Stop::Own(fault)) => last = Some(fault),
        }
    }
    Err(match last {
        None => refuse(first),
        Some(Fault::File { file, refusal }) if file != list.path => refuse(Refusal::new(
            format_args!("{first}; nor by its pivots: {}: {refusal}", name_of(&file)),
        )),
        Some(fault) => refuse(Refusal::new(format_args!(
            "{first}; nor by its pivots: {}",
            fault.refusal()
        ))),
    })
}

/// The chains of pivots, as names of files, the oldest first: one from each Official Journal on that has pivots after it.
fn chains(information: &[String]) -> Result<Vec<Vec<&str>>, Refusal> {
    let mut pivots = Vec::new();
    let mut chains: Vec<Vec<&str>> = Vec::new();
    for address in information {
        if address.starts_with(JOURNAL) {
            if !pivots.is_empty() {
                chains.push(pivots.iter().rev().copied().collect());
            }
        } else if address.ends_with(".xml") {
            pivots.push(file_of(address).ok_or_else(|| {
                Refusal::new(format_args!(
                    "a pivot whose address has no name of a file: {address}"
                ))
            })?);
        }
        if pivots.len() > MAX_PIVOTS {
            return Err(Refusal::new("over 32 pivots"));
        }
    }
    if !pivots.is_empty() {
        chains.push(pivots.into_iter().rev().collect());
    }
    chains.dedup();
    Ok(chains)
}

/// The name under which the file of an address is saved: what follows the last slash.
pub(crate) fn file_of(address: &str) -> Option<&str> {
    let (_, path) = address.split_once("://")?;
    let (_, name) = path.rsplit_once('/')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_name = !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain);
    is_name.then_some(name)
}

/// Why a chain of pivots does not lead to the list.
enum Stop {
    /// This program refuses one of its lists, or has not all of them: another chain may lead there.
    Own(Fault),
    /// The second verifier objects to one of its lists.
    Second(Fault),
}

impl Stop {
    fn of(file: &Path, objection: Objection) -> Self {
        match objection {
            Objection::Own(refusal) => Self::Own(Fault::of(file, refusal)),
            Objection::Second(refusal) => Self::Second(Fault::of(file, refusal)),
        }
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Own(fault)
    }
}

/// Follows a chain from the pins to the list.
fn follow<'a>(chain: &[&str], list: &'a ListFile, request: &Request) -> Result<Verified<'a>, Stop> {
    let mut signers = request.pins.clone();
    let mut pivots = Vec::new();
    for name in chain {
        // A list may name itself as its newest pivot.
        if *name == list.name() {
            continue;
        }
        let path = request.lists.iter().find(|path| name_of(path) == *name);
        let path = path.ok_or_else(|| {
            let what = format!("the pivot {name} is not in the folder of lists; fetch it (`portvakt-lists addresses`)");
            Fault::of(&list.path, Refusal::new(what))
        })?;
        let file = ListFile::read(path)?;
        if file.sha256 == list.sha256 {
            continue;
        }
        signers = signers_after(&file, &signers, &request.verifiers)
            .map_err(|objection| Stop::of(path, objection))?;
        pivots.push((*name).to_owned());
    }
    let signed = request.verifiers.verify(&list.document, &signers);
    let signed = signed.map_err(|objection| Stop::of(&list.path, objection))?;
    Ok(Verified { signed, pivots })
}

/// The signers of the list of lists that a pivot names, if one of those before signed it.
fn signers_after(
    pivot: &ListFile,
    signers: &[Certificate],
    verifiers: &Verifiers,
) -> Result<Vec<Certificate>, Objection> {
    let signed = verifiers.verify(&pivot.document, signers)?;
    let list = TrustedList::read(&signed)?;
    check_list_of_lists(&list)?;
    let own = list.pointers.iter();
    let own = own.filter(|pointer| pointer.list_type == ListType::ListOfLists);
    let signers: Vec<_> = own.flat_map(|pointer| pointer.signers.clone()).collect();
    match signers.is_empty() {
        true => Err(Refusal::new("a pivot without a pointer to the list of lists").into()),
        false => Ok(signers),
    }
}

/// Checks that a list is the EU's list of lists.
pub(super) fn check_list_of_lists(list: &TrustedList) -> Result<(), Refusal> {
    let scheme = &list.scheme;
    match (scheme.list_type, scheme.territory.as_str()) {
        (ListType::ListOfLists, "EU") => Ok(()),
        (found, territory) => Err(Refusal::new(format_args!(
            "a {found} of {territory}; expected the list of lists of EU"
        ))),
    }
}

/// Whether a path is one of the files of pivots that a list names.
pub(super) fn is_pivot(path: &Path, information: &[String]) -> bool {
    let name = name_of(path);
    let mut named = information.iter().filter_map(|address| file_of(address));
    named.any(|pivot| pivot == name)
}
