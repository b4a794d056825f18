//! The file of the hash key: 32 random bytes that only the owner may read, and 32 more for each rotation.
//!
//! Invariant: an existing key is never replaced; a rotation adds one behind it. Deliberately not here: whether the keys belong to the state
//! file, and how many of them it uses, which the state file records.

use super::OpenFault;
use portvakt_base::private_file::{self, FileFault};
use std::{collections::HashSet, fs::File, path::Path};

/// The length of a key in bytes.
const LENGTH: usize = 32;

/// The maximum number of keys: each costs every hash another step.
pub(super) const MOST_KEYS: usize = 16;

/// The keys of a file, that of the first level first.
pub(super) struct Secrets {
    pub(super) first: [u8; LENGTH],
    pub(super) later: Vec<[u8; LENGTH]>,
}

/// Reads the keys; `None` if there is no file.
pub(super) fn read(path: &Path) -> Result<Option<Secrets>, OpenFault> {
    let Some(bytes) = read_bytes(path, LENGTH.saturating_mul(MOST_KEYS))? else {
        return Ok(None);
    };
    let malformed = || OpenFault::KeysMalformed(path.to_owned(), bytes.len());
    let (keys, rest) = bytes.as_chunks::<LENGTH>();
    // A key of zeros was reserved and never written, and a level under the key of another one protects nothing.
    let different: HashSet<_> = keys.iter().collect();
    let is_whole = rest.is_empty() && different.len() == keys.len();
    if !is_whole || keys.len() > MOST_KEYS || keys.contains(&[0; LENGTH]) {
        return Err(malformed());
    }
    let (first, later) = keys.split_first().ok_or_else(malformed)?;
    Ok(Some(Secrets {
        first: *first,
        later: later.to_vec(),
    }))
}

/// Reads a file of exactly one key; `None` if there is no file.
pub(super) fn read_one(path: &Path) -> Result<Option<[u8; LENGTH]>, OpenFault> {
    let Some(bytes) = read_bytes(path, LENGTH)? else {
        return Ok(None);
    };
    let key = <[u8; LENGTH]>::try_from(bytes.as_slice());
    key.ok()
        .filter(|key| *key != [0; LENGTH])
        .map(Some)
        .ok_or_else(|| OpenFault::KeyMalformed(path.to_owned()))
}

fn read_bytes(path: &Path, most: usize) -> Result<Option<Vec<u8>>, OpenFault> {
    match private_file::read(path, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(fault) if fault.is_missing() => Ok(None),
        Err(FileFault::Open(mode)) => Err(OpenFault::KeyReadable(path.to_owned(), mode)),
        Err(FileFault::File(error)) => Err(OpenFault::File(path.to_owned(), error)),
    }
}

/// Checks a key that exists.
///
/// # Errors
/// It cannot be read, others may read it, or it is no key.
pub fn check(path: &Path) -> Result<(), OpenFault> {
    read(path).map(drop)
}

/// Creates a key durably. If another process has just created one, that key is used.
pub(super) fn make(path: &Path) -> Result<Secrets, OpenFault> {
    let fault = |error| OpenFault::File(path.to_owned(), error);
    private_file::make(path, &random(path)?).map_err(fault)?;
    read(path)?.ok_or_else(|| fault(std::io::ErrorKind::NotFound.into()))
}

/// Adds a key durably behind the last of `count`. If another process has just added one, that key is used. Owner, group and mode of the
/// file stay. What a command that was killed has left beside the file is removed.
pub(super) fn add(path: &Path, count: usize) -> Result<(), OpenFault> {
    let fault = |error| OpenFault::KeyNotAdded(path.to_owned(), error);
    let place = std::fs::canonicalize(path).map_err(fault)?;
    let folder = File::open(private_file::folder_of(&place));
    let alone = folder.and_then(|folder| folder.lock().map(|()| folder));
    let _alone = alone.map_err(fault)?;
    private_file::remove_beside(&place).map_err(fault)?;
    let Some(mut bytes) = read_bytes(&place, LENGTH.saturating_mul(MOST_KEYS))? else {
        return Err(fault(std::io::ErrorKind::NotFound.into()));
    };
    if bytes.len() != LENGTH.saturating_mul(count) {
        return Ok(());
    }
    if count >= MOST_KEYS {
        return Err(OpenFault::KeysFull(path.to_owned()));
    }
    bytes.extend_from_slice(&random(path)?);
    private_file::replace_alike(&place, &bytes).map_err(fault)
}

fn random(path: &Path) -> Result<[u8; LENGTH], OpenFault> {
    let mut key = [0; LENGTH];
    aws_lc_rs::rand::fill(&mut key).map_err(|_| {
        let error = std::io::Error::other("the system gives no random bytes");
        OpenFault::File(path.to_owned(), error)
    })?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    #[test]
    fn a_file_of_other_bytes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hash.key");
        for (bytes, said) in [
            (vec![], "0 bytes"),
            (vec![0; 32], "32 bytes"),
            (vec![1; 31], "31 bytes"),
            (vec![1; 33], "33 bytes"),
            (vec![1; 65], "65 bytes"),
            ([[1; 32], [0; 32]].concat(), "64 bytes"),
            ([[1; 32], [2; 32], [1; 32]].concat(), "96 bytes"),
            (
                (0..17_u8).flat_map(|key| [key + 1; 32]).collect(),
                "513 bytes",
            ),
        ] {
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let fault = check(&path).unwrap_err().to_string();
            assert!(fault.contains(said), "{fault}");
        }
    }
}
