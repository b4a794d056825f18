//! The TPPs that would lose trust by a bundle: by the certificates that gateways have seen (`--seen`), and by two bundles.
//!
//! Invariants: a certificate loses trust if it is trusted by the bundle before at the time, and not by the new one; no file is believed that
//! others than its owner can write. Deliberately not here: the operator's own anchors (`trust.anchors`), which no bundle changes, and the way
//! to a file.

use crate::{
    bundle::{AnchorEntry, BundleDocument, BundleTrust, Standing, describe},
    certificate::{Certificate, decode_base64},
    fault::Refusal,
};
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

/// A line of the file that a gateway writes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    tpp: String,
    last_seen: String,
    certificate: String,
    #[serde(default)]
    intermediates: Vec<String>,
}

/// A certificate by which a gateway has verified a signature.
#[derive(Clone, Debug)]
struct Seen {
    tpp: String,
    last_seen: jiff::civil::Date,
    certificate: Certificate,
    /// What the TPP sent with it, DER.
    pool: Vec<Vec<u8>>,
}

/// The certificates of one or more gateways, each once.
#[derive(Clone, Debug, Default)]
pub struct SeenCertificates {
    found: BTreeMap<[u8; 32], Seen>,
    /// The files that were believed, one line each.
    files: Vec<String>,
    /// The number of lines that are no certificate.
    damaged: usize,
}

impl SeenCertificates {
    /// Reads the files of gateways.
    ///
    /// # Errors
    /// One cannot be read, others than its owner can write it, or it has lines, none of which is a certificate.
    pub fn read(paths: &[PathBuf]) -> Result<Self, Refusal> {
        let mut all = Self::default();
        for path in paths {
            all.add_file(path)?;
        }
        Ok(all)
    }

    fn add_file(&mut self, path: &Path) -> Result<(), Refusal> {
        let (found, bytes) = read_file(path).map_err(|error| {
            Refusal::new(format_args!(
                "{}: it cannot be read: {error}; {EXPECTED}, and run as a user who may read it",
                path.display()
            ))
        })?;
        judge_mode(path, &found)?;
        let lines = bytes.split(|byte| *byte == b'\n');
        let (mut count, mut damaged) = (0_usize, 0_usize);
        let mut newest: Option<jiff::civil::Date> = None;
        for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
            match Seen::from_line(line) {
                Some(seen) => {
                    count = count.saturating_add(1);
                    newest = newest.max(Some(seen.last_seen));
                    self.add(seen);
                }
                None => damaged = damaged.saturating_add(1),
            }
        }
        self.files.push(file_line(path, &found, count, newest));
        // A gateway that has seen none writes an empty file.
        if damaged > 0 && count == 0 {
            return Err(Refusal::new(format_args!(
                "{}: no line of it is a certificate that a gateway has seen; {EXPECTED}",
                path.display()
            )));
        }
        self.damaged = self.damaged.saturating_add(damaged);
        Ok(())
    }

    /// The files that were believed, one line each: whose they are, how many certificates they have, and of which day the newest is.
    pub fn files(&self) -> impl Iterator<Item = String> {
        self.files.iter().cloned()
    }

    /// Of a certificate that several gateways have seen, the latest counts.
    fn add(&mut self, seen: Seen) {
        let known = self.found.entry(seen.certificate.sha256());
        let known = known.or_insert_with(|| seen.clone());
        if known.last_seen < seen.last_seen {
            *known = seen;
        }
    }
}

fn read_file(path: &Path) -> io::Result<(Metadata, Vec<u8>)> {
    let file = private_file::open(path)?;
    let found = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok((found, bytes))
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
    fn from_line(line: &[u8]) -> Option<Self> {
        let line: Line = serde_json::from_slice(line).ok()?;
        let pool = line.intermediates.iter();
        Some(Self {
            tpp: line.tpp,
            last_seen: line.last_seen.parse().ok()?,
            certificate: Certificate::from_base64(&line.certificate).ok()?,
            pool: pool
                .map(|one| decode_base64(one).ok())
                .collect::<Option<_>>()?,
        })
    }

    fn is_recent(&self, now: Timestamp) -> bool {
        let seen = Timestamp::midnight(self.last_seen);
        let last = seen.map(|seen| (seen.unix() / 86_400).saturating_add(DAYS));
        last.is_some_and(|last| last >= now.unix() / 86_400)
    }
}

/// A bundle with its anchors.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'b> {
    /// The description.
    pub bundle: &'b BundleDocument,
    /// The anchors.
    pub trust: &'b BundleTrust,
}

/// What becomes of the certificates.
#[derive(Debug, Default)]
pub struct Losses {
    /// One line for each certificate that would lose trust, by TPP.
    lost: Vec<String>,
    /// One line for each that neither bundle calls qualified, though the new one has its CA, by TPP.
    unqualified: Vec<String>,
    /// One line for each that is of no type that may sign, by TPP.
    wrong_type: Vec<String>,
    /// The TPPs of all that were judged.
    tpps: BTreeSet<String>,
    judged: usize,
    trusted: usize,
    not_valid: usize,
    neither: usize,
    damaged: usize,
}

