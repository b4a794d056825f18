//! Reads a saved request or answer: raw HTTP/1.1, a trace or the verbose output of curl, a HAR, or flows of mitmproxy.
//!
//! Invariant: every assumption and repair is listed in the notes, and every place where a format may show other bytes in the doubts,
//! because a signature covers bytes and not their intent. A reader decides nothing: it also accepts requests that the gateway refuses.

// The content of a file, and the reasons why it has none.
mod doubts;
mod fault;
mod message;

// The formats.
mod flows;
mod har;
mod raw;
mod trace;
mod verbose;

// Parts of the formats.
mod body;
mod choice;
mod header;

pub(super) use fault::SavedFault;
pub(super) use message::{KeptBody, SavedRequest, SavedResponse, Wire};

/// Reads a request in any of the formats. `entry` chooses one of several, counted from 1.
///
/// # Errors
/// [`SavedFault`].
pub(super) fn request(file: &[u8], entry: Option<usize>) -> Result<SavedRequest, SavedFault> {
    let input = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    match input.trim_ascii_start() {
        [] => Err(SavedFault::Empty),
        [b'{', ..] => har::request(input, entry),
        _ if flows::are_flows(input) => flows::request(input, entry),
        _ if trace::is_trace(input) => trace::request(input, entry),
        _ if verbose::is_verbose(input) => verbose::request(input, entry),
        _ => match entry {
            Some(wanted) if wanted != 1 => Err(SavedFault::Entry { wanted, found: 1 }),
            _ => {
                let mut request = raw::request(input, raw::InputOrigin::File)?;
                if input.len() < file.len() {
                    let note = "the file begins with a byte order mark, which is left out";
                    request.notes.push(note.to_owned());
                }
                Ok(request)
            }
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
