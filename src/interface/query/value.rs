//! Values of query parameters (QRY-1).

use crate::{character::OddCharacter, day, operations::ParameterKind};
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
        return Err("it cannot be decoded".into());
    };
    let day = || day::parse(text).ok_or_else(|| Cow::Owned(day::fault(text)));
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
        .ok_or_else(|| number_fault(text, least).into())
}

/// The reason why a text is no such number (ERR-10). It shows no digit.
fn number_fault(text: &str, least: i32) -> String {
    let most = i32::MAX;
    let what = match OddCharacter::first(text.as_bytes(), |byte| byte.is_ascii_digit()) {
        Some(odd) => odd.to_string(),
        None if text.is_empty() => "it is empty".to_owned(),
        None if text.parse::<i32>().is_ok() => format!("it is less than {least}"),
        None => format!("it is more than {most}"),
    };
    format!("{what}; it must be a number from {least} to {most}")
}

fn one_of(text: &str, words: &[&str]) -> Result<QueryValue, Expected> {
    if words.contains(&text) {
        Ok(QueryValue::Other)
    } else {
        let what = match words.iter().any(|word| word.eq_ignore_ascii_case(text)) {
            _ if text.is_empty() => "it is empty",
            true => "it stands in another letter case",
            false => "it is another word",
        };
        Err(format!("{what}; it must be one of: {}", words.join(", ")).into())
    }
}
