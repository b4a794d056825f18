//! Copies of answers on disk, which a restart reads (CRT-6).
//!
//! A copy has the bytes of the fetched answer, which are public and not trusted: a copy that is read is verified like a fetched answer
//! (signature, issuer, times), and the next fetch replaces it. Invariants: a file is complete or absent; there are at most
//! [`MOST_FILES`] files with [`MOST_BYTES`] in sum; only files with names of this module are removed. Deliberately not here: the thread
//! that does this, because a disk may hang.

use super::{SourceFault, fetch::MOST_BYTES as LARGEST};
use portvakt_base::private_file;
use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

/// The maximum number of files: an OCSP answer for each of ten thousand TPPs, or half of the sources in memory.
const MOST_FILES: usize = 10_000;

/// The maximum size of all files, in bytes: an OCSP answer has 2 KiB, and there are some dozen CRLs of at most 5 MiB.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// The length of a file name without its suffix: a SHA-256 in hexadecimal.
const DIGITS: usize = 64;

/// The suffix of an incomplete file.
const UNFINISHED: &str = "part";

/// The folder of the copies.
#[derive(Debug)]
pub(super) struct CopyFolder {
    folder: PathBuf,
    most_files: usize,
    most_bytes: u64,
}

/// The file name and the bytes of a copy.
#[derive(Debug)]
pub(super) struct DiskCopy {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// The number and the size of the copies in a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FolderUsage {
    files: usize,
    bytes: u64,
}

impl CopyFolder {
    /// Copies in this folder. The first write creates the folder.
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            most_files: MOST_FILES,
            most_bytes: MOST_BYTES,
        }
    }

    /// The copy of this name, if there is one.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.folder.join(name);
        match read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a copy of revocation data cannot be read");
                None
            }
        }
    }

    /// Removes a copy that is not valid, and logs the reason.
    pub(super) fn discard(&self, name: &str, why: SourceFault) {
        let path = self.folder.join(name);
        tracing::warn!(path = %path.display(), fault = %why, "a copy of revocation data does not count and is removed");
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "it cannot be removed");
        }
    }

    /// Writes a copy in place of the one before. If there are too many copies, the oldest are removed.
    pub(super) fn write(&self, copy: &DiskCopy, held: &mut Option<FolderUsage>) -> io::Result<()> {
        let path = self.folder.join(&copy.name);
        private_file::make_folder_of(&path)?;
        let held = match held {
            Some(held) => held,
            None => held.insert(self.sweep()?),
        };
        let before = fs::metadata(&path).map(|found| found.len()).ok();
        replace(&path, &copy.bytes)?;
        let length = u64::try_from(copy.bytes.len()).unwrap_or(u64::MAX);
        held.bytes = held
            .bytes
            .saturating_sub(before.unwrap_or(0))
            .saturating_add(length);
        if before.is_none() {
            held.files = held.files.saturating_add(1);
        }
        if held.files > self.most_files || held.bytes > self.most_bytes {
            *held = self.sweep()?;
        }
        Ok(())
    }

    /// Counts the copies and removes incomplete files. If there are too many copies, removes the oldest down to seven eighths of the
    /// maximum, so that not every write sweeps.
    pub(super) fn sweep(&self) -> io::Result<FolderUsage> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            match kind(&entry.file_name()) {
                Some(CopyKind::Whole) => {
                    let metadata = entry.metadata()?;
                    let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    found.push((written, metadata.len(), entry.path()));
                }
                Some(CopyKind::Unfinished) => fs::remove_file(entry.path())?,
                None => {}
            }
        }
        found.sort_unstable();
        let mut held = FolderUsage {
            files: found.len(),
            bytes: found
                .iter()
                .fold(0, |sum, (_, length, _)| sum.saturating_add(*length)),
        };
        let is_too_much = held.files > self.most_files || held.bytes > self.most_bytes;
        let (files, bytes) = (self.most_files / 8 * 7, self.most_bytes / 8 * 7);
        for (_, length, path) in found.iter().filter(|_| is_too_much) {
            if held.files <= files && held.bytes <= bytes {
                break;
            }
            fs::remove_file(path)?;
            held.files = held.files.saturating_sub(1);
            held.bytes = held.bytes.saturating_sub(*length);
        }
        Ok(held)
    }
}

