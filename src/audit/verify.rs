//! Proves that the files of an audit are whole: every line is the one that was written, and none is missing.
//!
//! A cut tail can only be proved by a checkpoint that is kept elsewhere. A file whose deletion stands in the chain of control is not
//! missing. Deliberately not here: whether the records are true.

use super::{
    chain::{self, FIRST, Tail},
    event::{AuditKind, Class},
    files,
};
use crate::hex;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

/// The end of a chain at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The chain: the folder's number and the class, as in `1/payments`.
    pub chain: String,
    /// The number of its last line.
    pub seq: u64,
    /// The hash of this line.
    pub hash: String,
}

impl Checkpoint {
    /// Reads a checkpoint from a line that `audit checkpoint` printed, or from an event; `None` for another line.
    pub fn parse(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line).ok()?;
        let members = line.get("fields").unwrap_or(&line);
        Some(Self {
            chain: members.get("chain")?.as_str()?.to_owned(),
            seq: members.get("seq")?.as_u64()?,
            hash: members.get("hash")?.as_str()?.to_owned(),
        })
    }
}

/// A fault of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, or the folder of a chain.
    pub path: PathBuf,
    /// The fault.
    pub text: String,
}

/// The result of a verification.
#[derive(Debug, Default)]
pub struct Verified {
    /// The number of lines.
    pub lines: u64,
    /// The number of files.
    pub files: usize,
    /// The faults, in the order of the files.
    pub findings: Vec<Finding>,
    /// The end of each chain.
    pub ends: Vec<Checkpoint>,
}

/// The readings of an audit whose gateway deletes old files meanwhile, which it does once an hour.
const READINGS: usize = 3;

/// The last deleted lines of each class in a folder: their numbers and hashes.
type Retired = BTreeMap<String, BTreeMap<u64, String>>;

/// Verifies every chain of an audit against its own hashes and against checkpoints. A gateway may write to the audit meanwhile.
///
/// # Errors
/// A file cannot be read.
pub fn verify(audit: &Path, checkpoints: &[Checkpoint]) -> io::Result<Verified> {
    let mut retired = all_retired(audit)?;
    for _ in 1..READINGS {
        let verified = read_chains(audit, checkpoints, &retired)?;
        let since = all_retired(audit)?;
        if since == retired {
            return Ok(verified);
        }
        retired = since;
    }
    read_chains(audit, checkpoints, &retired)
}

fn all_retired(audit: &Path) -> io::Result<BTreeMap<PathBuf, Retired>> {
    let folders = files::folders(audit)?.into_iter();
    folders
        .map(|folder| Ok((folder.clone(), retired(&folder)?)))
        .collect()
}

fn read_chains(
    audit: &Path,
    checkpoints: &[Checkpoint],
    retired: &BTreeMap<PathBuf, Retired>,
) -> io::Result<Verified> {
    let mut verified = Verified::default();
    let mut known = BTreeSet::new();
    let folders = files::folders(audit)?;
    verified.findings.extend(missing_folder(audit, &folders));
    for folder in folders {
        let number = folder.file_name().unwrap_or_default().to_string_lossy();
        let retired = retired.get(&folder);
        for class in Class::ALL {
            let name = format!("{number}/{}", class.name());
            let own: Vec<_> = checkpoints
                .iter()
                .filter(|checkpoint| checkpoint.chain == name)
                .collect();
            known.insert(name.clone());
            let mut reading = Reading {
                verified: &mut verified,
                checkpoints: by_number(&own),
                tail: None,
                retired: retired
                    .and_then(|retired| retired.get(class.name()).cloned())
                    .unwrap_or_default(),
            };
            reading.read(&folder, class)?;
            let tail = reading.tail.unwrap_or(Tail {
                seq: 0,
                hash: FIRST,
            });
            if tail.seq > 0 {
                verified.ends.push(Checkpoint {
                    chain: name,
                    seq: tail.seq,
                    hash: hex::encode(&tail.hash),
                });
            }
        }
    }
    for missing in checkpoints.iter().filter(|it| !known.contains(&it.chain)) {
        verified.findings.push(Finding {
            path: audit.join(&missing.chain),
            text: format!("the chain of the checkpoint {} is missing", missing.seq),
        });
    }
    if verified.lines == 0 {
        // Nothing that was removed altogether must look whole, and no wrong path either.
        verified.findings.push(Finding {
            path: audit.to_owned(),
            text: "has no record".to_owned(),
        });
    }
    Ok(verified)
}

/// The first missing one of the folders, which are numbered from 1 without gaps.
fn missing_folder(audit: &Path, folders: &[PathBuf]) -> Option<Finding> {
    let names = (1_u32..).map(|number| audit.join(number.to_string()));
    let (missing, _) = names.zip(folders).find(|(name, folder)| name != *folder)?;
    Some(Finding {
        path: missing,
        text: "is missing, and a later folder is not".to_owned(),
    })
}

/// The ends of the chains, without a proof.
///
/// # Errors
/// A file cannot be read.
pub fn checkpoints(audit: &Path) -> io::Result<Vec<Checkpoint>> {
    Ok(verify(audit, &[])?.ends)
}

/// The hashes of checkpoints by the numbers of their lines. A chain that was cut and went on may have two of one line.
fn by_number<'a>(checkpoints: &[&'a Checkpoint]) -> BTreeMap<u64, Vec<&'a str>> {
    let mut hashes = BTreeMap::<u64, Vec<&str>>::new();
    for checkpoint in checkpoints {
        let of_line = hashes.entry(checkpoint.seq).or_default();
        of_line.push(&checkpoint.hash);
    }
    hashes
}

