//! Listening on TCP, TLS over TCP, or a Unix socket, with the same routes.
//!
//! Invariants: handshake, head, body and answer each have a time-out, and the number of connections is bounded. A request on a connection
//! that loses its slot is told to come back, as long as few such connections are left.

use super::{
    bound::{Bound, BoundSocket},
    context::ControlContext,
    fault::ApiFault,
    guard::{Arrival, ClientNames},
    running::RunningCalls,
    slots::{Slot, Slots, TakenSlot},
};
use crate::{
    config::ControlTls,
    telemetry::{CallerEvent, Subject, Telemetry},
};
use axum::{
    Extension, Router,
    extract::Request,
    http::{HeaderValue, header},
    middleware::{self, Next},
    response::Response,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::{Semaphore, watch},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tracing::Level;

/// The most concurrent connections. The bank's SCA service and a few monitors need a dozen.
const MAX_CONNECTIONS: usize = 192;

/// The most connections that have lost their slots, and are open beside them for [`LAST_LOOK`].
const MAX_LEAVING: usize = 64;

/// The time-out of a TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// The time-out of a request's head, and of an idle connection.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// The most bytes of a head.
const MAX_HEAD: usize = 16 * 1024;

/// How long an idle connection is still read when the listener closes, or the connection has lost its slot: a call that is sent while its
/// connection closes would be lost.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// The time-out of pending answers, and of calls whose callers disconnected, when the gateway stops.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// A flag that changes to true once.
pub type StopSignal = watch::Receiver<bool>;

/// Serves until the gateway stops.
pub(super) async fn serve(
    bound: Bound,
    context: &ControlContext,
    routes: Router,
    running: RunningCalls,
    shutdown: StopSignal,
) -> io::Result<()> {
    let serving = Serving {
        telemetry: Arc::clone(&context.telemetry),
        routes,
        running,
        shutdown,
        slots: Slots::new(MAX_CONNECTIONS),
        leaving: Leaving::new(&context.system),
    };
    match bound.0 {
        BoundSocket::Tcp(listener) => {
            let listener = TcpListener::from_std(listener)?;
            let tls = || context.current.load().control.tls.clone();
            serving.accept(listener, tls).await;
        }
        BoundSocket::Unix(listener, _file) => {
            serving
                .accept(UnixListener::from_std(listener)?, || None)
                .await;
        }
    }
    Ok(())
}

/// A source of streams.
trait Accept: Send + Sync {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// The local address of a stream; `None` for a Unix socket.
    fn reached(stream: &Self::Stream) -> Option<SocketAddr>;

    /// The caller's address; `None` for a Unix socket.
    fn caller(stream: &Self::Stream) -> Option<SocketAddr>;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        Ok(self.accept().await?.0)
    }

    fn reached(stream: &TcpStream) -> Option<SocketAddr> {
        stream.local_addr().ok()
    }

    fn caller(stream: &TcpStream) -> Option<SocketAddr> {
        stream.peer_addr().ok()
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

    fn caller(_: &UnixStream) -> Option<SocketAddr> {
        None
    }
}

struct Serving {
    telemetry: Arc<Telemetry>,
    routes: Router,
    /// The calls of these routes.
    running: RunningCalls,
    shutdown: StopSignal,
    slots: Arc<Slots>,
    leaving: Leaving,
}

/// The connections that have lost their slots.
#[derive(Clone)]
struct Leaving {
    room: Arc<Semaphore>,
    /// `system` of errors (ERR-1).
    system: Arc<str>,
}

impl Leaving {
    fn new(system: &str) -> Self {
        Self {
            room: Arc::new(Semaphore::new(MAX_LEAVING)),
            system: system.into(),
        }
    }

    /// Serves a request on a connection that has its slot, and tells others to come back.
    async fn answer(
        self,
        slot: Arc<Slot>,
        closing: StopSignal,
        request: Request,
        next: Next,
    ) -> Response {
        let answering = slot.answer();
        let mut answer = if slot.is_lost() {
            let mut answer = ApiFault::TooManyConnections.answer_of(&self.system);
            let no_store = HeaderValue::from_static("no-store");
            answer.headers_mut().insert(header::CACHE_CONTROL, no_store);
            answer
        } else {
            next.run(request).await
        };
        if *closing.borrow() || slot.is_lost() {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(header::CONNECTION, close);
        }
        drop(answering);
        answer
    }
}

impl Serving {
    /// `tls` is loaded for each connection, because a reload may have changed it.
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
                        caller: L::caller(&stream),
                        tls: tls.is_some(),
                        client_ca: tls.as_ref().and_then(|tls| tls.client_ca),
                    };
                    let handshakes = Handshakes {
                        telemetry: Arc::clone(&self.telemetry),
                        caller: arrival.caller.map(|caller| caller.ip()),
                    };
                    let tls = tls.map(|tls| (TlsAcceptor::from(tls.config), handshakes));
                    let routes = routes.layer(Extension(arrival));
                    let (taken, leaving) = (self.slots.take(), self.leaving.clone());
                    connections.spawn(connection(stream, tls, routes, shutdown, taken, leaving));
                }
                // No file descriptors are left, or the client disconnected. Retrying at once would keep a core busy.
                Err(error) => {
                    tracing::warn!(%error, "the control listener cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        let finish = async {
            while connections.join_next().await.is_some() {}
            self.running.ended().await;
        };
        let _ = tokio::time::timeout(FINISH_WITHIN, finish).await;
    }
}

