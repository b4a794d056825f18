//! HTTP/1.1 messages from a stream: for the probe, and for tests and benchmarks that look at a peer byte by byte.
//!
//! Invariant: nothing is corrected or hidden, as a client's library would do: informational answers are messages of their own, each header
//! is kept in order, and bytes behind a message stay in the buffer. It is written by hand on purpose: the gateway reads heads with
//! httparse, which skips empty lines before a head and accepts lines without CR, and its tests must not share such errors. Deliberately not
//! here: deadlines, which are the stream's, and the judgement of framing.

use portvakt_base::hex;
use std::{
    io::{self, ErrorKind, Read},
    str::FromStr,
};

/// The reason why there is no message. The texts name the part of it that was read.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The connection broke, or a read timed out.
    #[error("{1} {0}")]
    Broken(&'static str, io::Error),
    /// The connection ended.
    #[error("the connection ended {0}")]
    Ended(&'static str),
    /// The bytes are not HTTP/1.1, or more than the limit.
    #[error("{0}")]
    Malformed(&'static str),
}

const BEFORE: &str = "before a message";
const HEAD: &str = "within a head";
const BODY: &str = "within a body";

/// The head of a message.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The first line.
    pub line: String,
    /// Names as they were sent, and values without outer white space, in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The bytes of the head, with the empty line.
    pub size: usize,
}

impl Head {
    /// Parses the bytes of a head, with the empty line.
    ///
    /// # Errors
    /// [`Fault::Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let lines: Option<Vec<_>> = lines.map(|line| line.strip_suffix(b"\r\n")).collect();
        let lines = lines.ok_or(Fault::Malformed("a line of its head ends without CR"))?;
        let [first, fields @ .., []] = lines.as_slice() else {
            return Err(Fault::Malformed("it has no head"));
        };
        let headers = fields.iter().map(|line| {
            let at = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = line.split_at_checked(at)?;
            Some((text(name), value.get(1..)?.trim_ascii().to_vec()))
        });
        let headers: Option<_> = headers.collect();
        Ok(Self {
            line: text(first),
            headers: headers.ok_or(Fault::Malformed("a header has no colon"))?,
            size: bytes.len(),
        })
    }

    /// The status code; `None` for a request.
    pub fn status(&self) -> Option<u16> {
        let mut words = self.line.split(' ');
        let version = words.next()?;
        let status = words.next().filter(|status| status.len() == 3)?;
        let is_answer = ["HTTP/1.1", "HTTP/1.0"].contains(&version);
        decimal(status.as_bytes()).filter(|_| is_answer)
    }

    /// All values of a header.
    pub fn values(&self, name: &str) -> Vec<&[u8]> {
        let headers = self.headers.iter();
        let named = headers.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_slice()).collect()
    }

    /// The first value of a header as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.values(name).first()?).ok()
    }

    /// The transfer codings, in lower case.
    pub fn codings(&self) -> Vec<String> {
        let values = self.values("transfer-encoding");
        let codings = values.iter().flat_map(|value| value.split(|b| *b == b','));
        let texts =
            codings.map(|coding| String::from_utf8_lossy(coding.trim_ascii()).to_lowercase());
        texts.filter(|coding| !coding.is_empty()).collect()
    }

    /// The first Content-Length; `None` also if it is no number.
    pub fn length(&self) -> Option<usize> {
        decimal(self.values("content-length").first()?)
    }
}

/// A number in decimal digits. The standard library takes a sign before them.
fn decimal<N: FromStr>(digits: &[u8]) -> Option<N> {
    let is_plain = digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_plain);
    text?.parse().ok()
}

/// A stream, and the bytes that were read beyond the last message.
#[derive(Debug)]
pub struct Reader<S> {
    /// The stream.
    pub stream: S,
    buffer: Vec<u8>,
    most: usize,
}

