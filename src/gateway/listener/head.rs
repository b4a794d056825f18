//! The head of an HTTP/1.1 request, before the HTTP layer.
//!
//! pingora parses a head again at each read, up to 1 MiB, and percent-encodes some bytes of a request target. Here, a head that
//! arrives in many parts is held back until it is complete or too large (HTTP-9), and such bytes are detected (HTTP-10). A head
//! that arrives complete, or in a few parts, passes without a copy. Deliberately not here: the meaning of a head.

use super::{deadline::Awaited, frames::Cut};
use crate::{
    config::ListenerLimits,
    interface::chunks::{ChunkInspector, ChunkedBody},
};
use std::time::Duration;

/// The number of parts of a head that pass at once. An ordinary head arrives in one to three parts, and parsing it three times
/// costs little.
const PASSED: u32 = 3;

/// The size in bytes below which a part is small: a client that sends a head of many parts has no reason for such ones, but for the last.
const SMALL_PART: usize = 256;

/// The most lines of a head: the request line, and the fields that pingora can parse. For more fields it would answer 400; the
/// configured limit is lower, and the gateway checks it when the head is parsed.
const MOST_LINES: u32 = 1 + 256;

/// A partially received head.
#[derive(Debug, Default)]
pub(super) struct Http1Head {
    /// The number of requests read before this head.
    request: u32,
    /// The number of received bytes and parts.
    length: usize,
    parts: u32,
    ended: bool,
    /// Whether the latest part was small.
    drips: bool,
    lines: Lines,
    request_line: RequestLine,
    held: Vec<u8>,
    given: usize,
    body: Body,
}

/// The bytes after a head.
#[derive(Debug, Default)]
struct Body {
    length: usize,
    chunks: ChunkInspector,
    chunked: ChunkedBody,
}

/// A head exceeds the limit on its size or on its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Http1Head {
    /// Whether no part has arrived.
    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// What the connection must send after this many requests, by when, and the end otherwise. Between two requests, nothing of a head is
    /// awaited.
    pub(super) const fn awaited(
        &self,
        requests: u32,
        limits: &ListenerLimits,
    ) -> Option<(Awaited, Duration, Cut)> {
        match (self.is_empty(), requests) {
            (true, 0) => Some((
                Awaited::FirstByte,
                limits.first_byte_timeout,
                Cut::SlowPreface,
            )),
            (true, _) => None,
            (false, number) => Some((Awaited::Head(number), limits.head_timeout, Cut::SlowHead)),
        }
    }

    /// Begins another head if the number of requests has grown.
    pub(super) fn begin(&mut self, requests: u32) {
        if self.request != requests {
            *self = Self {
                request: requests,
                ..Self::default()
            };
        }
    }

    /// Whether the next part must be held back.
    pub(super) const fn is_held_back(&self) -> bool {
        self.parts >= PASSED && !self.ended
    }

    /// Whether the latest part was so small that the next one may wait for others.
    pub(super) const fn drips(&self) -> bool {
        self.drips
    }

    /// Takes a received part; returns whether its target contains bytes that the HTTP layer encodes.
    ///
    /// # Errors
    /// The head exceeds the limit on its size or on its lines.
    pub(super) fn take(&mut self, bytes: &[u8], limit: usize) -> Result<bool, TooLarge> {
        self.parts = self.parts.saturating_add(1);
        self.drips = bytes.len() < SMALL_PART;
        if self.ended {
            // The HTTP layer may not recognise the end that was found here: it continues to read, within the limit.
            self.take_body(bytes);
            self.length = self.length.saturating_add(bytes.len());
            return within(self.length, limit).map(|()| false);
        }
        let odd = self.request_line.reads_odd_bytes(bytes);
        let end = self.lines.end(bytes);
        self.ended = end.is_some();
        self.length = self.length.saturating_add(end.unwrap_or(bytes.len()));
        if self.lines.count > MOST_LINES {
            return Err(TooLarge);
        }
        let after = end.and_then(|end| bytes.get(end..));
        self.take_body(after.unwrap_or_default());
        within(self.length, limit).map(|()| odd)
    }

    /// Takes bytes after the head. Only the HTTP layer knows whether they are a chunked body.
    pub(super) fn take_body(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let body = &mut self.body;
        body.length = body.length.saturating_add(bytes.len());
        body.chunked = body.chunks.take(bytes);
    }

    /// The number of bytes after the head, and the result of reading them as a chunked body.
    pub(super) const fn body(&self) -> (usize, ChunkedBody) {
        (self.body.length, self.body.chunked)
    }

    /// Holds a part back.
    pub(super) fn hold(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Whether no held bytes are left.
    pub(super) const fn holds_nothing(&self) -> bool {
        self.given == self.held.len()
    }

    /// Releases the held bytes, because no more of the head will arrive.
    pub(super) const fn release(&mut self) {
        self.ended = true;
    }

    /// The next held bytes, at most `most`; empty while the head is held, and at its end.
    pub(super) fn give(&mut self, most: usize) -> &[u8] {
        if self.given == self.held.len() && !self.held.is_empty() {
            self.held = Vec::new();
            self.given = 0;
        }
        if !self.ended {
            return &[];
        }
        let from = self.given;
        self.given = from.saturating_add(most).min(self.held.len());
        self.held.get(from..self.given).unwrap_or_default()
    }
}

