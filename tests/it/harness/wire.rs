//! HTTP/1.1 messages from a stream, by the reader of the probe, which shares no parser, and no errors, with the gateway.
//!
//! A malformed head is an error for a client and a request for an upstream, so no malformed message of the gateway passes. Tests that read
//! malformed or incomplete answers on purpose take the bytes, by [`Wire::rest`] or from the stream.

use super::waiting::RAN_OUT;
use portvakt_sandbox::http1::{Fault, Head, Reader, is_timeout};
use std::io::{self, Read};

/// A stream, and the bytes that were read beyond the last message.
pub(crate) struct Wire<S> {
    pub(crate) reader: Reader<S>,
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

impl<S: Read> Wire<S> {
    pub(crate) const fn new(stream: S) -> Self {
        let reader = Reader::new(stream, usize::MAX);
        Self { reader }
    }

    /// The next head, from its first line to the empty line; `None` if the stream ends before the head begins.
    pub(crate) fn head(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.reader.head().map_err(broken)
    }

    /// The body that follows this head.
    pub(crate) fn body(&mut self, head: &Head) -> io::Result<Vec<u8>> {
        self.reader.body(head).map_err(broken)
    }

    /// The next final response; informational responses are skipped, but 101, after which no HTTP follows.
    pub(crate) fn answer(&mut self, method: &str) -> io::Result<Answer> {
        let (head, _) = self.reader.final_head().map_err(broken)?;
        let body = match method {
            "HEAD" => Vec::new(),
            _ => self.body(&head)?,
        };
        Ok(Answer {
            status: head.status().unwrap(),
            headers: in_text(&head),
            body,
        })
    }

    /// Reads until the other side closes, with or without an error, and returns the remaining bytes.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        match self.reader.rest() {
            Ok(bytes) => bytes,
            Err(Fault::Broken(_, error)) if is_timeout(&error) => {
                panic!("{RAN_OUT}: the connection stays open")
            }
            Err(_) => self.reader.surplus().to_vec(),
        }
    }

    /// Waits until the next message has begun, and leaves it to be read.
    pub(crate) fn begun(&mut self) -> io::Result<()> {
        match self.reader.begins().map_err(broken)? {
            true => Ok(()),
            false => Err(broken(Fault::Ended("before a message"))),
        }
    }

    /// Reads this number of bytes.
    pub(crate) fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        self.reader.exactly(length).map_err(broken)
    }
}

/// The headers in order, as text.
pub(crate) fn in_text(head: &Head) -> Vec<(String, String)> {
    let headers = head.headers.iter();
    headers
        .map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).into_owned()))
        .collect()
}

/// The first value of a header.
pub(crate) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

fn broken(fault: Fault) -> io::Error {
    match fault {
        Fault::Broken(_, error) if is_timeout(&error) => {
            io::Error::new(error.kind(), format!("{RAN_OUT}: {error}"))
        }
        Fault::Broken(_, error) => error,
        Fault::Ended(_) | Fault::Malformed(_) => {
            let text = format!("the stream ended or broke: {fault}");
            io::Error::new(io::ErrorKind::UnexpectedEof, text)
        }
    }
}
