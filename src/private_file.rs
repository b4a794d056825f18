//! Files that nobody but their owner may read: keys, and the state.
//!
//! Invariants: a file that others can read or change is refused; one that is made is whole and durable, or not there; one
//! that exists is overwritten by [`replace`] alone. Deliberately not here: what the files hold.

use aws_lc_rs::rand;
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Bits of a file's mode that let others than its owner in.
const OTHERS: u32 = 0o077;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It cannot be read or written.
    #[error("{0}")]
    File(#[from] io::Error),
    /// Others than its owner may do something with it.
    #[error("others than its owner may read or change it (mode {0:04o}); set it to 0600")]
    Open(u32),
}

impl Fault {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::File(error) if error.kind() == ErrorKind::NotFound)
    }
}

/// Reads a file: so many bytes, and one more where it is longer.
///
/// # Errors
/// Why it cannot be used.
pub fn read(path: &Path, most: usize) -> Result<Vec<u8>, Fault> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(Fault::Open(mode));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file, or makes one where there is none, and its folder: mode 0600, durable when this returns. Of two processes that
/// make the file at once, one does and both read it.
///
/// # Errors
/// The file cannot be used or made, or `content` fails.
pub fn read_or_make<E: From<Fault>>(
    path: &Path,
    most: usize,
    content: impl FnOnce() -> Result<String, E>,
) -> Result<Vec<u8>, E> {
    match read(path, most) {
        Err(fault) if fault.is_missing() => {}
        read => return Ok(read?),
    }
    make(path, content()?.as_bytes()).map_err(Fault::File)?;
    Ok(read(path, most)?)
}

/// Makes a file, and its folder. Where another process makes it at the same time, one of the two files stays.
///
/// # Errors
/// Why it cannot be made; nothing is left of it.
pub fn make(path: &Path, content: &[u8]) -> io::Result<()> {
    make_folder_of(path)?;
    // Linked in place when it is whole: who finds the file finds all of it.
    let beside = write_beside(path, content)?;
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => sync_folder_of(path),
    }
}

/// Puts a file in place of the one that is there, whole or not at all.
///
/// # Errors
/// Why it cannot be written.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = write_beside(path, content)?;
    fs::rename(&beside, path)?;
    sync_folder_of(path)
}

/// Makes an empty file.
///
/// # Errors
/// Why it cannot be made, also where there is one.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Makes the folder that a file stands in, for its owner only, if it is missing.
///
/// # Errors
/// Why it cannot be made.
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
/// Why it may not be.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The folder that a file stands in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// A new file beside another, on the disk when this returns.
fn write_beside(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    rand::fill(&mut random).map_err(|_| io::Error::other("no random numbers can be had"))?;
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
    fn of_many_that_make_a_file_one_does() {
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
    fn a_file_that_others_can_use_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(read(&path, 9).unwrap_err().is_missing());
        fs::write(&path, "x").unwrap();
        for (mode, fits) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
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
