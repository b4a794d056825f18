//! Accepts connections: each one needs a permit and completes its handshake in time before the HTTP layer sees it (TLS-1, HTTP-9).
//!
//! pingora's own listener counts nothing before the handshake, allows it 60 s, and logs every failure at ERROR. Deliberately not
//! here: the bytes of a connection ([`super::stream`]), and the decision to stop, which is the caller's.

use super::{
    client::ClientConnection,
    http1,
    limit::{ConnectionLimit, ConnectionPermit},
    origin::{ConnectionOrigin, ConnectionPeer},
    socket::Socket,
    stream::{ClientStream, Shared},
};
use crate::{
    config::Proxies,
    gateway::watchdog::Pulse,
    in_use::Current,
    telemetry::{CallerEvent, HandshakeOutcome, Stranger, Subject, Telemetry, TlsVersion},
    trust::ClientChain,
};
use async_trait::async_trait;
use pingora::{
    apps::{HttpServerApp, ServerApp},
    server::{ListenFds, ShutdownWatch},
    services::Service,
};
use rustls::{HandshakeKind, ProtocolVersion};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::yield_now,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::Level;

/// The delay before another attempt to accept a connection when no file descriptors are left.
const PAUSE: Duration = Duration::from_secs(1);

/// The interval at which the rates of idle callers and the floods of addresses are forgotten (QUO-12): until then, each new address
/// takes memory.
const FORGET_EVERY: Duration = Duration::from_secs(10);

/// A bound socket, and whether connections to it are accepted.
#[derive(Debug)]
pub(in crate::gateway) struct PublicSocket {
    pub(in crate::gateway) socket: std::net::TcpListener,
    /// True as soon as connections may be accepted.
    pub(in crate::gateway) open: watch::Receiver<bool>,
    pub(in crate::gateway) accepting: Arc<AtomicBool>,
    pub(in crate::gateway) pulse: Arc<Pulse>,
}

impl PublicSocket {
    /// A socket that accepts nobody until the sender says so.
    pub(in crate::gateway) fn closed(
        socket: std::net::TcpListener,
        accepting: &Arc<AtomicBool>,
    ) -> (Self, watch::Sender<bool>) {
        let (opener, open) = watch::channel(false);
        let closed = Self {
            socket,
            open,
            accepting: Arc::clone(accepting),
            pulse: Arc::default(),
        };
        (closed, opener)
    }
}

/// The public listener. The gateway is ready once it accepts connections.
pub(in crate::gateway) struct PublicListener<A> {
    /// Taken when the service starts.
    socket: Option<std::net::TcpListener>,
    acceptor: TlsAcceptor,
    app: Arc<A>,
    limit: Arc<ConnectionLimit>,
    shared: Arc<Shared>,
    proxies: Arc<Proxies>,
    current: Arc<Current>,
    open: watch::Receiver<bool>,
    accepting: Arc<AtomicBool>,
    pulse: Arc<Pulse>,
}

