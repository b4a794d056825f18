//! The control listener as a service of pingora's server. `control` contains its answers.

use super::upgrade::report_ready;
use crate::control::{Listener, StopSignal};
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
use tokio::time::sleep;

/// The interval of looking whether the gateway serves.
const LOOK: Duration = Duration::from_millis(2);

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
    /// Waits until the gateway serves, and reports that. While this process and its predecessor share a socket, balancers ask either of
    /// them, so nothing is answered here before.
    async fn announce(&self) {
        while !self.accepting.load(Ordering::Acquire) {
            sleep(LOOK).await;
        }
        if let Some(predecessor) = &self.predecessor {
            while !self.listener.is_ready(&self.stopping) {
                sleep(LOOK).await;
            }
            report_ready(predecessor);
        }
        let states = [NotifyState::MainPid(std::process::id()), NotifyState::Ready];
        if let Err(error) = sd_notify::notify(&states) {
            tracing::warn!(%error, "the service manager cannot be told that the gateway serves");
        }
    }
}

#[async_trait]
impl BackgroundService for ControlService {
    async fn start(&self, _shutdown: ShutdownWatch) {
        let Some(run) = self.take() else { return };
        let mut closing = run.closing.clone();
        tokio::select! {
            () = run.announce() => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
        drop(closing);
        run.listener.run(run.stopping, run.closing).await;
    }
}
