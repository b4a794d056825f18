//! A bundle of trust anchors that `portvakt-lists import` wrote (`trust.bundle`, CRT-8, CRT-13): a folder with `bundle.yaml`, `seals` and
//! `websites`.
//!
//! Invariants: only the owner of the files can change what is loaded; exactly the certificates that `bundle.yaml` lists are loaded; they
//! are of one bundle, because the link is followed once; each anchor is a CA's, and has a service of the type that it is listed for.
//! Deliberately not here: the lists themselves, and whether their services are granted, which the import has judged.

// bundle.yaml.
mod document;
// Its files, and who may write them.
mod files;
// The way to it, and who may write there.
mod place;

use super::{
    named_file::NamedFile,
    pem,
    value::Value,
    warning::{Condition, NEVER, Period},
};
use crate::{
    clock::Timestamp,
    expiring::{Expiring, Level},
    trust::{
        GrantedType, ListedAnchors, ListingFault, Validity,
        bundle::{DOCUMENT, MAX_DOCUMENT_BYTES},
    },
    way::OwnUsers,
};
use document::BundleDocument;
use files::{FoundCertificate, certificates, judge_folder, read_file};
use place::Owners;
use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use document::{GrantedService, GrantedServices, NextUpdate};

/// The link to the bundle in use, in the folder of all.
const CURRENT: &str = "current";

/// The types of anchors: those of QSealCs, and those of QWACs. Each has a folder of its name.
const TYPES: [GrantedType; 2] = [GrantedType::Eseal, GrantedType::Web];

/// The folders of anchors.
const FOLDERS: [&str; 2] = [GrantedType::Eseal.name(), GrantedType::Web.name()];

/// The most faults of a bundle that are reported: one that was exchanged for another has one for each file.
const MAX_FAULTS: usize = 10;

/// The greatest age without a warning, in seconds: the import runs daily. PortvaktBundleOld (dashboards/alerts.yml) has the same.
const MAX_AGE: u64 = 3 * 86_400;

/// How far the time of the import may lie ahead: another machine may have imported.
const AHEAD: u64 = 3_600;

/// A bundle that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustBundle {
    /// Its folder, or the link to it, as the configuration names it.
    pub path: PathBuf,
    /// When it was imported.
    pub imported: Timestamp,
    /// When the first of its lists is to be replaced; `None` if all of them are closed.
    pub next_update: Option<NextUpdate>,
    /// The services of its anchors.
    pub services: Arc<GrantedServices>,
    /// The anchors of QSealCs and of QWACs, with what the lists say of them (CRT-3).
    pub listed: Arc<ListedAnchors>,
}

/// Reads the bundle that a key names; `None` only after a fault.
pub(super) fn read(value: &Value<'_>, base: &Path) -> Option<TrustBundle> {
    let path = value.path(base)?;
    // A look for changed files sees the files of a folder, and not those of the folders in it.
    for folder in FOLDERS {
        value.inspection().names(NamedFile {
            place: value.place().clone(),
            path: path.join(folder),
            secret: false,
        });
    }
    let report = |faults: Vec<String>| {
        for fault in faults {
            value.fault(fault);
        }
    };
    let own = value.inspection().own_users();
    let (found, document) = load(&path, own).map_err(report).ok()?;
    let BundleDocument {
        made,
        as_of,
        next_update,
        services,
        named,
        ..
    } = document;
    if as_of != made {
        value.weakens(format!(
            "the bundle was imported as of {as_of} (--at): services that were withdrawn since are trusted"
        ));
    }
    let listed = listed(value, &path, found, &services);
    let mut listed = listed.map_err(report).ok()?;
    named.into_iter().for_each(|key| listed.name(key));
    let bundle = TrustBundle {
        path,
        imported: made,
        next_update,
        services: Arc::new(services),
        listed: Arc::new(listed),
    };
    warn_of_age(value, made);
    warn_of_next_update(value, &bundle);
    Some(bundle)
}

