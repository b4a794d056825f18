//! The file: a JSON object on each line, for `portvakt-lists show --seen`.

use super::record::{SeenCertificate, SeenRecord, day_of};
use crate::{
    clock::Timestamp, interface::TppId, private_file, trust::decode::PresentedCertificates,
    way::GROUP_AND_OTHERS_WRITE,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, ErrorKind, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The name of the file.
const FILE: &str = "seen-certificates.jsonl";

/// The longest file that is read, in bytes: the most bytes of certificates in base64, and the rest of each line.
const MOST_READ: u64 = 64 * 1024 * 1024;

/// The file that stands beside the file of the state.
pub fn file_beside(state: &Path) -> PathBuf {
    state.with_file_name(FILE)
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    /// The identity of the TPP.
    tpp: String,
    /// The last day on which a request was signed by the certificate, in UTC.
    last_seen: String,
    /// The certificate, DER in base64.
    certificate: String,
    /// Those that the TPP sent with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    intermediates: Vec<String>,
}

/// What a file has.
#[derive(Debug, Default)]
pub(super) struct FoundCertificates {
    pub(super) certificates: Vec<SeenCertificate>,
    /// The number of lines that cannot be read, or of which a certificate beside the TPP's cannot.
    pub(super) damaged: usize,
}

/// Reads a file, whoever else may read it: it has no secret. There is nothing if there is no file.
///
/// # Errors
/// The file cannot be read, or group or others may write it.
pub(super) fn read(path: &Path) -> io::Result<FoundCertificates> {
    let mut bytes = Vec::new();
    let read = open(path).and_then(|file| file.take(MOST_READ).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(FoundCertificates::default());
        }
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let mut found = FoundCertificates::default();
    let lines = bytes.split(|byte| *byte == b'\n');
    for line in lines.filter(|line| !line.is_empty()) {
        match read_line(line) {
            Some((seen, is_whole)) => {
                found.certificates.push(seen);
                found.damaged = found.damaged.saturating_add(usize::from(!is_whole));
            }
            None => found.damaged = found.damaged.saturating_add(1),
        }
    }
    Ok(found)
}

/// Opens a file that only its owner may write: another user could name TPPs that never called in it, and leave out those that did.
fn open(path: &Path) -> io::Result<File> {
    let file = private_file::open(path)?;
    let mode = file.metadata()?.mode() & 0o7777;
    if mode & GROUP_AND_OTHERS_WRITE == 0 {
        return Ok(file);
    }
    let text = format!("its mode {mode:04o} lets other users write it, so it is not believed");
    Err(io::Error::new(ErrorKind::PermissionDenied, text))
}

/// The certificate of a line, and whether all that came with it can be read: one that cannot is left out, and does not hide the TPP.
fn read_line(line: &[u8]) -> Option<(SeenCertificate, bool)> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let day = line.last_seen.parse::<jiff::civil::Date>().ok()?;
    let pool = line.intermediates.iter();
    let pool: Vec<_> = pool.filter_map(|one| STANDARD.decode(one).ok()).collect();
    let is_whole = pool.len() == line.intermediates.len();
    let certificates = PresentedCertificates {
        leaf: STANDARD.decode(&line.certificate).ok()?,
        pool,
    };
    let seen = SeenCertificate {
        tpp: TppId::parse(&line.tpp)?,
        day: day_of(Timestamp::midnight(day)?),
        certificates: Arc::new(certificates),
    };
    Some((seen, is_whole))
}

/// Replaces a file.
///
/// # Errors
/// The file cannot be written; the old one stays.
pub(super) fn write(path: &Path, record: &SeenRecord) -> io::Result<()> {
    let mut text = String::new();
    for seen in record.all() {
        let PresentedCertificates { leaf, pool } = &*seen.certificates;
        let line = Line {
            tpp: seen.tpp.as_str().to_owned(),
            last_seen: day_text(seen.day),
            certificate: STANDARD.encode(leaf),
            intermediates: pool.iter().map(|one| STANDARD.encode(one)).collect(),
        };
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    private_file::make_folder_of(path)?;
    private_file::replace(path, text.as_bytes())
}

/// A day as `2026-01-31`.
fn day_text(day: u64) -> String {
    let mut text = Timestamp::from_unix(day.saturating_mul(86_400)).to_string();
    if let Some(end) = text.find('T') {
        text.truncate(end);
    }
    text
}
