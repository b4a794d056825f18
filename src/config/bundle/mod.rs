//! A bundle of trust anchors that `portvakt-lists import` wrote (`trust.bundle`, CRT-8, CRT-13): a folder with `bundle.yaml`, `seals` and
//! `websites`.
//!
//! Invariants: only the owner of the files can change what is loaded; exactly the certificates that `bundle.yaml` lists are loaded; they
//! are of one bundle, because the link is followed once; and each anchor is a CA's. Deliberately not here: the lists themselves, and
//! whether their services are granted, which the import has judged.

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
    hex,
    trust::{GrantedType, Grants, ListedAnchors, Validity},
    way::OwnUsers,
};
use document::{BundleDocument, DOCUMENT};
use files::{certificates, judge_folder, read_file};
use openssl::{error::ErrorStack, x509::X509};
use place::Owners;
use sha2::{Digest as _, Sha256};
use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use document::{GrantedService, GrantedServices, NextUpdate};

/// The link to the bundle in use, in the folder of all.
const CURRENT: &str = "current";

/// The folders of anchors: those of QSealCs, and those of QWACs.
const FOLDERS: [&str; 2] = ["seals", "websites"];

/// The longest `bundle.yaml`, in bytes. That of Spain's list of 2026 alone has 64 KiB.
const MAX_DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;

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
    /// What its lists say of the anchors (CRT-3).
    pub grants: Arc<Grants>,
}

/// A bundle with its anchors.
pub(super) struct ReadBundle {
    pub(super) bundle: TrustBundle,
    /// The anchors of QSealCs and of QWACs, with what the lists say of them.
    pub(super) listed: ListedAnchors,
}

/// Reads the bundle that a key names; `None` only after a fault.
pub(super) fn read(value: &Value<'_>, base: &Path) -> Option<ReadBundle> {
    let path = value.path(base)?;
    // A look for changed files sees the files of a folder, and not those of the folders in it.
    for folder in FOLDERS {
        value.inspection().names(NamedFile {
            place: value.place().clone(),
            path: path.join(folder),
            secret: false,
        });
    }
    let own = value.inspection().own_users();
    let (found, document) = match load(&path, own) {
        Ok(loaded) => loaded,
        Err(faults) => {
            for fault in faults {
                value.fault(fault);
            }
            return None;
        }
    };
    let BundleDocument {
        made,
        as_of,
        next_update,
        services,
        ..
    } = document;
    if as_of != made {
        value.weakens(format!(
            "the bundle was imported as of {as_of} (--at): services that were withdrawn since are trusted"
        ));
    }
    let listed = match listed(value, &path, found, &services) {
        Ok(listed) => listed,
        Err(error) => {
            value.fault(format!(
                "{}: an anchor has a key that OpenSSL does not read ({}); leave its list out (portvakt-lists import --leave-out), or lead the link to an older bundle",
                path.display(),
                pem::reason(&error)
            ));
            return None;
        }
    };
    let bundle = TrustBundle {
        path,
        imported: made,
        next_update,
        services: Arc::new(services),
        grants: Arc::new(listed.grants().clone()),
    };
    warn_of_age(value, made);
    warn_of_next_update(value, &bundle);
    Some(ReadBundle { bundle, listed })
}

/// The anchors of both folders, each with its services. What is no CA's certificate is left out: nothing can be issued below it, and as an
/// anchor it would admit its own holder (CRT-2).
fn listed(
    value: &Value<'_>,
    path: &Path,
    found: [Vec<X509>; 2],
    services: &GrantedServices,
) -> Result<ListedAnchors, ErrorStack> {
    let mut listed = ListedAnchors::default();
    let types = [GrantedType::Eseal, GrantedType::Web];
    for ((folder, of), found) in FOLDERS.into_iter().zip(types).zip(found) {
        let all = found.len();
        let mut leaves = 0_usize;
        for certificate in found {
            let sha256 = hex::encode(&Sha256::digest(certificate.to_der()?));
            let services = services.get(&sha256).into_iter().flatten();
            if !listed.add(certificate, of, services.map(GrantedService::listed))? {
                leaves = leaves.saturating_add(1);
            }
        }
        if leaves > 0 {
            value.warn(format!(
                "{leaves} of {all} certificates in {} are no CA's, and are left out: nothing is issued below them, and none may vouch for itself; there is nothing to do",
                path.join(folder).display()
            ));
        }
    }
    Ok(listed)
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
fn load(path: &Path, own: OwnUsers) -> Result<([Vec<X509>; 2], BundleDocument), Vec<String>> {
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
    match faults.len() {
        0 => Ok(([seals, websites], document)),
        count => {
            faults.truncate(MAX_FAULTS);
            if let Some(more) = count.checked_sub(MAX_FAULTS).filter(|more| *more > 0) {
                faults.push(format!("{}: {more} more faults", folder.display()));
            }
            Err(faults)
        }
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
