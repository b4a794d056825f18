//! Reads a saved request or answer: raw HTTP/1.1, a trace of curl, or a HAR.
//!
//! Invariant: every assumption and repair is listed in the notes, because a signature covers bytes and not their intent. A
//! reader decides nothing: it also accepts requests that the gateway refuses.
//! Deliberately not here: `curl -v`, whose output omits the body.

// The content of a file, and the reasons why it has none.
mod fault;
mod message;

// The formats.
mod har;
mod raw;
mod trace;

// Parts of the formats.
mod body;
mod choice;
mod header;

pub(super) use fault::SavedFault;
pub(super) use message::{SavedRequest, SavedResponse, Wire};

/// Reads a request in any of the three formats. `entry` chooses one of several, counted from 1.
///
/// # Errors
/// [`SavedFault`].
pub(super) fn request(input: &[u8], entry: Option<usize>) -> Result<SavedRequest, SavedFault> {
    let input = input.strip_prefix("\u{feff}".as_bytes()).unwrap_or(input);
    match input.trim_ascii_start() {
        [] => Err(SavedFault::Empty),
        [b'{', ..] => har::request(input, entry),
        _ if trace::is_trace(input) => trace::request(input, entry),
        _ => match entry {
            Some(wanted) if wanted != 1 => Err(SavedFault::Entry { wanted, found: 1 }),
            _ => raw::request(input),
        },
    }
}

/// Reads an answer: status line, headers, body.
///
/// # Errors
/// [`SavedFault`].
pub(super) fn response(input: &[u8]) -> Result<SavedResponse, SavedFault> {
    let input = input.strip_prefix("\u{feff}".as_bytes()).unwrap_or(input);
    if input.trim_ascii_start().is_empty() {
        return Err(SavedFault::Empty);
    }
    raw::response(input)
}

#[cfg(test)]
mod tests;
