//! A bundle of trust anchors that `portvakt-lists import` wrote (`trust.bundle`, CRT-8, CRT-13): a folder with `bundle.yaml`, `seals` and
//! `websites`.
//!
//! Invariants: only the owner of the files can change what is loaded; exactly the certificates that `bundle.yaml` lists are loaded; and
//! they are of one bundle, because the link is followed once. Deliberately not here: the lists themselves, and whether their services are
//! granted, which the import has judged.

// bundle.yaml.
mod document;
// The way to it, and who may write there.
mod place;

use super::{
    named_file::NamedFile,
    pem,
    value::Value,
    warning::{Condition, Period},
};
use crate::{
    clock::Timestamp,
    expiring::{Expiring, Level},
    hex, private_file,
    trust::Validity,
};
use document::{BundleDocument, Listed};
use openssl::x509::X509;
use place::{Owners, judge_mode};
use sha2::{Digest, Sha256};
use std::{
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use document::{GrantedService, GrantedServices, NextUpdate};

/// The file that describes a bundle.
const DOCUMENT: &str = "bundle.yaml";

/// The folders of anchors: those of QSealCs, and those of QWACs.
const FOLDERS: [&str; 2] = ["seals", "websites"];

/// The longest `bundle.yaml`, in bytes. That of Spain's list of 2026 alone has 64 KiB.
const MAX_DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;

/// The longest file of an anchor, in bytes: one certificate, with a line for each of its services before it.
const MAX_ANCHOR_BYTES: u64 = 256 * 1024;

/// The most faults of a bundle that are reported: one that was exchanged for another has one for each file.
const MAX_FAULTS: usize = 10;

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
    /// The services of its anchors, for people: no request is judged by them.
    pub services: Arc<GrantedServices>,
}

/// A bundle with its anchors.
pub(super) struct ReadBundle {
    pub(super) bundle: TrustBundle,
    /// The anchors of QSealCs.
    pub(super) seals: Vec<X509>,
    /// The anchors of QWACs.
    pub(super) websites: Vec<X509>,
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
    let (found, document) = match load(&path) {
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
    let [seals, websites] = found;
    let bundle = TrustBundle {
        path,
        imported: made,
        next_update,
        services: Arc::new(services),
    };
    warn_of_next_update(value, &bundle);
    Some(ReadBundle {
        bundle,
        seals,
        websites,
    })
}

/// Warns before, and after, the first list is to be replaced. The anchors serve on: a late list is no reason to refuse every TPP.
fn warn_of_next_update(value: &Value<'_>, bundle: &TrustBundle) {
    let Some(NextUpdate { at, territory }) = &bundle.next_update else {
        return;
    };
    let imported = bundle.imported;
    let texts = [
        format!("the bundle was imported at {imported}, which lies ahead: its age is unknown"),
        format!(
            "the list of {territory} is to be replaced by {at}, within 7 days, and its next issue has not been imported: fetch the lists and import them"
        ),
        format!(
            "the list of {territory} was to be replaced by {at}: its anchors still serve; fetch the lists and import them"
        ),
    ];
    value.warn_while(Condition::Period(Period {
        of: Expiring::Bundle,
        validity: Validity {
            not_before: Timestamp::from_unix(imported.unix().saturating_sub(AHEAD)),
            not_after: *at,
        },
        at_end: Level::Soon,
        texts,
    }));
}

/// The anchors of both folders, and what `bundle.yaml` says beside them.
fn load(path: &Path) -> Result<([Vec<X509>; 2], BundleDocument), Vec<String>> {
    // Followed once: a link that leads elsewhere meanwhile must not mix two bundles.
    let mut owners = Owners::default();
    let folder = place::follow(path, &mut owners).map_err(|fault| vec![fault])?;
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

fn read_document(path: &Path, owners: &mut Owners) -> Result<BundleDocument, String> {
    let shown = path.display();
    let bytes = read_file(path, MAX_DOCUMENT_BYTES, owners)?;
    let text = str::from_utf8(&bytes).map_err(|_| format!("{shown} is not UTF-8"))?;
    let document = BundleDocument::read(text);
    document.map_err(|fault| {
        format!("{shown}: {fault}; only portvakt-lists import writes it: import again, or lead the link to an older bundle")
    })
}

/// The certificates of a folder, each of which must be the one that is listed under its name.
fn certificates(
    folder: &Path,
    listed: &Listed,
    owners: &mut Owners,
    faults: &mut Vec<String>,
) -> Vec<X509> {
    let entries = match pem::visible_entries(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let folder = folder.display();
            faults.push(format!("{folder} is not a readable folder: {error}"));
            return Vec::new();
        }
    };
    let name_of = |path: &Path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .map(str::to_owned)
    };
    let mut found = Vec::new();
    for path in &entries {
        let Some(sha256) = name_of(path).and_then(|name| listed.get(&name)) else {
            let path = path.display();
            faults.push(format!(
                "{path} is not listed in {DOCUMENT}: only what was imported is loaded; remove it, or name anchors of your own by trust.anchors"
            ));
            continue;
        };
        match certificate(path, sha256, owners) {
            Ok(certificate) => found.push(certificate),
            Err(fault) => faults.push(fault),
        }
    }
    let present: Vec<_> = entries.iter().filter_map(|path| name_of(path)).collect();
    let missing = listed.keys().filter(|name| !present.contains(name));
    faults.extend(missing.map(|name| {
        let folder = folder.display();
        format!("{folder} has no file {name:?}, which {DOCUMENT} lists: import again, or lead the link to an older bundle")
    }));
    found
}

