//! The files and folders of a bundle: who may change them, and the certificates in them.
//!
//! Invariant: what is read is no link, only its owner writes it, and each certificate is the one that `bundle.yaml` lists under its name.
//! Deliberately not here: the way to the bundle (`place`), and what its certificates serve for.

use super::{
    document::Use,
    fault::{DOCUMENT, MAX_ANCHOR_BYTES},
    place::{Owners, judge_mode},
    reading::ReadDocument,
};
use crate::digests::sha256 as digest;
use openssl::{error::ErrorStack, x509::X509};
use portvakt_base::{hex, private_file};
use std::{
    collections::BTreeSet,
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The longest label of PEM in a fault: that of an encrypted key has 21 letters.
const MAX_LABEL: usize = 32;

/// A certificate of the bundle, and where it stands.
pub(super) struct FoundCertificate {
    /// Its file.
    pub(super) path: PathBuf,
    /// Its SHA-256, in hexadecimal digits.
    pub(super) sha256: String,
    pub(super) certificate: X509,
}

/// The certificates of a bundle for a use, each of which must be the one that is listed under its name.
pub(super) fn certificates(
    bundle: &Path,
    of: Use,
    read: &ReadDocument,
    owners: &mut Owners,
    faults: &mut Vec<String>,
) -> Vec<FoundCertificate> {
    let folder = &bundle.join(of.folder());
    let listed = read.document.files(of);
    let entries = match visible_entries(folder) {
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
        let Some(sha256) = name_of(path).and_then(|name| listed.get(&*name).copied()) else {
            let path = path.display();
            faults.push(format!(
                "{path} is not listed in {DOCUMENT}: only what was imported is loaded; remove it, or name anchors of your own by trust.anchors"
            ));
            continue;
        };
        match certificate(path, sha256, owners) {
            Ok(certificate) => found.push(FoundCertificate {
                path: path.clone(),
                sha256: sha256.to_owned(),
                certificate,
            }),
            Err(fault) => faults.push(read.at_anchor(sha256, &fault)),
        }
    }
    let present: BTreeSet<_> = entries.iter().filter_map(|path| name_of(path)).collect();
    let missing = listed.iter().filter(|(name, _)| !present.contains(**name));
    faults.extend(missing.map(|(name, sha256)| {
        let folder = folder.display();
        let fault = format!("{folder} has no file {name:?}, which {DOCUMENT} lists: import again, or lead the link to an older bundle");
        read.at_anchor(sha256, &fault)
    }));
    found
}

/// The entries of a folder by name, but for hidden ones.
fn visible_entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in folder.read_dir()? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            entries.push(entry.path());
        }
    }
    entries.sort();
    Ok(entries)
}

/// OpenSSL's innermost error, without function names and source lines.
pub(super) fn reason(error: &ErrorStack) -> &str {
    let last = error.errors().last();
    let reason = last.and_then(openssl::error::Error::reason);
    reason.unwrap_or("OpenSSL gives no reason")
}

/// The only certificate of a file, which has this SHA-256.
fn certificate(path: &Path, sha256: &str, owners: &mut Owners) -> Result<X509, String> {
    let shown = path.display();
    let bytes = read_file(path, MAX_ANCHOR_BYTES, owners)?;
    judge_labels(path, &bytes)?;
    let mut found = X509::stack_from_pem(&bytes).unwrap_or_default();
    let certificate = found.pop().filter(|_| found.is_empty());
    let certificate = certificate
        .ok_or_else(|| format!("{shown} is not one certificate in PEM; import again"))?;
    let der = certificate.to_der().map_err(|error| {
        let reason = reason(&error);
        format!("{shown} contains an unreadable certificate ({reason})")
    })?;
    match hex::encode(&digest(&[&der])) == sha256 {
        true => Ok(certificate),
        false => Err(format!(
            "{shown} is not the certificate that {DOCUMENT} lists by its SHA-256: import again, or lead the link to an older bundle"
        )),
    }
}

/// Judges what a file holds in PEM: one certificate and nothing else. OpenSSL passes over the rest without a word, and takes from a TRUSTED
/// CERTIFICATE more than the certificate. No fault repeats what is not a usual label.
fn judge_labels(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let shown = path.display();
    let text = String::from_utf8_lossy(bytes);
    let mut count = 0_usize;
    for part in text.split("-----BEGIN ").skip(1) {
        let label = part.split("-----").next().unwrap_or_default();
        let is_usual = |letter: char| letter.is_ascii_uppercase() || " 0123456789".contains(letter);
        match label {
            "CERTIFICATE" => count = count.saturating_add(1),
            _ if label.ends_with("PRIVATE KEY") => {
                return Err(format!(
                    "{shown} holds a private key beside a certificate, which everybody can read: find out whose it is, replace that key, and import again"
                ));
            }
            _ if label.len() <= MAX_LABEL && label.chars().all(is_usual) => {
                return Err(format!(
                    "{shown} holds PEM of another kind, {label}; expected one CERTIFICATE: import again"
                ));
            }
            _ => {
                return Err(format!(
                    "{shown} holds PEM of an unknown kind; expected one CERTIFICATE: import again"
                ));
            }
        }
    }
    match count {
        0 | 1 => Ok(()),
        _ => Err(format!(
            "{shown} holds {count} certificates; expected one: import again"
        )),
    }
}

/// Reads a file of the bundle: no link, and only its owner can change it.
pub(super) fn read_file(path: &Path, most: u64, owners: &mut Owners) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let unreadable = |error| format!("{shown} cannot be read: {error}");
    let kind = fs::symlink_metadata(path).map_err(unreadable)?.file_type();
    if kind.is_symlink() {
        return Err(format!(
            "{shown} is a link, and others may be able to change its target; put the file in its place, or import again"
        ));
    }
    if !kind.is_file() {
        return Err(format!(
            "{shown} is no regular file (a folder, a FIFO, a device or a socket); remove it, and import again"
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
pub(super) fn judge_folder(path: &Path, owners: &mut Owners) -> Result<(), String> {
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
