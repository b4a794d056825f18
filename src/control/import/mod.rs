//! `portvakt psu import`: existing PSUs from a file (SCA-19): one JSON object per line, each like the body of /psu/bind, or CSV with a
//! [`Mapping`] of its columns.
//!
//! Invariants: each line is stored or reported with its number; the lines of one PSU take effect in their order; memory is bounded
//! by the pending lines. A partial import is resumed by importing the file again: times only increase. No line is repeated in a report, since
//! each names a PSU.

// What became of the lines of a TPP.
mod counts;
// The columns of a CSV file.
mod mapping;
// The fields of a row.

pub use counts::ImportedOfTpp;
pub use mapping::Mapping;

use super::{context::MAX_BODY, fault::ApiFault, members::Members, psu::PsuRecord};
use crate::{
    clock::{Clock, Stopwatch, Timestamp},
    interface::{
        TppId,
        headers::{CorporateId, PsuId},
        path::AccountIds,
    },
    state::{ConsentAccounts, Known, StateStore, Unavailable},
};
use counts::{Effect, OfTpp};
use mapping::Columns;
use serde_json::Value;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap, VecDeque, hash_map::Entry},
    io::{self, BufRead, Read, Write},
    sync::Arc,
    time::Duration,
};
use tokio::task::JoinSet;

/// The most bytes of a line, as of a body.
const MAX_LINE: usize = MAX_BODY;

/// The most pending lines; the store writes them in one commit.
const UNDER_WAY: usize = 2_048;

/// The most lines that are reported; all are counted.
const MAX_REPORTED: u64 = 100;

/// The interval of progress messages.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The number of stored lines, durable; in a dry run, of lines that would be stored.
    pub kept: u64,
    /// The number of refused lines.
    pub bad: u64,
    /// The lines of each TPP, as far as they name one.
    pub by_tpp: BTreeMap<TppId, ImportedOfTpp>,
}

/// The reason why an import ended early.
#[derive(Debug, thiserror::Error)]
pub enum ImportFault {
    /// Reading the file failed.
    #[error("the file cannot be read after line {0}: {1}")]
    Read(u64, io::Error),
    /// The first line of a CSV file does not name the mapped columns.
    #[error("line {0}: {1}")]
    Header(u64, String),
    /// The store is unavailable.
    #[error(
        "the store is unavailable: {0}; import the file again, which leaves stored lines intact"
    )]
    Unavailable(#[from] Unavailable),
}

/// The way in which a file is imported.
#[derive(Clone, Copy, Debug)]
pub struct ImportJob<'a> {
    /// The store.
    pub store: &'a Arc<StateStore>,
    /// The clock, because no time of a record may be in the future.
    pub clock: &'a Clock,
    /// The character class of account ids.
    pub account_ids: &'a AccountIds,
    /// The columns of a CSV file; `None` for JSON lines.
    pub mapping: Option<&'a Mapping>,
    /// Whether nothing is changed: the report says what an import would do. It keeps the PSU-IDs of the file, and
    /// their consents, in memory.
    pub dry_run: bool,
}

/// Imports every line of a file. Progress, faulty lines and the counts of each TPP are written to `progress`.
///
/// # Errors
/// The reason for ending early; lines stored until then stay stored.
pub async fn import(
    mut input: impl BufRead,
    job: ImportJob<'_>,
    progress: &mut impl Write,
) -> Result<Imported, ImportFault> {
    let mut running = Import::new(job, progress);
    let mut columns: Option<Columns<'_>> = None;
    let mut number = 0_u64;
    loop {
        let line =
            next_line(&mut input, MAX_LINE).map_err(|error| ImportFault::Read(number, error));
        let line = match line {
            Ok(line) => line,
            Err(fault) => {
                running.finish().await?;
                return Err(fault);
            }
        };
        let Some(line) = line else { break };
        number = number.saturating_add(1);
        let read = match (job.mapping, &columns) {
            (Some(mapping), None) => {
                columns =
                    header(&line, mapping).map_err(|text| ImportFault::Header(number, text))?;
                continue;
            }
            (_, columns) => read(line, columns.as_ref(), job.clock, job.account_ids),
        };
        match read {
            Ok(None) => {}
            Ok(Some(known)) => running.bind(number, known).await?,
            Err(text) => running.report(number, &text),
        }
    }
    running.finish().await
}

