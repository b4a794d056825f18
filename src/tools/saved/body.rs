//! Finds the end of a body in a file that may have lost or gained bytes at its end.

use super::message::KeptBody;
use crate::{
    hex,
    interface::chunks::{ChunkInspector, ChunkedBody},
};
use http::{
    HeaderMap,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
};

/// The body of a request, and how it is kept. `is_exact`: the bytes are those of the wire, and no editor has changed their end.
pub(super) fn of_request(
    headers: &HeaderMap,
    rest: &[u8],
    is_exact: bool,
    notes: &mut Vec<String>,
) -> (Vec<u8>, KeptBody) {
    let framed = |bytes: &[u8]| KeptBody::Framed(bytes.to_vec());
    if headers.contains_key(TRANSFER_ENCODING) {
        let read = ChunkInspector::default().take(rest);
        let is_chunked = match read {
            ChunkedBody::Exact | ChunkedBody::Followed => true,
            ChunkedBody::Malformed => is_exact || begins_as_chunk(rest),
            ChunkedBody::Incomplete => false,
        };
        if is_chunked {
            let body = unchunked(rest).unwrap_or_else(|| rest.to_vec());
            return (body, framed(rest));
        }
        return (of(headers, rest, notes), KeptBody::Alone);
    }
    match length(headers) {
        // The head is ambiguous, and the gateway refuses it.
        Err(()) => (rest.to_vec(), framed(rest)),
        Ok(None) if is_exact => (Vec::new(), framed(&[])),
        Ok(length) => {
            let body = of(headers, rest, notes);
            let kept = match length.unwrap_or_default() == body.len() {
                true => framed(&body),
                false => KeptBody::Alone,
            };
            (body, kept)
        }
    }
}

/// Content-Length, if there is one; an error if it is not one number.
pub(super) fn length(headers: &HeaderMap) -> Result<Option<usize>, ()> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lengths.next() else {
        return Ok(None);
    };
    let text = first.to_str().map_err(|_| ())?.trim();
    let is_number = lengths.next().is_none() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        .then(|| text.parse().ok())
        .flatten()
        .map_or(Err(()), |length| Ok(Some(length)))
}

/// A body that a program has taken out of its framing, in the framing that the head names.
pub(super) fn framed_anew(headers: &HeaderMap, body: &[u8]) -> KeptBody {
    if headers.contains_key(TRANSFER_ENCODING) {
        return KeptBody::Framed(chunked(body));
    }
    match length(headers) {
        Ok(Some(length)) if length != body.len() => KeptBody::Alone,
        Ok(None) if !body.is_empty() => KeptBody::Alone,
        _ => KeptBody::Framed(body.to_vec()),
    }
}

/// A body as one chunk, with the end of chunks.
fn chunked(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len().saturating_add(24));
    if !body.is_empty() {
        bytes.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// The body: Content-Length bytes, or the decoded chunks, or the rest of the file.
pub(super) fn of(headers: &HeaderMap, rest: &[u8], notes: &mut Vec<String>) -> Vec<u8> {
    if headers.contains_key(TRANSFER_ENCODING) {
        return unchunked(rest).unwrap_or_else(|| {
            notes.push("what follows the head is not in chunks, though Transfer-Encoding says so; it is read as the body".to_owned());
            rest.to_vec()
        });
    }
    let Ok(Some(length)) = length(headers) else {
        // An editor adds a line ending, which is no body.
        if rest.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
            return Vec::new();
        }
        if !headers.contains_key(CONTENT_LENGTH) {
            notes.push(format!(
                "there is no Content-Length; the {} bytes after the head are read as the body",
                rest.len()
            ));
        }
        return rest.to_vec();
    };
    let Some((body, surplus)) = rest.split_at_checked(length) else {
        notes.push(format!(
            "the body has {} bytes, {} fewer than Content-Length says: the gateway would wait for them; it is judged by what is here",
            rest.len(),
            length.saturating_sub(rest.len())
        ));
        return rest.to_vec();
    };
    if !surplus.is_empty() {
        let ends = surplus.iter().all(|byte| matches!(byte, b'\r' | b'\n'));
        let why = if ends { " (an editor's line end)" } else { "" };
        notes.push(format!(
            "{} bytes{why} follow the {length} bytes that Content-Length names; they are left out",
            surplus.len()
        ));
    }
    body.to_vec()
}

/// Whether these bytes were meant as chunks: a JSON document that some program has taken out of its chunks begins otherwise.
fn begins_as_chunk(rest: &[u8]) -> bool {
    let first = rest.trim_ascii_start().first();
    !matches!(first, None | Some(b'{' | b'[' | b'"'))
}

/// Decodes chunks (RFC 9112, section 7.1), if they are complete.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = memchr::memmem::find(rest, b"\r\n")?;
        let (line, after) = rest.split_at_checked(end)?;
        let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
        let size = usize::try_from(hex::number(digits)?).ok()?;
        let (chunk, after) = after.strip_prefix(b"\r\n")?.split_at_checked(size)?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(chunk);
        rest = after.strip_prefix(b"\r\n")?;
    }
}
