//! Reads files and standard input, with a bound.
//!
//! Deliberately not here: the meaning of the bytes.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The longest input that is read, in bytes: a HAR of a long browser session has some tens of megabytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The reason why an input cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InputFault {
    /// The operating system reported an error.
    #[error("{} cannot be read: {source}", name(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The input is too long.
    #[error("{} is longer than {MAX_BYTES} bytes", name(.0))]
    TooLong(PathBuf),
}

/// The name of an input in faults.
pub(super) fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Reads a file, or standard input if the path is `-`.
///
/// # Errors
/// [`InputFault`].
pub(super) fn read(path: &Path) -> Result<Vec<u8>, InputFault> {
    let unreadable = |source| InputFault::Unreadable {
        path: path.into(),
        source,
    };
    let mut bytes = Vec::new();
    let limit = MAX_BYTES.saturating_add(1);
    let taken = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    taken.map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_BYTES) {
        Ok(bytes)
    } else {
        Err(InputFault::TooLong(path.into()))
    }
}
