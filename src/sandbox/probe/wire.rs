//! Connections to the core, and its answers byte by byte.
//!
//! Invariant: nothing that a core sends is corrected or hidden, as a client's library would do: framing, the number of heads and
//! surplus bytes are part of an [`Answer`]. Every wait and every length has a limit. Deliberately not here: judgement.

use portvakt_base::clock::Stopwatch;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The limit of all heads of one answer, in bytes: twice what the gateway reads.
const MOST_HEADS: usize = 128 * 1024;

/// The limit of a body, in bytes: the default of `upstream.max_answer_size`.
const MOST_BODY: usize = 16 * 1024 * 1024;

/// How long bytes are awaited behind an answer.
const SURPLUS_WITHIN: Duration = Duration::from_millis(20);

/// Where the core listens, and how long it may take.
#[derive(Clone, Debug)]
pub(super) struct CoreAddress {
    /// Host and port.
    pub(super) authority: String,
    /// The time for a connection, and for a whole answer.
    pub(super) timeout: Duration,
}

/// The reason why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// No connection, or one that broke.
    #[error("no answer ({0})")]
    Connection(#[from] io::Error),
    /// The connection ended.
    #[error("the core closed the connection {0}")]
    Closed(&'static str),
    /// The time is over.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    /// The bytes are no HTTP/1.1, or too many.
    #[error("the answer is not HTTP/1.1: {0}")]
    Malformed(&'static str),
}

/// An answer as it was sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// The status code.
    pub(super) status: u16,
    /// Names in lower case, and values, in order.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    /// The bytes of the last head.
    pub(super) head_size: usize,
    /// The number of informational answers before.
    pub(super) informational: usize,
    /// The body.
    pub(super) body: Vec<u8>,
    /// Whether bytes came behind the end.
    pub(super) has_surplus: bool,
    /// Whether the connection was open afterwards.
    pub(super) is_open: bool,
}

impl Answer {
    /// All values of a header, whose name is in lower case.
    pub(super) fn values(&self, name: &str) -> Vec<&[u8]> {
        let named = self.headers.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.as_slice()).collect()
    }

    /// The first value of a header as text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.values(name).first()?).ok()
    }

    /// The transfer codings, in lower case.
    pub(super) fn codings(&self) -> Vec<String> {
        let values = self.values("transfer-encoding");
        let codings = values.iter().flat_map(|value| value.split(|b| *b == b','));
        let texts =
            codings.map(|coding| String::from_utf8_lossy(coding.trim_ascii()).to_lowercase());
        texts.filter(|coding| !coding.is_empty()).collect()
    }

    fn length(&self) -> Option<Result<usize, NoAnswer>> {
        let text = self.text("content-length")?;
        Some(
            text.parse()
                .map_err(|_| NoAnswer::Malformed("Content-Length is no number")),
        )
    }
}

impl CoreAddress {
    /// A new connection.
    pub(super) fn connect(&self) -> Result<Connection, NoAnswer> {
        let mut addresses = self.authority.to_socket_addrs()?;
        let address = addresses.next();
        let address = address.ok_or_else(|| io::Error::other("the host has no address"))?;
        let stream = TcpStream::connect_timeout(&address, self.timeout)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(self.timeout))?;
        Ok(Connection {
            stream,
            buffer: Vec::new(),
            timeout: self.timeout,
            watch: Stopwatch::start(),
        })
    }
}

