//! The signals of the process.
//!
//! Invariant: from [`Signals::catch`] on, no signal ends the process by its default action, but SIGKILL and those of a fault in the program
//! itself. Signals that arrive during the start have their effect once the gateway serves, or while it waits to migrate the state.

use crate::control::ControlSignals;
use rustix::process::Signal as SignalNumber;
use std::{io, ops::RangeInclusive};
use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
};

/// Signals without a meaning here that would end the process: of timers, of limits and of a power supply. With SIGXFSZ caught, a write beyond
/// the limit of a file's size fails as on a full disk.
const WITHOUT_EFFECT: [SignalNumber; 8] = [
    SignalNumber::ALARM,
    SignalNumber::VTALARM,
    SignalNumber::PROF,
    SignalNumber::IO,
    SignalNumber::POWER,
    SignalNumber::STKFLT,
    SignalNumber::XCPU,
    SignalNumber::XFSZ,
];

/// The real-time signals, which would end the process too (signal(7)).
const REAL_TIME: RangeInclusive<i32> = 34..=64;

/// The caught signals. Each is taken by the part of the gateway that acts on it.
#[derive(Debug)]
pub(super) struct Signals {
    /// Those that the control listener acts on.
    pub(super) control: ControlSignals,
    /// The end of the process, or its upgrade.
    pub(super) ends: EndSignals,
}

/// The signals that end this process, or let the next one take over.
#[derive(Debug)]
pub(super) struct EndSignals {
    terminate: Signal,
    quit: Signal,
    interrupt: Signal,
    upgrade: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// SIGTERM or SIGQUIT: to stop, after balancers have noticed.
    Stop,
    /// SIGINT, from a terminal: to stop without waiting for balancers.
    StopNow,
    /// SIGUSR2: to start the program anew, and hand the listeners over to it.
    Upgrade,
}

impl Signals {
    /// Catches the signals, before anything else is done. SIGPIPE is ignored since the start of the process, by Rust's runtime.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn catch() -> io::Result<Self> {
        // A handler stays when the runtime that registered it ends; signals until the next runtime wait in a pipe.
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let _entered = runtime.enter();
        let numbers = WITHOUT_EFFECT.into_iter().map(SignalNumber::as_raw);
        for number in numbers.chain(REAL_TIME) {
            // A C library may keep real-time signals to itself.
            let _ = signal(SignalKind::from_raw(number));
        }
        Ok(Self {
            control: ControlSignals {
                hangup: signal(SignalKind::hangup())?,
                reopen: signal(SignalKind::user_defined1())?,
            },
            ends: EndSignals {
                terminate: signal(SignalKind::terminate())?,
                quit: signal(SignalKind::quit())?,
                interrupt: signal(SignalKind::interrupt())?,
                upgrade: signal(SignalKind::user_defined2())?,
            },
        })
    }
}

impl EndSignals {
    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> Wanted {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Wanted::Stop,
            _ = self.quit.recv() => Wanted::Stop,
            _ = self.interrupt.recv() => Wanted::StopNow,
            _ = self.upgrade.recv() => Wanted::Upgrade,
        }
    }

    /// Waits for the next signal that ends the process.
    pub(super) async fn next_stop(&mut self) -> Wanted {
        loop {
            match self.next().await {
                Wanted::Upgrade => tracing::warn!(
                    "SIGUSR2 ignored: the gateway is stopping or starting its successor"
                ),
                wanted => return wanted,
            }
        }
    }
}
