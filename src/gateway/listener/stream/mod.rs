//! The stream between TLS and the HTTP layer: inspects the bytes that pass, and cuts connections that make no progress (HTTP-9).
//!
//! Invariant: the clock is read only when the stream has to wait; ordinary traffic costs an inspection of frames, or a search for
//! the end of a head and a copy of the answer's head, and no more. Deliberately not here: the inspections themselves
//! ([`super::frames`], [`super::head`]).

mod http1;
mod http2;
mod kept_head;
mod pingora_traits;

use kept_head::KeptHead;

use super::{
    client::{ClientConnection, HeadFault},
    deadline::{Awaited, Deadline},
    frames::{Cut, FrameInspector},
    head::Http1Head,
    limit::ConnectionPermit,
    report::Reports,
    socket::Socket,
};
use crate::{config::ListenerLimits, gateway::overload::Overload, telemetry::Telemetry};
use pingora::protocols::{SocketDigest, raw_connect::ProxyDigest};
use std::{
    fmt,
    io::{self, IoSlice},
    os::fd::AsRawFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

/// The state that all connections of the listener share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) limits: ListenerLimits,
    /// How long a connection waits for its next request.
    pub(super) keepalive: Duration,
    pub(super) overload: Arc<Overload>,
    pub(super) telemetry: Arc<Telemetry>,
    pub(super) reports: Reports,
}

/// A connection of a client.
pub(super) struct ClientStream {
    tls: TlsStream<Socket>,
    protocol: Protocol,
    /// Holds the [`ClientConnection`].
    client: Arc<ProxyDigest>,
    socket: Arc<SocketDigest>,
    shared: Arc<Shared>,
    reading: Deadline<Awaited>,
    writing: Deadline<()>,
    /// The time limit for a refused client that is still sending, and the bytes received since.
    lingering: Deadline<()>,
    lingered: usize,
    /// Received HTTP/2 frames that wait until a stream has ended.
    waiting: Vec<u8>,
    /// The time of the next read, or of the next look whether a stream has ended.
    pausing: Deadline<()>,
    /// The reason why nothing more is read.
    cut: Option<Cut>,
    permit: ConnectionPermit,
    kept_head: KeptHead,
}

/// The protocol of the connection, with its inspection.
enum Protocol {
    Http1(Http1Head),
    Http2(Box<FrameInspector>),
}

impl fmt::Debug for ClientStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientStream")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

impl ClientStream {
    /// Creates the stream of a connection after its handshake.
    pub(super) fn new(
        tls: TlsStream<Socket>,
        client: Arc<ProxyDigest>,
        shared: Arc<Shared>,
        mut permit: ConnectionPermit,
    ) -> Self {
        let facts = Arc::downgrade(&client);
        permit.connected(facts);
        let (socket, session) = tls.get_ref();
        let protocol = match session.alpn_protocol() {
            Some(b"h2") => {
                let unsent = ClientConnection::in_digest(&client).map(|client| client.unsent());
                let unsent = unsent.map(Arc::clone).unwrap_or_default();
                Protocol::Http2(Box::new(FrameInspector::new(unsent)))
            }
            _ => Protocol::Http1(Http1Head::default()),
        };
        Self {
            socket: Arc::new(SocketDigest::from_raw_fd(socket.get_ref().as_raw_fd())),
            tls,
            protocol,
            client,
            shared,
            reading: Deadline::new(),
            writing: Deadline::new(),
            lingering: Deadline::new(),
            lingered: 0,
            waiting: Vec::new(),
            pausing: Deadline::new(),
            cut: None,
            permit,
            kept_head: KeptHead::default(),
        }
    }

    /// Sends an alert that answers the bytes read, such as no_renegotiation: it would wait for the next answer or the end.
    fn flush_alert(&mut self, context: &mut Context<'_>) {
        if self.tls.get_ref().1.wants_write() {
            let _ = Pin::new(&mut self.tls).poll_flush(context);
        }
    }

    /// Handles the result of a write. A write that is blocked too long fails.
    fn sent<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.writing.clear();
            return polled;
        }
        if !self
            .writing
            .is_over(context, (), self.shared.limits.write_timeout)
        {
            return Poll::Pending;
        }
        self.cut_off(Cut::BlockedWrite);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Keeps these bytes if they are the first that answer a request over HTTP/1.1, which is a head. Returns whether they are kept.
    fn keep_head(&mut self, bytes: &[u8]) -> bool {
        let client = ClientConnection::in_digest(&self.client);
        matches!(self.protocol, Protocol::Http1(_))
            && client.is_some_and(|client| self.kept_head.keep(client.requests(), bytes))
    }

    /// Writes the head that waits for its body, if there is one.
    fn write_kept_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.kept_head.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let polled = self.kept_head.write_with(&mut self.tls, context, &[]);
        self.sent(context, polled).map_ok(|_| ())
    }

    /// Reports the end of the connection, also to its requests.
    fn cut_off(&mut self, cut: Cut) {
        let client = ClientConnection::in_digest(&self.client);
        self.shared.reports.cut(cut, client);
        self.cut = Some(cut);
        if cut == Cut::Flood {
            self.permit.flooded();
        }
        if let Some(client) = client {
            client.cut_off(cut.cause());
        }
    }

    fn head_fault(&self) -> Option<HeadFault> {
        ClientConnection::in_digest(&self.client)?.head_fault()
    }
}

/// The HTTP layer drops an idle HTTP/2 connection without a word, but a client should learn which of its requests were not
/// processed (RFC 9113, section 6.8).
impl Drop for ClientStream {
    fn drop(&mut self) {
        if matches!(self.protocol, Protocol::Http2(_)) {
            let mut context = Context::from_waker(Waker::noop());
            self.send_goaway(&mut context, self.cut);
            let _ = Pin::new(&mut self.tls).poll_shutdown(&mut context);
            if let Some(client) = ClientConnection::in_digest(&self.client) {
                client.unsent().lose();
            }
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = match &self.protocol {
            Protocol::Http1(_) => self.poll_http1(context, buffer),
            Protocol::Http2(_) => self.poll_http2(context, buffer),
        };
        if polled.is_pending() {
            self.flush_alert(context);
        }
        polled
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.keep_head(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let stream = &mut *self;
        let polled = stream.kept_head.write_with(&mut stream.tls, context, bytes);
        let count = ready!(self.sent(context, polled))?;
        let written = bytes.get(..count).unwrap_or_default();
        self.inspect_sent(|frames| frames.wrote(written));
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.write_kept_head(context))?;
        let polled = Pin::new(&mut self.tls).poll_write_vectored(context, slices);
        let count = ready!(self.sent(context, polled))?;
        self.inspect_sent(|frames| frames.wrote_all(slices, count));
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.tls.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_kept_head(context))?;
        let polled = Pin::new(&mut self.tls).poll_flush(context);
        ready!(self.sent(context, polled))?;
        if let Protocol::Http2(frames) = &mut self.protocol {
            frames.flushed();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_kept_head(context))?;
        let polled = Pin::new(&mut self.tls).poll_shutdown(context);
        ready!(self.sent(context, polled))?;
        match self.head_fault() {
            Some(_) => self.poll_linger(context),
            None => Poll::Ready(Ok(())),
        }
    }
}
