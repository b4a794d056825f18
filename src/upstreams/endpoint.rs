//! An endpoint in use: its pool of connections, its failures, and its ejection.
//!
//! Invariant: an endpoint outlives a reload that does not change its address and its connections, so its pool and its health stay.

use super::{
    connection::{CoreConnection, TlsTarget},
    passive::Passive,
    pool::Pool,
};
use crate::{
    clock::Stopwatch,
    config::UpstreamGroup,
    telemetry::{CoreEndpoint, Telemetry},
};
use pingora::{Error, ErrorType, Result};
use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// The least number of seconds between two log lines about failed TLS handshakes with one endpoint.
const TLS_LOG_INTERVAL: u64 = 10;

/// An endpoint.
pub struct Endpoint {
    address: SocketAddr,
    group: Arc<UpstreamGroup>,
    tls: Option<TlsTarget>,
    /// Idle connections; `None` if each is closed after its answer (FWD-3).
    pool: Option<Pool>,
    passive: Passive,
    tally: Arc<Tally>,
    telemetry: Arc<Telemetry>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Endpoint")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// The failures of an endpoint as it is configured: those of a name's addresses together.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) of: Arc<CoreEndpoint>,
    failures: AtomicU64,
    /// Whether an operator has taken it out.
    drained: AtomicBool,
    since: Stopwatch,
    /// The second of the last log line about TLS, counted from `since`, and one more.
    tls_logged: AtomicU64,
    /// The reason of the last failed check.
    reason: Mutex<String>,
}

impl Tally {
    pub(super) fn new(of: Arc<CoreEndpoint>) -> Self {
        Self {
            of,
            failures: AtomicU64::new(0),
            drained: AtomicBool::new(false),
            since: Stopwatch::start(),
            tls_logged: AtomicU64::new(0),
            reason: Mutex::default(),
        }
    }

    /// Keeps the reason of a failed check for the log.
    pub(super) fn keep_reason(&self, reason: String) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// The reason of the last failed check.
    pub(super) fn reason(&self) -> String {
        let reason = self.reason.lock();
        reason.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The failures since the start.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// Whether an operator has taken it out.
    pub(super) fn is_drained(&self) -> bool {
        self.drained.load(Relaxed)
    }

    /// Takes it out or back; true if that changed it.
    pub(super) fn set_drained(&self, drained: bool) -> bool {
        self.drained.swap(drained, Relaxed) != drained
    }

    /// Whether a failed handshake is to be logged now.
    fn may_log_tls(&self) -> bool {
        let now = self.since.elapsed().as_secs().saturating_add(1);
        let before = self.tls_logged.load(Relaxed);
        (before == 0 || now.saturating_sub(before) >= TLS_LOG_INTERVAL)
            && self
                .tls_logged
                .compare_exchange(before, now, Relaxed, Relaxed)
                .is_ok()
    }
}

impl Endpoint {
    pub(super) fn new(
        address: SocketAddr,
        group: Arc<UpstreamGroup>,
        tls: Option<TlsTarget>,
        tally: Arc<Tally>,
        telemetry: &Arc<Telemetry>,
    ) -> Self {
        let pool = || Pool::new(group.idle_timeout, Arc::clone(telemetry));
        Self {
            address,
            tls,
            pool: group.reuse.then(pool),
            passive: Passive::new(),
            tally,
            telemetry: Arc::clone(telemetry),
            group,
        }
    }

    /// Whether it may be used further by a group with these settings.
    pub(super) fn fits(&self, group: &UpstreamGroup) -> bool {
        let own = &self.group;
        own.name == group.name
            && own.tls == group.tls
            && own.reuse == group.reuse
            && own.idle_timeout == group.idle_timeout
    }

    /// The address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) const fn tls(&self) -> Option<&TlsTarget> {
        self.tls.as_ref()
    }

    /// Its name in logs and metrics, and the times of its answers.
    pub fn named(&self) -> &Arc<CoreEndpoint> {
        &self.tally.of
    }

    /// Whether an operator has taken it out.
    pub fn is_drained(&self) -> bool {
        self.tally.is_drained()
    }

    /// Its idle connections, of which a drained endpoint keeps none.
    pub fn open_pool(&self) -> Option<&Pool> {
        self.pool().filter(|_| !self.is_drained())
    }

    pub(super) const fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    pub(super) const fn passive(&self) -> &Passive {
        &self.passive
    }

    /// Returns a connection for a request that is sent next, and whether it was used before: `may_be_kept` allows that.
    ///
    /// # Errors
    /// No connection is made within the limit.
    pub async fn connect(
        &self,
        limit: Duration,
        may_be_kept: bool,
    ) -> Result<(Box<CoreConnection>, bool)> {
        let pool = self.pool.as_ref().filter(|_| may_be_kept);
        if let Some(idle) = pool.and_then(Pool::take) {
            return Ok((idle, true));
        }
        let opened = CoreConnection::open(self.address, self.tls.as_ref(), limit).await;
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(error) => {
                if *error.etype() == ErrorType::TLSHandshakeFailure {
                    self.log_tls(error.cause.as_ref().map(ToString::to_string));
                }
                return Err(error.into_up());
            }
        };
        // A peer that sends first is not an HTTP server, and its bytes are not an answer (FWD-3).
        if connection.is_quiet() {
            return Ok((Box::new(connection), false));
        }
        if let Some(refused) = self.refused(&connection) {
            return Err(refused);
        }
        Error::e_explain(ErrorType::ConnectError, "an answer before the request")
            .map_err(Error::into_up)
    }

    /// Takes back a connection whose answer was read to its end; `None` if it is to be closed.
    pub const fn pool(&self) -> Option<&Pool> {
        self.pool.as_ref()
    }

    /// Counts a failed request, for the metric.
    pub fn count_failure(&self) {
        self.tally.failures.fetch_add(1, Relaxed);
    }

    /// It is ejected for this time, because of a failure of this kind.
    pub(super) fn tell_ejection(&self, kind: &str, time: Duration) {
        self.telemetry.endpoint_ejected();
        tracing::warn!(
            upstream = self.group.name,
            endpoint = self.tally.of.endpoint,
            address = %self.address,
            kind,
            seconds = time.as_secs_f64(),
            "an endpoint is ejected: its requests failed"
        );
    }

    /// Its ejection ends early, because the endpoint that remained cannot be reached.
    pub(super) fn tell_release(&self) {
        tracing::info!(
            upstream = self.group.name,
            endpoint = self.tally.of.endpoint,
            address = %self.address,
            "an ejected endpoint is used again: the last other one cannot be reached"
        );
    }

    /// The error if the core has refused the TLS handshake after it: no connection was made, and the core has taken no request.
    pub fn refused(&self, connection: &CoreConnection) -> Option<Box<Error>> {
        let alert = connection.refused()?;
        let context =
            format!("the core refused the handshake, or the client certificate: {alert:?}");
        self.log_tls(Some(context.clone()));
        Some(Error::explain(ErrorType::TLSHandshakeFailure, context).into_up())
    }

    /// The reason of a failed handshake is for the operator; the caller gets 502.
    fn log_tls(&self, reason: Option<String>) {
        if self.tally.may_log_tls() {
            tracing::warn!(
                upstream = self.group.name,
                endpoint = self.tally.of.endpoint,
                address = %self.address,
                reason,
                "TLS to an endpoint failed"
            );
        }
    }
}
