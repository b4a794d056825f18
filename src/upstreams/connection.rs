//! One connection to the core.
//!
//! Invariants: [`CoreConnection::is_quiet`] asks the kernel, because the runtime's readiness state is only as recent as its last
//! poll (FWD-3); at most [`MAX_HEAD`] bytes of an answer's heads are read, and each byte of a chunked body is looked at (FWD-7); a
//! certificate of the core is verified before a byte of a request is sent; the time limit of connecting is one of tokio, which sees what the
//! core has done before it sees that the time is over: pingora's timers have a thread of their own, and a process without a processor for
//! a second would take the core for one that cannot be reached. Deliberately not here: the choice of a connection
//! ([`super::pool`]).

use crate::interface::chunks::{ChunkInspector, ChunkedBody};
use async_trait::async_trait;
use pingora::{
    Error, ErrorType, Result,
    protocols::{
        GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
        TimingDigest, UniqueID, UniqueIDType, l4::ext, raw_connect::ProxyDigest,
    },
};
use rustix::io::Errno;
use rustls::{AlertDescription, ClientConfig, ClientConnection, pki_types::ServerName};
use std::{
    io::{self, Read},
    mem,
    net::SocketAddr,
    os::fd::AsRawFd,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// FWD-7: the most bytes of an answer's head, including informational answers before it.
pub const MAX_HEAD: usize = 64 * 1024;

/// The most reads that look for records of TLS on an idle connection: a server sends few tickets.
const MOST_LOOKS: usize = 8;

/// The alerts by which a server refuses the client's part of a handshake, its certificate above all (RFC 8446, section 6.2). None of them
/// is sent later: this client takes part in no second authentication.
const REFUSALS: [AlertDescription; 11] = [
    AlertDescription::HandshakeFailure,
    AlertDescription::NoCertificate,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
    AlertDescription::DecryptError,
    AlertDescription::CertificateRequired,
];

/// A connection to the core.
#[derive(Debug)]
pub struct CoreConnection {
    stream: Stream,
    /// The number of bytes read since the request began.
    read: usize,
    /// Whether no request was answered on it yet.
    is_new: bool,
    /// The alert by which the core refused the TLS handshake after it.
    refused: Option<AlertDescription>,
    /// The HTTP layer shows its connection, but does not let it be changed: hence the lock.
    awaited: Mutex<Awaited>,
}

/// The part of an answer that comes next.
#[derive(Debug)]
enum Awaited {
    /// A head. The bytes are those of the latest read: if they end the head, the body begins among them.
    Head(Vec<u8>),
    /// A chunked body.
    Chunks(ChunkInspector),
    /// A body with a length, or one that ends with the connection.
    Body,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// TLS to an endpoint: the settings of the client, and the name that the certificate must have.
#[derive(Clone, Debug)]
pub struct TlsTarget {
    /// The settings of the client.
    pub client: Arc<ClientConfig>,
    /// The name.
    pub name: ServerName<'static>,
}

impl CoreConnection {
    /// Connects to the core, with TLS if there is a `target`.
    ///
    /// # Errors
    /// No connection is made within the limit, or the certificate of the core is refused.
    pub async fn open(
        address: SocketAddr,
        target: Option<&TlsTarget>,
        limit: Duration,
    ) -> Result<Self> {
        let opening = async {
            let stream = ext::connect(&address, None).await?;
            if let Err(error) = stream.set_nodelay(true) {
                return Err(Error::because(ErrorType::ConnectError, "nodelay", error));
            }
            match target {
                None => Ok(Self::of(stream)),
                Some(target) => Self::with_tls(stream, target).await,
            }
        };
        timeout(limit, opening).await.unwrap_or_else(|_| {
            Error::e_explain(ErrorType::ConnectTimedout, "no connection to the core")
        })
    }

    /// Wraps a connected stream without TLS.
    pub const fn of(stream: TcpStream) -> Self {
        Self::on(Stream::Plain(stream))
    }

    const fn on(stream: Stream) -> Self {
        Self {
            stream,
            read: 0,
            is_new: true,
            refused: None,
            awaited: Mutex::new(Awaited::Head(Vec::new())),
        }
    }

    async fn with_tls(stream: TcpStream, target: &TlsTarget) -> Result<Self> {
        let connector = TlsConnector::from(Arc::clone(&target.client));
        let connecting = Box::pin(connector.connect(target.name.clone(), stream));
        match connecting.await {
            Ok(stream) => Ok(Self::on(Stream::Tls(Box::new(stream)))),
            Err(error) => Error::e_because(
                ErrorType::TLSHandshakeFailure,
                "the TLS handshake with the core",
                error,
            ),
        }
    }

    /// Prepares the connection for the next request.
    pub fn begin_request(&mut self) {
        self.read = 0;
        self.is_new = false;
        *self.awaited() = Awaited::Head(Vec::new());
    }

    /// Whether the core has neither sent a byte nor closed the connection (FWD-3). Otherwise the check may lose a byte, so the
    /// connection must not be used. Session tickets of TLS do not count.
    pub fn is_quiet(&mut self) -> bool {
        match &mut self.stream {
            Stream::Plain(stream) => {
                let mut byte = [0_u8; 1];
                rustix::io::read(&*stream, &mut byte) == Err(Errno::AGAIN)
            }
            Stream::Tls(stream) => {
                let (stream, tls) = stream.get_mut();
                match is_tls_quiet(stream, tls) {
                    Ok(is_quiet) => is_quiet,
                    Err(error) => {
                        self.note_refusal(Some(&error));
                        false
                    }
                }
            }
        }
    }

    /// The alert by which the core refused the handshake: with TLS 1.3 it comes after the client's part, so a request may have been sent.
    /// A core that sends it has verified no handshake, and has taken no request.
    pub const fn refused(&self) -> Option<AlertDescription> {
        self.refused
    }

    /// Notes an error of TLS on a connection that has carried nothing of the core's yet.
    fn note_refusal(&mut self, error: Option<&rustls::Error>) {
        if let Some(rustls::Error::AlertReceived(alert)) = error
            && self.is_new
            && self.read == 0
            && REFUSALS.contains(alert)
        {
            self.refused = Some(*alert);
        }
    }

    /// Whether anything was read since the request began.
    pub const fn has_read(&self) -> bool {
        self.read > 0
    }

    /// Marks the heads of the answer as complete: the next bytes are its body. `length` is that of all heads, the informational ones
    /// included.
    pub fn end_heads(&self, length: usize, is_chunked: bool) {
        let mut awaited = self.awaited();
        if let Awaited::Head(latest) = mem::replace(&mut *awaited, Awaited::Body)
            && is_chunked
        {
            let of_body = self.read.saturating_sub(length);
            let begin = latest.len().saturating_sub(of_body);
            let mut chunks = ChunkInspector::default();
            chunks.take(latest.get(begin..).unwrap_or_default());
            *awaited = Awaited::Chunks(chunks);
        }
    }

    /// Whether the head of the answer is longer than [`MAX_HEAD`], so that reading it failed.
    pub fn is_head_too_long(&self) -> bool {
        self.read >= MAX_HEAD && matches!(*self.awaited(), Awaited::Head(_))
    }

    /// Whether what was read of the body can be relied on: of a chunked one, that the chunks are exact so far, and at the end that none is
    /// missing.
    pub fn is_body_exact(&self, is_end: bool) -> bool {
        let Awaited::Chunks(chunks) = &*self.awaited() else {
            return true;
        };
        match chunks.result() {
            ChunkedBody::Exact | ChunkedBody::Followed => true,
            ChunkedBody::Incomplete => !is_end,
            ChunkedBody::Malformed => false,
        }
    }

    fn awaited(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Processes records that have arrived; only those that carry no data of an answer are harmless. A read takes whole records, so data behind
/// an answer, or behind the handshake, may have been decrypted already: the kernel knows nothing of it.
fn is_tls_quiet(
    stream: &TcpStream,
    tls: &mut ClientConnection,
) -> std::result::Result<bool, rustls::Error> {
    for _ in 0..MOST_LOOKS {
        let state = tls.process_new_packets()?;
        if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
            return Ok(false);
        }
        match tls.read_tls(&mut FromKernel(stream)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Ok(1..) => {}
            _ => return Ok(false),
        }
    }
    Ok(false)
}

/// The error of TLS in an error of the connection.
fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Reads a socket past the runtime's readiness state.
struct FromKernel<'a>(&'a TcpStream);

impl Read for FromKernel<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0, buffer)?)
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
        let polled = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        let came = buffer.filled().get(before..).unwrap_or_default();
        self.read = self.read.saturating_add(came.len());
        if let Poll::Ready(Err(error)) = &polled {
            self.note_refusal(tls_error(error));
        }
        let awaited = self.awaited.get_mut();
        match awaited.unwrap_or_else(PoisonError::into_inner) {
            Awaited::Head(latest) if !came.is_empty() => {
                latest.clear();
                latest.extend_from_slice(came);
            }
            Awaited::Chunks(chunks) => {
                chunks.take(came);
            }
            Awaited::Head(_) | Awaited::Body => {}
        }
        polled
    }
}

