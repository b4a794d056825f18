//! One chain: files of lines, each with the SHA-256 of the line before it.
//!
//! Invariants: only the owner of the folder's lock appends; a line counts when it is durable; after a failed write the file ends with the
//! last durable line. Deliberately not here: the meaning of records, and verification.

use super::{
    event::{Class, Members},
    files,
};
use crate::{clock::LogTime, config::AuditSettings, hex, private_file};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

/// The hash before the first line.
pub(super) const FIRST: [u8; 32] = [0; 32];

/// A file has the records of at most a day, so that old records can be deleted by the day.
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The hash of a line, without its newline.
pub(super) fn hash(line: &[u8]) -> [u8; 32] {
    Sha256::digest(line).into()
}

/// The end of a chain: the number and the hash of its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// The number of the last line; 0 before the first.
    pub(super) seq: u64,
    /// Its hash.
    pub(super) hash: [u8; 32],
}

/// A chain that this process may append to.
#[derive(Debug)]
pub(super) struct Chain {
    folder: PathBuf,
    class: Class,
    /// The size from which the file is followed by another one.
    file_size: u64,
    keep: Duration,
    file: Option<OpenFile>,
    tail: Tail,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// The number of bytes up to the last durable line.
    length: u64,
    /// The time of the first record of this file.
    since: LogTime,
    /// Whether there may be bytes after `length`.
    is_torn: bool,
}

/// Files that were deleted because their records are older than they must be kept.
#[derive(Debug)]
pub(super) struct Retired {
    /// The number of the last line that was deleted.
    pub(super) last: u64,
    /// Its hash.
    pub(super) hash: String,
    paths: Vec<PathBuf>,
}

impl Chain {
    /// Opens the chains of every class in a folder.
    pub(super) fn open_all(folder: &Path, settings: &AuditSettings) -> io::Result<Vec<Self>> {
        let chains = Class::ALL.into_iter().map(|class| {
            let keep = match class {
                Class::Payments => settings.keep_payments,
                Class::Psus => settings.keep_psus,
                Class::Refusals => settings.keep_refusals,
                Class::Control => settings.keep_control,
            };
            Self::open(folder, class, settings.file_size, keep)
        });
        chains.collect()
    }

