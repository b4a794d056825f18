//! The file of the hash key: 32 random bytes that nobody else may read.
//!
//! Invariant: a key that is there is never replaced. Deliberately not here: whether it is the state's own key, which the
//! state file knows.

use super::OpenFault;
use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

/// How long a key is, in bytes.
const LENGTH: usize = 32;

/// Reads a key; none if there is no file.
pub(super) fn read(path: &Path) -> Result<Option<[u8; LENGTH]>, OpenFault> {
    let fault = |error| OpenFault::File(path.to_owned(), error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(error)),
    };
    let mode = file.metadata().map_err(fault)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(OpenFault::KeyReadable(path.to_owned(), mode));
    }
    let mut bytes = Vec::new();
    // One more than a key has, to see that it is longer.
    file.take(33).read_to_end(&mut bytes).map_err(fault)?;
    let key = <[u8; LENGTH]>::try_from(bytes.as_slice());
    key.map(Some)
        .map_err(|_| OpenFault::KeyMalformed(path.to_owned()))
}

/// Makes a key, durably. One that another process made a moment ago is taken as it is.
pub(super) fn make(path: &Path) -> Result<[u8; LENGTH], OpenFault> {
    let fault = |error| OpenFault::File(path.to_owned(), error);
    make_folder_of(path)?;
    let (mut key, mut name) = ([0; LENGTH], [0; 8]);
    aws_lc_rs::rand::fill(&mut key)
        .and_then(|()| aws_lc_rs::rand::fill(&mut name))
        .map_err(|_| fault(std::io::Error::other("the system gives no random bytes")))?;
    // Whole or not at all: a key that was half written when the machine stopped would lock its owner out.
    let unfinished = path.with_extension(format!("{:016x}.new", u64::from_be_bytes(name)));
    let written = new_file(&unfinished).and_then(|mut file| {
        file.write_all(&key)?;
        file.sync_all()
    });
    let linked = written.and_then(|()| std::fs::hard_link(&unfinished, path));
    let _ = std::fs::remove_file(&unfinished);
    match linked {
        Ok(()) => sync_folder_of(path).map(|()| key),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            read(path)?.ok_or_else(|| fault(error))
        }
        Err(error) => Err(fault(error)),
    }
}

/// Makes a file that nobody else may read; fails if there is one.
pub(super) fn new_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Makes the folder that a file stands in, for its owner only, if it is missing.
pub(super) fn make_folder_of(path: &Path) -> Result<(), OpenFault> {
    let folder = folder_of(path);
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| OpenFault::Folder(folder.to_owned(), error))
}

/// Keeps other processes from opening state in the same folder, until what it returns is dropped.
pub(super) fn lock_folder_of(path: &Path) -> Result<File, OpenFault> {
    let folder = folder_of(path);
    let fault = |error| OpenFault::File(folder.to_owned(), error);
    let opened = File::open(folder).map_err(fault)?;
    opened.lock().map_err(fault)?;
    Ok(opened)
}

/// Makes a new name in a folder durable.
pub(super) fn sync_folder_of(path: &Path) -> Result<(), OpenFault> {
    let folder = folder_of(path);
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| OpenFault::File(folder.to_owned(), error))
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