impl AsyncWrite for CoreConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        // A core that refused the handshake may have closed already; its alert is then still to be read.
        if matches!(polled, Poll::Ready(Err(_))) {
            self.is_quiet();
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

// The traits that pingora requires of a stream. Nothing reads the digests of a connection to the core.

#[async_trait]
impl Shutdown for CoreConnection {
    async fn shutdown(&mut self) {
        // A failure is ignored: the core may have disconnected.
        let _ = AsyncWriteExt::shutdown(self).await;
    }
}

impl UniqueID for CoreConnection {
    fn id(&self) -> UniqueIDType {
        match &self.stream {
            Stream::Plain(stream) => stream.as_raw_fd(),
            Stream::Tls(stream) => stream.get_ref().0.as_raw_fd(),
        }
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

// It needs the development PKI.
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use portvakt_development_pki::{Ca, CaSpec, Key};
    use rustls::{
        RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        version::{TLS12, TLS13},
    };
    use std::{io::Write, net::TcpListener, thread};
    use time::macros::datetime;

    /// A server that writes these bytes behind the last message of its handshake, in the same flight.
    fn greeter(
        version: &'static SupportedProtocolVersion,
        greeting: &'static [u8],
    ) -> (SocketAddr, TlsTarget) {
        let ca = Ca::root(&CaSpec {
            key: Key::EcP256,
            ..CaSpec::development_root()
        });
        let ca = ca.unwrap();
        let (from, until) = (
            datetime!(2020-01-01 0:00 UTC),
            datetime!(2040-01-01 0:00 UTC),
        );
        let own = ca.issue_server(&Key::EcP256, from, until).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(&[version]).unwrap();
        let key = PrivateKeyDer::from_pem_slice(own.key_pem.as_bytes()).unwrap();
        let config = builder.with_no_client_auth();
        let mut config = config.with_single_cert(vec![own.der.into()], key).unwrap();
        config.send_half_rtt_data = true;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
            tls.writer().write_all(greeting).unwrap();
            while tls.is_handshaking() || tls.wants_write() {
                tls.complete_io(&mut stream).unwrap();
            }
            // Until the client closes.
            let _ = stream.read(&mut [0]);
        });
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(ca.pem().as_bytes()).unwrap();
        roots.add(root).unwrap();
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let client = builder.with_root_certificates(roots).with_no_client_auth();
        let target = TlsTarget {
            client: Arc::new(client),
            name: ServerName::try_from("localhost").unwrap(),
        };
        (address, target)
    }

    //= FWD-3 accepted
    //= FWD-3 refused
    #[tokio::test]
    async fn bytes_behind_the_handshake_are_noticed() {
        for version in [&TLS12, &TLS13] {
            for greeting in [b"".as_slice(), b"HTTP/1.1 200 OK\r\n"] {
                let (address, target) = greeter(version, greeting);
                let opened = CoreConnection::open(address, Some(&target), Duration::from_secs(30));
                let mut connection = opened.await.unwrap();
                let is_quiet = connection.is_quiet();
                assert_eq!(is_quiet, greeting.is_empty(), "{version:?}");
            }
        }
    }

    /// Only whether the core is slow counts. The process may get no processor, or have much else to do.
    #[tokio::test]
    async fn a_connection_counts_that_is_made_while_the_process_does_something_else() {
        const LIMIT: Duration = Duration::from_millis(50);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let opening = CoreConnection::open(listener.local_addr().unwrap(), None, LIMIT);
        let opened = tokio::spawn(async move { opening.await.is_ok() });
        // The runtime has one thread. It runs what is ready before it asks the kernel what has come.
        tokio::spawn(async { thread::sleep(4 * LIMIT) });
        assert!(opened.await.unwrap());
    }
}