/// A connection with bytes that were read and not used.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    timeout: Duration,
    /// Since the last request.
    watch: Stopwatch,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Sends bytes. The time for an answer begins.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), NoAnswer> {
        self.watch = Stopwatch::start();
        self.stream.write_all(bytes)?;
        Ok(())
    }

    /// The address of this machine that the core sees.
    pub(super) fn local_address(&self) -> Option<IpAddr> {
        Some(self.stream.local_addr().ok()?.ip())
    }

    /// Sends no more.
    pub(super) fn close(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Reads the final answer.
    pub(super) fn answer(&mut self) -> Result<Answer, NoAnswer> {
        let mut answer = self.head()?;
        answer.body = self.body(&answer)?;
        answer.has_surplus = !self.buffer.is_empty();
        self.stream.set_read_timeout(Some(SURPLUS_WITHIN))?;
        let mut bytes = [0];
        answer.is_open = match self.stream.read(&mut bytes) {
            Ok(0) => false,
            Ok(_) => {
                answer.has_surplus = true;
                true
            }
            Err(fault) => is_waiting(&fault),
        };
        Ok(answer)
    }

    fn head(&mut self) -> Result<Answer, NoAnswer> {
        let mut informational = 0;
        let mut read: usize = 0;
        loop {
            let head = self.until(b"\r\n\r\n", MOST_HEADS.saturating_sub(read))?;
            read = read.saturating_add(head.len());
            let (status, headers) = parsed(&head)?;
            if status == 101 || status >= 200 {
                return Ok(Answer {
                    status,
                    headers,
                    head_size: head.len(),
                    informational,
                    ..Answer::default()
                });
            }
            informational += 1;
        }
    }

    fn body(&mut self, answer: &Answer) -> Result<Vec<u8>, NoAnswer> {
        if answer.status < 200 || [204, 304].contains(&answer.status) {
            return Ok(Vec::new());
        }
        if answer
            .codings()
            .last()
            .is_some_and(|last| last == "chunked")
        {
            return self.chunks();
        }
        match answer.length() {
            Some(length) => self.exactly(length?),
            None => {
                while self.fill("within a body")? {
                    within(self.buffer.len(), MOST_BODY)?;
                }
                Ok(std::mem::take(&mut self.buffer))
            }
        }
    }

    fn chunks(&mut self) -> Result<Vec<u8>, NoAnswer> {
        const NOT: NoAnswer = NoAnswer::Malformed("a chunk has no size");
        let mut body = Vec::new();
        loop {
            let line = self.until(b"\r\n", MOST_HEADS)?;
            let size = line.split(|b| *b == b';').next().unwrap_or_default();
            let size = std::str::from_utf8(size.trim_ascii()).map_err(|_| NOT)?;
            let size = usize::from_str_radix(size, 16).map_err(|_| NOT)?;
            if size == 0 {
                while self.until(b"\r\n", MOST_HEADS)?.len() > 2 {}
                return Ok(body);
            }
            within(body.len().saturating_add(size), MOST_BODY)?;
            body.extend(self.exactly(size)?);
            self.exactly(2)?;
        }
    }

    /// The bytes up to `end`, with it.
    fn until(&mut self, end: &[u8], most: usize) -> Result<Vec<u8>, NoAnswer> {
        let mut searched: usize = 0;
        loop {
            let rest = self.buffer.get(searched..).unwrap_or_default();
            if let Some(at) = rest.windows(end.len()).position(|window| window == end) {
                let length = searched.saturating_add(at).saturating_add(end.len());
                return Ok(self.buffer.drain(..length).collect());
            }
            searched = self.buffer.len().saturating_sub(end.len());
            within(self.buffer.len(), most)?;
            let place = match self.buffer.is_empty() {
                true => "without an answer",
                false => "within an answer",
            };
            if !self.fill(place)? {
                return Err(NoAnswer::Closed(place));
            }
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, NoAnswer> {
        within(length, MOST_BODY)?;
        while self.buffer.len() < length {
            if !self.fill("within a body")? {
                return Err(NoAnswer::Closed("within a body"));
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// Reads once; false at the end of the connection.
    fn fill(&mut self, place: &'static str) -> Result<bool, NoAnswer> {
        let left = self.timeout.checked_sub(self.watch.elapsed());
        let left = left.filter(|left| !left.is_zero());
        let left = left.ok_or(NoAnswer::Late(self.timeout))?;
        self.stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(count) => {
                self.buffer.extend(bytes.iter().take(count));
                Ok(count > 0)
            }
            Err(fault) if is_waiting(&fault) => Err(NoAnswer::Late(self.timeout)),
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(fault) if fault.kind() == io::ErrorKind::ConnectionReset => {
                Err(NoAnswer::Closed(place))
            }
            Err(fault) => Err(fault.into()),
        }
    }
}

/// Whether a read came to the end of its time.
fn is_waiting(fault: &io::Error) -> bool {
    matches!(
        fault.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn within(length: usize, most: usize) -> Result<(), NoAnswer> {
    match length > most {
        true => Err(NoAnswer::Malformed("it is too long")),
        false => Ok(()),
    }
}

/// Status and headers of a head.
#[allow(clippy::type_complexity, reason = "the parts of an answer")]
fn parsed(head: &[u8]) -> Result<(u16, Vec<(String, Vec<u8>)>), NoAnswer> {
    let mut lines = head
        .split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let line = lines.next().unwrap_or_default();
    let status = line
        .strip_prefix(b"HTTP/1.1 ")
        .or_else(|| line.strip_prefix(b"HTTP/1.0 "));
    let status = status.and_then(|rest| std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok());
    let status = status.ok_or(NoAnswer::Malformed("it has no status line"))?;
    let mut headers = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|b| *b == b':');
        let (name, value) = colon
            .and_then(|at| line.split_at_checked(at))
            .ok_or(NoAnswer::Malformed("a header has no colon"))?;
        let name = String::from_utf8_lossy(name).to_lowercase();
        headers.push((
            name,
            value.get(1..).unwrap_or_default().trim_ascii().to_vec(),
        ));
    }
    Ok((status, headers))
}
