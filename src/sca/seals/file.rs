//! The file that counts seals: one line for each key, its id, a space and a number.
//!
//! Deliberately not here: when a number increases, and by how much.

use crate::{private_file, sca::key_id::parse_id};
use std::{fs::File, io, path::Path};

/// The maximum size of a file in bytes: there are two keys per year, and a line has at most 20 bytes.
const MAX_FILE: usize = 64 * 1024;

/// The reason why a file of counts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SealsFault {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] private_file::FileFault),
    /// The file cannot be written.
    #[error("{0}")]
    Written(#[from] io::Error),
    /// A line is not a count.
    #[error(
        "line {0} is no count of seals; expected eight hexadecimal digits in lower case, a space, and a number"
    )]
    Line(usize),
    /// The file is not text, or is too long.
    #[error("it is no file of counts: it is no text, or longer than {MAX_FILE} bytes")]
    NotCounts,
}

/// Waits until this process alone reads and writes the file. The lock is on the folder, because the file is replaced; dropping the returned
/// file releases the lock.
pub(super) fn take_turn(path: &Path) -> io::Result<File> {
    let folder = File::open(private_file::folder_of(path))?;
    folder.lock()?;
    Ok(folder)
}

/// Checks that a file of counts can be used, or does not exist yet.
///
/// # Errors
/// The reason why the file cannot be used.
pub fn check(path: &Path) -> Result<(), SealsFault> {
    read(path).map(drop)
}

/// The counts in a file; empty if there is no file.
pub(in crate::sca) fn read(path: &Path) -> Result<Vec<(u32, u64)>, SealsFault> {
    let bytes = match private_file::read(path, MAX_FILE) {
        Err(fault) if fault.is_missing() => return Ok(Vec::new()),
        read => read?,
    };
    let text = String::from_utf8(bytes).ok();
    let text = text.filter(|text| text.len() <= MAX_FILE);
    let text = text.ok_or(SealsFault::NotCounts)?;
    let lines = text.lines().zip(1..);
    lines
        .map(|(line, number)| parse(line).ok_or(SealsFault::Line(number)))
        .collect()
}

fn parse(line: &str) -> Option<(u32, u64)> {
    let (id, count) = line.split_once(' ')?;
    let id = parse_id(id)?;
    let is_count = count.bytes().all(|byte| byte.is_ascii_digit());
    Some((id, count.parse().ok().filter(|_| is_count)?))
}

/// The text of a file with these counts.
pub(super) fn text_of(counts: &[(u32, u64)]) -> String {
    let lines = counts.iter();
    lines
        .map(|(id, count)| format!("{id:08x} {count}\n"))
        .collect()
}

/// The highest count of a key.
pub(super) fn count_of(counts: &[(u32, u64)], id: u32) -> u64 {
    let own = counts.iter().filter(|(other, _)| *other == id);
    own.map(|(_, count)| *count).max().unwrap_or(0)
}
