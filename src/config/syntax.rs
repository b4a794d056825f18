//! The faults of a text that is no YAML, at the place that the operator has to change.
//!
//! Invariant: the place is the parser's, unless a common mistake explains the fault. Deliberately not here: parsing.

use std::borrow::Cow;

use serde_saphyr::localizer::Localizer;
use serde_saphyr::{Error, Location, MessageFormatter, UserMessageFormatter};

use super::fault::{ConfigFault, FilePosition};

/// Converts the parser's error to a fault, without the position in its message, which the fault has already.
pub(super) fn syntax(start: &FilePosition, error: &Error, text: &str) -> ConfigFault {
    struct WithoutPosition;
    impl Localizer for WithoutPosition {
        fn attach_location<'b>(&self, base: Cow<'b, str>, _: Location) -> Cow<'b, str> {
            base
        }
    }
    let mut place = start.clone();
    if let Some(location) = error.location().filter(|location| location.line() > 0) {
        place.line = location.line();
        place.column = location.column().max(1);
    }
    if let Some((line, column)) = tab(text) {
        (place.line, place.column) = (line, column);
        let text = "a tab in the indentation; YAML is indented with spaces".to_owned();
        return ConfigFault { place, text };
    }
    let message = UserMessageFormatter
        .with_localizer(&WithoutPosition)
        .format_message(error.without_snippet())
        .into_owned();
    let number = usize::try_from(place.line).unwrap_or(usize::MAX);
    let line = text.lines().nth(number.saturating_sub(1));
    if let Some(column) = line.and_then(address) {
        place.column = column;
        let text = "an IPv6 address with a port needs quotes, as in '[::1]:8443': YAML reads brackets as a list".to_owned();
        return ConfigFault { place, text };
    }
    // The parser notices a missing quote where the next line does not fit, or at the end of the file.
    if message.contains("quote")
        && let Some((line, column)) = open_quote(text)
    {
        (place.line, place.column) = (line, column);
        let text = "a quote opens here and does not close on this line".to_owned();
        return ConfigFault { place, text };
    }
    ConfigFault {
        place,
        text: message,
    }
}

/// The column of an IPv6 address in brackets that a port follows, without quotes.
fn address(line: &str) -> Option<u64> {
    let mut from = 0;
    while let Some(at) = line.get(from..)?.find('[') {
        let start = from.saturating_add(at);
        from = start.saturating_add(1);
        let before = line.get(..start)?.trim_end().chars().next_back();
        let (inner, rest) = line.get(from..)?.split_once(']')?;
        let is_address = inner.contains("::") || inner.matches(':').count() == 7;
        let is_hex = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
        if is_address
            && inner.chars().all(is_hex)
            && rest.starts_with(':')
            && !matches!(before, Some('"' | '\''))
        {
            return column(line, start);
        }
    }
    None
}

/// The line and column of the first quoted scalar that does not end on its line.
fn open_quote(text: &str) -> Option<(u64, u64)> {
    let mut lines = text.lines().zip(1..);
    lines.find_map(|(line, number)| Some((number, column(line, unclosed(line)?)?)))
}

/// The byte at which a quote opens that the line does not close. A quote opens only where a scalar begins.
fn unclosed(line: &str) -> Option<usize> {
    let (mut begins, mut before) = (true, ' ');
    let mut open = None;
    let mut letters = line.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (open, letter) {
            (Some((_, '"')), '\\') => drop(letters.next()),
            (Some((_, quote)), letter) if letter == quote => {
                open = None;
                // A doubled single quote is a letter, which opens the scalar again.
                begins = quote == '\'';
            }
            (Some(_), _) => {}
            (None, '#') if before == ' ' => return None,
            (None, '"' | '\'') if begins => open = Some((at, letter)),
            (None, ' ') => begins = begins || matches!(before, ':' | '-'),
            (None, '[' | '{' | ',') => begins = true,
            (None, _) => begins = false,
        }
        before = letter;
    }
    open.map(|(at, _)| at)
}

/// The column of a byte, counted from 1 in characters.
fn column(line: &str, at: usize) -> Option<u64> {
    let before = line.get(..at)?.chars().count();
    Some(u64::try_from(before).ok()?.saturating_add(1))
}

/// The line and column of the first tab that indents a line: the parser's own message is about another line.
fn tab(text: &str) -> Option<(u64, u64)> {
    let mut lines = text.lines().zip(1..);
    lines.find_map(|(line, number)| {
        let indent = line.split(|c| c != ' ' && c != '\t').next()?;
        let before = indent.split('\t').next()?.len();
        let is_text = indent.len() < line.len();
        let column = u64::try_from(before).ok()?.saturating_add(1);
        (is_text && before < indent.len()).then_some((number, column))
    })
}
