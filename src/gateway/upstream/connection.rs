//! One connection to the core.
//!
//! Invariants: [`CoreConnection::is_quiet`] asks the kernel, because the runtime's readiness state is only as recent as its last
//! poll (FWD-3); at most [`MAX_HEAD`] bytes of an answer's heads are read (FWD-7). Deliberately not here: the choice of a
//! connection ([`super::pool`]).

use async_trait::async_trait;
use pingora::{
    Error, ErrorType, Result,
    prelude::timeout,
    protocols::{
        GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
        TimingDigest, UniqueID, UniqueIDType, l4::ext, raw_connect::ProxyDigest,
    },
};
use rustix::io::Errno;
use std::{
    io,
    net::SocketAddr,
    os::fd::AsRawFd,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};

/// FWD-7: the most bytes of an answer's head, including informational answers before it.
pub(super) const MAX_HEAD: usize = 64 * 1024;

/// A connection to the core.
#[derive(Debug)]
pub(super) struct CoreConnection {
    stream: TcpStream,
    /// The number of bytes read since the request began.
    read: usize,
    /// Whether the head of the answer is incomplete.
    in_head: AtomicBool,
}

impl CoreConnection {
    /// Connects to the core.
    ///
    /// # Errors
    /// No connection is made within the limit.
    pub(super) async fn open(address: SocketAddr, limit: Duration) -> Result<Self> {
        let connected = timeout(limit, ext::connect(&address, None)).await;
        let stream = connected.unwrap_or_else(|_| {
            Error::e_explain(ErrorType::ConnectTimedout, "no connection to the core")
        })?;
        if let Err(error) = stream.set_nodelay(true) {
            return Err(Error::because(ErrorType::ConnectError, "nodelay", error));
        }
        Ok(Self::of(stream))
    }

    /// Wraps a connected stream.
    pub(super) const fn of(stream: TcpStream) -> Self {
        Self {
            stream,
            read: 0,
            in_head: AtomicBool::new(true),
        }
    }

    /// Prepares the connection for the next request.
    pub(super) fn begin_request(&mut self) {
        self.read = 0;
        *self.in_head.get_mut() = true;
    }

    /// Whether the core has neither sent a byte nor closed the connection (FWD-3). Otherwise the check may lose a byte, so the
    /// connection must not be used.
    pub(super) fn is_quiet(&self) -> bool {
        let mut byte = [0_u8; 1];
        rustix::io::read(&self.stream, &mut byte) == Err(Errno::AGAIN)
    }

    /// Whether anything was read since the request began.
    pub(super) const fn has_read(&self) -> bool {
        self.read > 0
    }

    /// Marks the head of the answer as complete: the next bytes are its body.
    pub(super) fn end_head(&self) {
        self.in_head.store(false, Ordering::Relaxed);
    }

    /// Whether the head of the answer is longer than [`MAX_HEAD`], so that reading it failed.
    pub(super) fn is_head_too_long(&self) -> bool {
        self.in_head.load(Ordering::Relaxed) && self.read >= MAX_HEAD
    }
}

impl AsyncRead for CoreConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_head_too_long() {
            return Poll::Ready(Err(io::Error::other("the head of the answer is too long")));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let came = buffer.filled().len().saturating_sub(before);
        self.read = self.read.saturating_add(came);
        polled
    }
}

impl AsyncWrite for CoreConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

// The traits that pingora requires of a stream. Nothing reads the digests of a connection to the core.

#[async_trait]
impl Shutdown for CoreConnection {
    async fn shutdown(&mut self) {
        // A failure is ignored: the core may have disconnected.
        let _ = AsyncWriteExt::shutdown(&mut self.stream).await;
    }
}

impl UniqueID for CoreConnection {
    fn id(&self) -> UniqueIDType {
        self.stream.as_raw_fd()
    }
}

impl Ssl for CoreConnection {}

impl Peek for CoreConnection {}

impl GetTimingDigest for CoreConnection {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for CoreConnection {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for CoreConnection {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        None
    }
}