/// The anchors of both folders, each with its services. What is no CA's certificate is left out: nothing can be issued below it, and as an
/// anchor it would admit its own holder (CRT-2).
fn listed(
    value: &Value<'_>,
    path: &Path,
    found: [Vec<FoundCertificate>; 2],
    services: &GrantedServices,
) -> Result<ListedAnchors, Vec<String>> {
    let mut listed = ListedAnchors::default();
    let mut faults = Vec::new();
    for (of, found) in TYPES.into_iter().zip(found) {
        let (folder, all) = (of.name(), found.len());
        let mut leaves = 0_usize;
        for FoundCertificate {
            path,
            sha256,
            certificate,
        } in found
        {
            let services = services.get(&sha256).into_iter().flatten();
            match listed.add(certificate, of, services.map(GrantedService::listed)) {
                Ok(true) => {}
                Ok(false) => leaves = leaves.saturating_add(1),
                Err(fault) => faults.push(describe(&path, &fault)),
            }
        }
        if leaves > 0 {
            value.warn(format!(
                "{leaves} of {all} certificates in {} are no CA's, and are left out: nothing is issued below them, and none may vouch for itself; there is nothing to do",
                path.join(folder).display()
            ));
        }
    }
    match faults.is_empty() {
        true => Ok(listed),
        false => Err(first_of(faults, path)),
    }
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
            pem::reason(error)
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

/// Warns of a bundle that nobody has replaced for days, as the alert PortvaktBundleOld does.
fn warn_of_age(value: &Value<'_>, imported: Timestamp) {
    let last = Timestamp::from_unix(imported.unix().saturating_add(MAX_AGE));
    let text = format!(
        "the bundle was imported at {imported}, more than 3 days ago: services that were withdrawn since are trusted; fetch the lists and import them"
    );
    value.warn_while(Condition::After(last, text));
}

/// Warns before, and after, the first list is to be replaced, and while the import lies ahead. The anchors serve on: a late list is no
/// reason to refuse every TPP.
fn warn_of_next_update(value: &Value<'_>, bundle: &TrustBundle) {
    let imported = bundle.imported;
    let ahead =
        format!("the bundle was imported at {imported}, which lies ahead: its age is unknown");
    let (not_after, texts) = match &bundle.next_update {
        Some(NextUpdate { at, territory }) => {
            let soon = format!(
                "the list of {territory} is to be replaced by {at}, within 7 days, and its next issue has not been imported: fetch the lists and import them"
            );
            let past = format!(
                "the list of {territory} was to be replaced by {at}: its anchors still serve; fetch the lists and import them"
            );
            (*at, [ahead, soon, past])
        }
        None => (NEVER, [ahead, String::new(), String::new()]),
    };
    let not_before = Timestamp::from_unix(imported.unix().saturating_sub(AHEAD));
    value.warn_while(Condition::Period(Period {
        of: Expiring::Bundle,
        validity: Validity {
            not_before,
            not_after,
        },
        at_end: Level::Soon,
        texts,
    }));
}

/// The anchors of both folders, and what `bundle.yaml` says beside them.
fn load(
    path: &Path,
    own: OwnUsers,
) -> Result<([Vec<FoundCertificate>; 2], BundleDocument), Vec<String>> {
    // Followed once: a link that leads elsewhere meanwhile must not mix two bundles.
    let mut owners = Owners::new(own);
    let folder = place::follow(path, &mut owners).map_err(|fault| vec![fault])?;
    has_document(path, &folder).map_err(|fault| vec![fault])?;
    let mut faults = Vec::new();
    let own = [folder.clone()].into_iter();
    let own = own.chain(FOLDERS.map(|name| folder.join(name)));
    faults.extend(own.filter_map(|own| judge_folder(&own, &mut owners).err()));
    if !faults.is_empty() {
        return Err(faults);
    }
    let document =
        read_document(&folder.join(DOCUMENT), &mut owners).map_err(|fault| vec![fault])?;
    let [seals, websites] = FOLDERS.map(|name| folder.join(name));
    let seals = certificates(&seals, &document.seals, &mut owners, &mut faults);
    let websites = certificates(&websites, &document.websites, &mut owners, &mut faults);
    faults.extend(owners.judge(&folder).err());
    match faults.is_empty() {
        true => Ok(([seals, websites], document)),
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

fn read_document(path: &Path, owners: &mut Owners) -> Result<BundleDocument, String> {
    let shown = path.display();
    let bytes = read_file(path, MAX_DOCUMENT_BYTES, owners)?;
    let text = str::from_utf8(&bytes).map_err(|_| format!("{shown} is not UTF-8"))?;
    let document = BundleDocument::read(text);
    document.map_err(|fault| {
        format!("{shown}: {fault}; only portvakt-lists import writes it: import again, or lead the link to an older bundle")
    })
}

#[cfg(test)]
mod tests;
