//! The sums of each day.

use super::{access::Request, downtime::Outages, fault::ReportFault, foreign::Oddity};
use crate::{admission::OutcomeKind, interface::Side, telemetry::Psd2Service, tools::input};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
};

/// The milliseconds of a day (UTC has no other days).
const DAY: u64 = 86_400_000;

/// A request that takes longer was not replied to (EBA/GL/2018/07, guideline 2.4).
const REPLY_WITHIN: u64 = 30_000_000;

/// The longest period of a report, in days.
const MOST_DAYS: i32 = 3_660;

/// A line that is more days before or after the period is not read: it says nothing about a downtime at an end of it.
const FAR: i32 = 366;

/// The days before and after a period of which lines are read.
const NEAR: usize = 366;

/// Days in a row without a line, after which the log is doubted: a quarter.
const GAP: i32 = 92;

/// The requests of one service.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Service {
    /// The number of requests.
    pub(super) requests: u64,
    /// Of them, those that got what they asked for (guideline 2.3): refusals take no time and would make the mean too good.
    provided: u64,
    /// Their time together, in microseconds.
    time: u64,
}

impl Service {
    /// The mean time of a request that got what it asked for, in milliseconds.
    #[allow(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "a mean needs no more than 53 bits"
    )]
    pub(super) fn mean(&self) -> Option<f64> {
        (self.provided > 0).then(|| self.time as f64 / self.provided as f64 / 1_000.0)
    }
}

/// The figures of a day.
#[derive(Clone, Debug)]
pub(super) struct Day {
    pub(super) date: Date,
    pub(super) requests: u64,
    pub(super) ais: Service,
    pub(super) pis: Service,
    /// Requests whose answer, or missing answer, the bank has to answer for.
    pub(super) errors: u64,
    /// Milliseconds.
    downtime: u64,
}

impl Day {
    const fn empty(date: Date) -> Self {
        let none = Service {
            requests: 0,
            provided: 0,
            time: 0,
        };
        Self {
            date,
            requests: 0,
            ais: none,
            pis: none,
            errors: 0,
            downtime: 0,
        }
    }

    /// The downtime in seconds, rounded up: a day that had one does not show 0.
    pub(super) const fn downtime_seconds(&self) -> u64 {
        self.downtime.div_ceil(1_000)
    }

    /// The part of the day without downtime, in percent.
    pub(super) fn availability(&self) -> f64 {
        percent(DAY.saturating_sub(self.downtime), DAY)
    }

    /// The part of the requests with an error, in percent.
    pub(super) fn error_rate(&self) -> f64 {
        percent(self.errors, self.requests.max(1))
    }
}

/// A part of a whole, in percent.
#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a percentage needs no more than 53 bits"
)]
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// An availability with three decimals, rounded down: a day that had a downtime does not show 100.
pub(super) fn rounded_down(percent: f64) -> f64 {
    let thousandths = (percent * 1_000.0).round();
    let above = thousandths / 1_000.0 - percent > 1e-9;
    (if above {
        thousandths - 1.0
    } else {
        thousandths
    }) / 1_000.0
}

/// Where a line is: its file, and its number there from 1.
pub(super) type Place = (PathBuf, u64);

/// All days.
#[derive(Debug, Default)]
pub(super) struct Days {
    /// The first and the last day of the report, where it names them.
    from: Option<Date>,
    to: Option<Date>,
    days: BTreeMap<Date, Day>,
    /// The first line of each day.
    firsts: BTreeMap<Date, Place>,
    outages: Outages,
}

impl Days {
    /// The days of a period, of which one end or both follow from the lines.
    pub(super) fn new(from: Option<Date>, to: Option<Date>) -> Self {
        Self {
            from,
            to,
            ..Self::default()
        }
    }

    /// Counts a request; `Err` is why it does not count, or in no day.
    pub(super) fn add(&mut self, request: &Request, file: &Path, line: u64) -> Result<(), Oddity> {
        let is_outside = self.distance(request.date);
        if is_outside > FAR {
            return Err(Oddity::FarOutside);
        }
        self.count(request);
        match is_outside {
            0 => {
                let first = self.firsts.entry(request.date);
                first.or_insert_with(|| (file.to_owned(), line));
                Ok(())
            }
            // A downtime may begin before the period, or end after it.
            _ => Err(Oddity::Outside),
        }
    }

    /// The number of days from the period, as far as it is named.
    fn distance(&self, date: Date) -> i32 {
        let days = |from: Date, to: Date| from.until(to).map_or(i32::MAX, |span| span.get_days());
        match (self.from, self.to) {
            (Some(from), _) if date < from => days(date, from),
            (_, Some(to)) if date > to => days(to, date),
            _ => 0,
        }
    }