/// The content of a file; `None` if it was deleted since the folder was read.
fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// The last deleted lines that the chain of control names, by class: their numbers and hashes.
fn retired(folder: &Path) -> io::Result<Retired> {
    let mut retired = Retired::new();
    for path in files::of_class(folder, Class::Control)? {
        let content = read_file(&path)?.unwrap_or_default();
        for line in content.split(|byte| *byte == b'\n') {
            if files::text(line, "kind").as_deref() != Some(AuditKind::Retired.name()) {
                continue;
            }
            let (class, hash) = (files::text(line, "class"), files::text(line, "hash"));
            if let (Some(class), Some(last), Some(hash)) =
                (class, files::number(line, "last"), hash)
            {
                retired.entry(class).or_default().insert(last, hash);
            }
        }
    }
    Ok(retired)
}

/// One chain while it is read.
struct Reading<'a> {
    verified: &'a mut Verified,
    /// By number; those that were found are removed.
    checkpoints: BTreeMap<u64, Vec<&'a str>>,
    /// The last line that was read.
    tail: Option<Tail>,
    retired: BTreeMap<u64, String>,
}

impl Reading<'_> {
    fn read(&mut self, folder: &Path, class: Class) -> io::Result<()> {
        let paths = files::of_class(folder, class)?;
        let count = paths.len();
        for (index, path) in paths.iter().enumerate() {
            // A file that is missing wrongly is found by the numbers of the next lines.
            let Some(content) = read_file(path)? else {
                continue;
            };
            self.verified.files = self.verified.files.saturating_add(1);
            let mut lines: Vec<_> = content.split(|byte| *byte == b'\n').collect();
            // After the last newline.
            let rest = lines.pop().unwrap_or_default();
            if !rest.is_empty() && index.saturating_add(1) < count {
                self.fault(path, "its last line is cut off".to_owned());
            }
            let named = files::first_of(path, class).unwrap_or_default();
            let mut first = lines.first().into_iter();
            if first.any(|line| files::number(line, "seq") != Some(named)) {
                let text = format!("its first line is not {named}, which its name says");
                self.fault(path, text);
            }
            for line in lines {
                self.line(path, class, line);
            }
        }
        let end = self.tail.map_or(0, |tail| tail.seq);
        let oldest = self.retired.keys().next_back().copied().unwrap_or(0);
        for seq in std::mem::take(&mut self.checkpoints).into_keys() {
            // A checkpoint of lines that were deleted by their age proves nothing any more.
            if seq > oldest {
                let text = format!("ends at line {end}, and a checkpoint has line {seq}");
                let path = folder.join(class.name());
                self.fault(&path, text);
            }
        }
        if end < oldest && oldest > 0 && self.tail.is_some() {
            self.fault(
                &folder.join(class.name()),
                "ends before deleted lines".to_owned(),
            );
        }
        Ok(())
    }

    fn line(&mut self, path: &Path, class: Class, line: &[u8]) {
        self.verified.lines = self.verified.lines.saturating_add(1);
        let record = files::object(line).unwrap_or_default();
        let text = |name| record.get(name).and_then(Value::as_str);
        let seq = record.get("seq").and_then(Value::as_u64);
        let (Some(seq), Some(prev)) = (seq, text("prev")) else {
            let after = self.tail.map_or(0, |tail| tail.seq);
            return self.fault(path, format!("the line after {after} is no record"));
        };
        let kind = AuditKind::ALL
            .iter()
            .find(|kind| Some(kind.name()) == text("kind"));
        // A failure of the disk is noted in the chain that had it.
        if kind.is_some_and(|kind| kind.class() != class && *kind != AuditKind::Resumed) {
            let text = format!("line {seq} is a record of another chain");
            self.fault(path, text);
        }
        let hash = chain::hash(line);
        let before = match self.tail {
            Some(tail) => Some((tail.seq, hex::encode(&tail.hash))),
            None if seq == 1 => Some((0, hex::encode(&FIRST))),
            None => {
                // A deletion of several files that a crash has cut short, or that is under way, leaves the newer ones.
                let last = seq.saturating_sub(1);
                let deleted = self.retired.range(last..).next();
                deleted.map(|(until, hash)| match *until == last {
                    true => (last, hash.clone()),
                    false => (last, prev.to_owned()),
                })
            }
        };
        match before {
            None => {
                let last = seq.saturating_sub(1);
                self.fault(path, format!("the lines up to {last} are missing, and no record says that they were deleted"));
            }
            Some((last, _)) if seq > last.saturating_add(1) => {
                let from = last.saturating_add(1);
                let to = seq.saturating_sub(1);
                self.fault(path, format!("lines {from} to {to} are missing"));
            }
            Some((last, _)) if seq <= last => {
                let text = format!("line {seq} stands after line {last}: doubled or moved");
                self.fault(path, text);
                // The rest is compared with the line that was expected here.
                return;
            }
            Some((last, expected)) if expected != prev => {
                self.fault(path, format!("line {last} or line {seq} was changed: line {seq} has another hash of the line before it"));
            }
            Some(_) => {}
        }
        let own = hex::encode(&hash);
        let expected = self.checkpoints.remove(&seq).unwrap_or_default();
        if expected.iter().any(|expected| *expected != own) {
            let text = format!("line {seq} is not the line of the checkpoint");
            self.fault(path, text);
        }
        self.tail = Some(Tail { seq, hash });
    }

    fn fault(&mut self, path: &Path, text: String) {
        self.verified.findings.push(Finding {
            path: path.to_owned(),
            text,
        });
    }
}
