//! HTTP/1.1: the wait for a request, and heads, which are read no further than they may be, in time (HTTP-9).

use super::super::{
    client::{ClientConnection, HeadFault},
    deadline::{Awaited, Deadline},
    head::Http1Head,
    socket::Socket,
};
use super::{ClientStream, Protocol};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};
use tokio_rustls::server::TlsStream;

/// The read size, in bytes, for a head that is held back.
const HELD_PART: usize = 2 * 1024;

/// The time between two reads of a head that arrives in small parts: reading each of them would cost more than sending it.
const DRIP_PAUSE: Duration = Duration::from_millis(5);

/// The time and the number of bytes for which the gateway reads from a refused client that is still sending: closing a connection
/// with unread bytes would discard the answer too.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 256 * 1024;

impl ClientStream {
    /// Whether the client speaks HTTP/1.1.
    pub(in crate::gateway::listener) const fn is_http1(&self) -> bool {
        matches!(self.protocol, Protocol::Http1(_))
    }

    /// Waits over HTTP/1.1 until something of the next request has arrived, or until the time for the first one is over, which is answered.
    /// False if the connection has ended, or no other request came in time.
    pub(in crate::gateway::listener) fn poll_request(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<bool> {
        // It takes nothing. An error that came behind the bytes of an earlier read is given to a read only.
        let polled = Pin::new(&mut self.tls).poll_read(context, &mut ReadBuf::new(&mut []));
        if let Poll::Ready(read) = polled {
            self.reading.clear();
            let arrived = Pin::new(&mut self.tls).poll_fill_buf(context);
            let has_begun = matches!(arrived, Poll::Ready(Ok(bytes)) if !bytes.is_empty());
            return Poll::Ready(read.is_ok() && has_begun);
        }
        self.flush_alert(context);
        let client = ClientConnection::in_digest(&self.client);
        let requests = client.map_or(0, ClientConnection::requests);
        let (awaited, time) = match requests {
            0 => (Awaited::FirstByte, self.shared.limits.first_byte_timeout),
            number => (Awaited::Request(number), self.shared.keepalive),
        };
        match self.reading.is_over(context, awaited, time) {
            true => Poll::Ready(requests == 0),
            false => Poll::Pending,
        }
    }

    /// Reads an HTTP/1.1 head, or the body after it.
    pub(super) fn poll_http1(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Protocol::Http1(head) = &mut self.protocol else {
            return Poll::Ready(Ok(()));
        };
        let Some(client) = ClientConnection::in_digest(&self.client) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let limit = self.shared.limits.head_size;
        loop {
            let held = head.give(buffer.remaining());
            if !held.is_empty() {
                buffer.put_slice(held);
                return Poll::Ready(Ok(()));
            }
            if client.is_busy() {
                let before = buffer.filled().len();
                let polled = Pin::new(&mut self.tls).poll_read(context, buffer);
                head.take_body(buffer.filled().get(before..).unwrap_or_default());
                client.body_arrives(head.body());
                return polled;
            }
            head.begin(client.requests());
            let is_held_back = head.is_held_back();
            let before = buffer.filled().len();
            let mut apart = Vec::new();
            let polled = match is_held_back {
                false => Pin::new(&mut self.tls).poll_read(context, buffer),
                true => poll_held(&mut self.tls, context, &mut self.pausing, head, &mut apart),
            };
            let Poll::Ready(read) = polled else {
                let awaited = head.awaited(client.requests(), &self.shared.limits);
                let Some((_, _, cut)) = awaited
                    .filter(|(awaited, time, _)| self.reading.is_over(context, *awaited, *time))
                else {
                    return Poll::Pending;
                };
                client.give_up(HeadFault::TooSlow);
                self.shared.telemetry.cut(cut.cause());
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            };
            let part = match is_held_back {
                true => &apart,
                false => buffer.filled().get(before..).unwrap_or_default(),
            };
            if part.is_empty() || read.is_err() {
                head.release();
                if read.is_err() || head.holds_nothing() {
                    return Poll::Ready(read);
                }
                continue;
            }
            match head.take(part, limit) {
                Ok(is_odd) => {
                    client.head_arrives(is_odd);
                    client.body_arrives(head.body());
                }
                Err(_) => {
                    client.give_up(HeadFault::TooLarge);
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
            }
            if !is_held_back {
                return Poll::Ready(Ok(()));
            }
            head.hold(part);
        }
    }

    /// Reads and discards the client's further bytes, within the limits.
    pub(super) fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut part = Vec::new();
        while self.lingered < LINGER_BYTES {
            match poll_part(&mut self.tls, context, &mut part) {
                Poll::Ready(Ok(())) if !part.is_empty() => {
                    self.lingered = self.lingered.saturating_add(part.len());
                }
                Poll::Pending if !self.lingering.is_over(context, (), LINGER) => {
                    return Poll::Pending;
                }
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Reads a part of a head that is held back: after small parts, only every [`DRIP_PAUSE`].
fn poll_held(
    tls: &mut TlsStream<Socket>,
    context: &mut Context<'_>,
    pausing: &mut Deadline<()>,
    head: &Http1Head,
    part: &mut Vec<u8>,
) -> Poll<io::Result<()>> {
    if pausing.is_running() && !pausing.is_over(context, (), DRIP_PAUSE) {
        return Poll::Pending;
    }
    pausing.clear();
    let polled = poll_part(tls, context, part);
    if polled.is_pending() && head.drips() {
        // Starts the pause, and wakes the task at its end.
        pausing.is_over(context, (), DRIP_PAUSE);
    }
    polled
}

/// Reads into a separate buffer, because holding back is rare.
fn poll_part(
    tls: &mut TlsStream<Socket>,
    context: &mut Context<'_>,
    part: &mut Vec<u8>,
) -> Poll<io::Result<()>> {
    part.resize(HELD_PART, 0);
    let mut buffer = ReadBuf::new(part);
    let polled = Pin::new(tls).poll_read(context, &mut buffer);
    let length = buffer.filled().len();
    part.truncate(length);
    polled
}
