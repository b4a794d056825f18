//! A gateway that runs inside another program: it catches no signals, and its owner stops it.

use super::{
    checked::{Checked, Ports},
    drain::Drain,
    server::{Prepared, prepare},
    sockets::Inherited,
    start_fault::{StartFault, StartFaults},
};
use crate::{
    clock::{Clock, Stopwatch},
    config::{ControlAddress, Settings},
    seen::SeenKeeper,
};
use async_trait::async_trait;
use pingora::server::{RunArgs, ShutdownSignal, ShutdownSignalWatch};
use std::{net::SocketAddr, sync::atomic::Ordering, thread::JoinHandle, time::Duration};
use tokio::sync::watch;

/// The time-out of starting to listen, and of the first writes.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Starts a gateway in this process, and returns when it accepts connections.
///
/// # Errors
/// The reasons why it does not start.
pub fn start(settings: Settings, clock: Clock) -> Result<Running, StartFaults> {
    let address = settings.fixed.listener.address;
    let control = settings.fixed.control.clone();
    let checked = Checked::new(settings, Ports::TRY, clock.now())?;
    let prepared = prepare(checked, clock, Inherited::default(), None, None)?;
    let Prepared {
        server,
        drain,
        accepting,
        readiness,
        seen,
        ..
    } = prepared;
    let (stop, stopped) = watch::channel(false);
    let thread = std::thread::spawn(move || {
        server.run(RunArgs {
            shutdown_signal: Box::new(Told(stopped, drain)),
        })
    });
    let running = Running {
        address,
        control,
        stop,
        thread: Some(thread),
        _seen: seen,
    };
    let waiting = Stopwatch::start();
    // The control listener is already bound.
    while !accepting.load(Ordering::Acquire) {
        if waiting.elapsed() > READY_WITHIN
            || running.thread.as_ref().is_none_or(JoinHandle::is_finished)
        {
            let text = format!("it does not listen on {address}");
            return Err(StartFault::Proxy(text).into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // A test that asks at once is to see what lasts. A disk that takes nothing is reported by /readyz.
    while !readiness.is_proven() && waiting.elapsed() < READY_WITHIN {
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(running)
}

/// A running gateway in this process. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    control: ControlAddress,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    /// Writes a last time when the gateway has stopped.
    _seen: Option<SeenKeeper>,
}

impl Running {
    /// The address of the public listener.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the control listener.
    pub const fn control(&self) -> &ControlAddress {
        &self.control
    }

    /// Stops the gateway at once.
    pub fn stop(self) {}
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Stops on a call, not on a signal, and without waiting.
struct Told(
    watch::Receiver<bool>,
    #[allow(dead_code, reason = "what listens ends with it")] Drain,
);

#[async_trait]
impl ShutdownSignalWatch for Told {
    async fn recv(&self) -> ShutdownSignal {
        let _ = self.0.clone().wait_for(|stop| *stop).await;
        ShutdownSignal::FastShutdown
    }
}
