//! The files of a chain: their names, the lock of their folder, and members of their lines.

use super::event::Class;
use crate::{clock::LogTime, private_file};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

const ENDING: &str = ".jsonl";

/// The file in a folder of chains that its process has locked.
const LOCK: &str = "lock";

/// Makes and locks a folder of chains; `WouldBlock` if another process has it.
pub(super) fn lock(folder: &Path) -> io::Result<File> {
    let path = folder.join(LOCK);
    private_file::make_folder_of(&path)?;
    let lock = OpenOptions::new().create(true).append(true).open(path)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    Ok(lock)
}

/// The path of the file whose first line has this number. Names sort by number.
pub(super) fn path(folder: &Path, class: Class, first: u64) -> PathBuf {
    folder.join(format!("{}-{first:020}{ENDING}", class.name()))
}

/// The number in the name of a file.
pub(super) fn first_of(path: &Path, class: Class) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?;
    let number = name.strip_prefix(class.name())?.strip_prefix('-')?;
    number.parse().ok()
}

/// The files of a class in a folder, the oldest first.
pub(super) fn of_class(folder: &Path, class: Class) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if first_of(&path, class).is_some() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The folders of chains, by their numbers.
pub(super) fn folders(audit: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(audit)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(number) = name.and_then(|name| name.parse::<u32>().ok()) {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The first and the last of whole lines, without their newlines.
pub(super) fn first_and_last(whole: &[u8]) -> Option<(&[u8], &[u8])> {
    let lines = whole.strip_suffix(b"\n")?;
    let first = lines.split(|byte| *byte == b'\n').next()?;
    let last = lines.rsplit(|byte| *byte == b'\n').next()?;
    Some((first, last))
}

/// The first line of a file, without its newline.
pub(super) fn first_line(path: &Path) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?).read_until(b'\n', &mut line)?;
    line.pop_if(|byte| *byte == b'\n');
    Ok(line)
}

/// A line as an object.
pub(super) fn object(line: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(line).ok()
}

/// A member that is a whole number.
pub(super) fn number(line: &[u8], name: &str) -> Option<u64> {
    object(line)?.get(name)?.as_u64()
}

/// A member that is a text.
pub(super) fn text(line: &[u8], name: &str) -> Option<String> {
    Some(object(line)?.get(name)?.as_str()?.to_owned())
}

/// The member `time`.
pub(super) fn time(line: &[u8]) -> Option<LogTime> {
    let time: jiff::Timestamp = text(line, "time")?.parse().ok()?;
    let milliseconds = u64::try_from(time.as_millisecond()).ok()?;
    Some(LogTime::from_unix_milliseconds(milliseconds))
}
