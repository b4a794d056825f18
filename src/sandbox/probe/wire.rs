//! Connections to the core, and its answers byte by byte.
//!
//! Invariant: nothing that a core sends is corrected or hidden: framing, the number of heads and surplus bytes are part of an [`Answer`].
//! Every wait and every length has a limit. Deliberately not here: reading messages (../http1.rs), and judgement.

use crate::http1::{Fault, Head, Reader, is_timeout};
use portvakt_base::clock::Stopwatch;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The limit of a head and of a body, in bytes: the default of `upstream.max_answer_size`.
const MOST: usize = 16 * 1024 * 1024;

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
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The status code.
    pub(super) status: u16,
    /// The last head.
    pub(super) head: Head,
    /// The number of informational answers before.
    pub(super) informational: usize,
    /// The body.
    pub(super) body: Vec<u8>,
    /// Whether bytes came behind the end.
    pub(super) has_surplus: bool,
    /// Whether the connection was open afterwards.
    pub(super) is_open: bool,
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
        let stream = TimedStream {
            stream,
            timeout: self.timeout,
            watch: Stopwatch::start(),
        };
        Ok(Connection(Reader::new(stream, MOST)))
    }
}

/// A stream whose reads have one deadline together.
struct TimedStream {
    stream: TcpStream,
    timeout: Duration,
    /// Since the last request.
    watch: Stopwatch,
}

impl Read for TimedStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.timeout.saturating_sub(self.watch.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

/// A connection with bytes that were read and not used.
pub(super) struct Connection(Reader<TimedStream>);

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Sends bytes. The time for an answer begins.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), NoAnswer> {
        self.0.stream.watch = Stopwatch::start();
        self.0.stream.stream.write_all(bytes)?;
        Ok(())
    }

    /// The address of this machine that the core sees.
    pub(super) fn local_address(&self) -> Option<IpAddr> {
        Some(self.0.stream.stream.local_addr().ok()?.ip())
    }

    /// Sends no more.
    pub(super) fn close(self) {
        let _ = self.0.stream.stream.shutdown(Shutdown::Both);
    }

    /// Reads the final answer.
    pub(super) fn answer(&mut self) -> Result<Answer, NoAnswer> {
        let timeout = self.0.stream.timeout;
        let mut answer = self.message().map_err(|fault| match fault {
            Fault::Broken(_, error) if is_timeout(&error) => NoAnswer::Late(timeout),
            Fault::Broken(place, error) if error.kind() == ErrorKind::ConnectionReset => {
                NoAnswer::Closed(place)
            }
            Fault::Broken(_, error) => error.into(),
            Fault::Ended(place) => NoAnswer::Closed(place),
            Fault::Malformed(why) => NoAnswer::Malformed(why),
        })?;
        let stream = &mut self.0.stream.stream;
        stream.set_read_timeout(Some(SURPLUS_WITHIN))?;
        answer.is_open = match stream.read(&mut [0]) {
            Ok(0) => false,
            Ok(_) => {
                answer.has_surplus = true;
                true
            }
            Err(fault) => is_timeout(&fault),
        };
        Ok(answer)
    }

    fn message(&mut self) -> Result<Answer, Fault> {
        let (head, informational) = self.0.final_head()?;
        Ok(Answer {
            status: head.status().unwrap_or_default(),
            body: self.0.body(&head)?,
            head,
            informational,
            has_surplus: !self.0.surplus().is_empty(),
            is_open: true,
        })
    }
}
