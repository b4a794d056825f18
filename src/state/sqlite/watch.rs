//! The thread that reads the changes of other processes, and triggers housekeeping.
//!
//! Invariant: the cached rows of this process are at most a tenth of a second older than the file while this thread runs; if the change log
//! cannot be read, or has lost unread entries, the whole cache is dropped. Each reading is reported with the moment at which it began: where
//! the thread did not run, or the file is not the opened one, nothing is answered from memory.

use super::{
    file,
    shared::Shared,
    writer::{Job, Writer},
};
use crate::{
    clock::BootTime,
    state::{OpenFault, PsuHash, QuotaHash, lock::lock},
};
use rusqlite::{Connection, OptionalExtension};
use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::mpsc::WeakSender;

/// The interval of reading the change log.
const INTERVAL: Duration = Duration::from_millis(100);

/// The number of intervals between two triggers of housekeeping.
const RESTING: u32 = 10;

/// Starts the thread. It ends when the sender is dropped.
pub(super) fn start(
    connection: Connection,
    writer: &Writer,
    shared: Arc<Shared>,
) -> Result<(mpsc::Sender<()>, JoinHandle<()>), OpenFault> {
    let (living, ended) = mpsc::channel();
    let queue = writer.weak();
    let began = BootTime::now();
    let read = head(&connection);
    if read.is_ok() {
        shared.process.freshness.heard(began);
    }
    let mut watch = Watch {
        connection: Some(connection),
        read: read.unwrap_or(0),
        ticks: 0,
        shared,
    };
    let thread = std::thread::Builder::new()
        .name("state-watch".into())
        .spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(INTERVAL) {
                watch.tick(queue.as_ref());
            }
        })
        .map_err(OpenFault::Thread)?;
    Ok((living, thread))
}

struct Watch {
    connection: Option<Connection>,
    /// The last change that was read.
    read: i64,
    ticks: u32,
    shared: Arc<Shared>,
}

impl Watch {
    fn tick(&mut self, queue: Option<&WeakSender<Job>>) {
        let began = BootTime::now();
        match self.follow() {
            Ok(()) if self.shared.identity.check().is_ok() => {
                self.shared.process.freshness.heard(began);
            }
            Ok(()) => {}
            Err(error) => {
                tracing::debug!(%error, "the change log cannot be read");
                self.connection = None;
                self.shared.process.cache.clear();
            }
        }
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(RESTING)
            && let Some(queue) = queue.and_then(WeakSender::upgrade)
        {
            let after_failure = lock(&self.shared.fault).is_some();
            // A full queue has more urgent work.
            let _ = queue.try_send(Job::EverySecond { after_failure });
        }
    }

    /// Reads the changes since the last time.
    fn follow(&mut self) -> rusqlite::Result<()> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => file::connect_reader(self.shared.identity.path())?,
        };
        let connection = self.connection.insert(connection);
        let head = head(connection)?;
        if head == self.read {
            return Ok(());
        }
        let changes = connection
            .prepare_cached("SELECT kind, key FROM change WHERE seq > ?1 AND seq <= ?2")?
            .query_map((self.read, head), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<(i64, [u8; 16])>>>()?;
        let expected = usize::try_from(head.saturating_sub(self.read)).unwrap_or(0);
        let cache = &self.shared.process.cache;
        if changes.len() == expected {
            for (kind, key) in changes {
                match kind {
                    0 => cache.psu_changed(PsuHash::from_bytes(key)),
                    _ => cache.quota_changed(QuotaHash::from_bytes(key)),
                }
            }
        } else {
            cache.clear();
        }
        self.read = head;
        Ok(())
    }
}

/// The number of the last change.
fn head(connection: &Connection) -> rusqlite::Result<i64> {
    let head = connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'change'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(head.unwrap_or(0))
}