/// A PSU, and an agreement or none.
type Agreement = (Known<PsuId>, Option<Known<CorporateId>>);

/// A line that was judged: its number, its PSU, its TPP and its effect.
type JudgedLine = (u64, Known<PsuId>, TppId, Result<Effect, Unavailable>);

/// A running import.
struct Import<'a, W> {
    job: ImportJob<'a>,
    under_way: JoinSet<JudgedLine>,
    /// The further lines of each PSU under way, in their order: of two TPPs, the first line binds the PSU-ID.
    later: HashMap<Known<PsuId>, VecDeque<(u64, PsuRecord)>>,
    /// The number of these lines.
    waiting: usize,
    imported: Imported,
    tpps: BTreeMap<TppId, OfTpp>,
    /// The number of lines that replace the accounts of a consent of the same time.
    replaced: u64,
    /// In a dry run, the PSU-IDs that earlier lines would bind.
    would_bind: HashMap<Known<PsuId>, TppId>,
    /// In a dry run, the consents that earlier lines would give, with their accounts.
    would_consent: HashMap<Agreement, (Timestamp, ConsentAccounts)>,
    progress: &'a mut W,
    watch: Stopwatch,
    said: Duration,
}

impl<'a, W: Write> Import<'a, W> {
    fn new(job: ImportJob<'a>, progress: &'a mut W) -> Self {
        Self {
            job,
            under_way: JoinSet::new(),
            later: HashMap::new(),
            waiting: 0,
            imported: Imported::default(),
            tpps: BTreeMap::new(),
            replaced: 0,
            would_bind: HashMap::new(),
            would_consent: HashMap::new(),
            progress,
            watch: Stopwatch::start(),
            said: Duration::ZERO,
        }
    }

    async fn bind(&mut self, number: u64, known: PsuRecord) -> Result<(), Unavailable> {
        while self.under_way.len().saturating_add(self.waiting) >= UNDER_WAY {
            self.take_one().await?;
        }
        if let Some(later) = self.later.get_mut(&known.psu()) {
            later.push_back((number, known));
            self.waiting = self.waiting.saturating_add(1);
        } else {
            self.later.insert(known.psu(), VecDeque::new());
            self.start(number, known);
        }
        Ok(())
    }

    /// Begins to store a line, or, in a dry run, to look up what it would do.
    fn start(&mut self, number: u64, known: PsuRecord) {
        let store = Arc::clone(self.job.store);
        let dry_run = self.job.dry_run;
        let earlier = self.would_bind.get(&known.psu()).cloned();
        let of_lines = match dry_run {
            true => self.beside_earlier_lines(&known),
            false => Effect::Known,
        };
        self.under_way.spawn(async move {
            let effect = match earlier {
                Some(earlier) if earlier == *known.tpp() => Ok(of_lines),
                Some(_) => Ok(Effect::Elsewhere),
                None if dry_run => known.would_bind(&store).await.map(Effect::of),
                None => known.bind(&store, true).await.map(Effect::of),
            };
            (number, known.psu(), known.tpp().clone(), effect)
        });
    }

    /// Waits for all pending lines.
    async fn finish(mut self) -> Result<Imported, ImportFault> {
        while !self.under_way.is_empty() {
            self.take_one().await?;
        }
        self.write_progress();
        for (tpp, of) in &self.tpps {
            let _ = writeln!(self.progress, "{tpp}: {}", of.text(self.job.dry_run));
        }
        let counts = self.tpps.into_iter();
        let counts = counts.map(|(tpp, of)| (tpp, of.imported()));
        self.imported.by_tpp = counts.collect();
        Ok(self.imported)
    }

