//! The conditions of a valid configuration that its operator should change, now or at some time.
//!
//! Invariant: what is said of an end of validity is a [`Finding`] of its kind, so that metrics and the log's line a day say the same as
//! `check`. Deliberately not here: what ends outside of the configuration's files.

use super::fault::{ConfigFault, FilePosition};
use crate::clock::Timestamp;
use crate::expiring::{Expiring, Finding, Level};
use crate::trust::Validity;

/// The end of a period that has none.
pub(super) const NEVER: Timestamp = Timestamp::from_unix(u64::MAX);

/// A condition of a valid configuration that its operator should change. The gateway starts with it.
#[derive(Clone, Debug)]
pub struct Warning {
    pub(super) place: FilePosition,
    pub(super) condition: Condition,
}

#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// At any time.
    Always(String),
    /// After a time. It is nothing that ends, and has a metric and an alert of its own.
    After(Timestamp, String),
    /// At any time: a part of what requests need is missing.
    Missing(Expiring, String),
    /// Before, shortly before the end of, and after a period.
    Period(Period),
    /// While certificates of a folder or file are not valid, or end soon.
    Folder(Folder),
}

/// A period of validity.
#[derive(Clone, Debug)]
pub(super) struct Period {
    pub(super) of: Expiring,
    pub(super) validity: Validity,
    /// How bad its end is.
    pub(super) at_end: Level,
    /// The texts before the period, shortly before its end, and after it.
    pub(super) texts: [String; 3],
}

/// The certificates of a folder or file.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) of: Expiring,
    /// The folder or file, for display.
    pub(super) shown: String,
    pub(super) periods: Vec<Validity>,
    /// The consequence if none of them is valid, which completes the text.
    pub(super) consequence: &'static str,
    /// Whether the end of one of them counts. That of a bundle's anchor does not: lists name anchors that have ended, and each import renews
    /// the others.
    pub(super) counts_each: bool,
}

impl Warning {
    /// The warning as a line; `None` if its condition is not met at `now`.
    pub fn at(&self, now: Timestamp) -> Option<ConfigFault> {
        let text = match &self.condition {
            Condition::Always(text) => text.clone(),
            Condition::After(time, text) => (now > *time).then(|| text.clone())?,
            _ => self.judged(now)?.1,
        };
        Some(ConfigFault {
            place: self.place.clone(),
            text,
        })
    }

    /// The same, if it is about something that ends.
    pub fn finding(&self, now: Timestamp) -> Option<Finding> {
        let of = self.of()?;
        let (level, _) = self.judged(now)?;
        let text = self.at(now)?.to_string();
        Some(Finding { of, level, text })
    }

    /// When the first thing of it ends, if it is about something that ends.
    pub fn end(&self) -> Option<(Expiring, Timestamp)> {
        let first = match &self.condition {
            Condition::Always(_) | Condition::After(..) | Condition::Missing(..) => None,
            Condition::Period(period) => {
                Some(period.validity.not_after).filter(|end| *end != NEVER)
            }
            Condition::Folder(folder) if !folder.counts_each => None,
            Condition::Folder(folder) => {
                let ends = folder.periods.iter().map(|period| period.not_after);
                ends.min()
            }
        };
        self.of().zip(first)
    }

    const fn of(&self) -> Option<Expiring> {
        match &self.condition {
            Condition::Always(_) | Condition::After(..) => None,
            Condition::Missing(of, _) => Some(*of),
            Condition::Period(period) => Some(period.of),
            Condition::Folder(folder) => Some(folder.of),
        }
    }

    fn judged(&self, now: Timestamp) -> Option<(Level, String)> {
        match &self.condition {
            Condition::Always(_) | Condition::After(..) => None,
            Condition::Missing(_, text) => Some((Level::Soon, text.clone())),
            Condition::Period(period) => period.at(now),
            Condition::Folder(folder) => folder.at(now),
        }
    }
}

impl Period {
    fn at(&self, now: Timestamp) -> Option<(Level, String)> {
        let [before, soon, after] = &self.texts;
        let Validity {
            not_before,
            not_after,
        } = self.validity;
        let (level, text) = match () {
            () if now < not_before => (Level::Soon, before),
            () if now > not_after => (self.at_end, after),
            () if now > self.of.warns_from(self.validity) => (Level::Soon, soon),
            () => return None,
        };
        Some((level, text.clone()))
    }
}

impl Folder {
    fn at(&self, now: Timestamp) -> Option<(Level, String)> {
        let (all, folder) = (self.periods.len(), &self.shown);
        let invalid = self.periods.iter().filter(|period| !period.contains(now));
        let found = match invalid.count() {
            count if count < all && !self.counts_each => return None,
            0 => {
                let ends = self.periods.iter();
                let ends = ends.filter(|period| now > self.of.warns_from(**period));
                let ends: Vec<_> = ends.map(|period| period.not_after).collect();
                let (count, first) = (ends.len(), ends.iter().min()?);
                let text = format!(
                    "{count} of {all} certificates in {folder} end within 30 days, the first at {first}"
                );
                (Level::Soon, text)
            }
            count if count == all => {
                let consequence = self.consequence;
                let text = format!("no certificate in {folder} is valid now{consequence}");
                (Level::at_end(self.of.stops_requests()), text)
            }
            count => {
                let text = format!("{count} of {all} certificates in {folder} are not valid now");
                (Level::Soon, text)
            }
        };
        Some(found)
    }
}