/// The kind of a file by its name.
enum CopyKind {
    Whole,
    Unfinished,
}

fn kind(name: &OsStr) -> Option<CopyKind> {
    let mut parts = name.to_str()?.split('.');
    let digits = parts.next()?;
    let is_digits = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != DIGITS || !digits.bytes().all(is_digits) {
        return None;
    }
    match (parts.next()?, parts.next(), parts.next(), parts.next()) {
        ("crl" | "ocsp", None, None, None) => Some(CopyKind::Whole),
        ("crl" | "ocsp", Some(_), Some(UNFINISHED), None) => Some(CopyKind::Unfinished),
        _ => None,
    }
}

/// Reads at most the length of a fetched answer: a longer file is cut off and so fails verification.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(LARGEST).unwrap_or(u64::MAX);
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces a file atomically. There is no fsync: verification detects a file damaged by a power loss, and an fsync would delay the state
/// on the same disk.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{:x}-{number:x}.{UNFINISHED}", std::process::id()));
    let beside = PathBuf::from(name);
    // A killed process with the same id may have left a file of this name.
    let _ = fs::remove_file(&beside);
    let written = private_file::create(&beside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(number: u8, length: usize) -> DiskCopy {
        DiskCopy {
            name: format!("{}.crl", format!("{number:02x}").repeat(32)),
            bytes: vec![number; length],
        }
    }

    fn age(copies: &CopyFolder, name: &str, seconds: u64) {
        let file = File::options()
            .write(true)
            .open(copies.folder.join(name))
            .unwrap();
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        file.set_modified(at).unwrap();
    }

    #[test]
    fn the_oldest_give_way() {
        let folder = tempfile::tempdir().unwrap();
        let mut copies = CopyFolder::new(folder.path().join("a/b"));
        (copies.most_files, copies.most_bytes) = (8, 1_000);
        assert!(copies.read("x").is_none());
        let mut held = None;
        for number in 0..8 {
            copies.write(&copy(number, 10), &mut held).unwrap();
            age(&copies, &copy(number, 0).name, 1_000 + u64::from(number));
        }
        let expected = Some(FolderUsage {
            files: 8,
            bytes: 80,
        });
        assert_eq!(held, expected);
        copies.write(&copy(3, 20), &mut held).unwrap();
        let expected = Some(FolderUsage {
            files: 8,
            bytes: 90,
        });
        assert_eq!(held, expected);
        assert_eq!(copies.read(&copy(3, 0).name).unwrap(), [3; 20]);
        // One more than there may be: seven are left, and the two that are gone are the oldest.
        copies.write(&copy(8, 10), &mut held).unwrap();
        let expected = Some(FolderUsage {
            files: 7,
            bytes: 80,
        });
        assert_eq!(held, expected);
        let is_there = |number| copies.read(&copy(number, 0).name).is_some();
        assert_eq!(
            [0, 1, 2, 3, 8].map(is_there),
            [false, false, true, true, true]
        );
        // By bytes.
        copies.write(&copy(9, 950), &mut held).unwrap();
        assert!(held.is_some_and(|held| held.bytes <= 1_000 && held.files < 7));
    }

    #[test]
    fn what_is_not_ours_stays() {
        let folder = tempfile::tempdir().unwrap();
        let copies = CopyFolder::new(folder.path().to_owned());
        let mut held = None;
        copies.write(&copy(1, 10), &mut held).unwrap();
        let unfinished = format!("{}.ocsp.1f-0.part", "ab".repeat(32));
        let others = ["portvakt.db", "list.crl", "0123.crl", "notes.txt"];
        for name in others.iter().copied().chain([unfinished.as_str()]) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        assert_eq!(
            copies.sweep().unwrap(),
            FolderUsage {
                files: 1,
                bytes: 10
            }
        );
        assert!(!folder.path().join(&unfinished).exists());
        assert!(others.iter().all(|name| folder.path().join(name).exists()));
        copies.discard(&copy(1, 0).name, SourceFault::Invalid("it is a test"));
        assert_eq!(copies.sweep().unwrap(), FolderUsage::default());
    }
}
