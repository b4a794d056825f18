//! The door in front of HTTP: it bounds the connections, and it watches what the HTTP layer does by itself.
//!
//! pingora refuses some malformed heads before any hook of ours runs, with an empty 400, and it percent-encodes some
//! bytes of a request target. Both are seen here, on the bytes of the connection, since they are seen nowhere else:
//! the first is counted (HTTP-7), the second is refused (HTTP-10).

use crate::{
    telemetry::Telemetry,
    trust::{Shown, Slot},
};
use async_trait::async_trait;
use pingora::{
    apps::{HttpServerApp, ServerApp},
    protocols::{
        ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
        Stream, TimingDigest, UniqueID, UniqueIDType,
        raw_connect::ProxyDigest,
        tls::{SslDigest, TlsRef},
    },
    server::ShutdownWatch,
};
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore},
};

/// How many connections beyond the bound are told so before they are closed. One more is closed without a word: the
/// bound is there to bound what strangers can hold.
const TOLD: usize = 64;

/// What is known of one connection.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// It is one too many (ERR-4).
    excess: AtomicBool,
    /// The certificate that it showed last.
    pub(super) slot: Slot,
    /// The certificate that its handshake showed, or that of the session that it resumes (TLS-3).
    pub(super) client: Option<Shown>,
    /// A request's head was read and its answer is not finished.
    busy: AtomicBool,
    /// A request's head is arriving: some of it came.
    arriving: AtomicBool,
    /// The request line that was read last held bytes that the HTTP layer encodes.
    target_rewritten: AtomicBool,
    /// Something was answered that was no request to us.
    answered_by_http: AtomicBool,
}

impl Connection {
    /// A connection whose handshake showed this.
    pub(super) fn of(client: Option<Shown>) -> Self {
        Self {
            client,
            ..Self::default()
        }
    }

    /// A head was read: what is written from now on answers it. Says whether its target was rewritten.
    pub(super) fn begin_request(&self) -> bool {
        self.busy.store(true, Ordering::Relaxed);
        self.arriving.store(false, Ordering::Relaxed);
        self.target_rewritten.swap(false, Ordering::Relaxed)
    }

    /// Whether it is one too many.
    pub(super) fn is_excess(&self) -> bool {
        self.excess.load(Ordering::Relaxed)
    }

    /// Whether a part of a request's head has come.
    pub(super) fn is_arriving(&self) -> bool {
        self.arriving.load(Ordering::Relaxed)
    }

    /// The answer is finished.
    pub(super) fn end_request(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }
}

/// Bounds the connections, and lets those within the bound through to HTTP.
pub(super) struct Door<A> {
    http: Arc<A>,
    free: Arc<Semaphore>,
    told: Arc<Semaphore>,
    telemetry: Arc<Telemetry>,
}

impl<A> Door<A> {
    pub(super) fn new(http: A, max_connections: usize, telemetry: Arc<Telemetry>) -> Self {
        Self {
            http: Arc::new(http),
            free: Arc::new(Semaphore::new(max_connections)),
            told: Arc::new(Semaphore::new(TOLD)),
            telemetry,
        }
    }

    /// A place for a connection, within the bound or among those that are told that there is none.
    fn place(&self, connection: &Connection) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(place);
        }
        self.telemetry.connection_turned_away();
        connection.excess.store(true, Ordering::Relaxed);
        Arc::clone(&self.told).try_acquire_owned().ok()
    }
}

#[async_trait]
impl<A: HttpServerApp + Send + Sync + 'static> ServerApp for Door<A> {
    async fn process_new(
        self: &Arc<Self>,
        stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let digest = stream.get_ssl_digest()?;
        let connection: &Connection = digest.extension.get()?;
        let _place = self.place(connection)?;
        if matches!(stream.selected_alpn_proto(), Some(ALPN::H2)) {
            return self.http.process_new(stream, shutdown).await;
        }
        let watched = Watched {
            inner: stream,
            digest: Arc::clone(&digest),
            line: RequestLine::default(),
        };
        let rest = self.http.process_new(Box::new(watched), shutdown).await;
        if connection.answered_by_http.load(Ordering::Relaxed) {
            self.telemetry.refused_by_http();
        }
        rest
    }

    async fn cleanup(&self) {
        self.http.http_cleanup().await;
    }
}

/// An HTTP/1.1 connection whose bytes are looked at.
#[derive(Debug)]
struct Watched {
    inner: Stream,
    digest: Arc<SslDigest>,
    line: RequestLine,
}

impl Watched {
    fn connection(&self) -> Option<&Connection> {
        self.digest.extension.get()
    }

    fn is_idle(&self) -> bool {
        self.connection()
            .is_some_and(|connection| !connection.busy.load(Ordering::Relaxed))
    }

    fn has_read(&mut self, bytes: &[u8]) {
        if !self.is_idle() {
            // The next bytes that come while no request is being answered begin a new one.
            self.line = RequestLine::default();
            return;
        }
        let odd = self.line.reads_odd_bytes(bytes);
        if let Some(connection) = self.connection() {
            connection.arriving.store(true, Ordering::Relaxed);
            if odd {
                connection.target_rewritten.store(true, Ordering::Relaxed);
            }
        }
    }

    fn has_written(&self) {
        if self.is_idle()
            && let Some(connection) = self.connection()
        {
            connection.answered_by_http.store(true, Ordering::Relaxed);
        }
    }
}

/// A request line as it comes in.
#[derive(Debug, Default)]
struct RequestLine {
    begun: bool,
    ended: bool,
    spaces: u8,
}

impl RequestLine {
    /// Whether these bytes add one to the line that the HTTP layer would encode: a third space, or anything outside
    /// visible ASCII.
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

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
        if let Some(bytes) = buf.filled().get(before..).filter(|bytes| !bytes.is_empty()) {
            self.has_read(bytes);
        }
        Poll::Ready(result)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.has_written();
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.has_written();
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[async_trait]
impl Shutdown for Watched {
    async fn shutdown(&mut self) {
        self.inner.shutdown().await;
    }
}

impl UniqueID for Watched {
    fn id(&self) -> UniqueIDType {
        self.inner.id()
    }
}

impl Ssl for Watched {
    fn get_ssl(&self) -> Option<&TlsRef> {
        self.inner.get_ssl()
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        Some(Arc::clone(&self.digest))
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.inner.selected_alpn_proto()
    }
}

#[async_trait]
impl Peek for Watched {
    async fn try_peek(&mut self, buf: &mut [u8]) -> io::Result<bool> {
        self.inner.try_peek(buf).await
    }
}

impl GetTimingDigest for Watched {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.inner.get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.inner.get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.inner.get_write_pending_time()
    }
}

impl GetProxyDigest for Watched {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.inner.get_proxy_digest()
    }
}

impl GetSocketDigest for Watched {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.inner.get_socket_digest()
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
}
