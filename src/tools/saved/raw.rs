//! Raw HTTP/1.1, from the wire or from an editor.
//!
//! A file with only bare LF comes from an editor and is read as if it had CRLF, the line ending on the wire. In a file with
//! CRLF, a bare LF belongs to the request, and the gateway judges it (HTTP-7).

use super::{SavedFault, SavedRequest, SavedResponse, Wire, body, header::header};
use http::{HeaderMap, header::HOST};

/// A head, separated into lines, and the bytes after it.
struct Head<'a> {
    /// The head with CRLF, including the empty line.
    raw: Vec<u8>,
    first: Vec<u8>,
    headers: HeaderMap,
    rest: &'a [u8],
    notes: Vec<String>,
}

pub(super) fn request(input: &[u8]) -> Result<SavedRequest, SavedFault> {
    let input = trim_empty_lines(input);
    let first = input
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    // Checked first: the fault of another file format should name the format, not its third line.
    let first = first.strip_suffix(b"\r").unwrap_or(first);
    let (method, target, framed) = request_line(first).ok_or_else(|| what_else(input, first))?;
    let Head {
        raw,
        mut headers,
        rest,
        mut notes,
        ..
    } = head(input)?;
    let body = body::of(&headers, rest, &mut notes);
    let wire = if framed {
        let host = headers.remove(HOST);
        Wire::Frames(host.and_then(|host| Some(host.to_str().ok()?.to_owned())))
    } else {
        Wire::Lines(raw)
    };
    Ok(SavedRequest {
        form: "raw HTTP",
        method,
        target,
        wire,
        headers,
        body,
        notes,
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
    if input.starts_with(b"HTTP/") {
        head(input)
    } else {
        Err(SavedFault::StatusLine)
    }
}

fn head(input: &[u8]) -> Result<Head<'_>, SavedFault> {
    let mut rest = input;
    let mut raw = Vec::with_capacity(1024);
    let mut first = None;
    let mut headers = HeaderMap::new();
    let mut notes = Vec::new();
    let bare = is_bare(input);
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
            line => {
                let (name, value) = header_line(line, number)?;
                // The map is limited to 32 768 headers, far above any real head.
                let _ = headers.try_append(name, value);
            }
        }
    }
    Ok(Head {
        raw,
        first: first.unwrap_or_default(),
        headers,
        rest,
        notes,
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
fn request_line(line: &[u8]) -> Option<(String, Vec<u8>, bool)> {
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

/// The likely format of a file without a request line.
fn what_else(input: &[u8], first: &[u8]) -> SavedFault {
    // `* Trying …`, and behind it `> GET /v1/accounts HTTP/1.1`.
    let mut lines = input.split(|byte| *byte == b'\n').take(200);
    if lines.any(|line| {
        let sent = line.strip_prefix(b"> ").map(<[u8]>::trim_ascii_end);
        sent.and_then(request_line).is_some()
    }) {
        return SavedFault::Verbose;
    }
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

/// The first line ending decides.
fn is_bare(input: &[u8]) -> bool {
    let end = memchr::memchr(b'\n', input);
    end.is_some_and(|end| !input.get(..end).unwrap_or_default().ends_with(b"\r"))
}

/// A server ignores empty lines before a request (RFC 9112, section 2.2).
fn trim_empty_lines(mut input: &[u8]) -> &[u8] {
    while let [b'\r' | b'\n', rest @ ..] = input {
        input = rest;
    }
    input
}