/// The only certificate of a file, which has this SHA-256.
fn certificate(path: &Path, sha256: &str, owners: &mut Owners) -> Result<X509, String> {
    let shown = path.display();
    let mut found =
        X509::stack_from_pem(&read_file(path, MAX_ANCHOR_BYTES, owners)?).unwrap_or_default();
    let certificate = found.pop().filter(|_| found.is_empty());
    let certificate = certificate
        .ok_or_else(|| format!("{shown} is not one certificate in PEM; import again"))?;
    let der = certificate.to_der().map_err(|error| {
        let reason = pem::reason(&error);
        format!("{shown} contains an unreadable certificate ({reason})")
    })?;
    match hex::encode(&Sha256::digest(&der)) == sha256 {
        true => Ok(certificate),
        false => Err(format!(
            "{shown} is not the certificate that {DOCUMENT} lists by its SHA-256: import again, or lead the link to an older bundle"
        )),
    }
}

/// Reads a file of the bundle: no link, and only its owner can change it.
fn read_file(path: &Path, most: u64, owners: &mut Owners) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let unreadable = |error| format!("{shown} cannot be read: {error}");
    let is_link = fs::symlink_metadata(path).map_err(unreadable)?.is_symlink();
    if is_link {
        return Err(format!(
            "{shown} is a link, and others may be able to change its target; put the file in its place, or import again"
        ));
    }
    let file = private_file::open(path).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    judge_mode(path, found.permissions().mode())?;
    owners.note(&found);
    let mut bytes = Vec::new();
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= most => Ok(bytes),
        _ => Err(format!("{shown} is longer than {most} bytes")),
    }
}

/// Judges a folder of the bundle: no link, and only its owner writes in it.
fn judge_folder(path: &Path, owners: &mut Owners) -> Result<(), String> {
    let shown = path.display();
    let unreadable = |error| format!("{shown} is not a readable folder: {error}");
    let found = fs::symlink_metadata(path).map_err(unreadable)?;
    if !found.is_dir() {
        return Err(format!(
            "{shown} is not a folder; expected one that portvakt-lists import wrote"
        ));
    }
    owners.note(&found);
    judge_mode(path, found.permissions().mode())
}

#[cfg(test)]
mod tests;
