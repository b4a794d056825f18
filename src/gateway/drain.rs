//! Graceful shutdown: pending requests finish before any service stops (FWD-4).
//!
//! pingora drops every task when its runtimes stop, and its own grace period does not wait for them. Therefore the drain waits
//! before it tells pingora to stop. First /readyz reports the shutdown, and both listeners serve on until balancers have noticed.
//! Then the public listener closes with its idle connections, and pending requests finish within the time-out. The control listener
//! closes last, because the end of an SCA may need it until then. A further signal ends the current step. A request that is cut off
//! still has its line in the access log.

use super::{
    signals::{EndSignals, Wanted},
    sockets::OpenSockets,
    upgrade::{Successor, UpgradeFault},
};
use crate::{
    clock::Stopwatch,
    config::Fixed,
    telemetry::{Telemetry, UpgradeResult},
};
use async_trait::async_trait;
use pingora::{
    server::{ListenFds, RuntimeOpts, ShutdownSignal, ShutdownSignalWatch, ShutdownWatch},
    services::Service,
};
use sd_notify::NotifyState;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Mutex, watch},
    time::{sleep, timeout},
};

/// How long connections without a pending request stay open: an HTTP/2 answer may still be in transit.
const LINGER: Duration = Duration::from_secs(5);

/// The interval at which the number of pending requests is polled. A request thus only updates a counter.
const LOOK: Duration = Duration::from_millis(10);

/// The time-out of the control listener's pending answers. Its own time-out is 5 s.
pub(super) const CONTROL_WITHIN: Duration = Duration::from_secs(6);

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

/// The steps of a shutdown, in their order.
#[derive(Debug)]
pub(super) struct Drain {
    stopping: watch::Sender<bool>,
    listener: watch::Sender<bool>,
    control: watch::Sender<bool>,
    underway: Arc<Underway>,
    /// The time from the first step to the second, and the time-out of the requests after that.
    lame_duck: Duration,
    finish: Duration,
}

impl Drain {
    /// Creates a drain that waits for these requests, with the times of these settings. `core` is the longest time that a request may
    /// wait for the core.
    pub(super) fn new(underway: Arc<Underway>, settings: &Fixed, core: Duration) -> Self {
        let shutdown = &settings.shutdown;
        Self {
            stopping: watch::Sender::new(false),
            listener: watch::Sender::new(false),
            control: watch::Sender::new(false),
            underway,
            lame_duck: shutdown.lame_duck,
            finish: shutdown.finish(&settings.listener, core),
        }
    }

    /// True as soon as the gateway is told to stop.
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

    /// Stops, and returns when no request is pending. Each further signal ends the current step.
    async fn stop(&self, wanted: Wanted, signals: &mut EndSignals, mut sockets: OpenSockets) {
        self.stopping.send_replace(true);
        tell_service_manager();
        if wanted == Wanted::Stop && !self.lame_duck.is_zero() {
            let (requests, for_ms) = (self.underway.count(), self.lame_duck.as_millis());
            tracing::info!(
                requests,
                for_ms,
                "stopping: /readyz answers 503, and both listeners still serve"
            );
            tokio::select! {
                () = sleep(self.lame_duck) => {}
                _ = signals.next_stop() => {}
            }
        }
        sockets.public = None;
        self.listener.send_replace(true);
        self.finish(async { _ = signals.next_stop().await }).await;
        sockets.control = None;
        self.control.send_replace(true);
        self.close_control(signals).await;
    }

    /// Leaves both listeners to the next process, and returns when no request is pending here.
    async fn hand_over(&self, signals: &mut EndSignals, sockets: OpenSockets) {
        if let Some(control) = &sockets.control {
            control.leave_file();
        }
        drop(sockets);
        // The next process answers /readyz, and this one says nothing else on connections that are still open.
        self.listener.send_replace(true);
        self.control.send_replace(true);
        // The first signal asks for what is being done: a service manager sends it to both processes.
        let twice = async {
            signals.next_stop().await;
            signals.next_stop().await;
        };
        self.finish(twice).await;
        self.close_control(signals).await;
    }

    /// Waits for the pending requests, after the public listener has closed.
    async fn finish(&self, impatient: impl Future<Output = ()>) {
        let (requests, at_most) = (self.underway.count(), self.finish.as_secs());
        tracing::info!(
            requests,
            at_most,
            "stopping when the requests under way have finished"
        );
        let is_finished = tokio::select! {
            finished = timeout(self.finish, self.finished()) => finished.is_ok(),
            () = impatient => false,
        };
        if !is_finished {
            let requests = self.underway.count();
            tracing::warn!(requests, "stopping: the requests that still run are cut");
        }
    }

