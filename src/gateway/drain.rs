//! Stopping: requests under way finish before anything is taken from them.
//!
//! pingora drops every task when its runtimes stop, and its own grace period waits for none of them. So all waiting is done
//! before pingora is told to stop: /readyz says so and the public listener closes, idle connections with it; requests under
//! way finish, within the longest that one may take; then the control listener closes, which an SCA's end may have needed
//! until then. A second signal, or SIGINT, ends the wait. A request that is cut all the same has its line in the access log.

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

/// What a request may take beside its body, the core and its answer: its head and the state.
const MARGIN: Duration = Duration::from_secs(10);

/// How long connections are left that have no request under way: what was answered over HTTP/2 may still be on its way out.
const LINGER: Duration = Duration::from_secs(5);

/// How often the count of requests is looked at: so a request pays nothing for it but the count.
const LOOK: Duration = Duration::from_millis(10);

/// How long the control listener may take to finish its answers. It gives up by itself after 5 s.
const CONTROL_WITHIN: Duration = Duration::from_secs(6);

/// The longest that a request may be under way, by the time-outs that are set.
pub(super) const fn longest(listener: &Listener, upstream: &Upstream) -> Duration {
    MARGIN
        .saturating_add(listener.body_timeout)
        .saturating_add(upstream.connect_timeout)
        .saturating_add(upstream.read_timeout)
        .saturating_add(listener.limits.answer_timeout)
}

/// The requests under way: those whose head was read and whose answer is not finished.
#[derive(Debug, Default)]
pub(super) struct Underway(AtomicUsize);

impl Underway {
    /// One more.
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One less.
    pub(super) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is told to stop, one after the other.
#[derive(Debug)]
pub(super) struct Drain {
    stopping: watch::Sender<bool>,
    listener: watch::Sender<bool>,
    control: watch::Sender<bool>,
    underway: Arc<Underway>,
    longest: Duration,
}

impl Drain {
    /// Waits for these requests, for so long.
    pub(super) fn new(underway: Arc<Underway>, longest: Duration) -> Self {
        Self {
            stopping: watch::Sender::new(false),
            listener: watch::Sender::new(false),
            control: watch::Sender::new(false),
            underway,
            longest,
        }
    }

    /// True as soon as the gateway is told to stop.
    pub(super) fn stopping(&self) -> ShutdownWatch {
        self.stopping.subscribe()
    }

    /// True when the public listener is to close. Whoever holds a copy keeps the gateway: connections do.
    pub(super) fn listener(&self) -> ShutdownWatch {
        self.listener.subscribe()
    }

    /// True when the control listener is to close. Whoever holds a copy keeps the gateway.
    pub(super) fn control(&self) -> ShutdownWatch {
        self.control.subscribe()
    }

    /// Stops listening, and ends when nothing is under way any more.
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

    /// Every connection has ended, or those that are left have had no request for a while.
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

/// Stops the process: SIGTERM and SIGQUIT let requests under way finish, SIGINT and a second signal do not.
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
        // In this way tasks are dropped, and say so, before the process ends.
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

    /// The next one; whether it lets requests finish.
    async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.terminate.recv() => true,
            _ = self.quit.recv() => true,
            _ = self.interrupt.recv() => false,
        }
    }
}

/// A service that stops when the gateway says so: before pingora, which drops what is under way.
pub(super) struct Drained<S> {
    service: S,
    stop: ShutdownWatch,
}

impl<S> Drained<S> {
    /// `service`, until `stop` is true.
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
