//! Graceful shutdown: pending requests finish before any service stops.
//!
//! pingora drops every task when its runtimes stop, and its own grace period does not wait for them. Therefore the drain waits
//! before it tells pingora to stop: /readyz reports the shutdown, the public listener closes with its idle connections, and
//! pending requests finish within the longest time that one may take. Then the control listener closes, because the end of an SCA
//! may need it until then. A second signal, or SIGINT, ends the wait. A request that is cut off still has its line in the access
//! log.

use crate::{
    clock::Stopwatch,
    config::{Listener, Upstream},
};
use async_trait::async_trait;
use pingora::{
    server::{ListenFds, RuntimeOpts, ShutdownSignal, ShutdownSignalWatch, ShutdownWatch},
    services::Service,
};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    time::{sleep, timeout},
};

/// The time that a request may take in addition to its body, the core and its answer: for its head and the state.
const MARGIN: Duration = Duration::from_secs(10);

/// How long connections without a pending request stay open: an HTTP/2 answer may still be in transit.
const LINGER: Duration = Duration::from_secs(5);

/// The interval at which the number of pending requests is polled. A request thus only updates a counter.
const LOOK: Duration = Duration::from_millis(10);

/// The time-out of the control listener's pending answers. Its own time-out is 5 s.
const CONTROL_WITHIN: Duration = Duration::from_secs(6);

/// The longest time that a request may be pending, by the configured time-outs.
pub(super) const fn longest(listener: &Listener, upstream: &Upstream) -> Duration {
    MARGIN
        .saturating_add(listener.body_timeout)
        .saturating_add(upstream.connect_timeout)
        .saturating_add(upstream.read_timeout)
        .saturating_add(listener.limits.answer_timeout)
}

/// The number of pending requests: those whose head was read and whose answer is not finished.
#[derive(Debug, Default)]
pub(super) struct Underway(AtomicUsize);

impl Underway {
    /// Counts a request that has begun.
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that has ended.
    pub(super) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The stop signals, in the order in which they are sent.
#[derive(Debug)]
pub(super) struct Drain {
    stopping: watch::Sender<bool>,
    listener: watch::Sender<bool>,
    control: watch::Sender<bool>,
    underway: Arc<Underway>,
    longest: Duration,
}

impl Drain {
    /// Creates a drain that waits at most `longest` for these requests.
    pub(super) fn new(underway: Arc<Underway>, longest: Duration) -> Self {
        Self {
            stopping: watch::Sender::new(false),
            listener: watch::Sender::new(false),
            control: watch::Sender::new(false),
            underway,
            longest,
        }
    }

    /// True as soon as the gateway receives a stop signal.
    pub(super) fn stopping(&self) -> ShutdownWatch {
        self.stopping.subscribe()
    }

    /// True when the public listener must close. The drain waits until every copy is dropped; connections hold one.
    pub(super) fn listener(&self) -> ShutdownWatch {
        self.listener.subscribe()
    }

    /// True when the control listener must close. The drain waits until every copy is dropped.
    pub(super) fn control(&self) -> ShutdownWatch {
        self.control.subscribe()
    }

    /// Stops listening, and returns when no request is pending.
    async fn run(&self) {
        let (requests, at_most) = (self.underway.count(), self.longest.as_secs());
        tracing::info!(
            requests,
            at_most,
            "stopping when the requests under way have finished"
        );
        self.stopping.send_replace(true);
        self.listener.send_replace(true);
        if timeout(self.longest, self.finished()).await.is_err() {
            let requests = self.underway.count();
            tracing::warn!(requests, "stopping: the requests that still run are cut");
        }
        self.control.send_replace(true);
        let _ = timeout(CONTROL_WITHIN, self.control.closed()).await;
    }

    /// Returns when every connection has ended, or the remaining ones have had no request for [`LINGER`].
    async fn finished(&self) {
        tokio::select! {
            () = self.listener.closed() => {}
            () = self.quiet() => {}
        }
    }

    async fn quiet(&self) {
        let mut since = Stopwatch::start();
        while since.elapsed() < LINGER {
            sleep(LOOK).await;
            if self.underway.count() > 0 {
                since = Stopwatch::start();
            }
        }
    }
}

/// Stops the process: with SIGTERM and SIGQUIT, pending requests finish; with SIGINT or a second signal, they do not.
#[derive(Debug)]
pub(super) struct BySignal(pub(super) Drain);

#[async_trait]
impl ShutdownSignalWatch for BySignal {
    async fn recv(&self) -> ShutdownSignal {
        match Signals::catch() {
            Ok(mut signals) => {
                if signals.next().await {
                    tokio::select! {
                        () = self.0.run() => {}
                        _ = signals.next() => {}
                    }
                }
            }
            Err(error) => {
                tracing::error!(%error, "signals cannot be caught: they end the process at once");
                std::future::pending::<()>().await;
            }
        }
        let requests = self.0.underway.count();
        tracing::info!(requests, "stopped");
        // pingora then drops its tasks before the process ends, and a dropped exchange is still reported.
        ShutdownSignal::GracefulTerminate
    }
}

struct Signals {
    terminate: Signal,
    quit: Signal,
    interrupt: Signal,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal; returns whether requests may finish.
    async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.terminate.recv() => true,
            _ = self.quit.recv() => true,
            _ = self.interrupt.recv() => false,
        }
    }
}

/// A service that stops on the gateway's signal, before pingora stops and drops its tasks.
pub(super) struct Drained<S> {
    service: S,
    stop: ShutdownWatch,
}

impl<S> Drained<S> {
    /// Runs `service` until `stop` is true.
    pub(super) const fn new(service: S, stop: ShutdownWatch) -> Self {
        Self { service, stop }
    }
}

#[async_trait]
impl<S: Service> Service for Drained<S> {
    async fn start_service(
        &mut self,
        sockets: Option<ListenFds>,
        _shutdown: ShutdownWatch,
        listeners_per_socket: usize,
    ) {
        let stop = self.stop.clone();
        self.service
            .start_service(sockets, stop, listeners_per_socket)
            .await;
    }

    fn name(&self) -> &str {
        self.service.name()
    }

    fn threads(&self) -> Option<usize> {
        self.service.threads()
    }

    fn runtime_opts_override(&self, global: &RuntimeOpts) -> Option<RuntimeOpts> {
        self.service.runtime_opts_override(global)
    }

    fn listen_addresses(&self) -> Option<Vec<String>> {
        self.service.listen_addresses()
    }
}
