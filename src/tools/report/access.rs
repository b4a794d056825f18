//! A line of the access log, as far as the figures need it.
//!
//! Invariant: a line is a request, or one of Portvakt's that counts none, or it is told. Nothing of it is passed over in silence: also a
//! member or a value that this version does not write is told.

use super::foreign::Oddity;
use crate::{
    admission::{OutcomeKind, Stage},
    interface::{Reason, Side},
    telemetry::{LineKind, Psd2Service},
};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// The longest time of a request, in microseconds: a day. The gateway ends connections far earlier.
const LONGEST: u64 = 86_400_000_000;

/// The largest `log.sample`.
const LARGEST_SAMPLE: u64 = 1_000_000;

/// The last millisecond of the year 9999.
const LAST: u64 = 253_402_300_799_999;

/// The type of a member; each may also be null.
#[derive(Clone, Copy)]
enum Type {
    Text,
    /// A whole number that is not negative.
    Number,
    List,
    Object,
}

/// The members of a line (docs/logs.md).
const MEMBERS: [(&str, Type); 33] = [
    ("time", Type::Text),
    ("kind", Type::Text),
    ("id", Type::Text),
    ("request_id", Type::Text),
    ("trace_id", Type::Text),
    ("span_id", Type::Text),
    ("parent_id", Type::Text),
    ("method", Type::Text),
    ("http", Type::Text),
    ("tls", Type::Text),
    ("network", Type::Text),
    ("operation", Type::Text),
    ("service", Type::Text),
    ("tpp", Type::Text),
    ("shown_tpp", Type::Text),
    ("outcome", Type::Text),
    ("reason", Type::Text),
    ("fault", Type::Text),
    ("status", Type::Number),
    ("upstream", Type::Text),
    ("endpoint", Type::Text),
    ("upstream_status", Type::Number),
    ("received_bytes", Type::Number),
    ("sent_bytes", Type::Number),
    ("whole_us", Type::Number),
    ("upstream_us", Type::Number),
    ("checks_us", Type::Object),
    ("observed", Type::List),
    ("tolerated", Type::List),
    ("register", Type::Text),
    ("revocation", Type::Text),
    ("operator", Type::Text),
    ("sample", Type::Number),
];

/// Members without which a line cannot be counted.
const NEEDED: [&str; 5] = ["time", "outcome", "service", "status", "whole_us"];

/// The numbers that have a narrower range.
const RANGES: [(&str, RangeInclusive<u64>); 4] = [
    ("status", 100..=999),
    ("upstream_status", 100..=999),
    ("whole_us", 0..=LONGEST),
    ("sample", 1..=LARGEST_SAMPLE),
];

/// A request of a TPP, or one that fails for every TPP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The day (UTC) on which it ended.
    pub(super) date: Date,
    /// Its end, in Unix milliseconds.
    pub(super) ended: u64,
    /// Its time, in microseconds.
    pub(super) whole: u64,
    /// The number of requests that the line stands for.
    pub(super) weight: u64,
    pub(super) service: Option<Psd2Service>,
    pub(super) outcome: Option<OutcomeKind>,
    /// The side that has to act.
    pub(super) fault: Option<Side>,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogLine {
    Request(Request),
    /// A line of Portvakt that counts no request: of a sender that nobody knows, or about lines that were left out.
    NoRequest,
    Foreign(Oddity),
}

/// Reads a line; adds what is odd in one that counts.
pub(super) fn read(line: &[u8], odd: &mut Vec<Oddity>) -> LogLine {
    let Ok(Value::Object(line)) = serde_json::from_slice(line) else {
        return LogLine::Foreign(Oddity::NotJson);
    };
    let kind = line.get("kind").and_then(Value::as_str);
    match kind.and_then(LineKind::from_name) {
        Some(LineKind::Access) => {}
        // It says how many lines there are not, and each of the others stands for its share of them.
        Some(LineKind::LeftOut) => return LogLine::NoRequest,
        Some(LineKind::Event) => return LogLine::Foreign(Oddity::Event),
        None => return LogLine::Foreign(Oddity::OtherProgram),
    }
    if let Err(oddity) = check(&line, odd) {
        return LogLine::Foreign(oddity);
    }
    match request(&line, odd) {
        Ok(Some(request)) => LogLine::Request(request),
        Ok(None) => LogLine::NoRequest,
        Err(oddity) => LogLine::Foreign(oddity),
    }
}