    async fn take_one(&mut self) -> Result<(), Unavailable> {
        let Some(Ok((number, psu, tpp, effect))) = self.under_way.join_next().await else {
            return Ok(());
        };
        let effect = effect?;
        if self.job.dry_run && effect.refusal().is_none() {
            self.would_bind.insert(psu, tpp.clone());
        }
        match self.later.get_mut(&psu).and_then(VecDeque::pop_front) {
            Some((number, known)) => {
                self.waiting = self.waiting.saturating_sub(1);
                self.start(number, known);
            }
            None => {
                self.later.remove(&psu);
            }
        }
        self.count(number, tpp, effect);
        if self.watch.elapsed().saturating_sub(self.said) >= PROGRESS_EVERY {
            self.write_progress();
        }
        Ok(())
    }

    fn count(&mut self, number: u64, tpp: TppId, effect: Effect) {
        self.tpps.entry(tpp).or_default().count(effect);
        if let Some(text) = effect.refusal() {
            self.report(number, text);
            return;
        }
        self.imported.kept = self.imported.kept.saturating_add(1);
        if effect == Effect::Replaced {
            self.replaced = self.replaced.saturating_add(1);
            if self.replaced <= MAX_REPORTED {
                let text = "accounts: they replace other accounts of a consent of the same time";
                let _ = writeln!(self.progress, "line {number}: {text}");
            }
        }
    }

    /// The effect of a line by the consents of earlier lines. Used in a dry run, which stores nothing.
    fn beside_earlier_lines(&mut self, known: &PsuRecord) -> Effect {
        let (corporate, Some((given, accounts))) = known.consent() else {
            return Effect::Known;
        };
        let new = (*given, accounts.clone());
        match self.would_consent.entry((known.psu(), corporate)) {
            Entry::Vacant(entry) => {
                entry.insert(new);
                Effect::Known
            }
            Entry::Occupied(mut entry) => {
                let (before, others) = entry.get();
                let differs = others != accounts;
                let effect = match before.cmp(given) {
                    Ordering::Equal if differs => Effect::Replaced,
                    Ordering::Greater if differs => Effect::Outdated,
                    _ => Effect::Known,
                };
                if before <= given {
                    entry.insert(new);
                }
                effect
            }
        }
    }

    fn report(&mut self, number: u64, text: &str) {
        self.imported.bad = self.imported.bad.saturating_add(1);
        if self.imported.bad <= MAX_REPORTED {
            let _ = writeln!(self.progress, "line {number}: {text}");
        }
        if self.imported.bad == MAX_REPORTED {
            let _ = writeln!(self.progress, "further faulty lines are only counted");
        }
    }

    fn write_progress(&mut self) {
        self.said = self.watch.elapsed();
        let Imported { kept, bad, .. } = self.imported;
        let seconds = self.said.as_secs_f64();
        let kept = if self.job.dry_run {
            format!("dry run: {kept} would be kept")
        } else {
            format!("{kept} kept")
        };
        let _ = writeln!(self.progress, "{kept}, {bad} not, after {seconds:.0} s");
    }
}

/// The columns that the first line names; `None` for an empty line.
fn header<'m>(line: &TextLine, mapping: &'m Mapping) -> Result<Option<Columns<'m>>, String> {
    match line {
        TextLine::Whole(bytes) if bytes.trim_ascii().is_empty() => Ok(None),
        TextLine::Whole(bytes) => mapping.columns(bytes).map(Some),
        TextLine::TooLong => Err(format!("it is longer than {MAX_LINE} bytes")),
    }
}

