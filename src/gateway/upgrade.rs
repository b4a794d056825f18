//! The upgrade: starts the program anew, and hands the listening sockets over to the new process.
//!
//! The program is found by the name under which this process was started, so a replaced file is taken. Invariant: this process serves on
//! until the new one has said that it takes over; if the new one does not start, nothing changes. Both processes share the state while this
//! one finishes its requests (docs/state.md), unless its schema changes (`opened_state`).

use super::sockets::{CONTROL_SOCKET, OpenSockets};
use command_fds::{CommandFdExt, FdMapping, FdMappingCollision};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, io,
    os::fd::OwnedFd,
    os::unix::net::UnixDatagram,
    process::{Child, Command, ExitStatus},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// The time-out of the new process's start. The state opens in seconds, also with millions of rows.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The interval of looking whether the new process has ended.
const LOOK: Duration = Duration::from_millis(50);

/// The first file descriptor of inherited sockets (sd_listen_fds(3)).
const FIRST: i32 = 3;

/// The message of a process that serves.
const READY: &[u8] = b"ready";

/// The beginning of the message of a process that does not serve yet; the reasons follow.
const NOT_READY: &[u8] = b"not ready: ";

/// The longest message: a few reasons.
const MESSAGE: usize = 1024;

/// The reason why there is no new process.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpgradeFault {
    /// The container would end with its first process.
    #[error("process 1 of a container cannot be replaced: replace the container")]
    FirstProcess,
    /// The program cannot be started.
    #[error("the program cannot be started: {0}")]
    NotStarted(#[from] io::Error),
    /// The sockets cannot be passed on.
    #[error("the sockets cannot be handed over: {0}")]
    Sockets(#[from] FdMappingCollision),
    /// The new process ended before it served.
    #[error("the new process ended ({0}); its own lines say why")]
    Ended(ExitStatus),
    /// The new process does not serve in time, and what it said last.
    #[error("the new process does not serve after {seconds} s and is stopped{0}", seconds = READY_WITHIN.as_secs())]
    TooSlow(String),
}

/// The new process.
#[derive(Debug)]
pub(super) struct Successor {
    child: Child,
    messages: tokio::net::UnixDatagram,
    /// What it said last.
    said: String,
}

impl Successor {
    /// Starts the program with the arguments of this process and with copies of its sockets.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(sockets: &OpenSockets) -> Result<Self, UpgradeFault> {
        if std::process::id() == 1 {
            return Err(UpgradeFault::FirstProcess);
        }
        let (own, its) = UnixDatagram::pair()?;
        own.set_nonblocking(true)?;
        let messages = tokio::net::UnixDatagram::from_std(own)?;
        let mut arguments = env::args_os();
        let mut program = match arguments.next() {
            Some(name) => Command::new(name),
            None => Command::new(env::current_exe()?),
        };
        let control = sockets.control.as_ref();
        match control.and_then(|control| control.path.as_ref()) {
            Some(path) => program.env(CONTROL_SOCKET, path),
            None => program.env_remove(CONTROL_SOCKET),
        };
        let mut passed = Vec::new();
        passed.extend(sockets.public.as_ref());
        passed.extend(control.map(|control| &control.descriptor));
        let its = OwnedFd::from(its);
        passed.push(&its);
        let mut mappings = Vec::new();
        for (socket, child_fd) in passed.into_iter().zip(FIRST..) {
            let parent_fd = socket.try_clone()?;
            mappings.push(FdMapping {
                parent_fd,
                child_fd,
            });
        }
        program
            .args(arguments)
            .env("LISTEN_FDS", mappings.len().to_string())
            .env_remove("LISTEN_PID")
            .env_remove("LISTEN_FDNAMES")
            // The watchdog is of the service's main process, which that one becomes.
            .env_remove("WATCHDOG_PID")
            .fd_mappings(mappings)?;
        Ok(Self {
            child: program.spawn()?,
            messages,
            said: String::new(),
        })
    }

    /// The id of the process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the process serves.
    ///
    /// # Errors
    /// It ended, or takes too long.
    pub(super) async fn ready(&mut self) -> Result<(), UpgradeFault> {
        let ready = timeout(READY_WITHIN, self.message()).await;
        ready.unwrap_or_else(|_| Err(UpgradeFault::TooSlow(std::mem::take(&mut self.said))))
    }

    async fn message(&mut self) -> Result<(), UpgradeFault> {
        let mut message = [0; MESSAGE];
        loop {
            tokio::select! {
                received = self.messages.recv(&mut message) => {
                    let message = message.get(..received?).unwrap_or_default();
                    if message == READY {
                        return Ok(());
                    }
                    if let Some(why) = message.strip_prefix(NOT_READY) {
                        let why = String::from_utf8_lossy(why);
                        tracing::warn!(process = self.id(), %why, "the new process cannot serve yet");
                        self.said = format!(": {why}");
                    }
                }
                () = sleep(LOOK) => {}
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(UpgradeFault::Ended(status));
            }
        }
    }

    /// Tells the process to end, without waiting for balancers: it may have accepted connections already.
    pub(super) fn stop(&mut self) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // The id of a process that has ended may be another one's.
        if let (Some(id), Ok(None)) = (id, self.child.try_wait())
            && let Err(error) = kill_process(id, Signal::INT)
        {
            tracing::error!(process = self.id(), %error, "the new process cannot be told to end");
        }
    }

    /// Waits for the end of the process after [`Self::stop`], and kills it once `patience` ends. A process that hangs would keep the
    /// listening sockets, so clients would wait for nobody, and no other process could listen.
    pub(super) async fn end(mut self, patience: impl Future<Output = ()>) {
        let end = async {
            while matches!(self.child.try_wait(), Ok(None)) {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = end => return,
            () = patience => {}
        }
        let process = self.id();
        match self.child.kill() {
            Ok(()) => {
                tracing::warn!(process, "the new process did not end and was killed");
                while matches!(self.child.try_wait(), Ok(None)) {
                    sleep(LOOK).await;
                }
            }
            Err(error) => {
                tracing::error!(process, %error, "the new process does not end and cannot be killed");
            }
        }
    }
}

/// Tells the process that waits for this one why this one does not serve yet. It logs that, and waits.
pub(super) fn report_not_ready(predecessor: &UnixDatagram, faults: &[String]) {
    let mut message = NOT_READY.to_vec();
    message.extend(faults.join("; ").bytes());
    message.truncate(MESSAGE);
    // One that does not listen any more is noticed by the message that this one serves.
    let _ = predecessor.send(&message);
}

/// Tells the process that waits for this one that this one takes over.
pub(super) fn report_ready(predecessor: &UnixDatagram) {
    if let Err(error) = predecessor.send(READY) {
        tracing::warn!(%error, "the process before does not wait any more");
    }
}
