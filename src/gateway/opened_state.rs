//! The opening of the state by a gateway that starts.
//!
//! Invariants: a file is migrated only where no other process uses it. A process that takes over first tries the migration on a copy, and the
//! one before goes on if that fails, or if this one is told to stop. Then it waits for the end of the one before, whose callers wait in the
//! queues of the listening sockets meanwhile, and migrates.

use super::{
    signals::EndSignals,
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
    process::{Pid, PidfdFlags, pidfd_open},
};
use sd_notify::NotifyState;
use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    sync::mpsc,
    thread,
    time::Duration,
};
use tokio::{runtime::Builder, time::sleep};

/// The interval of looking for the end of the process before, and for a tool that has the file.
const LOOK: Duration = Duration::from_millis(20);

/// The longest wait for either, during which the service manager is told that this process lives: its own limit of a start in our unit.
const AT_MOST: Duration = Duration::from_mins(15);

/// Opens the state. To be called when all else that can fail is done, since where the schema changes there is no way back to the process
/// before. `ends`: a stop ends the wait.
pub(super) fn open_state(
    settings: &StateSettings,
    inherited: &mut Inherited,
    ends: Option<&mut EndSignals>,
) -> Result<StateStore, StartFault> {
    if let (Some(predecessor), Some(ends)) = (&inherited.predecessor, ends) {
        match StateStore::open(settings) {
            Err(OpenFault::Earlier(_) | OpenFault::PostgresEarlier) => {}
            opened => return opened.map_err(StartFault::State),
        }
        StateStore::rehearse(settings).map_err(StartFault::State)?;
        let store = migrate_after(predecessor, settings, ends)?;
        inherited.predecessor = None;
        return Ok(store);
    }
    StateStore::open_and_migrate(settings).map_err(StartFault::State)
}

/// Lets the process before go, waits for its end, and migrates the file.
fn migrate_after(
    predecessor: &UnixDatagram,
    settings: &StateSettings,
    ends: &mut EndSignals,
) -> Result<StateStore, StartFault> {
    let unknown = |error: Errno| StartFault::PredecessorUnknown(error.into());
    // It made the pair of which this is an end. It is not always the parent, since a script may have started this program.
    let before = socket_peercred(predecessor).map_err(unknown)?.pid;
    let process = match pidfd_open(before, PidfdFlags::empty()) {
        Ok(process) => Some(process),
        // It has ended.
        Err(Errno::SRCH) => None,
        Err(error) => return Err(unknown(error)),
    };
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartFault::PredecessorUnknown)?;
    let migrated = runtime.block_on(async {
        tokio::select! {
            biased;
            _ = ends.next_stop() => Err(StartFault::Stopped),
            migrated = async {
                // A stop during the rehearsal is heard first.
                sleep(LOOK).await;
                let alive = tell_service_manager();
                let _alive = alive.map_err(StartFault::PredecessorUnknown)?;
                if let Some(process) = &process {
                    outlive(predecessor, process).await?;
                }
                migrate(settings).await
            } => migrated,
        }
    });
    let goes_on = process.is_some_and(|process| matches!(has_ended(&process), Ok(false)));
    if migrated.is_err() && goes_on {
        tell(&main_process(before));
    }
    migrated
}

/// Tells the process before that it may end, and waits for its end.
async fn outlive(predecessor: &UnixDatagram, process: &OwnedFd) -> Result<(), StartFault> {
    let why = "the state has an earlier schema, which this process converts when the one before has ended; callers wait";
    report_not_ready(predecessor, &[why.to_owned()]);
    // Whether or not it hears that: only its end permits the migration.
    report_ready(predecessor);
    let waiting = Stopwatch::start();
    while !has_ended(process)? {
        if waiting.elapsed() > AT_MOST {
            return Err(StartFault::Predecessor(AT_MOST));
        }
        sleep(LOOK).await;
    }
    Ok(())
}

fn has_ended(process: &OwnedFd) -> Result<bool, StartFault> {
    let mut ended = [PollFd::new(process, PollFlags::IN)];
    let ready = retry_on_intr(|| poll(&mut ended, Some(&Timespec::default())));
    ready
        .map(|ready| ready > 0)
        .map_err(|error| StartFault::PredecessorUnknown(error.into()))
}

/// Migrates the file. A tool that has it at this moment is waited for.
async fn migrate(settings: &StateSettings) -> Result<StateStore, StartFault> {
    let waiting = Stopwatch::start();
    let mut is_said = false;
    loop {
        let migrated = StateStore::open_and_migrate(settings);
        if let Err(OpenFault::Locked(path)) = &migrated
            && waiting.elapsed() < AT_MOST
        {
            if !is_said {
                let path = path.display();
                tracing::warn!(%path, "another process has the state, whose migration waits for it");
                is_said = true;
            }
            sleep(LOOK).await;
            continue;
        }
        if migrated.is_ok() {
            let took_ms = waiting.elapsed().as_millis();
            tracing::info!(took_ms, "the schema of the state is migrated");
        }
        return migrated.map_err(StartFault::State);
    }
}

/// Tells the service manager that this process is the main one, since the one before ends, and that it lives, until the returned end of a
/// channel is dropped.
///
/// # Errors
/// No thread can be started.
fn tell_service_manager() -> io::Result<mpsc::Sender<()>> {
    let (alive, ended) = mpsc::channel();
    let main = NotifyState::MainPid(std::process::id());
    // The package's postinst waits while the status says so.
    let converting = NotifyState::Status("converting the state, when the process before has ended");
    tell(&[main, converting]);
    if let Some(period) = sd_notify::watchdog_enabled() {
        let telling = Stopwatch::start();
        let told = move || {
            while ended.recv_timeout(period / 3) == Err(mpsc::RecvTimeoutError::Timeout)
                && telling.elapsed() < AT_MOST.saturating_mul(2)
            {
                tell(&[NotifyState::Watchdog]);
            }
        };
        thread::Builder::new().name("watchdog".into()).spawn(told)?;
    }
    Ok(alive)
}

/// What the service manager is told where the process before goes on, or stops, as the main one.
fn main_process(id: Pid) -> [NotifyState<'static>; 2] {
    let id = id.as_raw_nonzero().get().unsigned_abs();
    [NotifyState::MainPid(id), NotifyState::Status("serving")]
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told that the gateway starts");
    }
}
