//! Reads a saved request or answer: raw HTTP/1.1, a trace of curl, or a HAR.
//!
//! Invariant: every assumption and repair is listed in the notes, because a signature covers bytes and not their intent. A
//! reader decides nothing: it also accepts requests that the gateway refuses.
//! Deliberately not here: `curl -v`, whose output omits the body.

mod body;
mod har;
mod raw;
mod trace;

use http::{HeaderMap, HeaderName, HeaderValue};

/// A request.
#[derive(Debug)]
pub(super) struct SavedRequest {
    /// The format of the file.
    pub(super) form: &'static str,
    /// The method.
    pub(super) method: String,
    /// Path and query.
    pub(super) target: Vec<u8>,
    /// The framing on the wire.
    pub(super) wire: Wire,
    /// The headers. Over HTTP/2 without Host; the authority replaces it.
    pub(super) headers: HeaderMap,
    /// The body, without its framing.
    pub(super) body: Vec<u8>,
    /// Assumptions and repairs.
    pub(super) notes: Vec<String>,
}

/// The framing of a request on the wire.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Text (HTTP/1.1): the head with its empty line.
    Lines(Vec<u8>),
    /// Frames (HTTP/2): `:authority`.
    Frames(Option<String>),
}

/// An answer.
#[derive(Debug)]
pub(super) struct SavedResponse {
    /// The status line.
    pub(super) status: String,
    /// The headers.
    pub(super) headers: HeaderMap,
    /// The body.
    pub(super) body: Vec<u8>,
    /// Assumptions and repairs.
    pub(super) notes: Vec<String>,
}

/// The reason why an input is unusable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedFault {
    /// The input is empty.
    #[error("the input is empty")]
    Empty,
    /// The first line is not method, target and version.
    #[error(
        "the first line is no request line such as `GET /v1/accounts HTTP/1.1`; expected a raw HTTP/1.1 request, the output of curl --trace-ascii, or a HAR"
    )]
    RequestLine,
    /// The first line has method and target, but no version: the output of `portvakt tpp sign`, or an access log.
    #[error(
        "the first line has no version, such as HTTP/1.1: this is no whole request. `portvakt tpp sign --curl` prints a command, and with --trace-ascii FILE that saves one"
    )]
    NoVersion,
    /// The output of `curl -v`.
    #[error(
        "this is what curl -v prints, without the body and with the gateway's answer in between: save the request with curl --trace-ascii FILE"
    )]
    Verbose,
    /// The first line is not a status line.
    #[error("the first line is no status line such as `HTTP/1.1 200 OK`")]
    StatusLine,
    /// A line of the head is not a header. The gateway's HTTP layer refuses such a request by itself.
    #[error(
        "line {line} of the head is no header: {why}. The HTTP layer refuses it; a request is answered with 400 and no body (HTTP-7)"
    )]
    Header {
        /// The line of the head, from 1.
        line: usize,
        /// The fault.
        why: &'static str,
    },
    /// The trace has no `=> Send header`.
    #[error("the trace holds no request: no `=> Send header` with rows below it")]
    NoRequest,
    /// The JSON is not a HAR.
    #[error("the input begins as JSON does but is no HAR: {0}")]
    Har(String),
    /// `--entry` names a request that does not exist.
    #[error("there is no request {wanted}: the input holds {found}, counted from 1")]
    Entry {
        /// The requested number.
        wanted: usize,
        /// The number of requests.
        found: usize,
    },
}

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

/// Selects one of several requests: `entry`, or else the last signed one, or else the last.
fn choose<T>(
    mut all: Vec<T>,
    entry: Option<usize>,
    is_signed: impl Fn(&T) -> bool,
) -> Result<(T, Option<String>), SavedFault> {
    let found = all.len();
    let index = match entry {
        Some(wanted) => wanted
            .checked_sub(1)
            .filter(|index| *index < found)
            .ok_or(SavedFault::Entry { wanted, found })?,
        None => all
            .iter()
            .rposition(is_signed)
            .unwrap_or(found.saturating_sub(1)),
    };
    if index >= found {
        return Err(SavedFault::NoRequest);
    }
    let note = (found > 1).then(|| {
        let which = index.saturating_add(1);
        format!("this is request {which} of {found}; --entry N chooses another")
    });
    Ok((all.swap_remove(index), note))
}

/// Parses a header. `line` is its position, for the fault.
fn header(name: &[u8], value: &[u8], line: usize) -> Result<(HeaderName, HeaderValue), SavedFault> {
    let fault = |why| SavedFault::Header { line, why };
    if name.ends_with(b" ") || name.ends_with(b"\t") {
        return Err(fault("white space stands before the colon"));
    }
    let name = HeaderName::from_bytes(name)
        .map_err(|_| fault("its name is not one that a header can have"))?;
    let value = HeaderValue::from_bytes(crate::interface::headers::trim(value))
        .map_err(|_| fault("its value holds a control character"))?;
    Ok((name, value))
}

#[cfg(test)]
mod tests;
