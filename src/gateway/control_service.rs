//! The control listener as a service of pingora's server. `control` contains its answers.

use crate::control::{Listener, StopSignal};
use async_trait::async_trait;
use pingora::{server::ShutdownWatch, services::background::BackgroundService};
use std::sync::{Mutex, PoisonError};

/// Runs a control listener until the drain closes it, which is later than pingora's own signal.
pub(super) struct ControlService(Mutex<Option<Run>>);

/// Taken when the service starts, and dropped when the listener has ended: the drain waits until no copy of `closing` exists.
struct Run {
    listener: Listener,
    stopping: StopSignal,
    closing: StopSignal,
}

impl ControlService {
    /// A service that reports from `stopping` on that the gateway is not ready, and ends at `closing`.
    pub(super) const fn new(listener: Listener, stopping: StopSignal, closing: StopSignal) -> Self {
        Self(Mutex::new(Some(Run {
            listener,
            stopping,
            closing,
        })))
    }

    fn take(&self) -> Option<Run> {
        let mut run = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        run.take()
    }
}

#[async_trait]
impl BackgroundService for ControlService {
    async fn start(&self, _shutdown: ShutdownWatch) {
        if let Some(run) = self.take() {
            run.listener.run(run.stopping, run.closing).await;
        }
    }
}