/// Reports the handshakes of a caller that fail: anybody who reaches the port can make them fail (FWD-8).
struct Handshakes {
    telemetry: Arc<Telemetry>,
    caller: Option<IpAddr>,
}

impl Handshakes {
    fn failed(&self, error: Option<&io::Error>) {
        let subject = Subject::network(self.caller);
        let event =
            self.telemetry
                .caller_event(Level::WARN, "control-handshake", subject, self.caller);
        let Some(CallerEvent { network }) = event else {
            return;
        };
        let network = network.as_deref();
        match error {
            Some(error) => {
                tracing::warn!(%error, network, "a caller of the control listener was refused by TLS");
            }
            None => {
                tracing::warn!(
                    network,
                    "a caller of the control listener did not finish its TLS handshake"
                );
            }
        }
    }
}

async fn connection<S>(
    stream: S,
    tls: Option<(TlsAcceptor, Handshakes)>,
    routes: Router,
    shutdown: StopSignal,
    taken: TakenSlot,
    leaving: Leaving,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let slot = Arc::clone(taken.slot());
    let (closing, room) = (shutdown.clone(), Arc::clone(&leaving.room));
    let routes = routes.layer(middleware::from_fn(move |request, next| {
        let (slot, closing) = (Arc::clone(&slot), closing.clone());
        leaving.clone().answer(slot, closing, request, next)
    }));
    let mut serving = std::pin::pin!(serve_connection(stream, tls, routes, shutdown));
    tokio::select! {
        () = &mut serving => return,
        () = taken.given_up() => {}
    }
    // A request that is on its way is told to come back.
    if let Ok(_place) = room.try_acquire() {
        let _ = tokio::time::timeout(LAST_LOOK, serving).await;
    }
}

async fn serve_connection<S>(
    stream: S,
    tls: Option<(TlsAcceptor, Handshakes)>,
    routes: Router,
    shutdown: StopSignal,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some((tls, handshakes)) = tls else {
        return exchange(stream, routes, shutdown).await;
    };
    match tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let names = ClientNames::shown(stream.get_ref().1.peer_certificates());
            exchange(stream, routes.layer(Extension(names)), shutdown).await
        }
        Ok(Err(error)) => handshakes.failed(Some(&error)),
        Err(_) => handshakes.failed(None),
    }
}

/// Serves one connection, request after request.
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
            // Its next answer ends the connection.
            if tokio::time::timeout(LAST_LOOK, &mut connection).await.is_err() {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
            return;
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the control listener broke off");
    }
}

async fn stopped(mut shutdown: StopSignal) {
    let _ = shutdown.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const REQUEST: &[u8] = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

    /// What a connection answers to these bytes after it has lost its slot, and the time until it closes.
    async fn without_a_slot(leaving: Leaving, sent: &[u8]) -> (String, Duration) {
        let begin = tokio::time::Instant::now();
        let slots = Slots::new(1);
        let routes = Router::new().route("/livez", get(|| async { "served" }));
        let (stop, shutdown) = watch::channel(false);
        let (ours, mut theirs) = tokio::io::duplex(4_096);
        let serving = connection(ours, None, routes, shutdown, slots.take(), leaving);
        let serving = tokio::spawn(serving);
        let _newer = slots.take();
        theirs.write_all(sent).await.unwrap();
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        serving.await.unwrap();
        drop(stop);
        (text, begin.elapsed())
    }

    //= ERR-4 refused
    #[tokio::test(start_paused = true)]
    async fn a_request_on_a_connection_without_a_slot_is_told_to_come_back() {
        let leaving = Leaving::new("Gateway");
        let (answer, _) = without_a_slot(leaving.clone(), REQUEST).await;
        for part in [
            "HTTP/1.1 503 ",
            "retry-after: 1",
            "connection: close",
            "no-store",
            "connections-too-many",
        ] {
            assert!(answer.contains(part), "{answer}");
        }
        // A silent connection closes after the last look at it, and beyond the bound at once.
        let (answer, within) = without_a_slot(leaving.clone(), b"").await;
        assert!(answer.is_empty() && within >= LAST_LOOK, "{within:?}");
        let _all = leaving.room.clone().try_acquire_many_owned(64).unwrap();
        let (answer, within) = without_a_slot(leaving, b"").await;
        assert!(answer.is_empty() && within < LAST_LOOK, "{within:?}");
    }
}
