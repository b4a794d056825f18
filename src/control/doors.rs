//! Listening: TCP, TLS over TCP, or a Unix socket, behind one set of routes.
//!
//! Invariants: a Unix socket is never there with a mode that lets others than its owner in; no connection is held for
//! nothing, since a handshake, a head, a body and an answer each have their time, and connections have a bound.

use super::{
    guard::Arrival,
    places::{Places, TakenPlace},
};
use crate::{
    config::{ControlAddress, ControlTls},
    in_use::Current,
};
use axum::{Extension, Router, middleware};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::watch,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

/// Connections at once. The bank's SCA service and a few observers need a dozen.
const MAX_CONNECTIONS: usize = 256;

/// How long a TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// How long the head of a request may take, and how long a connection is kept for the next one.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// The most bytes of a head.
const MAX_HEAD: usize = 16 * 1024;

/// How long answers under way may take to finish when the gateway stops.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// A signal that turns true once and stays so.
pub type StopSignal = watch::Receiver<bool>;

/// A listener that is bound, and not served yet.
#[derive(Debug)]
pub struct Bound(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener, Socket),
}

impl Bound {
    /// Binds an address or makes a socket. A socket that nobody listens on gives way; anything else at its path stays.
    ///
    /// # Errors
    /// It cannot be bound or made.
    pub fn bind(address: &ControlAddress) -> io::Result<Self> {
        match address {
            ControlAddress::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok(Self(Kind::Tcp(listener)))
            }
            ControlAddress::Unix(path) => {
                check_vacant(path)?;
                let listener = make_socket(path)?;
                listener.set_nonblocking(true)?;
                Ok(Self(Kind::Unix(listener, Socket(path.clone()))))
            }
        }
    }
}

/// A socket's file, removed with its listener.
#[derive(Debug)]
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Answers until the gateway stops.
pub(super) async fn serve(
    bound: Bound,
    current: &Current,
    routes: Router,
    shutdown: StopSignal,
) -> io::Result<()> {
    let serving = Serving {
        routes,
        shutdown,
        places: Places::new(MAX_CONNECTIONS),
    };
    match bound.0 {
        Kind::Tcp(listener) => {
            let listener = TcpListener::from_std(listener)?;
            let tls = || current.load().control.tls.clone();
            serving.accept(listener, tls).await;
        }
        Kind::Unix(listener, _socket) => {
            serving
                .accept(UnixListener::from_std(listener)?, || None)
                .await;
        }
    }
    Ok(())
}

/// What streams come from.
trait Accept: Send + Sync {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// The address that a stream came to; none where there are no addresses.
    fn reached(stream: &Self::Stream) -> Option<SocketAddr>;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        Ok(self.accept().await?.0)
    }

    fn reached(stream: &TcpStream) -> Option<SocketAddr> {
        stream.local_addr().ok()
    }
}

impl Accept for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }

    fn reached(_: &UnixStream) -> Option<SocketAddr> {
        None
    }
}

struct Serving {
    routes: Router,
    shutdown: StopSignal,
    places: Arc<Places>,
}

impl Serving {
    /// `tls` is asked for each connection: a reload may have changed it.
    async fn accept<L: Accept>(self, listener: L, tls: impl Fn() -> Option<ControlTls>) {
        let mut stopped = std::pin::pin!(stopped(self.shutdown.clone()));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.next() => accepted,
                () = &mut stopped => break,
            };
            while connections.try_join_next().is_some() {}
            let (routes, shutdown, tls) = (self.routes.clone(), self.shutdown.clone(), tls());
            match accepted {
                Ok(stream) => {
                    let arrival = Arrival {
                        local: L::reached(&stream),
                        tls: tls.is_some(),
                        client_ca: tls.as_ref().and_then(|tls| tls.client_ca),
                    };
                    let tls = tls.map(|tls| TlsAcceptor::from(tls.config));
                    let routes = routes.layer(Extension(arrival));
                    connections.spawn(connection(
                        stream,
                        tls,
                        routes,
                        shutdown,
                        self.places.take(),
                    ));
                }
                // Out of descriptors, or the caller is gone already. Going round at once would take a whole core.
                Err(error) => {
                    tracing::warn!(%error, "the control listener cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        let finish = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(FINISH_WITHIN, finish).await;
    }
}

async fn connection<S>(
    stream: S,
    tls: Option<TlsAcceptor>,
    routes: Router,
    shutdown: StopSignal,
    taken: TakenPlace,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let place = Arc::clone(taken.place());
    let routes = routes.layer(middleware::from_fn(
        move |request, next: middleware::Next| {
            let answering = place.answer();
            async move {
                let answer = next.run(request).await;
                drop(answering);
                answer
            }
        },
    ));
    tokio::select! {
        () = serve_connection(stream, tls, routes, shutdown) => {}
        () = taken.given_up() => {}
    }
}

async fn serve_connection<S>(
    stream: S,
    tls: Option<TlsAcceptor>,
    routes: Router,
    shutdown: StopSignal,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(tls) = tls else {
        return exchange(stream, routes, shutdown).await;
    };
    match tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await {
        Ok(Ok(stream)) => exchange(stream, routes, shutdown).await,
        Ok(Err(error)) => {
            tracing::warn!(%error, "a caller of the control listener was refused by TLS")
        }
        Err(_) => {
            tracing::warn!("a caller of the control listener did not finish its TLS handshake")
        }
    }
}

/// One connection, request after request.
async fn exchange<S>(stream: S, routes: Router, shutdown: StopSignal)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(MAX_HEAD);
    let service = TowerToHyperService::new(routes);
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stopped(shutdown) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the control listener broke off");
    }
}

async fn stopped(mut shutdown: StopSignal) {
    let _ = shutdown.wait_for(|stop| *stop).await;
}

/// A path that nothing stands at, or a socket that nobody listens on any more.
fn check_vacant(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let text = "something else than a socket is there";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(_) => Ok(()),
    }
}

/// Makes the socket in a folder that nobody else can enter, and moves it to its place when its mode is right.
fn make_socket(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let name = format!(".{:08x}", std::process::id());
    let folder = path.parent().unwrap_or(Path::new("")).join(name);
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let inside = folder.join("s");
    let made = std::os::unix::net::UnixListener::bind(&inside).and_then(|listener| {
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o600))?;
        fs::rename(&inside, path)?;
        Ok(listener)
    });
    let _ = fs::remove_file(&inside);
    let _ = fs::remove_dir(&folder);
    made
}
