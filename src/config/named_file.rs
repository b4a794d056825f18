//! The files and folders that a configuration names, and one hash over the public ones, by which replicas are compared.

use super::pem;
use super::position::FilePosition;
use crate::hex;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// A file or folder that a configuration names.
#[derive(Clone, Debug)]
pub(super) struct NamedFile {
    /// The position of its path.
    pub(super) place: FilePosition,
    /// The path.
    pub(super) path: PathBuf,
    /// Whether it holds a secret: a key, a token or a password.
    pub(super) secret: bool,
}

impl NamedFile {
    /// Whether replicas with the same configuration have the same content: no secret, and nothing that each replica fetches at a time of its
    /// own.
    fn is_shared(&self) -> bool {
        let key = self.place.path.as_str();
        let is_fetched = key == "trust.bundle"
            || key.starts_with("registers.")
            || key.starts_with("revocation.")
            || key.ends_with(".ocsp_response");
        !self.secret && !is_fetched
    }
}

/// The SHA-256, in hexadecimal digits, over the shared files: for each its key, and the name and content of each file in it, in the order of
/// keys and names. A file that has become unreadable counts as an empty one.
pub(super) fn hash(files: &[NamedFile]) -> String {
    let mut files: Vec<_> = files.iter().filter(|file| file.is_shared()).collect();
    files.sort_by(|one, other| one.place.path.cmp(&other.place.path));
    let mut hash = Sha256::new();
    for file in files {
        part(&mut hash, file.place.path.as_bytes());
        if file.path.is_dir() {
            for entry in pem::visible_entries(&file.path).unwrap_or_default() {
                let name = entry.file_name().unwrap_or_default();
                part(&mut hash, name.as_encoded_bytes());
                part(&mut hash, &content(&entry));
            }
        } else {
            part(&mut hash, &content(&file.path));
        }
    }
    hex::encode(&hash.finalize())
}

fn content(path: &Path) -> Vec<u8> {
    pem::read(path).unwrap_or_default()
}

/// Adds a part with its length, so that no two lists of parts are the same bytes.
fn part(hash: &mut Sha256, bytes: &[u8]) {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    hash.update(length.to_be_bytes());
    hash.update(bytes);
}
