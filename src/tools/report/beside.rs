//! Figures that stand beside those of the access logs, and the days that their files lack.

use super::{
    consents::Consents,
    day::Day,
    ends::ScaEnds,
    fault::{PlacedFault, ReportFault},
    own::{self, OwnDay},
    sca::{self, ScaDay},
};
use crate::tools::input;
use jiff::civil::Date;
use std::{collections::BTreeMap, io::Write, path::Path};

/// The most faults of a file that are written.
const MOST_FAULTS: usize = 20;

/// The days of a file.
type Days<T> = BTreeMap<Date, T>;

/// What a file says, or its faults.
type Parsed<T> = Result<Days<T>, Vec<PlacedFault>>;

/// The figures of a file.
#[derive(Debug)]
pub(super) struct Figures<T> {
    /// The name of the file.
    name: String,
    days: Days<T>,
}

/// The figures of all files that a report was given.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) own: Option<Figures<OwnDay>>,
    pub(super) sca: Option<Figures<ScaDay>>,
    /// SCAs that ended, by the audit.
    pub(super) ends: Option<ScaEnds>,
    /// The live consents of TPPs.
    pub(super) consents: Option<Consents>,
}

impl Beside {
    /// Reads the files; writes their faults to `notes`.
    pub(super) fn read(
        own: Option<&Path>,
        sca: Option<&Path>,
        notes: &mut impl Write,
    ) -> Result<Self, ReportFault> {
        Ok(Self {
            own: Figures::read(own, own::read, notes)?,
            sca: Figures::read(sca, sca::read, notes)?,
            ends: None,
            consents: None,
        })
    }

    /// The SCAs of a day, if the report was given any: those that ended by the audit where there is one, else by Prometheus.
    pub(super) fn sca_of(&self, date: Date) -> Option<ScaDay> {
        let begun = self.sca.as_ref();
        let day = begun.map(|sca| sca.of(date).copied().unwrap_or_default());
        let Some(ends) = &self.ends else {
            return day;
        };
        let ended = ends.of(date);
        Some(ScaDay {
            started: day.and_then(|day| day.started),
            completed: Some(ended.completed),
            failed: Some(ended.failed()),
        })
    }

    /// Names the days that a file lacks, and counts those that the report has not.
    pub(super) fn note_gaps(&self, days: &[Day], notes: &mut impl Write) {
        if let Some(own) = &self.own {
            own.note_gaps(days, notes);
        }
        if let Some(sca) = &self.sca {
            sca.note_gaps(days, notes);
        }
    }
}

impl<T> Figures<T> {
    fn read(
        path: Option<&Path>,
        parse: fn(&[u8]) -> Parsed<T>,
        notes: &mut impl Write,
    ) -> Result<Option<Self>, ReportFault> {
        let Some(path) = path else {
            return Ok(None);
        };
        let name = input::name(path);
        match parse(&input::read(path)?) {
            Ok(days) => Ok(Some(Self { name, days })),
            Err(faults) => {
                for fault in faults.iter().take(MOST_FAULTS) {
                    let _ = writeln!(notes, "{name}, {fault}");
                }
                let more = faults.len().saturating_sub(MOST_FAULTS);
                if more > 0 {
                    let _ = writeln!(notes, "further faults in {name}: {more}");
                }
                Err(ReportFault::Figures(path.to_owned()))
            }
        }
    }

    /// The figures of a day, if the file has them.
    pub(super) fn of(&self, date: Date) -> Option<&T> {
        self.days.get(&date)
    }

    fn note_gaps(&self, days: &[Day], notes: &mut impl Write) {
        let Self { name, .. } = self;
        let missing: Vec<_> = days.iter().map(|day| self.of(day.date).is_none()).collect();
        let runs = runs(days, &missing);
        if !runs.is_empty() {
            let _ = writeln!(notes, "{name} has no figures of {}", runs.join(", "));
        }
        let used = missing.iter().filter(|is_missing| !**is_missing).count();
        let unused = self.days.len().saturating_sub(used);
        if unused > 0 {
            let _ = writeln!(notes, "days in {name} that the report has not: {unused}");
        }
    }
}

/// Names the days without a request: a log may be missing, and the page would show such a day as available.
pub(super) fn note_quiet_days(days: &[Day], notes: &mut impl Write) {
    let quiet: Vec<_> = days.iter().map(|day| day.requests == 0).collect();
    let runs = runs(days, &quiet);
    if !runs.is_empty() {
        let _ = writeln!(
            notes,
            "the page shows days without a request as available: {}",
            runs.join(", ")
        );
    }
}

/// The marked days, each row of them as one text.
fn runs(days: &[Day], marked: &[bool]) -> Vec<String> {
    let mut runs: Vec<(Date, Date)> = Vec::new();
    let mut goes_on = false;
    for (day, is_marked) in days.iter().zip(marked) {
        match runs.last_mut().filter(|_| goes_on && *is_marked) {
            Some((_, last)) => *last = day.date,
            None if *is_marked => runs.push((day.date, day.date)),
            None => {}
        }
        goes_on = *is_marked;
    }
    let texts = runs.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    });
    texts.collect()
}
