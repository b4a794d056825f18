//! Files that only their owner may read: keys, tokens, and the state.
//!
//! Invariants: reading refuses a file that others may read or that the group may change; a new file is complete and durable, or
//! absent; only [`replace`] and [`replace_alike`] overwrite a file. Deliberately not here: the content of the files.

use rustix::{fs::OFlags, io::Errno};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// The bits of a mode that grant access to group and others.
const OTHERS: u32 = 0o077;

/// The mode of a secret in a Kubernetes volume with `fsGroup`, and of a systemd credential that has an access list: the group reads, and
/// nobody writes.
const SHARED: u32 = 0o440;

/// The reason to refuse what is no file.
const NOT_REGULAR: &str = "it is no regular file (a FIFO, a device or a socket); name a file";

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

/// Opens a regular file to read it. Where a FIFO without a writer stands in its place, an ordinary open would wait for one.
///
/// # Errors
/// The file cannot be opened, or it is a FIFO, a device or a socket.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = without_waiting(options.read(true)).open(path)?;
    let found = file.metadata()?.file_type();
    // Reading a folder fails by itself.
    if found.is_file() || found.is_dir() {
        return Ok(file);
    }
    Err(io::Error::new(ErrorKind::InvalidInput, NOT_REGULAR))
}

/// The options of an open that does not wait for the other end of a FIFO. The file is then used without waiting too, unless
/// the flag is taken from it.
pub fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed())
}

/// Reads at most `most` bytes of a file; returns one byte more if the file is longer.
///
/// # Errors
/// The file cannot be read, or its mode grants access to group or others and is not 0440.
pub fn read(path: &Path, most: usize) -> Result<Vec<u8>, FileFault> {
    let file = open(path)?;
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

/// The reason to refuse a symbolic link that leads nowhere: nothing can be created in its place or through it.
const DANGLING: &str = "it is a symbolic link to nothing";

/// Whether a path is a symbolic link to nothing.
pub fn is_dangling(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
        && fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Tries whether [`read_or_make`] would make a file that does not exist. Leaves nothing behind.
///
/// # Errors
/// The reason why the file cannot be made.
pub fn try_make_new(path: &Path) -> io::Result<()> {
    match is_dangling(path) {
        true => Err(io::Error::new(ErrorKind::AlreadyExists, DANGLING)),
        false => try_make(path),
    }
}

/// Tries whether a file can be created or replaced at `path`, with its folder where that is missing. Leaves nothing behind.
///
/// # Errors
/// The reason why the file cannot be made.
pub fn try_make(path: &Path) -> io::Result<()> {
    if let Some(error) = names_a_folder(path) {
        return Err(error.into());
    }
    let folder = folder_of(path);
    let mut existing = folder;
    loop {
        match fs::metadata(existing) {
            Ok(found) if found.is_dir() => break,
            Ok(_) => return Err(ErrorKind::NotADirectory.into()),
            Err(_) if is_dangling(existing) => {
                let text = format!("{}: {DANGLING}", existing.display());
                return Err(io::Error::new(ErrorKind::AlreadyExists, text));
            }
            Err(error) if error.kind() == ErrorKind::NotFound && existing != Path::new(".") => {
                existing = folder_of(existing);
            }
            Err(error) => return Err(error),
        }
    }
    let own = name_beside(&existing.join(".portvakt-check"));
    if existing == folder {
        create(&own)?;
        return fs::remove_file(&own);
    }
    DirBuilder::new().mode(0o700).create(&own)?;
    fs::remove_dir(&own)
}

/// The error of the kernel where a path ends as only a folder's does. No file can be made there, whatever [`Path::parent`] makes of it.
fn names_a_folder(path: &Path) -> Option<Errno> {
    let text = path.as_os_str().as_encoded_bytes();
    if text.ends_with(b"/") {
        return Some(Errno::ISDIR);
    }
    let is_dots = path.file_name().is_none() || text.ends_with(b"/.");
    is_dots.then_some(Errno::NOENT)
}

/// Replaces a file atomically.
///
/// # Errors
/// The file cannot be written; the old one stays, and no part of the new one.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = write_beside(path, content)?;
    if let Err(error) = fs::rename(&beside, path) {
        // That it could not be replaced says more.
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    sync_folder_of(path)
}

/// Replaces a file atomically by one with the same owner, group and mode.
///
/// # Errors
/// The file cannot be written; the old one stays, and no part of the new one.
pub fn replace_alike(path: &Path, content: &[u8]) -> io::Result<()> {
    let old = fs::metadata(path)?;
    let beside = write_beside(path, content)?;
    let new = fs::metadata(&beside)?;
    let is_alike = (new.uid(), new.gid()) == (old.uid(), old.gid());
    let owned = match is_alike {
        true => Ok(()),
        false => chown(&beside, Some(old.uid()), Some(old.gid())),
    };
    let done = owned
        .and_then(|()| fs::set_permissions(&beside, old.permissions()))
        .and_then(|()| File::open(&beside)?.sync_all())
        .and_then(|()| fs::rename(&beside, path));
    if let Err(error) = done {
        // That it could not be replaced says more.
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
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
    let beside = name_beside(path);
    let mut file = create(&beside)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    Ok(beside)
}

/// Removes what a process that was killed has left beside this path when it replaced the file. Nobody may replace the file meanwhile.
///
/// # Errors
/// The folder cannot be read, or a file cannot be removed.
pub fn remove_beside(path: &Path) -> io::Result<()> {
    let Some(name) = path.file_name() else {
        return Ok(());
    };
    let start = [name.as_encoded_bytes(), b"."].concat();
    for entry in fs::read_dir(folder_of(path))? {
        let entry = entry?;
        let found = entry.file_name();
        let suffix = found.as_encoded_bytes().strip_prefix(start.as_slice());
        if suffix.is_some_and(|it| it.len() == 32 && it.iter().all(u8::is_ascii_hexdigit)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The path with a random suffix.
fn name_beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", Uuid::new_v4().simple()));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_replaced_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_a_file_is_opened_and_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [&fifo, Path::new("/dev/null")] {
            let fault = open(path).unwrap_err().to_string();
            assert!(fault.contains("no regular file"), "{fault}");
            assert!(read(path, 10).is_err());
        }
        assert!(open(&folder.path().join("none")).is_err());
        assert!(open(folder.path()).is_ok());
    }

    #[test]
    fn a_trial_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        for (path, can) in [
            ("new", true),
            ("file", true),
            ("a/b/c/new", true),
            ("file/new", false),
            ("file/a/new", false),
            ("new/", false),
            ("a/new/.", false),
            ("a/..", false),
        ] {
            assert_eq!(try_make(&folder.path().join(path)).is_ok(), can, "{path}");
        }
        assert!(try_make(Path::new("/proc/portvakt/new")).is_err());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(try_make(&link.join("new")).is_err());
        assert!(try_make(&link.join("deep/er/new")).is_err());
        assert!(try_make(&link).is_ok(), "a link is replaced");
        assert!(try_make_new(&link).is_err());
        fs::remove_file(&link).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

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
