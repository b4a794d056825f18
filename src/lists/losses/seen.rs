//! The certificates that gateways have seen, from their files.
//!
//! Invariants: no file is believed that others than its owner can write, nor a day that lies ahead; a line, or a certificate of a line,
//! that cannot be read is named, and hides no other. Deliberately not here: what a bundle says of the certificates, and the way to a file.

use crate::{
    certificate::{Certificate, decode_base64},
    fault::Refusal,
};
use openssl::x509::X509;
use portvakt_base::{clock::Timestamp, hex, private_file, way::GROUP_AND_OTHERS_WRITE};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::Metadata,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The longest file of certificates, in bytes. A gateway writes at most 10 000.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The file that is expected.
const EXPECTED: &str = "name the file seen-certificates.jsonl in the gateway's folder of state";

/// For how many days a certificate counts after it was seen.
const DAYS: u64 = 30;

/// How far the clock of a gateway may be ahead of this one, in seconds.
const MAX_AHEAD: u64 = 15 * 60;

/// How many lines that cannot be read are named; all are counted.
const MAX_NAMED: usize = 100;

/// The most characters of a TPP's name that are shown of a line that cannot be read.
const MAX_NAME: usize = 100;

/// A line of the file that a gateway writes. Where the rest is not as it should be, it still has a TPP.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    tpp: String,
    #[serde(default)]
    last_seen: String,
    #[serde(default)]
    certificate: String,
    #[serde(default)]
    intermediates: Vec<String>,
}

/// A certificate by which a gateway has verified a signature.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) tpp: String,
    pub(super) last_seen: jiff::civil::Date,
    pub(super) certificate: Certificate,
    /// What the TPP sent with it: DER that OpenSSL reads, as the gateway does.
    pub(super) pool: Vec<Vec<u8>>,
    /// The number of certificates that the TPP sent with it and that cannot be read.
    pub(super) damaged: usize,
}

/// The certificates of one or more gateways, each once.
#[derive(Clone, Debug, Default)]
pub struct SeenCertificates {
    /// By the SHA-256 of the certificate.
    pub(super) found: BTreeMap<[u8; 32], Seen>,
    /// Those whose last day lies ahead, which is not believed.
    pub(super) ahead: BTreeMap<[u8; 32], Seen>,
    /// The files that were believed, one line each.
    files: Vec<String>,
    /// The lines that are no certificate.
    pub(super) damaged: DamagedLines,
}

/// Lines of files that are no certificate.
#[derive(Clone, Debug, Default)]
pub(super) struct DamagedLines {
    /// The number of all.
    pub(super) count: usize,
    /// The first of them: file, number of the line, and TPP if the line has one.
    pub(super) named: Vec<String>,
}

impl SeenCertificates {
    /// Reads the files of gateways at a time.
    ///
    /// # Errors
    /// One cannot be read, is longer than 64 MiB, others than its owner can write it, or it has lines, none of which is a certificate.
    pub fn read(paths: &[PathBuf], now: Timestamp) -> Result<Self, Refusal> {
        let mut all = Self::default();
        for path in paths {
            all.add_file(path, now)?;
        }
        Ok(all)
    }

