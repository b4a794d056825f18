//! Finds the end of a body in a file that may have lost or gained bytes at its end.

use http::{
    HeaderMap,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
};

/// The body: Content-Length bytes, or the decoded chunks, or the rest of the file.
pub(super) fn of(headers: &HeaderMap, rest: &[u8], notes: &mut Vec<String>) -> Vec<u8> {
    if headers.contains_key(TRANSFER_ENCODING) {
        return unchunked(rest).unwrap_or_else(|| {
            notes.push("what follows the head is not in chunks, though Transfer-Encoding says so; it is read as the body".to_owned());
            rest.to_vec()
        });
    }
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.trim().parse::<usize>().ok());
    let Some(length) = length else {
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

/// Decodes chunks (RFC 9112, section 7.1), if they are complete.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = memchr::memmem::find(rest, b"\r\n")?;
        let (line, after) = rest.split_at_checked(end)?;
        let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        let (chunk, after) = after.strip_prefix(b"\r\n")?.split_at_checked(size)?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(chunk);
        rest = after.strip_prefix(b"\r\n")?;
    }
}
