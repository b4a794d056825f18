//! The thread that checkpoints the write-ahead log into the file.
//!
//! SQLite would checkpoint within a commit, and the callers of that commit would wait until thousands of pages are on the disk. Here the
//! writer continues meanwhile. The thread repeats the checkpoint for the pages that the writer adds, until few are left; the writer
//! checkpoints these between two commits, because the log restarts only when no page is left.

use super::{file, shared::Shared};
use crate::OpenFault;
use rusqlite::Connection;
use std::{
    fs::File,
    sync::{Arc, atomic::Ordering, mpsc},
    thread::JoinHandle,
};

/// The number of changes after which the log is checkpointed. A change is one or two pages of 4 KiB, so the log has about 320 MB then.
const EVERY: u64 = 65_536;

/// The number of pages that may be left for the writer.
const LITTLE: i64 = 128;

/// The maximum number of repeated checkpoints. If the writer adds pages faster, it waits for the rest.
const PASSES: usize = 8;

/// The nice value of the thread: requests have priority.
const NICE: i32 = 10;

/// The writer's view of the log.
pub(super) struct Log {
    /// The number of changes since the last checkpoint.
    changes: u64,
    mover: mpsc::SyncSender<()>,
}

impl Log {
    /// Starts the thread. It ends when this is dropped.
    pub(super) fn start(
        connection: Connection,
        shared: Arc<Shared>,
    ) -> Result<(Self, JoinHandle<()>), OpenFault> {
        let path = shared.identity.path();
        let file = File::open(path).map_err(|error| OpenFault::File(path.to_owned(), error))?;
        let mut mover = Mover {
            connection: Some(connection),
            // Never closed: a process that closes a descriptor of a file loses its locks on that file (POSIX), including those of SQLite.
            file: Box::leak(Box::new(file)),
            shared,
        };
        let (sender, asked) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("state-log".into())
            .spawn(move || {
                let _ = rustix::process::setpriority_process(None, NICE);
                for () in asked {
                    if let Err(fault) = mover.move_most() {
                        tracing::warn!(fault, "the write-ahead log of the state stays as it is");
                    }
                }
            })
            .map_err(OpenFault::Thread)?;
        let log = Self {
            changes: 0,
            mover: sender,
        };
        Ok((log, thread))
    }

    /// Counts committed changes: starts a checkpoint when it is due, and checkpoints the rest after the thread has done most of it.
    pub(super) fn grew(&mut self, changes: u64, writer: &Connection, shared: &Shared) {
        self.changes = self.changes.saturating_add(changes);
        if self.changes >= EVERY && self.mover.try_send(()).is_ok() {
            self.changes = 0;
        }
        if shared.log_is_moved.swap(false, Ordering::AcqRel)
            && let Err(fault) = pass(writer)
        {
            tracing::warn!(%fault, "the rest of the write-ahead log of the state stays there");
        }
    }
}

struct Mover {
    connection: Option<Connection>,
    file: &'static File,
    shared: Arc<Shared>,
}

impl Mover {
    fn move_most(&mut self) -> Result<(), String> {
        self.shared.identity.check()?;
        // A failed connection is not used again.
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                file::connect(self.shared.identity.path()).map_err(|fault| fault.to_string())?
            }
        };
        let mut moved = 0;
        for _ in 0..PASSES {
            let pages = pass(&connection).map_err(|fault| fault.to_string())?;
            // SQLite syncs only when no page is left: then the writer would wait for all of them.
            self.file.sync_data().map_err(|fault| fault.to_string())?;
            if pages.saturating_sub(moved) <= LITTLE {
                break;
            }
            moved = pages;
        }
        self.connection = Some(connection);
        self.shared.log_is_moved.store(true, Ordering::Release);
        Ok(())
    }
}

/// Checkpoints the present content of the log. Returns the number of pages since the log restarted.
fn pass(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))
}