/// Checks the members, their types and their ranges.
fn check(line: &Map<String, Value>, odd: &mut Vec<Oddity>) -> Result<(), Oddity> {
    let mut has_unknown = false;
    for (name, value) in line {
        match MEMBERS.iter().find(|(known, _)| known == name) {
            None => has_unknown = true,
            Some((_, of)) => check_value(*of, value)?,
        }
    }
    if NEEDED.iter().any(|name| !line.contains_key(*name)) {
        return Err(Oddity::Incomplete);
    }
    for (name, range) in &RANGES {
        let number = line.get(*name).and_then(Value::as_u64);
        if number.is_some_and(|number| !range.contains(&number)) {
            return Err(Oddity::OutOfRange);
        }
    }
    if has_unknown {
        odd.push(Oddity::UnknownMember);
    }
    Ok(())
}

fn check_value(of: Type, value: &Value) -> Result<(), Oddity> {
    match (of, value) {
        (_, Value::Null)
        | (Type::Text, Value::String(_))
        | (Type::List, Value::Array(_))
        | (Type::Object, Value::Object(_)) => Ok(()),
        (Type::Number, Value::Number(number)) if number.is_u64() => Ok(()),
        (Type::Number, Value::Number(_)) => Err(Oddity::OutOfRange),
        _ => Err(Oddity::WrongType),
    }
}

/// The request of a line whose members are checked; `None` if its sender is not known.
fn request(line: &Map<String, Value>, odd: &mut Vec<Oddity>) -> Result<Option<Request>, Oddity> {
    let text = |name: &str| line.get(name).and_then(Value::as_str);
    let number = |name: &str| line.get(name).and_then(Value::as_u64);
    let (Some(time), Some(whole)) = (text("time"), number("whole_us")) else {
        return Err(Oddity::Incomplete);
    };
    let time: Timestamp = time.parse().map_err(|_| Oddity::OutOfRange)?;
    let ended = u64::try_from(time.as_millisecond()).ok();
    let ended = ended
        .filter(|ended| *ended <= LAST)
        .ok_or(Oddity::OutOfRange)?;
    let reason = text("reason").and_then(Reason::from_slug);
    let outcome = text("outcome").and_then(OutcomeKind::from_name);
    let service = text("service").and_then(Psd2Service::from_name);
    let side = text("fault").and_then(Side::from_name);
    let unknown = [
        ("reason", reason.is_none()),
        ("outcome", outcome.is_none()),
        ("service", service.is_none()),
        ("fault", side.is_none()),
    ];
    if unknown
        .iter()
        .any(|(name, is_none)| *is_none && text(name).is_some())
    {
        odd.push(Oddity::UnknownName);
    }
    if text("tpp").is_none() && !is_failure_of_all(reason) && !is_unjudged(line) {
        return Ok(None);
    }
    Ok(Some(Request {
        date: time.to_zoned_datetime(TimeZone::UTC).date(),
        ended,
        whole,
        weight: number("sample").unwrap_or(1),
        service,
        outcome,
        // A line of an earlier version has none.
        fault: side.or_else(|| side_at_fault(number("status"), reason)),
    }))
}

/// Whether this is a failure that every TPP gets before its signature is verified, such as an audit that cannot be written.
const fn is_failure_of_all(reason: Option<Reason>) -> bool {
    matches!(reason, Some(Reason::StateUnavailable | Reason::Internal))
}