    /// Opens the chain of a class in a folder. A line that a crash cut off is removed: nobody was told that it is durable.
    fn open(folder: &Path, class: Class, file_size: u64, keep: Duration) -> io::Result<Self> {
        let mut chain = Self {
            folder: folder.to_owned(),
            class,
            file_size,
            keep,
            file: None,
            tail: Tail {
                seq: 0,
                hash: FIRST,
            },
        };
        for path in files::of_class(folder, class)?.into_iter().rev() {
            let content = fs::read(&path)?;
            let end = memchr::memrchr(b'\n', &content).map_or(0, |at| at.saturating_add(1));
            let whole = content.get(..end).unwrap_or_default();
            let Some((first, last)) = files::first_and_last(whole) else {
                // The process ended before it wrote the first line.
                fs::remove_file(&path)?;
                continue;
            };
            let (first, seq) = (files::time(first), files::number(last, "seq"));
            let (Some(since), Some(seq)) = (first, seq) else {
                let text = format!("{}: its last line is no record", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            };
            let file = OpenOptions::new().append(true).open(&path)?;
            let length = u64::try_from(end).unwrap_or(u64::MAX);
            file.set_len(length)?;
            file.sync_all()?;
            let hash = hash(last);
            chain.tail = Tail { seq, hash };
            chain.file = Some(OpenFile {
                file,
                length,
                since,
                is_torn: false,
            });
            break;
        }
        Ok(chain)
    }

    /// The end of the chain.
    pub(super) const fn tail(&self) -> Tail {
        self.tail
    }

    /// Appends records, given as their members after `prev`; they are durable on return.
    ///
    /// # Errors
    /// None of them is in the chain.
    pub(super) fn append(&mut self, at: LogTime, records: &[Members]) -> io::Result<()> {
        let mut tail = self.tail;
        let mut text = Vec::new();
        for record in records {
            tail.seq = tail.seq.saturating_add(1);
            let begin = text.len();
            write!(
                text,
                r#"{{"seq":{},"prev":"{}""#,
                tail.seq,
                hex::encode(&tail.hash)
            )?;
            text.extend_from_slice(record.text());
            text.push(b'}');
            tail.hash = hash(text.get(begin..).unwrap_or_default());
            text.push(b'\n');
        }
        let written = self.write(at, &text);
        if written.is_ok() {
            self.tail = tail;
        }
        written
    }

    fn write(&mut self, at: LogTime, text: &[u8]) -> io::Result<()> {
        // First, because a full file is not written again. Durably, because a restart cuts only the newest file.
        if let Some(open) = self.file.as_mut().filter(|open| open.is_torn) {
            open.file.set_len(open.length)?;
            open.file.sync_all()?;
            open.is_torn = false;
        }
        let (file_size, day) = (self.file_size, u64::try_from(DAY.as_millis()).unwrap_or(0));
        let is_full = self.file.as_ref().is_some_and(|open| {
            let age = at
                .unix_milliseconds()
                .saturating_sub(open.since.unix_milliseconds());
            open.length >= file_size || age >= day
        });
        if is_full {
            self.file = None;
        }
        let open = match &mut self.file {
            Some(open) => open,
            None => self.file.insert(self.begin_file(at)?),
        };
        // Until the file is synchronised, the disk may have any part of the text, and after a failed fsync the kernel may call lost
        // pages clean. Then the text is cut off and written again.
        open.is_torn = true;
        open.file.write_all(text)?;
        open.file.sync_data()?;
        open.is_torn = false;
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        open.length = open.length.saturating_add(length);
        Ok(())
    }

    /// Makes the next file, whose name is the number of its first line.
    fn begin_file(&self, at: LogTime) -> io::Result<OpenFile> {
        let path = files::path(&self.folder, self.class, self.tail.seq.saturating_add(1));
        if path.exists() {
            // An attempt whose line was never written.
            fs::remove_file(&path)?;
        }
        private_file::create(&path)?;
        // For appending: after a failed write, the next one begins where the file was cut off.
        let file = OpenOptions::new().append(true).open(&path)?;
        private_file::sync_folder_of(&path)?;
        Ok(OpenFile {
            file,
            length: 0,
            since: at,
            is_torn: false,
        })
    }

    /// The files whose records are all older than they must be kept; the newest file always stays.
    pub(super) fn find_retired(&self, now: LogTime) -> io::Result<Option<Retired>> {
        let keep = u64::try_from(self.keep.as_millis()).unwrap_or(u64::MAX);
        let oldest = now.unix_milliseconds().saturating_sub(keep);
        let paths = files::of_class(&self.folder, self.class)?;
        let mut retired: Option<Retired> = None;
        for pair in paths.windows(2) {
            let [path, next] = pair else { break };
            // A file's records are older than the first of the next file.
            let first = files::first_line(next)?;
            let is_old = files::time(&first).is_some_and(|at| at.unix_milliseconds() < oldest);
            let (Some(seq), Some(prev)) =
                (files::number(&first, "seq"), files::text(&first, "prev"))
            else {
                break;
            };
            if !is_old {
                break;
            }
            let mut paths = retired.map(|retired| retired.paths).unwrap_or_default();
            paths.push(path.clone());
            retired = Some(Retired {
                last: seq.saturating_sub(1),
                hash: prev,
                paths,
            });
        }
        Ok(retired)
    }

    /// The class of its records.
    pub(super) const fn class(&self) -> Class {
        self.class
    }
}

impl Retired {
    /// Deletes the files, after the record about them is durable.
    pub(super) fn delete(&self) -> io::Result<()> {
        self.paths.iter().try_for_each(fs::remove_file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::verify;

    /// The disk took a part of a batch and refused the rest, and the next record comes when the file is a day old.
    #[test]
    fn a_torn_file_is_cut_off_before_the_next_one() {
        let audit = tempfile::tempdir().unwrap();
        let folder = audit.path().join("1");
        fs::create_dir(&folder).unwrap();
        let mut chain = Chain::open(&folder, Class::Psus, u64::MAX, DAY).unwrap();
        let append = |chain: &mut Chain, day: u64| {
            let at = LogTime::from_unix_milliseconds(1_767_225_600_000 + day * 86_400_000);
            let mut record = Members::default();
            record.add("time", at.to_string());
            record.add("kind", "bound");
            chain.append(at, &[record]).unwrap();
        };
        append(&mut chain, 0);
        let open = chain.file.as_mut().unwrap();
        open.file.write_all(b"{\"seq\":2}\n{\"seq\":3,").unwrap();
        open.is_torn = true;
        append(&mut chain, 1);
        append(&mut chain, 1);
        let verified = verify(audit.path(), &[]).unwrap();
        assert_eq!(verified.findings, []);
        assert_eq!((verified.lines, verified.files), (3, 2));
    }
}