impl Losses {
    /// Judges the certificates that were seen within 30 days by a bundle and by the one before it.
    pub fn find(
        seen: &SeenCertificates,
        before: Option<Judge<'_>>,
        after: Judge<'_>,
        now: Timestamp,
    ) -> Self {
        let mut losses = Self {
            damaged: seen.damaged,
            ..Self::default()
        };
        for seen in seen.found.values().filter(|seen| seen.is_recent(now)) {
            losses.judged = losses.judged.saturating_add(1);
            losses.tpps.insert(seen.tpp.clone());
            let count = match judge(seen, before, after, now) {
                Outcome::Lost(anchor) => {
                    losses.lost.push(lost_line(seen, anchor));
                    continue;
                }
                Outcome::Unqualified(why) => {
                    let line = format!("{}: {why}", lost_line(seen, None));
                    losses.unqualified.push(line);
                    continue;
                }
                Outcome::WrongType(why) => {
                    let line = format!("{}: {why}", lost_line(seen, None));
                    losses.wrong_type.push(line);
                    continue;
                }
                Outcome::Trusted => &mut losses.trusted,
                Outcome::NotValid => &mut losses.not_valid,
                Outcome::Neither => &mut losses.neither,
            };
            *count = count.saturating_add(1);
        }
        losses.lost.sort();
        losses.unqualified.sort();
        losses.wrong_type.sort();
        losses
    }

    /// The lines to show.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "TPPs that would lose trust, of {} seen within 30 days:",
            self.tpps.len()
        )];
        match self.lost.is_empty() {
            true => lines.push("  none".to_owned()),
            false => lines.extend(self.lost.iter().map(|line| format!("  {line}"))),
        }
        lines.push(format!(
            "certificates judged: {}; {} would lose trust, {} are trusted, {} are trusted by neither bundle, {} have ended or have not begun",
            self.judged,
            self.lost.len(),
            self.trusted,
            self.neither
                .saturating_add(self.unqualified.len())
                .saturating_add(self.wrong_type.len()),
            self.not_valid
        ));
        if !self.wrong_type.is_empty() {
            let text =
                "refused by both bundles, since their type may not sign (--certificate-types):";
            lines.push(text.to_owned());
            lines.extend(self.wrong_type.iter().map(|line| format!("  {line}")));
        }
        if !self.unqualified.is_empty() {
            let text = "refused by both bundles, unless an anchor of your own (trust.anchors) has the CA itself:";
            lines.push(text.to_owned());
            lines.extend(self.unqualified.iter().map(|line| format!("  {line}")));
        }
        if self.neither > 0 {
            let text = "trusted by neither: by an anchor of your own (trust.anchors), or below an intermediate that is not at hand (--intermediates)";
            lines.push(text.to_owned());
        }
        if self.damaged > 0 {
            let text = format!(
                "lines of the files that are no certificate: {}",
                self.damaged
            );
            lines.push(text);
        }
        lines
    }
}

/// What becomes of one certificate.
enum Outcome<'b> {
    /// It loses the trust of this anchor, if the bundle before has it.
    Lost(Option<&'b AnchorEntry>),
    Trusted,
    NotValid,
    /// Its CA is listed in the new bundle, and vouches for it in neither, for this reason.
    Unqualified(&'static str),
    /// It is of no type that may sign, for this reason.
    WrongType(&'static str),
    Neither,
}

fn judge<'b>(
    seen: &Seen,
    before: Option<Judge<'b>>,
    after: Judge<'_>,
    now: Timestamp,
) -> Outcome<'b> {
    let standing = |judge: Judge<'_>| judge.trust.standing(&seen.certificate, &seen.pool, now);
    let old = before.map_or(Standing::Untrusted, standing);
    match (old, standing(after)) {
        (_, Standing::Trusted(_)) => Outcome::Trusted,
        (Standing::Trusted(anchor), _) => {
            let anchors = before.map(|before| &before.bundle.anchors);
            let mut anchors = anchors.into_iter().flatten();
            Outcome::Lost(anchors.find(|entry| entry.sha256 == anchor))
        }
        (Standing::NotValid, _) | (_, Standing::NotValid) => Outcome::NotValid,
        (_, Standing::WrongType(why)) => Outcome::WrongType(why),
        (_, Standing::Unqualified(why)) => Outcome::Unqualified(why),
        (
            Standing::Untrusted | Standing::Unqualified(_) | Standing::WrongType(_),
            Standing::Untrusted,
        ) => Outcome::Neither,
    }
}

fn lost_line(seen: &Seen, anchor: Option<&AnchorEntry>) -> String {
    let (issuer, serial) = match seen.certificate.parse() {
        Ok(it) => (it.issuer().to_string(), hex::encode(it.raw_serial())),
        Err(fault) => (fault.to_string(), String::new()),
    };
    let anchor = anchor.map(|anchor| {
        let services: Vec<_> = anchor
            .services
            .iter()
            .map(|it| it.service.as_str())
            .collect();
        format!(": {}: {}", describe(anchor), services.join(", "))
    });
    format!(
        "{}: certificate {} of {issuer}, last seen {}{}",
        seen.tpp,
        serial.to_ascii_uppercase().trim_start_matches("00"),
        seen.last_seen,
        anchor.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests;
