//! Raw HTTP/1.1, from the wire or from an editor.
//!
//! A file with only bare LF comes from an editor and is read as if it had CRLF, the line ending on the wire. In a file with
//! CRLF, a bare LF belongs to the request, and the gateway judges it (HTTP-7).

use super::{
    KeptBody, SavedFault, SavedRequest, SavedResponse, Wire, body, doubts::Doubts, header::header,
};
use http::{
    HeaderMap,
    header::{CONTENT_LENGTH, HOST},
};

/// A head, separated into lines, and the bytes after it.
struct Head<'a> {
    /// The head with CRLF, including the empty line.
    raw: Vec<u8>,
    first: Vec<u8>,
    headers: HeaderMap,
    rest: &'a [u8],
    notes: Vec<String>,
    /// The lines that are no headers.
    damage: Vec<SavedFault>,
}

/// The origin of raw bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InputOrigin {
    /// A file, which an editor may have changed.
    File,
    /// A record of the bytes that were sent.
    Record,
}

pub(super) fn request(input: &[u8], origin: InputOrigin) -> Result<SavedRequest, SavedFault> {
    let after = trim_empty_lines(input);
    let first = after
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    // Checked first: the fault of another file format should name the format, not its third line.
    let first = first.strip_suffix(b"\r").unwrap_or(first);
    let line = request_line(first).or_else(|| damaged_request_line(first));
    let (method, target, mut framed) = line.ok_or_else(|| what_else(first))?;
    let is_exact = origin == InputOrigin::Record;
    // A record of HTTP/2 says `HTTP/2`.
    framed &= !(is_exact && first.ends_with(b".0"));
    let Head {
        mut raw,
        mut headers,
        rest,
        mut notes,
        damage,
        ..
    } = head(after, origin)?;
    if framed && !is_exact {
        notes.push(
            "the request line names HTTP/2, as curl shows it; it is judged as a request over HTTP/2"
                .to_owned(),
        );
    }
    let (body, kept) = match framed {
        // Over HTTP/2, a body needs no Content-Length; a line end is an editor's.
        true if !headers.contains_key(CONTENT_LENGTH) => {
            let is_body = is_exact || !rest.trim_ascii().is_empty();
            let body = Some(rest).filter(|_| is_body).unwrap_or_default();
            (body.to_vec(), KeptBody::Alone)
        }
        true => (body::of(&headers, rest, &mut notes), KeptBody::Alone),
        false => body::of_request(&headers, rest, is_exact, &mut notes),
    };
    let damage_in_words = damage.iter().map(ToString::to_string).collect();
    let wire = if framed {
        // Frames cannot carry such a line, so the file is no record of one.
        if let Some(fault) = damage.into_iter().next() {
            return Err(fault);
        }
        let host = headers.remove(HOST);
        Wire::Frames(host.and_then(|host| Some(host.to_str().ok()?.to_owned())))
    } else {
        // Empty lines before a request belong to its bytes, unless an editor has written them.
        if is_exact || !is_bare(after) {
            let before = input.len().saturating_sub(after.len());
            raw.splice(..0, input.iter().copied().take(before));
        }
        Wire::Lines(raw)
    };
    Ok(SavedRequest {
        form: "raw HTTP",
        method,
        target,
        wire,
        headers,
        body,
        kept,
        notes,
        damage: damage_in_words,
        doubts: Doubts::default(),
    })
}

pub(super) fn response(input: &[u8]) -> Result<SavedResponse, SavedFault> {
    let mut head = head_of_response(trim_empty_lines(input))?;
    // `curl -i` includes 100 Continue.
    while is_informational(&head.first) {
        head = head_of_response(head.rest)?;
    }
    let body = body::of(&head.headers, head.rest, &mut head.notes);
    Ok(SavedResponse {
        status: String::from_utf8_lossy(&head.first).into_owned(),
        headers: head.headers,
        body,
        notes: head.notes,
    })
}

fn head_of_response(input: &[u8]) -> Result<Head<'_>, SavedFault> {
    if !input.starts_with(b"HTTP/") {
        return Err(SavedFault::StatusLine);
    }
    let mut head = head(input, InputOrigin::File)?;
    match head.damage.pop() {
        Some(fault) => Err(fault),
        None => Ok(head),
    }
}

