//! A bundle as it is loaded: its document, its files, and who may write them (CRT-8, CRT-13).
//!
//! Invariants: the gateway and `portvakt-lists show` load a bundle by this one function, so that neither takes what the other refuses; only the
//! owner of the files can change what is loaded; exactly the certificates that `bundle.yaml` lists are loaded; they are of one bundle, because
//! the link is followed once; each anchor is a CA's, is described as it is, and has a service of the type that it is listed
//! for. Deliberately not here: which anchors a configuration needs.

use super::{
    beside::damaged_after,
    document::{AnchorEntry, BundleDocument, ServiceEntry, Use},
    fault::{CURRENT, DOCUMENT, MAX_DOCUMENT_BYTES},
    files::{FoundCertificate, certificates, judge_folder, read_file, reason},
    place::{self, Owners},
    reading::ReadDocument,
};
use crate::{ListedAnchors, ListingFault};
use openssl::x509::X509;
use portvakt_base::{clock::Timestamp, way::OwnUsers};
use std::{
    collections::HashMap,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The most faults of a bundle that are reported: one that was exchanged for another has one for each file.
const MAX_FAULTS: usize = 10;

/// A bundle that may be used.
#[derive(Debug)]
pub struct LoadedBundle {
    /// What `bundle.yaml` says.
    pub document: BundleDocument,
    /// The anchors, with what the lists say of them and of other CAs.
    pub listed: ListedAnchors,
    /// How many certificates of each folder are no CA's, and so no anchors, of how many; only where there are some.
    pub leaves: Vec<(Use, usize, usize)>,
    /// Why newer bundles beside it, by their names, cannot be read: the next import is refused for them.
    pub damaged: Vec<String>,
}

/// Loads the bundle to which a path leads. `own` are the users who decide anyway what the gateway reads.
///
/// # Errors
/// The first faults, each with its file and what to do.
pub fn load(path: &Path, own: OwnUsers) -> Result<LoadedBundle, Vec<String>> {
    let Found {
        folder,
        certificates,
        document: read,
    } = find(path, own)?;
    let entries = read.document.anchors.iter();
    let entries: HashMap<_, _> = entries.map(|entry| (&entry.sha256, entry)).collect();
    let mut listed = ListedAnchors::default();
    let (mut faults, mut leaves) = (Vec::new(), Vec::new());
    for (of, found) in Use::ALL.into_iter().zip(certificates) {
        let all = found.len();
        let mut count = 0_usize;
        for FoundCertificate {
            path,
            sha256,
            certificate,
        } in found
        {
            let entry = entries.get(&sha256).copied();
            let other = entry.and_then(|entry| other_than_described(&certificate, entry));
            faults.extend(other.map(|what| {
                let path = path.display();
                let fault = format!("{path}: {DOCUMENT} says another {what} of it than the certificate has: import again, or lead the link to an older bundle");
                read.at_anchor(&sha256, &fault)
            }));
            let services = entry.into_iter().flat_map(|entry| &entry.services);
            let services = services.map(ServiceEntry::listed);
            // What is no CA's certificate is left out: nothing can be issued below it, and as an anchor it would admit its own holder (CRT-2).
            match listed.add(certificate, of.granted(), services) {
                Ok(true) => {}
                Ok(false) => count = count.saturating_add(1),
                Err(fault) => faults.push(read.at_anchor(&sha256, &describe(&path, &fault))),
            }
        }
        if count > 0 {
            leaves.push((of, count, all));
        }
    }
    if !faults.is_empty() {
        return Err(first_of(faults, path));
    }
    let document = read.document;
    document
        .named
        .iter()
        .for_each(|named| listed.name(named.key_sha256));
    Ok(LoadedBundle {
        document,
        listed,
        leaves,
        damaged: damaged_after(&folder),
    })
}

/// The member of the document that is not as the certificate has it.
fn other_than_described(certificate: &X509, entry: &AnchorEntry) -> Option<&'static str> {
    let der = certificate.to_der().ok()?;
    let (_, parsed) = X509Certificate::from_der(&der).ok()?;
    if parsed.subject().to_string() != entry.subject {
        return Some("subject");
    }
    let end = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default();
    (Timestamp::from_unix(end) != entry.not_after).then_some("not_after")
}

