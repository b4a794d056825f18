//! Values of query parameters (QRY-1).

use crate::interface::{day, operations::ParameterKind};
use jiff::civil::Date;
use std::borrow::Cow;

/// A value, for the rules that compare several values.
pub(super) enum QueryValue {
    From(Date),
    To(Date),
    Offset(i32),
    Limit(i32),
    Other,
}

/// The accepted form, for the text of a fault. It repeats no value.
type Expected = Cow<'static, str>;

/// The values of a booking status (§Other operations mentioned).
pub const BOOKING_STATUSES: [&str; 4] = ["booked", "pending", "both", "all"];

/// Reads a decoded value; `None` is one that cannot be decoded.
pub(super) fn read(kind: ParameterKind, text: Option<&str>) -> Result<QueryValue, Expected> {
    let Some(text) = text else {
        return Err("it is not percent-encoded UTF-8".into());
    };
    let day = || day::parse(text).ok_or(Cow::Borrowed(day::EXPECTED));
    match kind {
        ParameterKind::Date => day().map(|_| QueryValue::Other),
        ParameterKind::DateFrom => day().map(QueryValue::From),
        ParameterKind::DateTo => day().map(QueryValue::To),
        ParameterKind::Offset => number(text, 0).map(QueryValue::Offset),
        ParameterKind::Limit => number(text, 1).map(QueryValue::Limit),
        ParameterKind::Boolean => one_of(text, &["true", "false"]),
        ParameterKind::BookingStatus => one_of(text, &BOOKING_STATUSES),
        ParameterKind::Text => Ok(QueryValue::Other),
    }
}

/// An int32 in decimal digits, without a sign.
fn number(text: &str, least: i32) -> Result<i32, Expected> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| *number >= least);
    number
        .filter(|_| digits)
        .ok_or_else(|| format!("it must be a number from {least} to {}", i32::MAX).into())
}

fn one_of(text: &str, words: &[&str]) -> Result<QueryValue, Expected> {
    if words.contains(&text) {
        Ok(QueryValue::Other)
    } else {
        Err(format!("it must be one of: {}", words.join(", ")).into())
    }
}