    fn add_file(&mut self, path: &Path, now: Timestamp) -> Result<(), Refusal> {
        let (found, bytes) = read_file(path).map_err(|error| {
            Refusal::new(format_args!(
                "{}: it cannot be read: {error}; {EXPECTED}, and run as a user who may read it",
                path.display()
            ))
        })?;
        judge_mode(path, &found)?;
        let (mut certificates, mut damaged, mut has_ahead) = (BTreeSet::new(), 0_usize, false);
        let mut newest: Option<jiff::civil::Date> = None;
        for (number, line) in (1_usize..).zip(bytes.split(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match Seen::from_line(line) {
                Ok(seen) if seen.is_ahead(now) => {
                    has_ahead = true;
                    add(&mut self.ahead, seen);
                }
                Ok(seen) => {
                    certificates.insert(seen.certificate.sha256());
                    newest = newest.max(Some(seen.last_seen));
                    add(&mut self.found, seen);
                }
                Err(tpp) => {
                    damaged = damaged.saturating_add(1);
                    self.damaged.add(path, number, tpp);
                }
            }
        }
        self.files
            .push(file_line(path, &found, certificates.len(), newest));
        // A gateway that has seen none writes an empty file.
        if damaged > 0 && certificates.is_empty() && !has_ahead {
            return Err(Refusal::new(format_args!(
                "{}: no line of it is a certificate that a gateway has seen; {EXPECTED}",
                path.display()
            )));
        }
        Ok(())
    }

    /// The files that were believed, one line each: whose they are, how many certificates they have, and of which day the newest is.
    pub fn files(&self) -> impl Iterator<Item = String> {
        self.files.iter().cloned()
    }
}

/// Adds a certificate. Of one that several gateways have seen, the latest day counts, and what came with it to any of them.
fn add(all: &mut BTreeMap<[u8; 32], Seen>, mut seen: Seen) {
    let digest = seen.certificate.sha256();
    if let Some(known) = all.remove(&digest) {
        let (mut later, earlier) = match known.last_seen < seen.last_seen {
            true => (seen, known),
            false => (known, seen),
        };
        for one in earlier.pool {
            if !later.pool.contains(&one) {
                later.pool.push(one);
            }
        }
        later.damaged = later.damaged.max(earlier.damaged);
        seen = later;
    }
    all.insert(digest, seen);
}

impl DamagedLines {
    fn add(&mut self, path: &Path, number: usize, tpp: Option<String>) {
        self.count = self.count.saturating_add(1);
        if self.named.len() < MAX_NAMED {
            let tpp = tpp.map(|tpp| tpp.chars().take(MAX_NAME).collect::<String>());
            let tpp = tpp.map(|tpp| format!(", of {tpp}")).unwrap_or_default();
            let line = format!("{}, line {number}{tpp}", path.display());
            self.named.push(line);
        }
    }
}

fn read_file(path: &Path) -> io::Result<(Metadata, Vec<u8>)> {
    let file = private_file::open(path)?;
    let found = file.metadata()?;
    let mut bytes = Vec::new();
    let most = MAX_FILE_BYTES.saturating_add(1);
    let read = file.take(most).read_to_end(&mut bytes)?;
    // What lies beyond would be left out without a word.
    if u64::try_from(read).is_ok_and(|read| read < most) {
        return Ok((found, bytes));
    }
    Err(io::Error::other("it is longer than 64 MiB"))
}

/// Refuses a file that others than its owner can write, as the gateway that keeps it does: they could leave out the TPPs that would lose
/// trust.
fn judge_mode(path: &Path, found: &Metadata) -> Result<(), Refusal> {
    let mode = found.mode() & 0o7777;
    if mode & GROUP_AND_OTHERS_WRITE == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(Refusal::new(format_args!(
        "{path}: its mode {mode:04o} lets others than its owner say which certificates were seen, so it is not believed; take it from the gateway again, and chmod go-w it"
    )))
}

/// The line about a file that is believed.
fn file_line(
    path: &Path,
    found: &Metadata,
    count: usize,
    newest: Option<jiff::civil::Date>,
) -> String {
    let newest = newest.map(|day| format!(", the newest of {day}"));
    format!(
        "believed: {} of the user with uid {}: {count} certificates{}",
        path.display(),
        found.uid(),
        newest.unwrap_or_default()
    )
}

impl Seen {
    /// Reads a line; the error is the TPP of a line that cannot be read, if it has one.
    fn from_line(line: &[u8]) -> Result<Self, Option<String>> {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            return Err(None);
        };
        let certificate = Certificate::from_base64(&line.certificate).ok();
        let day = line.last_seen.parse::<jiff::civil::Date>().ok();
        let day = day.filter(|day| Timestamp::midnight(*day).is_some());
        let Some((certificate, last_seen)) = certificate.zip(day) else {
            return Err(Some(line.tpp));
        };
        let pool = line.intermediates.iter();
        let pool = pool.filter_map(|one| decode_base64(one).ok());
        let pool: Vec<_> = pool.filter(|der| X509::from_der(der).is_ok()).collect();
        Ok(Self {
            damaged: line.intermediates.len().saturating_sub(pool.len()),
            tpp: line.tpp,
            last_seen,
            certificate,
            pool,
        })
    }

    /// Whether its last day has not begun, even by a clock that is a little ahead of this one.
    fn is_ahead(&self, now: Timestamp) -> bool {
        let begins = Timestamp::midnight(self.last_seen);
        begins.is_none_or(|begins| begins.unix() > now.unix().saturating_add(MAX_AHEAD))
    }

    /// Whether it was seen within 30 days.
    pub(super) fn is_recent(&self, now: Timestamp) -> bool {
        let seen = Timestamp::midnight(self.last_seen);
        let last = seen.map(|seen| (seen.unix() / 86_400).saturating_add(DAYS));
        last.is_some_and(|last| last >= now.unix() / 86_400)
    }

    /// The certificate for people: its TPP, its serial number, its issuer and its last day.
    pub(super) fn line(&self) -> String {
        let (issuer, serial) = match self.certificate.parse() {
            Ok(it) => (it.issuer().to_string(), hex::encode(it.raw_serial())),
            Err(fault) => (fault.to_string(), String::new()),
        };
        format!(
            "{}: certificate {} of {issuer}, last seen {}",
            self.tpp,
            serial.to_ascii_uppercase().trim_start_matches("00"),
            self.last_seen
        )
    }
}