impl<A: HttpServerApp + Send + Sync + 'static> PublicListener<A> {
    /// Creates a listener that passes connections to `app`.
    pub(super) fn new(
        socket: PublicSocket,
        acceptor: TlsAcceptor,
        app: A,
        shared: Shared,
        proxies: Arc<Proxies>,
        current: Arc<Current>,
    ) -> Self {
        let limits = &shared.limits;
        Self {
            socket: Some(socket.socket),
            acceptor,
            app: Arc::new(app),
            limit: ConnectionLimit::new(
                limits.connections,
                limits.connections_per_address,
                Arc::clone(&shared.telemetry),
            ),
            shared: Arc::new(shared),
            proxies,
            current,
            open: socket.open,
            accepting: socket.accepting,
            pulse: socket.pulse,
        }
    }

    async fn accept(&self, listener: &TcpListener, shutdown: &ShutdownWatch) {
        match listener.accept().await {
            Ok((stream, address)) if self.shared.overload.serves(Stranger::Connection) => {
                self.admit(stream, address, shutdown);
            }
            Ok((stream, address)) => {
                drop(stream);
                self.count(&ConnectionPeer::new(address, &self.proxies));
                // Every task that is ready runs before the next connection, so that a flood of them takes little time; the rest
                // wait in the kernel.
                yield_now().await;
            }
            Err(error) => {
                let telemetry = &self.shared.telemetry;
                if telemetry.has_event(Level::ERROR, "accept", Subject::Gateway) {
                    tracing::error!(%error, "a connection cannot be accepted");
                }
                // Other errors concern only one connection.
                if matches!(error.raw_os_error(), Some(23 | 24)) {
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Closes the socket. Connections that wait in the kernel's queue are accepted before: they would be reset with the socket.
    fn accept_waiting(&self, listener: TcpListener, shutdown: &ShutdownWatch) {
        let Ok(listener) = listener.into_std() else {
            return;
        };
        while let Ok((stream, address)) = listener.accept() {
            let stream = stream.set_nonblocking(true).map(|()| stream);
            if let Ok(stream) = stream.and_then(TcpStream::from_std) {
                self.admit(stream, address, shutdown);
            }
        }
    }

    /// Counts a connection of a caller whose address is known: that behind a PROXY header is not yet.
    fn count(&self, peer: &ConnectionPeer) {
        if let Some(client) = peer.client() {
            self.shared.telemetry.connection_from(client.ip());
        }
    }

    /// Gives a connection its permit and its own task.
    fn admit(&self, stream: TcpStream, address: SocketAddr, shutdown: &ShutdownWatch) {
        let peer = ConnectionPeer::new(address, &self.proxies);
        self.count(&peer);
        let permit = self.limit.permit();
        let permit = match peer.client() {
            Some(client) => permit.and_then(|permit| permit.of_client(client.ip())),
            None => permit,
        };
        let telemetry = &self.shared.telemetry;
        if permit.as_ref().is_none_or(ConnectionPermit::is_excess) {
            telemetry.connection_turned_away();
        }
        let Some(permit) = permit else { return };
        let connecting = Connecting {
            acceptor: self.acceptor.clone(),
            app: Arc::clone(&self.app),
            shared: Arc::clone(&self.shared),
            shutdown: shutdown.clone(),
        };
        tokio::spawn(connecting.run(stream, peer, permit));
    }
}

#[async_trait]
impl<A: HttpServerApp + Send + Sync + 'static> Service for PublicListener<A> {
    async fn start_service(
        &mut self,
        _sockets: Option<ListenFds>,
        mut shutdown: ShutdownWatch,
        _listeners_per_socket: usize,
    ) {
        let Some(bound) = self.socket.take().map(TcpListener::from_std) else {
            return;
        };
        let bound = match bound {
            Ok(bound) => bound,
            Err(error) => {
                tracing::error!(%error, "the public listener failed");
                return;
            }
        };
        let given = shutdown.clone();
        let stopped = shutdown.wait_for(|stop| *stop);
        tokio::pin!(stopped);
        tokio::select! {
            biased;
            // Connections that wait belong to the process before, which has the socket too.
            _ = &mut stopped => return,
            _ = self.open.wait_for(|open| *open) => {}
        }
        self.accepting.store(true, Ordering::Release);
        let overload = Arc::clone(&self.shared.overload);
        let watching = tokio::spawn(async move { overload.watch().await });
        let forgetting = forget_callers(&self.current, &self.limit, &self.shared.telemetry);
        tokio::pin!(forgetting);
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                () = self.pulse.asked() => self.pulse.answer(),
                () = self.accept(&bound, &given) => {}
                () = &mut forgetting => {}
            }
        }
        watching.abort();
        self.accept_waiting(bound, &given);
        self.app.cleanup().await;
    }

    fn name(&self) -> &str {
        "gateway"
    }
}

/// Removes idle callers' rates and floods periodically, which bounds their memory, and says what was left out of the audit and the logs. Never returns.
async fn forget_callers(current: &Current, limit: &ConnectionLimit, telemetry: &Telemetry) {
    loop {
        sleep(FORGET_EVERY).await;
        telemetry.say_left_out(false);
        limit.forget_floods();
        let rates = Arc::clone(&current.load().snapshot.rates);
        // A flood leaves millions of entries, so the work runs on a blocking thread and delays no request.
        let _ = tokio::task::spawn_blocking(move || rates.tidy()).await;
    }
}

/// A connection after its handshake.
type Shaken = (TlsStream<Socket>, ConnectionOrigin, ConnectionPermit);

/// An accepted connection before its handshake.
struct Connecting<A> {
    acceptor: TlsAcceptor,
    app: Arc<A>,
    shared: Arc<Shared>,
    shutdown: ShutdownWatch,
}

