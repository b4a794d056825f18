//! The values of a list's elements: text, URIs, times, numbers, names in several languages.

use super::names::{TSL, XML};
use crate::{fault::Refusal, tree::Element};
use portvakt_base::clock::Timestamp;

/// The longest value that is kept, in bytes. Names and addresses of the lists have at most 600.
const MAX_VALUE_BYTES: usize = 4096;

/// The text of an element that holds nothing else, without white space around it.
///
/// # Errors
/// It has elements in it, is empty, or is longer than 4 KiB.
pub(crate) fn text(element: &Element<'_>) -> Result<String, Refusal> {
    if let Some(child) = element.children().next() {
        let what = format!(
            "{} in {}, where text stands",
            child.local(),
            element.local()
        );
        return Err(child.refuse(what));
    }
    let text = element.text();
    match text.trim() {
        "" => Err(element.refuse(format_args!("{} is empty", element.local()))),
        text if text.len() > MAX_VALUE_BYTES => {
            Err(element.refuse(format_args!("{} is longer than 4 KiB", element.local())))
        }
        text => Ok(text.to_owned()),
    }
}

/// The text of the only element of this name.
///
/// # Errors
/// There is none, or more than one, or it holds no text.
pub(crate) fn text_of(parent: &Element<'_>, local: &str) -> Result<String, Refusal> {
    text(&parent.required(TSL, local)?)
}

/// A whole number.
///
/// # Errors
/// The element is missing, or its text is no number that fits.
pub(crate) fn number_of(parent: &Element<'_>, local: &str) -> Result<u64, Refusal> {
    let element = parent.required(TSL, local)?;
    let text = text(&element)?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or_else(|| element.refuse(format_args!("{local} is no whole number: {text}")))
}

/// A date and time (`xsd:dateTime` with a zone; TS 119 612 requires UTC).
///
/// # Errors
/// It is no time, has no zone, or is before 1970.
pub(crate) fn time(element: &Element<'_>) -> Result<Timestamp, Refusal> {
    let text = text(element)?;
    let parsed = text.parse::<jiff::Timestamp>().ok();
    let seconds = parsed.and_then(|time| u64::try_from(time.as_second()).ok());
    let what = || {
        format!(
            "{} is no time in UTC (2026-01-31T12:00:00Z): {text}",
            element.local()
        )
    };
    seconds
        .map(Timestamp::from_unix)
        .ok_or_else(|| element.refuse(what()))
}

/// A name in several languages: the English one, otherwise the first.
///
/// # Errors
/// The element or its names are missing.
pub(crate) fn name_of(parent: &Element<'_>, local: &str) -> Result<String, Refusal> {
    let element = parent.required(TSL, local)?;
    let is_name = |child: &Element<'_>| child.is(TSL, "Name");
    let is_english = |name: &Element<'_>| name.attribute(Some(XML), "lang") == Some("en");
    let english = element.children().filter(is_name).find(is_english);
    let found = english.or_else(|| element.children().find(is_name));
    text(&found.ok_or_else(|| element.refuse(format_args!("{local} has no Name")))?)
}

/// The texts of the elements `local` in the optional element `parent`.
///
/// # Errors
/// One of them holds no text.
pub(crate) fn texts(parent: &Element<'_>, local: &str) -> Result<Vec<String>, Refusal> {
    let found = parent.children().filter(|child| child.is(TSL, local));
    found.map(|child| text(&child)).collect()
}

/// A boolean of XML Schema.
///
/// # Errors
/// It is neither true, false, 1 nor 0.
pub(crate) fn boolean(element: &Element<'_>, value: &str) -> Result<bool, Refusal> {
    match value.trim() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(element.refuse(format_args!("{other} is no boolean"))),
    }
}
