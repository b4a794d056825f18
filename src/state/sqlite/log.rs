//! The thread that moves the write-ahead log into the file.
//!
//! SQLite would do it within a commit, and whoever waits for that commit would wait until thousands of pages are on the
//! disk. Here the writer goes on meanwhile. What it writes meanwhile is moved as well, again and again until little is
//! left; that little the writer moves itself, between two commits, because the log begins anew only where nothing is left.

use super::{file, shared::Shared};
use crate::state::OpenFault;
use rusqlite::Connection;
use std::{
    fs::File,
    sync::{Arc, atomic::Ordering, mpsc},
    thread::JoinHandle,
};

/// After how many changes the log is moved. A change is a page or two, of 4 KiB: the log stands at some 320 MB then.
const EVERY: u64 = 65_536;

/// Pages that may be left for the writer.
const LITTLE: i64 = 128;

/// How often what was written meanwhile is moved. A writer that is faster than this waits for the rest.
const PASSES: usize = 8;

/// How nice the thread is: requests go before it.
const NICE: i32 = 10;

/// What the writer knows of the log.
pub(super) struct Log {
    /// Changes since it was last moved.
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
            // Never closed: a process that closes a descriptor of a file loses its locks on that file (POSIX), and SQLite's
            // are among them.
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

    /// So many changes were committed: has the log moved where it is time, and moves the rest where most of it was.
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
        // A connection that failed is not used again.
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                file::connect(self.shared.identity.path()).map_err(|fault| fault.to_string())?
            }
        };
        let mut moved = 0;
        for _ in 0..PASSES {
            let pages = pass(&connection).map_err(|fault| fault.to_string())?;
            // SQLite does that only where nothing is left: it would be the writer that waits for all of it.
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

/// Moves what is in the log by now. How many pages it has had since it began.
fn pass(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))
}