/// Parses a line: a record, `None` for an empty line, or its fault.
fn read(
    line: TextLine,
    columns: Option<&Columns<'_>>,
    clock: &Clock,
    account_ids: &AccountIds,
) -> Result<Option<PsuRecord>, String> {
    let TextLine::Whole(bytes) = line else {
        return Err(format!("it is longer than {MAX_LINE} bytes"));
    };
    let bytes = bytes.trim_ascii();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.is_empty() {
        return Ok(None);
    }
    let row;
    let bytes = match columns {
        Some(columns) => {
            row = Value::from(columns.members(bytes)?).to_string();
            row.as_bytes()
        }
        None => bytes,
    };
    let known = Members::parse(bytes)
        .and_then(|mut members| PsuRecord::read(&mut members, clock.now(), account_ids));
    known.map(Some).map_err(|fault| match fault {
        ApiFault::Members(faults) => {
            let texts = faults
                .iter()
                .map(|fault| format!("{}: {}", fault.member.escape_debug(), fault.text));
            texts.collect::<Vec<_>>().join("; ")
        }
        _ => "it is not a JSON object in UTF-8; expected one per line, like the body of /psu/bind"
            .to_owned(),
    })
}

/// A line of a file.
pub(crate) enum TextLine {
    /// The whole line, with its line ending.
    Whole(Vec<u8>),
    /// A line that is longer than the bound.
    TooLong,
}

/// The next line, of at most `longest` bytes. `None` at the end of the file.
pub(crate) fn next_line(input: &mut impl BufRead, longest: usize) -> io::Result<Option<TextLine>> {
    let bound = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
    let mut line = Vec::new();
    let read = input.by_ref().take(bound).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') || read <= longest {
        return Ok(Some(TextLine::Whole(line)));
    }
    input.skip_until(b'\n')?;
    Ok(Some(TextLine::TooLong))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<Option<PsuRecord>, String> {
        let clock = Clock::standing(Timestamp::from_unix(1_800_000_000));
        let mut input = io::Cursor::new(line.as_bytes().to_vec());
        let line = next_line(&mut input, MAX_LINE).unwrap().unwrap();
        read(line, None, &clock, &AccountIds::default())
    }

    #[test]
    fn lines() {
        let good = r#"{"tpp":"PSDNO-FSA-1","psu_id":"0192f0c1-5a5b-7def-8000-1234567890ab","last_sca":"2026-12-01T00:00:00Z"}"#;
        for line in [
            good.to_owned(),
            format!("\u{feff}{good}\r\n"),
            format!("  {good}\n"),
        ] {
            assert!(matches!(check(&line), Ok(Some(_))), "{line}");
        }
        assert_eq!(check("\r\n"), Ok(None));
        let with = |id: &str| {
            let more =
                format!(",\"consent_at\":\"2026-12-01T00:00:00Z\",\"accounts\":[\"{id}\"]}}");
            check(&good.replace('}', &more))
        };
        assert!(matches!(with("acc-9"), Ok(Some(_))));
        assert!(
            with("acc-9 ")
                .unwrap_err()
                .starts_with("accounts: it must be a list")
        );
        assert_eq!(
            check(&good.replace("ab\"", "a\"").replace("last_sca", "lastSca")).unwrap_err(),
            "psu_id: it must be a UUID with its hyphens; last_sca: it is missing; it must be a moment that is not in the future, such as 2027-01-31T12:00:00Z; lastSca: this call has no such member"
        );
        assert!(check("nonsense").unwrap_err().contains("not a JSON object"));
        assert!(
            check(&"x".repeat(MAX_LINE + 1))
                .unwrap_err()
                .contains("longer")
        );
    }

    #[test]
    fn a_long_line_is_one_line() {
        let text = format!("{}\nb\n\nc", "a".repeat(3 * MAX_LINE));
        let mut input = io::Cursor::new(text.into_bytes());
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, MAX_LINE).unwrap() {
            lines.push(match line {
                TextLine::Whole(bytes) => String::from_utf8(bytes).unwrap(),
                TextLine::TooLong => "too long".to_owned(),
            });
        }
        assert_eq!(lines, ["too long", "b\n", "\n", "c"]);
    }
}
