//! HTTP/1.1 messages from a stream, parsed by hand: the harness must not share a parser, or its errors, with the gateway.

use super::waiting::RAN_OUT;
use std::io::{self, Read, Write};

/// A stream, and the bytes that were read beyond the last message.
pub(crate) struct Wire<S> {
    pub(crate) stream: S,
    buffer: Vec<u8>,
}

/// The end of a message whose head has neither Content-Length nor chunked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unframed {
    /// The message has no body: a request, or the answer to HEAD.
    IsEmpty,
    /// The body ends with the connection: an answer.
    EndsWithConnection,
}

/// A response that a client received.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// The headers in order.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The first value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|fault| panic!("{fault} in {}", String::from_utf8_lossy(&self.body)))
    }

    /// The reason in an error body; empty if there is none.
    pub(crate) fn reason(&self) -> String {
        let json: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        json.and_then(|json| json["reason"].as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

impl<S: Read + Write> Wire<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// The next head, from its first line to the empty line; `None` if the stream ends before the head begins.
    pub(crate) fn head(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = self
                .buffer
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                return Ok(Some(self.buffer.drain(..at + 4).collect()));
            }
            if !self.fill()? {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(ended("within a head"))
                };
            }
        }
    }

    /// The body that follows a head with these headers.
    pub(crate) fn body(
        &mut self,
        headers: &[(String, String)],
        unframed: Unframed,
    ) -> io::Result<Vec<u8>> {
        if find(headers, "transfer-encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
        {
            return self.chunks();
        }
        match find(headers, "content-length") {
            Some(length) => self.exactly(
                length
                    .parse()
                    .map_err(|_| ended("a length that is no number"))?,
            ),
            None if unframed == Unframed::IsEmpty => Ok(Vec::new()),
            None => {
                while self.fill()? {}
                Ok(std::mem::take(&mut self.buffer))
            }
        }
    }

    /// The next final response; informational responses are skipped, but 101, after which no HTTP follows.
    pub(crate) fn answer(&mut self, method: &str) -> io::Result<Answer> {
        loop {
            let head = self.head()?.ok_or_else(|| ended("without an answer"))?;
            let (line, headers) = parse_head(&head);
            let status: u16 = line
                .split(' ')
                .nth(1)
                .and_then(|status| status.parse().ok())
                .ok_or_else(|| ended("no status"))?;
            if status < 200 && status != 101 {
                continue;
            }
            let bodiless = method == "HEAD" || status == 204 || status == 304;
            let body = if bodiless {
                Vec::new()
            } else {
                self.body(&headers, Unframed::EndsWithConnection)?
            };
            return Ok(Answer {
                status,
                headers,
                body,
            });
        }
    }

    /// Reads until the other side closes, with or without an error, and returns the remaining bytes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        loop {
            match self.fill() {
                Ok(true) => {}
                Err(fault) if is_timeout(&fault) => {
                    panic!("{RAN_OUT}: the connection stays open")
                }
                Ok(false) | Err(_) => return std::mem::take(&mut self.buffer),
            }
        }
    }

    /// Waits until the next message has begun, and leaves it to be read.
    pub(crate) fn begun(&mut self) -> io::Result<()> {
        while self.buffer.is_empty() {
            if !self.fill()? {
                return Err(ended("before a message"));
            }
        }
        Ok(())
    }

    /// Reads this number of bytes.
    pub(crate) fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            if !self.fill()? {
                return Err(ended("within a body"));
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            if !self.fill()? {
                return Err(ended("within a line"));
            }
        }
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
                .map_err(|_| ended("a chunk without a size"))?;
            if size == 0 {
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            body.extend(self.exactly(size)?);
            self.exactly(2)?;
        }
    }

    /// Returns `false` at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = [0_u8; 16 * 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(count) => {
                    self.buffer.extend_from_slice(&bytes[..count]);
                    return Ok(count > 0);
                }
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
                Err(fault) if is_timeout(&fault) => {
                    return Err(io::Error::new(fault.kind(), format!("{RAN_OUT}: {fault}")));
                }
                Err(fault) => return Err(fault),
            }
        }
    }
}

/// The first line and the headers in order.
pub(crate) fn parse_head(head: &[u8]) -> (String, Vec<(String, String)>) {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    (first, headers)
}

/// The first value of a header.
pub(crate) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

fn is_timeout(fault: &io::Error) -> bool {
    matches!(
        fault.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn ended(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("the stream ended or broke: {what}"),
    )
}
