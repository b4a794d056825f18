//! The file of the hash key: 32 random bytes that only the owner may read.
//!
//! Invariant: an existing key is never replaced. Deliberately not here: whether the key belongs to the state file, which the state file
//! records.

use super::OpenFault;
use portvakt_base::private_file::{self, FileFault};
use std::path::Path;

/// The length of the key in bytes.
const LENGTH: usize = 32;

/// Reads a key; `None` if there is no file.
pub(super) fn read(path: &Path) -> Result<Option<[u8; LENGTH]>, OpenFault> {
    let bytes = match private_file::read(path, LENGTH) {
        Ok(bytes) => bytes,
        Err(fault) if fault.is_missing() => return Ok(None),
        Err(FileFault::Open(mode)) => return Err(OpenFault::KeyReadable(path.to_owned(), mode)),
        Err(FileFault::File(error)) => return Err(OpenFault::File(path.to_owned(), error)),
    };
    let key = <[u8; LENGTH]>::try_from(bytes.as_slice());
    // A file of zeros was reserved and never written.
    key.ok()
        .filter(|key| *key != [0; LENGTH])
        .map(Some)
        .ok_or_else(|| OpenFault::KeyMalformed(path.to_owned()))
}

/// Checks a key that exists.
///
/// # Errors
/// It cannot be read, others may read it, or it is no key.
pub fn check(path: &Path) -> Result<(), OpenFault> {
    read(path).map(drop)
}

/// Creates a key durably. If another process has just created one, that key is used.
pub(super) fn make(path: &Path) -> Result<[u8; LENGTH], OpenFault> {
    let fault = |error| OpenFault::File(path.to_owned(), error);
    let mut key = [0; LENGTH];
    aws_lc_rs::rand::fill(&mut key)
        .map_err(|_| fault(std::io::Error::other("the system gives no random bytes")))?;
    private_file::make(path, &key).map_err(fault)?;
    read(path)?.ok_or_else(|| fault(std::io::ErrorKind::NotFound.into()))
}