fn head(input: &[u8], origin: InputOrigin) -> Result<Head<'_>, SavedFault> {
    let mut rest = input;
    let mut raw = Vec::with_capacity(1024);
    let mut first = None;
    let mut headers = HeaderMap::new();
    let mut notes = Vec::new();
    let mut damage = Vec::new();
    let bare = origin == InputOrigin::File && is_bare(input);
    if bare {
        notes.push(
            "its lines end in a bare LF; the head is read as if they ended in CRLF".to_owned(),
        );
    }
    for number in 1_usize.. {
        if rest.is_empty() {
            notes.push("there is no empty line after the headers; the head is read to the end of the input".to_owned());
            raw.extend_from_slice(b"\r\n");
            break;
        }
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at.saturating_add(1));
        let (line, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        rest = after;
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        if bare || !line.ends_with(b"\n") {
            raw.extend_from_slice(content);
            raw.extend_from_slice(b"\r\n");
        } else {
            raw.extend_from_slice(line);
        }
        match content {
            [] => break,
            line if first.is_none() => first = Some(line.to_vec()),
            line => match header_line(line, number) {
                Ok((name, value)) => {
                    // The map is limited to 32 768 headers, far above any real head.
                    let _ = headers.try_append(name, value);
                }
                Err(fault) => damage.push(fault),
            },
        }
    }
    Ok(Head {
        raw,
        first: first.unwrap_or_default(),
        headers,
        rest,
        notes,
        damage,
    })
}

fn header_line(
    line: &[u8],
    number: usize,
) -> Result<(http::HeaderName, http::HeaderValue), SavedFault> {
    let fault = |why| SavedFault::Header { line: number, why };
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Err(fault(
            "it continues the line before, which HTTP does not allow any more",
        ));
    }
    let colon = memchr::memchr(b':', line).ok_or_else(|| fault("it has no colon"))?;
    let (name, value) = line.split_at_checked(colon).unwrap_or((line, &[]));
    header(name, value.strip_prefix(b":").unwrap_or(value), number)
}

/// Method, target, and whether the version uses frames.
pub(super) fn request_line(line: &[u8]) -> Option<(String, Vec<u8>, bool)> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || target.is_empty() {
        return None;
    }
    let framed = match version {
        b"HTTP/1.1" | b"HTTP/1.0" => false,
        b"HTTP/2" | b"HTTP/2.0" | b"HTTP/3" => true,
        _ => return None,
    };
    let method = http::Method::from_bytes(method).ok()?;
    Some((method.as_str().to_owned(), target.to_vec(), framed))
}

/// The same of a line that names HTTP and is no request line: the gateway refuses it.
fn damaged_request_line(line: &[u8]) -> Option<(String, Vec<u8>, bool)> {
    let version = memchr::memmem::rfind(line, b"HTTP/").filter(|at| *at > 0)?;
    let before = line.get(..version)?.trim_ascii_end();
    let end = before.iter().position(u8::is_ascii_whitespace);
    let (method, target) = before.split_at_checked(end.unwrap_or(before.len()))?;
    let method = String::from_utf8_lossy(method).into_owned();
    Some((method, target.trim_ascii_start().to_vec(), false))
}

/// The likely format of a file without a request line.
fn what_else(first: &[u8]) -> SavedFault {
    let with_version = [first, b" HTTP/1.1"].concat();
    match request_line(&with_version) {
        Some((_, target, _)) if target.starts_with(b"/") => SavedFault::NoVersion,
        _ => SavedFault::RequestLine,
    }
}

fn is_informational(status_line: &[u8]) -> bool {
    let mut parts = status_line.split(|byte| *byte == b' ');
    parts.nth(1).is_some_and(|status| status.starts_with(b"1"))
}

/// Whether every line of the head ends in a bare LF.
fn is_bare(input: &[u8]) -> bool {
    let end = memchr::memmem::find(input, b"\n\n").unwrap_or(input.len());
    let head = input.get(..end).unwrap_or(input);
    memchr::memchr(b'\n', input).is_some() && memchr::memmem::find(head, b"\r\n").is_none()
}

/// A server ignores empty lines before a request (RFC 9112, section 2.2).
fn trim_empty_lines(mut input: &[u8]) -> &[u8] {
    while let [b'\r' | b'\n', rest @ ..] = input {
        input = rest;
    }
    input
}
