//! `portvakt psu import`: existing PSUs from a file, one JSON object per line, each like the body of /psu/bind (SCA-19).
//!
//! Invariants: each line is stored or reported with its number, independently of the others; memory is bounded by the pending
//! lines. A partial import is resumed by importing the file again: times only increase. No line is repeated in a report, since
//! each names a PSU.

use super::{context::MAX_BODY, fault::ApiFault, members::Members, psu::PsuRecord};
use crate::{
    clock::{Clock, Stopwatch},
    interface::path::AccountIds,
    state::{Bound, StateStore, Unavailable},
};
use std::{
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The number of stored lines, durable.
    pub kept: u64,
    /// The number of refused lines.
    pub bad: u64,
}

/// The reason why an import ended early.
#[derive(Debug, thiserror::Error)]
pub enum ImportFault {
    /// Reading the file failed.
    #[error("the file cannot be read after line {0}: {1}")]
    Read(u64, io::Error),
    /// The store is unavailable.
    #[error(
        "the store is unavailable: {0}; import the file again, which leaves stored lines intact"
    )]
    Unavailable(#[from] Unavailable),
}

/// Imports every line of a file. `account_ids` is the character class of account ids; progress and faulty lines are written to
/// `progress`.
///
/// # Errors
/// The reason for ending early; lines stored until then stay stored.
pub async fn import(
    mut input: impl BufRead,
    store: &Arc<StateStore>,
    clock: &Clock,
    account_ids: &AccountIds,
    progress: &mut impl Write,
) -> Result<Imported, ImportFault> {
    let mut running = Import::new(progress);
    let mut number = 0_u64;
    loop {
        let line = next_line(&mut input).map_err(|error| ImportFault::Read(number, error));
        let line = match line {
            Ok(line) => line,
            Err(fault) => {
                running.finish().await?;
                return Err(fault);
            }
        };
        let Some(line) = line else { break };
        number = number.saturating_add(1);
        match read(line, clock, account_ids) {
            Ok(None) => {}
            Ok(Some(known)) => running.bind(number, known, store).await?,
            Err(texts) => running.report(number, &texts),
        }
    }
    running.finish().await
}

/// A running import.
struct Import<'a, W> {
    under_way: JoinSet<(u64, Result<Bound, Unavailable>)>,
    imported: Imported,
    progress: &'a mut W,
    watch: Stopwatch,
    said: Duration,
}

impl<'a, W: Write> Import<'a, W> {
    fn new(progress: &'a mut W) -> Self {
        Self {
            under_way: JoinSet::new(),
            imported: Imported::default(),
            progress,
            watch: Stopwatch::start(),
            said: Duration::ZERO,
        }
    }

    async fn bind(
        &mut self,
        number: u64,
        known: PsuRecord,
        store: &Arc<StateStore>,
    ) -> Result<(), Unavailable> {
        if self.under_way.len() >= UNDER_WAY {
            self.take_one().await?;
        }
        let store = Arc::clone(store);
        self.under_way
            .spawn(async move { (number, known.bind(&store).await) });
        Ok(())
    }

    /// Waits for all pending lines.
    async fn finish(mut self) -> Result<Imported, ImportFault> {
        while !self.under_way.is_empty() {
            self.take_one().await?;
        }
        self.write_progress();
        Ok(self.imported)
    }

    async fn take_one(&mut self) -> Result<(), Unavailable> {
        let Some(Ok((number, bound))) = self.under_way.join_next().await else {
            return Ok(());
        };
        match bound? {
            Bound::Here => self.imported.kept = self.imported.kept.saturating_add(1),
            Bound::Elsewhere => {
                let text =
                    "psu_id: it belongs to another TPP; a PSU has one of its own for each TPP";
                self.report(number, text);
            }
        }
        if self.watch.elapsed().saturating_sub(self.said) >= PROGRESS_EVERY {
            self.write_progress();
        }
        Ok(())
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
        let Imported { kept, bad } = self.imported;
        let seconds = self.said.as_secs_f64();
        let _ = writeln!(
            self.progress,
            "{kept} kept, {bad} not, after {seconds:.0} s"
        );
    }
}

/// Parses a line: a record, `None` for an empty line, or its fault.
fn read(line: Line, clock: &Clock, account_ids: &AccountIds) -> Result<Option<PsuRecord>, String> {
    let Line::Whole(bytes) = line else {
        return Err(format!("it is longer than {MAX_LINE} bytes"));
    };
    let bytes = bytes.trim_ascii();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.is_empty() {
        return Ok(None);
    }
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

/// A line without its line ending.
enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// The next line, bounded in length. `None` at the end of the file.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let bound = u64::try_from(MAX_LINE)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let mut line = Vec::new();
    let read = input.by_ref().take(bound).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') || read <= MAX_LINE {
        return Ok(Some(Line::Whole(line)));
    }
    input.skip_until(b'\n')?;
    Ok(Some(Line::TooLong))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn check(line: &str) -> Result<Option<PsuRecord>, String> {
        let clock = Clock::standing(Timestamp::from_unix(1_800_000_000));
        let mut input = io::Cursor::new(line.as_bytes().to_vec());
        let line = next_line(&mut input).unwrap().unwrap();
        read(line, &clock, &AccountIds::default())
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
        while let Some(line) = next_line(&mut input).unwrap() {
            lines.push(match line {
                Line::Whole(bytes) => String::from_utf8(bytes).unwrap(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        assert_eq!(lines, ["too long", "b\n", "\n", "c"]);
    }
}
