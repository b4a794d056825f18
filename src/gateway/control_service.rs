//! The control listener as a service of pingora's server. `control` contains its answers.

use super::{
    upgrade::{report_not_ready, report_ready},
    watchdog::{self, Pulse},
};
use crate::clock::Stopwatch;
use crate::control::{Listener, Readiness, StopSignal};
use async_trait::async_trait;
use pingora::{server::ShutdownWatch, services::background::BackgroundService};
use sd_notify::NotifyState;
use std::{
    os::unix::net::UnixDatagram,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::sleep};

/// The interval of looking whether the gateway serves.
const LOOK: Duration = Duration::from_millis(2);

/// The time after which a process that cannot serve yet says why.
const SAY_AFTER: Duration = Duration::from_secs(1);

/// Runs a control listener until the drain closes it, which is later than pingora's own signal.
pub(super) struct ControlService(Mutex<Option<ControlRun>>);

/// Taken when the service starts, and dropped when the listener has ended: the drain waits until no copy of `closing` exists.
pub(super) struct ControlRun {
    pub(super) listener: Listener,
    /// From then on, the gateway is not ready.
    pub(super) stopping: StopSignal,
    /// The end of the listener.
    pub(super) closing: StopSignal,
    /// Whether the public listener has begun to accept.
    pub(super) accepting: Arc<AtomicBool>,
    /// What the public listener answers to the watchdog.
    pub(super) pulse: Arc<Pulse>,
    /// Lets the public listener accept connections.
    pub(super) open: watch::Sender<bool>,
    /// The process that this one replaces.
    pub(super) predecessor: Option<UnixDatagram>,
}

impl ControlService {
    /// A service that runs once.
    pub(super) const fn new(run: ControlRun) -> Self {
        Self(Mutex::new(Some(run)))
    }

    fn take(&self) -> Option<ControlRun> {
        let mut run = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        run.take()
    }
}

impl ControlRun {
    /// Waits until this process can serve, and lets it accept connections. While this process and its predecessor share a socket, callers
    /// and balancers reach either of them: nobody is accepted here, and nothing is answered, before all that a request needs works.
    async fn take_over(&self, predecessor: &UnixDatagram) {
        let readiness = self.listener.readiness(&self.stopping);
        let waiting = Stopwatch::start();
        let mut told = Vec::new();
        loop {
            let faults = readiness.faults();
            if faults.is_empty() {
                break;
            }
            // The first writes take some milliseconds.
            if faults != told && waiting.elapsed() >= SAY_AFTER {
                report_not_ready(predecessor, &faults);
                told = faults;
            }
            sleep(LOOK).await;
        }
        self.open.send_replace(true);
        self.until_accepting().await;
        report_ready(predecessor);
    }

    async fn until_accepting(&self) {
        while !self.accepting.load(Ordering::Acquire) {
            sleep(LOOK).await;
        }
    }
}

/// Tells the service manager that the gateway serves, once the state and a required audit have been written. Its watchdog hears of this
/// process before, too: after an upgrade it runs already.
async fn announce(readiness: Readiness, pulse: Arc<Pulse>) {
    let ready = async {
        while !readiness.is_proven() {
            sleep(LOOK).await;
        }
        let states = [
            NotifyState::MainPid(std::process::id()),
            NotifyState::Ready,
            NotifyState::Status("serving"),
        ];
        if let Err(error) = sd_notify::notify(&states) {
            tracing::warn!(%error, "the service manager cannot be told that the gateway serves");
        }
    };
    tokio::join!(ready, watchdog::keep_alive(&pulse));
}

#[async_trait]
impl BackgroundService for ControlService {
    async fn start(&self, _shutdown: ShutdownWatch) {
        let Some(run) = self.take() else { return };
        let mut closing = run.closing.clone();
        let begun = async {
            match &run.predecessor {
                Some(predecessor) => run.take_over(predecessor).await,
                None => {
                    run.open.send_replace(true);
                    run.until_accepting().await;
                    // Who asks at once learns what lasts. A disk that takes nothing is reported.
                    let waiting = Stopwatch::start();
                    let readiness = run.listener.readiness(&run.stopping);
                    while !readiness.is_proven() && waiting.elapsed() < SAY_AFTER {
                        sleep(LOOK).await;
                    }
                }
            }
        };
        tokio::select! {
            () = begun => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
        drop(closing);
        let announcing = tokio::spawn(announce(
            run.listener.readiness(&run.stopping),
            Arc::clone(&run.pulse),
        ));
        run.listener.run(run.stopping, run.closing).await;
        announcing.abort();
    }
}