/// Whether a known TPP was refused before the first check, because there was no room at the core (ERR-4). Strangers that overload the
/// gateway have no `shown_tpp`, or they were refused by a check.
fn is_unjudged(line: &Map<String, Value>) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn line(changes: &Value) -> String {
        let mut line = json!({
            "time": "2026-01-01T00:00:00.007Z", "kind": "access", "service": "ais", "tpp": "PSDNO-FSA-1",
            "outcome": "forwarded", "status": 200, "whole_us": 12_000,
        });
        let members = line.as_object_mut().unwrap();
        for (name, value) in changes.as_object().unwrap() {
            match value.as_str() {
                Some("-") => drop(members.remove(name)),
                _ => drop(members.insert(name.clone(), value.clone())),
            }
        }
        line.to_string()
    }

    fn read_line(line: &str) -> (LogLine, Vec<Oddity>) {
        let mut odd = Vec::new();
        (read(line.as_bytes(), &mut odd), odd)
    }

    #[test]
    fn a_foreign_line_is_told() {
        for (changes, expected) in [
            (json!({"kind": "event"}), Oddity::Event),
            (json!({"kind": "audit"}), Oddity::OtherProgram),
            (json!({"kind": 7}), Oddity::OtherProgram),
            (json!({"kind": "-"}), Oddity::OtherProgram),
            (json!({"time": "-"}), Oddity::Incomplete),
            (json!({"time": null}), Oddity::Incomplete),
            (json!({"outcome": "-"}), Oddity::Incomplete),
            (json!({"whole_us": "-"}), Oddity::Incomplete),
            (json!({"tpp": 7}), Oddity::WrongType),
            (json!({"time": 7}), Oddity::WrongType),
            (json!({"status": "200"}), Oddity::WrongType),
            (json!({"status": 99}), Oddity::OutOfRange),
            (json!({"status": 200.5}), Oddity::OutOfRange),
            (json!({"whole_us": -1}), Oddity::OutOfRange),
            (json!({"whole_us": u64::MAX}), Oddity::OutOfRange),
            (json!({"whole_us": 1e300}), Oddity::OutOfRange),
            (json!({"sample": 0}), Oddity::OutOfRange),
            (json!({"sample": 1_000_001}), Oddity::OutOfRange),
            (json!({"time": "yesterday"}), Oddity::OutOfRange),
            (json!({"time": "1969-12-31T23:59:59Z"}), Oddity::OutOfRange),
            (
                json!({"time": "-009999-01-02T01:59:59Z"}),
                Oddity::OutOfRange,
            ),
        ] {
            let found = read_line(&line(&changes));
            assert_eq!(found, (LogLine::Foreign(expected), vec![]), "{changes}");
        }
        for text in ["", "Started.", "[]", "7", "{\"kind\":\"access\"", "{} {}"] {
            let found = read_line(text);
            let expected = LogLine::Foreign(Oddity::NotJson);
            assert_eq!(found, (expected, vec![]), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read_line(&deep).0, LogLine::Foreign(Oddity::NotJson));
    }

    #[test]
    fn a_line_of_another_version_counts_by_what_is_known() {
        for (changes, expected) in [
            (json!({}), vec![]),
            (json!({"operator": "a cause"}), vec![]),
            (json!({"colour": "red"}), vec![Oddity::UnknownMember]),
            (json!({"outcome": "deferred"}), vec![Oddity::UnknownName]),
            (json!({"service": "cof"}), vec![Oddity::UnknownName]),
            (json!({"fault": "moon"}), vec![Oddity::UnknownName]),
            (
                json!({"reason": "new-reason", "x": 1}),
                vec![Oddity::UnknownMember, Oddity::UnknownName],
            ),
        ] {
            let (found, odd) = read_line(&line(&changes));
            assert!(matches!(found, LogLine::Request(_)), "{changes}");
            assert_eq!(odd, expected, "{changes}");
        }
    }

    /// docs/logs.md has the same members.
    #[test]
    fn every_member_of_a_line_is_known() {
        let document = include_str!("../../../docs/logs.md");
        let (_, section) = document.split_once("\n## Access\n").unwrap();
        let section = section.split("\n## ").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let documented: BTreeSet<_> = rows.map(|row| row.split('`').next().unwrap()).collect();
        let known: BTreeSet<_> = MEMBERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(documented, known);
    }
}