    async fn close_control(&self, signals: &mut EndSignals) {
        let is_closed = tokio::select! {
            closed = timeout(CONTROL_WITHIN, self.control.closed()) => closed.is_ok(),
            _ = signals.next_stop() => false,
        };
        if !is_closed {
            tracing::warn!("stopping: calls of the control listener that still run are cut");
        }
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

/// Stops the process, or lets the next one take over, on its signals.
#[derive(Debug)]
pub(super) struct BySignal {
    drain: Drain,
    telemetry: Arc<Telemetry>,
    held: Mutex<(EndSignals, Option<OpenSockets>)>,
}

impl BySignal {
    /// Drains on these signals. The next process gets copies of the sockets.
    pub(super) fn new(
        drain: Drain,
        telemetry: Arc<Telemetry>,
        signals: EndSignals,
        sockets: OpenSockets,
    ) -> Self {
        Self {
            drain,
            telemetry,
            held: Mutex::new((signals, Some(sockets))),
        }
    }

    /// Starts the next process. Returns the reason to end this one; `None` if it goes on.
    async fn upgrade(&self, signals: &mut EndSignals, sockets: &OpenSockets) -> Option<Ending> {
        let mut successor = match Successor::start(sockets) {
            Ok(successor) => successor,
            Err(fault) => return self.not_upgraded(&fault),
        };
        let process = successor.id();
        tracing::info!(process, "upgrading: the new process starts");
        let ready = tokio::select! {
            ready = successor.ready() => ready,
            wanted = signals.next_stop() => {
                successor.stop();
                return Some(Ending::Told(wanted, Some(successor)));
            }
        };
        match ready {
            Ok(()) => {
                tracing::info!(process, "upgraded: the new process takes over");
                Some(Ending::HandedOver)
            }
            Err(fault) => {
                successor.stop();
                tokio::spawn(successor.end(sleep(self.drain.finish)));
                self.not_upgraded(&fault)
            }
        }
    }

    fn not_upgraded(&self, fault: &UpgradeFault) -> Option<Ending> {
        self.telemetry.upgraded(UpgradeResult::Failed);
        tracing::error!(%fault, "not upgraded: this process goes on");
        None
    }
}

/// The reason why the process ends.
enum Ending {
    /// A signal, during an upgrade with the process that was to take over.
    Told(Wanted, Option<Successor>),
    /// The next process serves.
    HandedOver,
}

#[async_trait]
impl ShutdownSignalWatch for BySignal {
    async fn recv(&self) -> ShutdownSignal {
        let mut held = self.held.lock().await;
        let (signals, sockets) = &mut *held;
        let sockets = sockets.take().unwrap_or_default();
        let ending = loop {
            let ending = match signals.next().await {
                Wanted::Upgrade => self.upgrade(signals, &sockets).await,
                wanted => Some(Ending::Told(wanted, None)),
            };
            if let Some(ending) = ending {
                break ending;
            }
        };
        match ending {
            Ending::Told(wanted, successor) => {
                self.drain.stop(wanted, signals, sockets).await;
                if let Some(successor) = successor {
                    let patience = timeout(self.drain.finish, signals.next_stop());
                    successor.end(async { _ = patience.await }).await;
                }
            }
            Ending::HandedOver => self.drain.hand_over(signals, sockets).await,
        }
        match self.drain.underway.count() {
            0 => tracing::info!(requests = 0_u64, "stopped"),
            requests => tracing::warn!(requests, "stopped, and these requests were cut"),
        }
        // pingora then drops its tasks before the process ends, and a dropped exchange is still reported.
        ShutdownSignal::GracefulTerminate
    }
}

/// Tells systemd that the gateway is stopping, if systemd started it as `Type=notify`.
fn tell_service_manager() {
    if let Err(error) = sd_notify::notify(&[NotifyState::Stopping]) {
        tracing::warn!(%error, "the service manager cannot be told that the gateway stops");
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

#[cfg(all(test, feature = "sandbox"))]
mod tests {
    use super::*;
    use std::future::pending;

    const FINISH: Duration = Duration::from_secs(180);

    /// The time until the requests under way have finished, or are given up: one that takes so long, on a connection that stays open.
    async fn finished_after(request: Duration, is_open: bool, impatient: Duration) -> Duration {
        let drain = Drain {
            stopping: watch::Sender::new(false),
            listener: watch::Sender::new(false),
            control: watch::Sender::new(false),
            underway: Arc::default(),
            lame_duck: Duration::ZERO,
            finish: FINISH,
        };
        let connection = drain.listener();
        drain.underway.begin();
        let request = async {
            sleep(request).await;
            drain.underway.end();
            if !is_open {
                drop(connection);
            }
            pending::<()>().await;
        };
        let began = Stopwatch::start();
        tokio::select! {
            () = drain.finish(sleep(impatient)) => {}
            () = request => {}
        }
        began.elapsed()
    }

    /// FWD-4: requests under way finish, within a time, and connections without any are not waited for.
    #[tokio::test(start_paused = true)]
    async fn the_time_to_finish() {
        let seconds = Duration::from_secs;
        for (request, is_open, impatient, expected) in [
            (0, true, 999, LINGER),
            (60, true, 999, seconds(60) + LINGER),
            (60, false, 999, seconds(60)),
            (999, true, 999, FINISH),
            (999, true, 7, seconds(7)),
        ] {
            let took = finished_after(seconds(request), is_open, seconds(impatient)).await;
            // The end of a request is noticed by the look before or after it.
            assert!(took.abs_diff(expected) < 4 * LOOK, "{request}: {took:?}");
        }
    }
}
