//! Files that only their owner may read: keys, tokens, and the state.
//!
//! Invariants: reading refuses a file that others may read or that the group may change; a new file is complete and durable, or
//! absent; only [`replace`] overwrites a file. Deliberately not here: the content of the files.

use aws_lc_rs::rand;
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The bits of a mode that grant access to group and others.
const OTHERS: u32 = 0o077;

/// The mode of a secret in a Kubernetes volume with `fsGroup`, and of a systemd credential that has an access list: the group reads, and
/// nobody writes.
const SHARED: u32 = 0o440;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// The file cannot be read or written.
    #[error("{0}")]
    File(#[from] io::Error),
    /// The mode grants access to group or others, and is not 0440.
    #[error(
        "its mode {0:04o} grants access to other users; set it to 0600, or to 0440 for a group that shares it"
    )]
    Open(u32),
}

impl FileFault {
    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::File(error) if error.kind() == ErrorKind::NotFound)
    }
}

/// Reads at most `most` bytes of a file; returns one byte more if the file is longer.
///
/// # Errors
/// The file cannot be read, or its mode grants access to group or others and is not 0440.
pub fn read(path: &Path, most: usize) -> Result<Vec<u8>, FileFault> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    if mode & OTHERS != 0 && mode != SHARED {
        return Err(FileFault::Open(mode));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file; creates the file and its folder first where they are missing (mode 0600, durable on return). If several
/// processes create the file at once, one succeeds and all read the same content.
///
/// # Errors
/// The file cannot be read or created, or `content` fails.
pub fn read_or_make<E: From<FileFault>>(
    path: &Path,
    most: usize,
    content: impl FnOnce() -> Result<String, E>,
) -> Result<Vec<u8>, E> {
    match read(path, most) {
        Err(fault) if fault.is_missing() => {}
        read => return Ok(read?),
    }
    make(path, content()?.as_bytes()).map_err(FileFault::File)?;
    Ok(read(path, most)?)
}

/// Creates a file and its folder. If another process creates the file first, that file stays.
///
/// # Errors
/// The file cannot be created; no part of it remains.
pub fn make(path: &Path, content: &[u8]) -> io::Result<()> {
    make_folder_of(path)?;
    // The link is made when the file is complete, so a reader never sees a part of it.
    let beside = write_beside(path, content)?;
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => sync_folder_of(path),
    }
}

/// Replaces a file atomically.
///
/// # Errors
/// The file cannot be written; the old one stays.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = write_beside(path, content)?;
    fs::rename(&beside, path)?;
    sync_folder_of(path)
}

/// Creates an empty file.
///
/// # Errors
/// The file cannot be created, or exists already.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Creates the folder of a file with mode 0700 if it is missing.
///
/// # Errors
/// The folder cannot be created.
pub fn make_folder_of(path: &Path) -> io::Result<()> {
    let folder = folder_of(path);
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes a new name in a folder durable.
///
/// # Errors
/// The folder cannot be synchronised.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Writes a temporary file in the folder of `path`; durable on return.
fn write_beside(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    rand::fill(&mut random).map_err(|_| io::Error::other("no random numbers are available"))?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}", u64::from_be_bytes(random)));
    let beside = PathBuf::from(name);
    let mut file = create(&beside)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    Ok(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_creators_leave_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/key");
        let start = |number: u8| {
            make(&path, &[number; 32]).unwrap();
            read(&path, 32).unwrap()
        };
        let found: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || start(n))).collect();
            let found = threads.into_iter().map(|thread| thread.join().unwrap());
            found.collect()
        });
        assert_eq!(found[0].len(), 32);
        assert!(found.iter().all(|bytes| *bytes == found[0]));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&path), mode(folder_of(&path))), (0o600, 0o700));
        assert_eq!(fs::read_dir(folder_of(&path)).unwrap().count(), 1);
        replace(&path, b"another").unwrap();
        assert_eq!(read(&path, 3).unwrap(), b"anot", "one more than asked for");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(folder_of(&path)).unwrap().count(), 1);
    }

    #[test]
    fn a_file_with_access_for_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(read(&path, 9).unwrap_err().is_missing());
        fs::write(&path, "x").unwrap();
        for (mode, fits) in [
            (0o600, true),
            (0o400, true),
            (0o440, true),
            (0o640, false),
            (0o444, false),
            (0o460, false),
            (0o604, false),
            (0o620, false),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let read = read(&path, 9);
            assert_eq!(read.is_ok(), fits, "{mode:o}");
            assert!(read.is_ok() || !read.unwrap_err().is_missing());
        }
    }
}
