//! The sums of each day.

use super::{downtime::Outages, fault::ReportFault};
use crate::{
    admission::{OutcomeKind, Stage},
    interface::{Reason, Side},
    telemetry::{LineKind, Psd2Service},
};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::Value;
use std::collections::BTreeMap;

/// The milliseconds of a day (UTC has no other days).
const DAY: u64 = 86_400_000;

/// A request that takes longer was not replied to (EBA/GL/2018/07, guideline 2.4).
const REPLY_WITHIN: u64 = 30_000_000;

/// The longest period of a report, in days.
const MOST_DAYS: i32 = 3_660;

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

/// All days.
#[derive(Debug, Default)]
pub(super) struct Days {
    days: BTreeMap<Date, Day>,
    outages: Outages,
}

impl Days {
    /// Counts a line; `None` if it is no line of an access log.
    pub(super) fn add(&mut self, line: &[u8]) -> Option<()> {
        let line: Value = serde_json::from_slice(line).ok()?;
        match LineKind::from_name(line.get("kind")?.as_str()?)? {
            LineKind::Access => {}
            // It says how many lines there are not, and each of the others stands for its share of them.
            LineKind::LeftOut => return Some(()),
            LineKind::Event => return None,
        }
        let ended: Timestamp = line.get("time")?.as_str()?.parse().ok()?;
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        let number = |name: &str| line.get(name).and_then(Value::as_u64);
        let reason = text("reason").and_then(Reason::from_slug);
        if text("tpp").is_none() && !is_failure_of_all(reason) && !is_unjudged(&line) {
            return Some(());
        }
        let whole = number("whole_us").unwrap_or_default();
        let weight = number("sample").unwrap_or(1);
        let fault = match text("fault").and_then(Side::from_name) {
            // A line of an earlier version has none.
            None => side_at_fault(number("status"), reason),
            fault => fault,
        };
        let is_banks = matches!(fault, Some(Side::Gateway | Side::Core));
        // A caller who leaves within 30 s does so for reasons of its own, even while the core owes the answer (`fault` of the line): otherwise
        // one TPP with a short patience would make the bank's figures.
        let outcome = text("outcome").and_then(OutcomeKind::from_name);
        let has_left = outcome == Some(OutcomeKind::Abandoned);
        let is_late =
            whole >= REPLY_WITHIN && fault != Some(Side::Caller) && (is_banks || !has_left);
        let is_error = is_late || is_banks && !has_left;
        // Neither does a caller tell anything about the bank who was refused rightly.
        let is_silent = matches!(
            outcome,
            Some(OutcomeKind::Abandoned | OutcomeKind::Cut | OutcomeKind::Refused)
        );
        let date = ended.to_zoned_datetime(TimeZone::UTC).date();
        let day = self.days.entry(date).or_insert_with(|| Day::empty(date));
        let add = |count: &mut u64, more: u64| *count = count.saturating_add(more);
        add(&mut day.requests, weight);
        let service = match text("service").and_then(Psd2Service::from_name) {
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
        let ended = u64::try_from(ended.as_millisecond()).unwrap_or_default();
        let began = ended.saturating_sub(whole / 1_000);
        if is_error {
            self.outages.not_replied(began);
        } else if !is_silent {
            self.outages.replied(began, ended);
        }
        Some(())
    }

    /// Each day of a period, also those without a request.
    pub(super) fn rows(
        mut self,
        from: Option<Date>,
        to: Option<Date>,
    ) -> Result<Vec<Day>, ReportFault> {
        let first = self.days.keys().next().copied();
        let last = self.days.keys().next_back().copied();
        let (Some(from), Some(to)) = (from.or(first), to.or(last)) else {
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

/// Whether this is a failure that every TPP gets before its signature is verified, such as an audit that cannot be written.
const fn is_failure_of_all(reason: Option<Reason>) -> bool {
    matches!(reason, Some(Reason::StateUnavailable | Reason::Internal))
}

/// Whether a known TPP was refused before the first check, because there was no room at the core (ERR-4). Strangers that overload the
/// gateway have no `shown_tpp`, or they were refused by a check.
fn is_unjudged(line: &Value) -> bool {
    let first = line
        .get("checks_us")
        .map(|checks| checks.get(Stage::Match.name()));
    line.get("shown_tpp").is_some() && first == Some(None)
}

/// The side that has to act, like the label `fault` of `portvakt_requests_total`.
fn side_at_fault(status: Option<u64>, reason: Option<Reason>) -> Option<Side> {
    match (reason, status.unwrap_or_default()) {
        (Some(reason), _) => Some(reason.at_fault()),
        (None, 500..) => Some(Side::Core),
        (None, 400..) => Some(Side::Caller),
        (None, _) => None,
    }
}