impl<A: HttpServerApp + Send + Sync + 'static> Connecting<A> {
    async fn run(self, stream: TcpStream, peer: ConnectionPeer, permit: ConnectionPermit) {
        // In memory of its own, which is freed after the handshake: the future of the connection would keep it until its end.
        let shaken = Box::pin(self.shake(stream, peer, permit)).await;
        let Some(stream) = shaken.and_then(|shaken| self.stream(shaken)) else {
            return;
        };
        let mut shutdown = self.shutdown;
        if stream.is_http1() {
            http1::serve(&self.app, stream, &mut shutdown).await;
        } else {
            self.app.process_new(stream, &shutdown).await;
        }
    }

    /// The stream of a connection. Apart, because a future keeps what it has borrowed, such as the state of TLS, until its end.
    fn stream(&self, shaken: Shaken) -> Option<Box<ClientStream>> {
        let (tls, origin, permit) = shaken;
        let chain = tls.get_ref().1.peer_certificates().unwrap_or_default();
        let shown = ClientChain::new(chain.iter().map(AsRef::as_ref));
        let client = ClientConnection::new(origin, shown, permit.excess(), version(&tls));
        let client = client.into_digest()?;
        let shared = Arc::clone(&self.shared);
        Some(Box::new(ClientStream::new(tls, client, shared, permit)))
    }

    /// Reads the header of a trusted proxy and performs the handshake, both within the time-out.
    async fn shake(
        &self,
        stream: TcpStream,
        peer: ConnectionPeer,
        permit: ConnectionPermit,
    ) -> Option<Shaken> {
        stream.set_nodelay(true).ok()?;
        let telemetry = &self.shared.telemetry;
        let time = self.shared.limits.handshake_timeout;
        let mut socket = Socket::new(stream);
        let mut client = peer.client();
        let shaking = async {
            // A proxy that connects and closes without a byte has only checked that the gateway listens.
            if peer.is_proxy() && !socket.has_begun().await {
                return Ok(None);
            }
            let named = peer.read_client(&mut socket).await;
            let named = named.map_err(|error| (HandshakeOutcome::BadProxyHeader, error))?;
            client = named.or(client);
            let Some(permit) = self.count(permit, named) else {
                return Ok(None);
            };
            if let Some(pause) = permit.pause() {
                // Time for the handshake stays, whatever its time-out.
                sleep(pause.min(time / 2)).await;
            }
            let accepted = self.acceptor.accept(socket).await;
            let tls = accepted.map_err(|error| (HandshakeOutcome::Failed, error))?;
            Ok(Some((tls, peer.origin(named), permit)))
        };
        match timeout(time, shaking).await {
            Ok(Ok(shaken)) => {
                if let Some((tls, _, _)) = &shaken {
                    let is_resumed =
                        tls.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
                    let outcome = match is_resumed {
                        true => HandshakeOutcome::Resumed,
                        false => HandshakeOutcome::Done,
                    };
                    telemetry.handshake(outcome, version(tls));
                }
                shaken
            }
            Ok(Err((outcome, error))) => {
                telemetry.handshake(outcome, None);
                let caller = client.map(|client| client.ip());
                let whose = Subject::network(caller);
                let event = telemetry.caller_event(Level::INFO, "handshake", whose, caller);
                if let Some(CallerEvent { network }) = event {
                    tracing::info!(%error, network = network.as_deref(), "a TLS handshake failed");
                }
                None
            }
            Err(_) => {
                telemetry.handshake(HandshakeOutcome::TooSlow, None);
                None
            }
        }
    }

    /// Counts the connection by the address of the client that its proxy named.
    fn count(
        &self,
        permit: ConnectionPermit,
        named: Option<SocketAddr>,
    ) -> Option<ConnectionPermit> {
        let Some(client) = named else {
            return Some(permit);
        };
        let was_excess = permit.is_excess();
        let permit = permit.of_client(client.ip());
        if !was_excess && permit.as_ref().is_none_or(ConnectionPermit::is_excess) {
            self.shared.telemetry.connection_turned_away();
        }
        permit
    }
}

/// The version of TLS.
fn version(tls: &TlsStream<Socket>) -> Option<TlsVersion> {
    match tls.get_ref().1.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => Some(TlsVersion::V1_2),
        Some(ProtocolVersion::TLSv1_3) => Some(TlsVersion::V1_3),
        _ => None,
    }
}