/// Why a certificate of a bundle is no anchor, and what to do.
fn describe(path: &Path, fault: &ListingFault) -> String {
    let path = path.display();
    match fault {
        ListingFault::NoService(of) => format!(
            "{path}: {fault}, so that no list says what it vouches for: import again; in a bundle of your own, write its service for {0} into {DOCUMENT}, or name the anchor by trust.anchors instead",
            of.name()
        ),
        ListingFault::Key(error) => format!(
            "{path}: OpenSSL does not read its key ({}); leave its list out (portvakt-lists import --leave-out), or lead the link to an older bundle",
            reason(error)
        ),
    }
}

/// The first faults of a bundle, and how many more there are.
fn first_of(mut faults: Vec<String>, folder: &Path) -> Vec<String> {
    let count = faults.len();
    faults.truncate(MAX_FAULTS);
    if let Some(more) = count.checked_sub(MAX_FAULTS).filter(|more| *more > 0) {
        faults.push(format!("{}: {more} more faults", folder.display()));
    }
    faults
}

/// What is found in a bundle's folder.
struct Found {
    /// The folder, with links followed.
    folder: PathBuf,
    /// The certificates of each use.
    certificates: [Vec<FoundCertificate>; 2],
    document: ReadDocument,
}

/// The anchors of both folders, and what `bundle.yaml` says beside them.
fn find(path: &Path, own: OwnUsers) -> Result<Found, Vec<String>> {
    // Followed once: a link that leads elsewhere meanwhile must not mix two bundles.
    let mut owners = Owners::new(own);
    let folder = place::follow(path, &mut owners).map_err(|fault| vec![fault])?;
    has_document(path, &folder).map_err(|fault| vec![fault])?;
    let mut faults = Vec::new();
    let own = [folder.clone()].into_iter();
    let own = own.chain(Use::ALL.map(|of| folder.join(of.folder())));
    faults.extend(own.filter_map(|own| judge_folder(&own, &mut owners).err()));
    if !faults.is_empty() {
        return Err(faults);
    }
    let document =
        read_document(&folder.join(DOCUMENT), &mut owners).map_err(|fault| vec![fault])?;
    let certificates =
        Use::ALL.map(|of| certificates(&folder, of, &document, &mut owners, &mut faults));
    faults.extend(owners.judge(&folder).err());
    match faults.is_empty() {
        true => Ok(Found {
            folder,
            certificates,
            document,
        }),
        false => Err(first_of(faults, &folder)),
    }
}

/// Whether there is a document. `path` is the folder as it is configured.
fn has_document(path: &Path, folder: &Path) -> Result<(), String> {
    let is_missing = |path: &Path| {
        let found = fs::symlink_metadata(path);
        found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    if !is_missing(&folder.join(DOCUMENT)) {
        return Ok(());
    }
    let shown = path.display();
    match is_missing(&folder.join(CURRENT)) {
        true => Err(format!(
            "{shown} has no {DOCUMENT}, and so is no bundle; name {CURRENT} in the folder that portvakt-lists import writes to, or import again"
        )),
        false => Err(format!(
            "{shown} is the folder of all bundles; name {shown}/{CURRENT}, which leads to the one in use"
        )),
    }
}

fn read_document(path: &Path, owners: &mut Owners) -> Result<ReadDocument, String> {
    let shown = path.display();
    let bytes = read_file(path, MAX_DOCUMENT_BYTES, owners)?;
    ReadDocument::from_bytes(bytes).map_err(|fault| {
        format!("{shown}: {fault}; only portvakt-lists import writes it: import again, or lead the link to an older bundle")
    })
}
