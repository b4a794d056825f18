//! A line of the access log, as far as the report needs it. Fields are read by name, and unknown fields are ignored.

use crate::{
    admission::{ObservableCheck, OutcomeKind},
    clock::Timestamp,
    telemetry::LineKind,
};
use serde_json::Value;
use std::fmt;

/// A line of a log.
pub(super) enum LogLine {
    /// A request.
    Request(LoggedRequest),
    /// A line that is no request: an event of the gateway, or plain text of another program, such as systemd's in the journal.
    Other,
    /// A line that may hold a request and cannot be read: a part of one, or one in the line of a collector.
    Unreadable,
}

/// A request.
pub(super) struct LoggedRequest {
    pub(super) at: Option<Timestamp>,
    pub(super) sender: Sender,
    /// The number of requests that the line stands for.
    pub(super) count: u64,
    /// Whether the gateway refused the request.
    pub(super) refused: bool,
    /// Whether the caller got an answer without an error.
    pub(super) served: bool,
    /// The failed checks, in their order, with their reasons.
    pub(super) observed: Vec<(ObservableCheck, String)>,
}

/// A failed check that this version does not know: that of a newer gateway. A report that left it out would call unsafe checks safe.
#[derive(Debug)]
pub(super) struct UnknownCheck(pub(super) String);

/// The sender of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sender {
    /// The signature verified.
    Proven(String),
    /// The request had this TPP's certificate, which is public.
    Shown(String),
    /// The request had no readable certificate.
    Unknown,
    /// Senders beyond the bound of the report.
    Other,
}

impl fmt::Display for Sender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven(tpp) => formatter.write_str(tpp),
            Self::Shown(tpp) => write!(formatter, "{tpp} (not proven)"),
            Self::Unknown => formatter.write_str("unknown sender"),
            Self::Other => formatter.write_str("other senders"),
        }
    }
}

/// Reads a line.
///
/// # Errors
/// The request failed a check that this version does not know.
pub(super) fn read(line: &[u8]) -> Result<LogLine, UnknownCheck> {
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return Ok(if is_plain_text(line) {
            LogLine::Other
        } else {
            LogLine::Unreadable
        });
    };
    let kind = value.get("kind").and_then(Value::as_str);
    let kind = kind.and_then(LineKind::from_name);
    if matches!(kind, Some(LineKind::Event | LineKind::LeftOut)) {
        return Ok(LogLine::Other);
    }
    Ok(request(&value)?.map_or(LogLine::Unreadable, LogLine::Request))
}

/// Whether a line has no character of JSON objects and none that a text lacks, so that it is no part of a request.
fn is_plain_text(line: &[u8]) -> bool {
    let text = std::str::from_utf8(line).map(str::trim_ascii);
    let is_foreign = |char: char| matches!(char, '{' | '}' | '"') || char.is_control();
    text.is_ok_and(|text| !text.contains(is_foreign))
}

/// Reads a request; `None` if a member that the report needs has another form.
fn request(line: &Value) -> Result<Option<LoggedRequest>, UnknownCheck> {
    let observed = match line.get("observed") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(faults)) => faults.iter().map(fault).collect::<Result<_, _>>()?,
        Some(other) => return Err(UnknownCheck(other.to_string())),
    };
    let text = |name: &str| match line.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(value) => value.as_str().map(Some),
    };
    let count = match line.get("sample") {
        None => Some(1),
        Some(count) => count.as_u64(),
    };
    let (Some(Some(outcome)), Some(tpp), Some(shown), Some(count)) =
        (text("outcome"), text("tpp"), text("shown_tpp"), count)
    else {
        return Ok(None);
    };
    let status = line.get("status").and_then(Value::as_u64);
    Ok(Some(LoggedRequest {
        at: line.get("time").and_then(time),
        sender: match (tpp, shown) {
            (Some(tpp), _) => Sender::Proven(tpp.to_owned()),
            (None, Some(tpp)) => Sender::Shown(tpp.to_owned()),
            (None, None) => Sender::Unknown,
        },
        count,
        refused: OutcomeKind::from_name(outcome) == Some(OutcomeKind::Refused),
        served: status.is_some_and(|status| status < 400),
        observed,
    }))
}

/// A failed check, with its reason.
fn fault(value: &Value) -> Result<(ObservableCheck, String), UnknownCheck> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let name = text("check").unwrap_or_default();
    match (ObservableCheck::from_name(name), text("reason")) {
        (Some(check), Some(reason)) => Ok((check, reason.to_owned())),
        _ => Err(UnknownCheck(value.to_string())),
    }
}

/// Seconds since 1970, or RFC 3339.
fn time(value: &Value) -> Option<Timestamp> {
    if let Some(seconds) = value.as_u64() {
        return Some(Timestamp::from_unix(seconds));
    }
    let moment: jiff::Timestamp = value.as_str()?.parse().ok()?;
    u64::try_from(moment.as_second())
        .ok()
        .map(Timestamp::from_unix)
}
