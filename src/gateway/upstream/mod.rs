//! The upstream client: sends an admitted request to the core, and reads the head of its answer (FWD-3, FWD-4).
//!
//! Invariant: [`Upstream::send`] takes an [`Admitted`], which only `admission::authorise` constructs: for a request that was not
//! admitted, nothing is sent and no connection is opened (SIG-11). Deliberately not here: the handling of the answer, which is
//! returned.
//!
//! pingora's proxy runs the two directions as two tasks with a channel between them, and watches the caller from the start. The
//! gateway has the whole request before it forwards it, so one direction after the other is enough, and costs about a third less.
//! It also allows the head of an answer to be held until its body is known, as a signature requires.

// One connection to the core.
mod connection;

// The connection pool.
mod pool;

// The head of an answer, and the body behind it.
mod answer;

pub(super) use answer::{CoreAnswer, CoreBody};

use super::{assertion, failure, forward};
use crate::{
    admission::Admitted,
    clock::{Clock, Stopwatch},
    config,
    signing::AssertionSigner,
    telemetry::Telemetry,
};
use answer::{has_begun, read_head};
use bytes::Bytes;
use connection::CoreConnection;
use http::{HeaderValue, response::Parts};
use pingora::{
    Error, ErrorType, Result,
    http::{RequestHeader, ResponseHeader},
    prelude::timeout,
    protocols::http::{ServerSession as Session, v1::client::HttpSession},
};
use pool::Pool;
use std::{fmt, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

/// The most times that a request is sent.
const MAX_TRIES: usize = 2;

/// The delay before the gateway watches whether the caller is still connected: watching costs more than most answers take.
const PATIENCE: Duration = Duration::from_millis(100);

/// The client of one core.
pub(super) struct Upstream {
    address: SocketAddr,
    host: HeaderValue,
    connect_timeout: Duration,
    read_timeout: Duration,
    /// Idle connections; `None` if each is closed after its answer (FWD-3).
    pool: Option<Pool>,
    assertion_signer: Option<Arc<AssertionSigner>>,
    clock: Clock,
    telemetry: Arc<Telemetry>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Upstream")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// The failure of a request without an answer.
pub(super) struct SendFailure {
    /// The error, with its source.
    pub(super) error: Box<Error>,
    /// Whether any connection was made: the core may have the request.
    pub(super) connected: bool,
}

/// A failed try.
struct TryFailure {
    error: Box<Error>,
    connected: bool,
    /// Whether a byte of an answer has arrived.
    has_begun: bool,
    /// Whether the request may be sent again.
    again: bool,
}

impl TryFailure {
    /// The failure of a try without a connection.
    const fn unconnected(error: Box<Error>) -> Self {
        Self {
            error,
            connected: false,
            has_begun: false,
            again: false,
        }
    }
}

impl Upstream {
    /// Creates a client of the core at an address. `assertion_signer` signs the facts that the gateway established (FWD-1).
    pub(super) fn new(
        settings: &config::Upstream,
        assertion_signer: Option<Arc<AssertionSigner>>,
        clock: Clock,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        let pool = || Pool::new(settings.idle_timeout, Arc::clone(&telemetry));
        Self {
            address: settings.address,
            host: settings.host.clone(),
            connect_timeout: settings.connect_timeout,
            read_timeout: settings.read_timeout,
            pool: settings.reuse.then(pool),
            assertion_signer,
            clock,
            telemetry,
        }
    }

    /// Sends an admitted request to the core. `caller` is watched meanwhile: a safe request ends when its caller disconnects, any
    /// other request is completed (FWD-4).
    ///
    /// # Errors
    /// There is no answer, or a rejected one.
    pub(super) async fn send(
        &self,
        admitted: &Admitted,
        caller: &mut Session,
    ) -> std::result::Result<CoreAnswer, SendFailure> {
        let mut connected = false;
        let mut tries = 0_usize;
        loop {
            tries = tries.saturating_add(1);
            match pin!(self.send_once(admitted, caller)).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => {
                    if let Some(kind) = failure::kind(&failure.error, failure.has_begun) {
                        self.telemetry.upstream_failed(kind);
                    }
                    connected |= failure.connected;
                    if !failure.again || tries >= MAX_TRIES {
                        let error = failure.error;
                        return Err(SendFailure { error, connected });
                    }
                }
            }
        }
    }

    /// Keeps the connection for another request, if no more bytes of this answer can arrive on it (FWD-3). A core that sends a
    /// body where none is allowed sends it after the head, at an unknown time.
    pub(super) async fn recycle(&self, CoreBody(mut core): CoreBody, bodiless: bool) {
        let Some(pool) = self.pool.as_ref().filter(|_| !bodiless) else {
            return core.shutdown().await;
        };
        core.respect_keepalive();
        let kept = core.reuse().await;
        if let Some(Ok(connection)) = kept.map(|stream| stream.into_any().downcast()) {
            pool.put(connection);
        }
    }

    /// Sends the request once, and reads the head of the answer.
    async fn send_once(
        &self,
        admitted: &Admitted,
        caller: &mut Session,
    ) -> std::result::Result<CoreAnswer, TryFailure> {
        let request = self.head_of(admitted).map_err(TryFailure::unconnected)?;
        let watch = Stopwatch::start();
        let idle = self.pool.as_ref().and_then(Pool::take);
        let reused = idle.is_some();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().await.map_err(TryFailure::unconnected)?,
        };
        self.telemetry.connected_upstream(reused);
        let mut core = HttpSession::new(connection);
        core.read_timeout = Some(self.read_timeout);
        let exchanged =
            pin!(self.exchange_heads(caller, &mut core, request, admitted.body())).await;
        match exchanged {
            Ok(head) => Ok(CoreAnswer {
                head: Parts::from(head),
                body: CoreBody(core),
                took: watch.elapsed(),
            }),
            // FWD-3: a request is sent again only if that is harmless.
            Err(mut error) => {
                error.retry.decide_reuse(reused);
                let has_begun = has_begun(&core);
                let again = admitted.method().is_safe() && error.retry() && !has_begun;
                Err(TryFailure {
                    error,
                    connected: true,
                    has_begun,
                    again,
                })
            }
        }
    }

    /// The request's head, with the assertion if it is configured (FWD-1).
    fn head_of(&self, admitted: &Admitted) -> Result<Box<RequestHeader>> {
        let mut request = forward::upstream_head(admitted, &self.host)?;
        if let Some(signer) = &self.assertion_signer {
            assertion::insert(signer, admitted, &mut request, self.clock.now())?;
        }
        Ok(request)
    }

    /// Opens a new connection.
    async fn connect(&self) -> Result<Box<CoreConnection>> {
        let opened = CoreConnection::open(self.address, self.connect_timeout).await;
        let connection = opened.map_err(Error::into_up)?;
        // A peer that sends first is not an HTTP server, and its bytes are not an answer (FWD-3).
        if connection.is_quiet() {
            return Ok(Box::new(connection));
        }
        Error::e_explain(ErrorType::ConnectError, "an answer before the request")
            .map_err(Error::into_up)
    }

    /// Sends a request and reads the head of its answer. A safe request ends when its caller disconnects; any other request is
    /// completed (FWD-4).
    async fn exchange_heads(
        &self,
        caller: &mut Session,
        core: &mut HttpSession,
        request: Box<RequestHeader>,
        body: &Bytes,
    ) -> Result<ResponseHeader> {
        let safe = request.method.is_safe();
        let mut exchanging = pin!(async {
            core.write_request_header(request).await?;
            if !body.is_empty() {
                core.write_body(body).await?;
            }
            core.finish_body().await?;
            read_head(core).await
        });
        let patience = PATIENCE.min(self.read_timeout);
        if let Ok(head) = timeout(patience, &mut exchanging).await {
            return head.map_err(Error::into_up);
        }
        let rest = self.read_timeout.saturating_sub(patience);
        let mut waiting = pin!(timeout(rest, exchanging));
        let mut watched = safe;
        loop {
            tokio::select! {
                head = &mut waiting => return match head {
                    Ok(head) => head.map_err(Error::into_up),
                    Err(_) => Error::e_explain(ErrorType::ReadTimedout, "no answer").map_err(Error::into_up),
                },
                idle = caller.read_body_or_idle(true), if watched => match idle {
                    // Bytes of a further request, or an empty line, mean that the caller is still connected (RFC 9112, sections
                    // 2.2 and 9.3.2). They are lost, so the caller's connection ends with this answer.
                    Err(error) if *error.etype() == ErrorType::ConnectError => {
                        watched = false;
                        caller.set_keepalive(None);
                    }
                    Err(error) => return Err(error.into_down()),
                    Ok(_) => return Error::e_explain(ErrorType::ConnectionClosed, "the caller went away").map_err(Error::into_down),
                },
            }
        }
    }
}