const fn within(length: usize, limit: usize) -> Result<(), TooLarge> {
    if length > limit {
        Err(TooLarge)
    } else {
        Ok(())
    }
}

/// The line state of a head.
#[derive(Debug)]
struct Lines {
    /// Whether the current line is empty so far.
    is_blank: bool,
    /// The number of complete lines that are not empty.
    count: u32,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            is_blank: true,
            count: 0,
        }
    }
}

impl Lines {
    /// The position of the head's end in these bytes: after the empty line that follows other lines. A line may end with LF
    /// alone, as in the HTTP layer.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut rest = bytes;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at_checked(at)?;
            self.is_blank &= is_blank(line);
            rest = after.get(1..).unwrap_or_default();
            if self.is_blank && self.count > 0 {
                return Some(bytes.len().saturating_sub(rest.len()));
            }
            self.count = self.count.saturating_add(u32::from(!self.is_blank));
            self.is_blank = true;
        }
        self.is_blank &= is_blank(rest);
        None
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| *byte == b'\r')
}

/// A partially received request line.
#[derive(Debug, Default)]
struct RequestLine {
    begun: bool,
    ended: bool,
    spaces: u8,
}

impl RequestLine {
    /// Whether these bytes contain one that the HTTP layer would encode: a third space, or a byte outside visible ASCII.
    fn reads_odd_bytes(&mut self, bytes: &[u8]) -> bool {
        let mut odd = false;
        for byte in bytes {
            match byte {
                _ if self.ended => break,
                b'\r' => {}
                // Empty lines before a request line do not count (RFC 9112, section 2.2).
                b'\n' => self.ended = self.begun,
                b' ' => {
                    self.spaces = self.spaces.saturating_add(1);
                    odd |= self.spaces > 2;
                }
                _ => {
                    self.begun = true;
                    odd |= !byte.is_ascii_graphic();
                }
            }
        }
        odd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_bytes_of_a_request_line() {
        let odd = |chunks: &[&str]| {
            let mut line = RequestLine::default();
            chunks
                .iter()
                .any(|chunk| line.reads_odd_bytes(chunk.as_bytes()))
        };
        assert!(!odd(&["GET /v1/a%20b HTTP/1.1\r\nX: æ b c\r\n\r\n"]));
        assert!(!odd(&[
            "\r\n\r\nGET /v1 ",
            "HTTP/1.1\r",
            "\nHost: a b c d\r\n"
        ]));
        assert!(odd(&["GET /v1/a b HTTP/1.1\r\n"]));
        assert!(odd(&["GET /v1/\u{e6} HTTP/1.1\r\n"]));
        assert!(odd(&["GET /v1/", "\u{7f} HTTP/1.1\r\n"]));
    }

    /// Reads a head in parts; returns whether each was held back, and the resulting bytes.
    fn read(parts: &[&[u8]], limit: usize) -> (Vec<bool>, Result<Vec<u8>, TooLarge>) {
        let mut head = Http1Head::default();
        let (mut held, mut out) = (Vec::new(), Vec::new());
        for part in parts {
            let is_held = head.is_held_back();
            held.push(is_held);
            if head.take(part, limit).is_err() {
                return (held, Err(TooLarge));
            }
            if is_held {
                head.hold(part);
            } else {
                out.extend_from_slice(part);
            }
            loop {
                let given = head.give(3);
                if given.is_empty() {
                    break;
                }
                out.extend_from_slice(given);
            }
        }
        (held, Ok(out))
    }

    #[test]
    fn a_head_of_many_parts_is_held_until_it_is_whole() {
        for text in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "\r\n\nGET / HTTP/1.1\nHost: a\n\n",
        ] {
            let bytes: Vec<_> = text.as_bytes().chunks(1).collect();
            let (held, out) = read(&bytes, 100);
            assert_eq!(out.unwrap(), text.as_bytes());
            let passed = PASSED.try_into().unwrap();
            assert!(
                held[..passed].iter().all(|held| !held) && held[passed..].iter().all(|held| *held)
            );
            assert_eq!(read(&[text.as_bytes()], 100).0, [false]);
            // No byte is released before the last one arrives.
            let (_, out) = read(&bytes[..bytes.len() - 1], 100);
            assert_eq!(out.unwrap().len(), passed);
        }
    }

    #[test]
    fn a_body_behind_a_head_does_not_count() {
        let body = [b"POST / HTTP/1.1\r\n\r\n".as_slice(), &[b'x'; 100]].concat();
        assert_eq!(read(&[&body], 19).1.unwrap(), body);
        assert_eq!(read(&[&body], 18).1, Err(TooLarge));
        assert_eq!(read(&[&[b'\n'; 10], &[b'\n'; 10]], 19).1, Err(TooLarge));
    }
}
