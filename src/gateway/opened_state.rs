//! The opening of the state by a gateway that starts.
//!
//! Invariants: a schema is migrated only where no other process uses the state. A process that takes over first tries the migration on a
//! copy, and the one before goes on if that fails. Then it waits for the end of the one before, whose callers wait in the queues of the
//! listening sockets meanwhile, and migrates.

use super::{
    sockets::Inherited,
    start_fault::StartFault,
    upgrade::{report_not_ready, report_ready},
};
use crate::{
    clock::Stopwatch,
    state::{OpenFault, StateSettings, StateStore},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, retry_on_intr},
    net::sockopt::socket_peercred,
    process::{PidfdFlags, pidfd_open},
};
use sd_notify::NotifyState;
use std::{os::unix::net::UnixDatagram, sync::mpsc, thread, time::Duration};

/// The longest time for which the service manager is told that this process lives: its own limit of a start in our unit.
const TELL_FOR: Duration = Duration::from_mins(15);

/// Opens the state. To be called when all else that can fail is done, since where the schema changes there is no way back to the process
/// before. `patience` is the longest time that the process before may take to end.
pub(super) fn open_state(
    settings: &StateSettings,
    inherited: &mut Inherited,
    patience: Duration,
) -> Result<StateStore, StartFault> {
    if let Some(predecessor) = &inherited.predecessor {
        match StateStore::open(settings) {
            Err(OpenFault::Earlier(_) | OpenFault::PostgresEarlier) => {}
            opened => return opened.map_err(StartFault::State),
        }
        StateStore::rehearse(settings).map_err(StartFault::State)?;
        let _alive = tell_service_manager();
        outlive(predecessor, patience)?;
        let migrating = Stopwatch::start();
        let store = StateStore::open_and_migrate(settings).map_err(StartFault::State)?;
        let took_ms = migrating.elapsed().as_millis();
        tracing::info!(took_ms, "the schema of the state is migrated");
        inherited.predecessor = None;
        return Ok(store);
    }
    StateStore::open_and_migrate(settings).map_err(StartFault::State)
}

/// Lets the process before go, and waits for its end. It made the pair of which `predecessor` is an end; it is not always the parent, since a
/// script may have started this program.
fn outlive(predecessor: &UnixDatagram, patience: Duration) -> Result<(), StartFault> {
    let unknown = |error: Errno| StartFault::PredecessorUnknown(error.into());
    let before = socket_peercred(predecessor).map_err(unknown)?.pid;
    let before = pidfd_open(before, PidfdFlags::empty()).map_err(unknown)?;
    let at_most = Timespec::try_from(patience).ok();
    let why = "the state has an earlier schema, which this process converts when the one before has ended; callers wait";
    report_not_ready(predecessor, &[why.to_owned()]);
    if !report_ready(predecessor) {
        return Ok(());
    }
    let mut ended = [PollFd::new(&before, PollFlags::IN)];
    match retry_on_intr(|| poll(&mut ended, at_most.as_ref())).map_err(unknown)? {
        0 => Err(StartFault::Predecessor(patience)),
        _ => Ok(()),
    }
}

/// Tells the service manager that this process is the main one, since the one before ends, and that it lives, until the returned end of a
/// channel is dropped.
fn tell_service_manager() -> mpsc::Sender<()> {
    let (alive, ended) = mpsc::channel();
    let tell = |state: &[NotifyState<'_>]| {
        if let Err(error) = sd_notify::notify(state) {
            tracing::warn!(%error, "the service manager cannot be told that the gateway starts");
        }
    };
    // The package's postinst waits while the status says so.
    let converting = NotifyState::Status("converting the state, when the process before has ended");
    tell(&[NotifyState::MainPid(std::process::id()), converting]);
    if let Some(period) = sd_notify::watchdog_enabled() {
        let telling = Stopwatch::start();
        thread::spawn(move || {
            while ended.recv_timeout(period / 3) == Err(mpsc::RecvTimeoutError::Timeout)
                && telling.elapsed() < TELL_FOR
            {
                tell(&[NotifyState::Watchdog]);
            }
        });
    }
    alive
}