impl<S: Read> Reader<S> {
    /// A reader of heads and bodies of at most this number of bytes each. Every method fails with a [`Fault`].
    pub const fn new(stream: S, most: usize) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            most,
        }
    }

    /// The bytes that were read beyond the last message.
    pub fn surplus(&self) -> &[u8] {
        &self.buffer
    }

    /// The bytes of the next head, from its first line to the empty line; `None` if the stream ends before the head begins.
    pub fn head(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        match self.begins()? {
            true => self.until(b"\r\n\r\n", HEAD).map(Some),
            false => Ok(None),
        }
    }

    /// The next final answer's head, and the number of informational answers before it. After 101 no HTTP follows, so it is final.
    pub fn final_head(&mut self) -> Result<(Head, usize), Fault> {
        for informational in 0.. {
            let head = Head::parse(&self.head()?.ok_or(Fault::Ended(BEFORE))?)?;
            match head.status() {
                Some(100 | 102..200) => {}
                Some(_) => return Ok((head, informational)),
                None => return Err(Fault::Malformed("it has no status line")),
            }
        }
        Err(Fault::Malformed("it does not end"))
    }

    /// The body behind a head. Without framing an answer ends with the connection, and a request has no body.
    pub fn body(&mut self, head: &Head) -> Result<Vec<u8>, Fault> {
        let status = head.status();
        if matches!(status, Some(0..200 | 204 | 304)) {
            return Ok(Vec::new());
        }
        if head.codings().last().is_some_and(|last| last == "chunked") {
            return self.chunks();
        }
        match (head.values("content-length").is_empty(), head.length()) {
            (_, Some(length)) => self.exactly(length),
            (false, None) => Err(Fault::Malformed("Content-Length is no number")),
            (true, None) if status.is_none() => Ok(Vec::new()),
            (true, None) => self.rest(),
        }
    }

    /// Everything until the end of the connection.
    pub fn rest(&mut self) -> Result<Vec<u8>, Fault> {
        while self.fill(BODY)? {}
        Ok(std::mem::take(&mut self.buffer))
    }

    /// This number of bytes.
    pub fn exactly(&mut self, length: usize) -> Result<Vec<u8>, Fault> {
        self.check(length)?;
        while self.buffer.len() < length {
            self.fill(BODY)?.then_some(()).ok_or(Fault::Ended(BODY))?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// Waits for the first byte of a message; false if the connection ends instead.
    pub fn begins(&mut self) -> Result<bool, Fault> {
        Ok(!self.buffer.is_empty() || self.fill(BEFORE)?)
    }

    fn chunks(&mut self) -> Result<Vec<u8>, Fault> {
        let mut body = Vec::new();
        loop {
            let line = self.until(b"\r\n", BODY)?;
            let size = line.split(|b| *b == b';').next().unwrap_or_default();
            let size = size.trim_ascii();
            let size = hex::number(size).and_then(|size| usize::try_from(size).ok());
            let size = size.ok_or(Fault::Malformed("a chunk has no size"))?;
            if size == 0 {
                while self.until(b"\r\n", BODY)?.len() > 2 {}
                return Ok(body);
            }
            self.check(body.len().saturating_add(size))?;
            body.extend(self.exactly(size)?);
            if self.exactly(2)? != b"\r\n" {
                return Err(Fault::Malformed("a chunk is longer than its size"));
            }
        }
    }

    /// The bytes up to `end`, with it.
    fn until(&mut self, end: &[u8], place: &'static str) -> Result<Vec<u8>, Fault> {
        let mut searched: usize = 0;
        loop {
            let rest = self.buffer.get(searched..).unwrap_or_default();
            if let Some(at) = rest.windows(end.len()).position(|window| window == end) {
                let length = searched.saturating_add(at).saturating_add(end.len());
                return Ok(self.buffer.drain(..length).collect());
            }
            searched = self.buffer.len().saturating_sub(end.len());
            self.fill(place)?.then_some(()).ok_or(Fault::Ended(place))?;
        }
    }

    fn check(&self, length: usize) -> Result<(), Fault> {
        match length > self.most {
            true => Err(Fault::Malformed("it is too long")),
            false => Ok(()),
        }
    }

    /// Reads once; false at the end of the connection.
    fn fill(&mut self, place: &'static str) -> Result<bool, Fault> {
        self.check(self.buffer.len())?;
        let mut bytes = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(count) => {
                    self.buffer.extend(bytes.iter().take(count));
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::Broken(place, error)),
            }
        }
    }
}

/// Whether a read came to the end of its time.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> Reader<&[u8]> {
        Reader::new(bytes, 1_000)
    }

    fn body(bytes: &str) -> Result<Vec<u8>, Fault> {
        let mut reader = reader(bytes.as_bytes());
        let (head, _) = reader.final_head()?;
        reader.body(&head)
    }

    #[test]
    fn messages_behind_one_another() {
        let mut reader = reader(
            b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n\
              HTTP/1.1 200\r\nA:  b \r\na: \xe6\r\nTransfer-Encoding: x, Chunked\r\n\r\n2;x=\"y\"\r\n{}\r\n0\r\nB: c\r\n\r\n\
              HTTP/1.0 204 No\r\nContent-Length: 2\r\n\r\nsurplus",
        );
        let (head, informational) = reader.final_head().unwrap();
        assert_eq!((head.status(), informational), (Some(200), 1));
        assert_eq!(head.values("A"), [b"b".as_slice(), b"\xe6"]);
        assert_eq!(head.codings(), ["x", "chunked"]);
        assert_eq!(reader.body(&head).unwrap(), b"{}");
        let (head, _) = reader.final_head().unwrap();
        assert_eq!(head.length(), Some(2));
        assert_eq!(reader.body(&head).unwrap(), b"");
        assert_eq!(reader.surplus(), b"surplus");
    }

    #[test]
    fn the_end_of_a_connection() {
        assert!(reader(b"").head().unwrap().is_none());
        assert_eq!(body("HTTP/1.1 200 OK\r\n\r\n[1]").unwrap(), b"[1]");
        for (bytes, place) in [
            ("", BEFORE),
            ("HTTP/1.1 100 Continue\r\n\r\n", BEFORE),
            ("HTTP/1.1 200 OK\r\n", HEAD),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1", BODY),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n",
                BODY,
            ),
        ] {
            let fault = body(bytes).unwrap_err();
            assert!(
                matches!(fault, Fault::Ended(at) if at == place),
                "{bytes}: {fault}"
            );
        }
    }

    #[test]
    fn malformed_messages() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunks = ["", "+1", "x", "fff", "ffffffffffffffffff"];
        let chunks = chunks.map(|size| format!("{chunked}{size}\r\n1\r\n0\r\n\r\n"));
        let longer = format!("{chunked}1\r\n12\r\n0\r\n\r\n");
        let heads = [
            longer.as_str(),
            "HTTP/1.1 +20 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n1",
            "\r\n\r\n",
            "\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\nA: b\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n",
        ];
        let heads = heads.map(str::to_owned);
        for bytes in chunks.iter().chain(&heads) {
            let read = body(bytes);
            assert!(
                matches!(read, Err(Fault::Malformed(_))),
                "{bytes:?}: {read:?}"
            );
        }
    }
}