    /// Whether the days with a request are more than a report has, so that no further one is read.
    pub(super) fn are_too_many(&self) -> bool {
        let most = usize::try_from(MOST_DAYS).unwrap_or(usize::MAX);
        self.days.len() > most.saturating_add(2 * NEAR)
    }

    /// Names the lines around a quarter without any, unless both ends of the period are named: a clock may have been wrong.
    pub(super) fn note_gaps(&self, notes: &mut impl Write) {
        if self.from.is_some() && self.to.is_some() {
            return;
        }
        let nexts = self.firsts.iter().skip(1);
        for ((before, place), (after, next)) in self.firsts.iter().zip(nexts) {
            let days = before
                .until(*after)
                .map_or(i32::MAX, |span| span.get_days());
            if days > GAP {
                let at = |(file, line): &Place| format!("{} line {line}", input::name(file));
                let _ = writeln!(
                    notes,
                    "no line is of a day between {before} ({}) and {after} ({}): if a clock was wrong, name the period by --from and --to",
                    at(place),
                    at(next)
                );
            }
        }
    }

    fn count(&mut self, request: &Request) {
        let Request {
            date,
            ended,
            whole,
            weight,
            service,
            outcome,
            fault,
        } = *request;
        let is_banks = matches!(fault, Some(Side::Gateway | Side::Core));
        // A caller who leaves within 30 s does so for reasons of its own, even while the core owes the answer (`fault` of the line): otherwise
        // one TPP with a short patience would make the bank's figures.
        let has_left = outcome == Some(OutcomeKind::Abandoned);
        let is_late =
            whole >= REPLY_WITHIN && fault != Some(Side::Caller) && (is_banks || !has_left);
        let is_error = is_late || is_banks && !has_left;
        // Neither does a caller tell anything about the bank who was refused rightly.
        let is_silent = matches!(
            outcome,
            Some(OutcomeKind::Abandoned | OutcomeKind::Cut | OutcomeKind::Refused)
        );
        let day = self.days.entry(date).or_insert_with(|| Day::empty(date));
        let add = |count: &mut u64, more: u64| *count = count.saturating_add(more);
        add(&mut day.requests, weight);
        let service = match service {
            Some(Psd2Service::AccountInformation) => Some(&mut day.ais),
            Some(Psd2Service::PaymentInitiation) => Some(&mut day.pis),
            Some(Psd2Service::Both) | None => None,
        };
        if let Some(service) = service {
            add(&mut service.requests, weight);
            if fault.is_none() && !is_late && !is_silent {
                add(&mut service.provided, weight);
                add(&mut service.time, whole.saturating_mul(weight));
            }
        }
        if is_error {
            add(&mut day.errors, weight);
        }
        let began = ended.saturating_sub(whole / 1_000);
        if is_error {
            self.outages.not_replied(began);
        } else if !is_silent {
            self.outages.replied(began, ended);
        }
    }

    /// Each day of a period, also those without a request.
    pub(super) fn rows(mut self) -> Result<Vec<Day>, ReportFault> {
        let first = self.firsts.keys().next().copied();
        let last = self.firsts.keys().next_back().copied();
        let (Some(from), Some(to)) = (self.from.or(first), self.to.or(last)) else {
            return Err(ReportFault::Empty);
        };
        let fault = || ReportFault::Period(from, to);
        let length = from.until(to).map_err(|_| fault())?.get_days();
        if from > to || length > MOST_DAYS {
            return Err(fault());
        }
        for (began, ended) in std::mem::take(&mut self.outages).periods() {
            self.add_downtime(began, ended);
        }
        let mut rows = Vec::new();
        let mut date = from;
        while date <= to {
            let day = self.days.remove(&date);
            rows.push(day.unwrap_or_else(|| Day::empty(date)));
            date = date.tomorrow().map_err(|_| fault())?;
        }
        Ok(rows)
    }

    /// Adds a period of downtime, in Unix milliseconds, to the days that it touches.
    fn add_downtime(&mut self, mut began: u64, ended: u64) {
        while began < ended {
            let midnight = (began / DAY).saturating_add(1).saturating_mul(DAY);
            let until = midnight.min(ended);
            let at = i64::try_from(began)
                .ok()
                .and_then(|at| Timestamp::from_millisecond(at).ok());
            if let Some(at) = at {
                let date = at.to_zoned_datetime(TimeZone::UTC).date();
                let day = self.days.entry(date).or_insert_with(|| Day::empty(date));
                let more = until.saturating_sub(began);
                day.downtime = day.downtime.saturating_add(more);
            }
            began = until;
        }
    }
}
