//! The thread that reads the changes of other processes, and triggers housekeeping.
//!
//! Invariant: the cached rows of this process are at most a tenth of a second older than the file while this thread runs; if the change log
//! cannot be read, or has lost unread entries, the whole cache is dropped. Each reading is reported with the moment at which it began: where
//! the thread did not run, or the file is not the opened one, nothing is answered from memory.

use super::{
    file, read,
    shared::Shared,
    writer::{Job, Writer},
};
use crate::{OpenFault, PsuHash, QuotaHash, lock::lock};
use portvakt_base::clock::BootTime;
use rusqlite::{Connection, OptionalExtension};
use std::{
    sync::{
        Arc,
        atomic::Ordering,
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
    let read = head(&connection).unwrap_or(0);
    let mut watch = Watch {
        connection: Some(connection),
        read,
        blocks_due: true,
        ticks: 0,
        shared,
    };
    // CTL-2: no request is judged before the blocks are known.
    let path = watch.shared.identity.path().to_owned();
    let followed = watch.follow();
    followed.map_err(|error| file::damaged(&path, &error))?;
    watch.shared.process.freshness.heard(began);
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
    /// Whether blocks and moves of TPPs must be read again.
    blocks_due: bool,
    ticks: u32,
    shared: Arc<Shared>,
}

impl Watch {
    fn tick(&mut self, queue: Option<&WeakSender<Job>>) {
        let began = BootTime::now();
        match self.follow() {
            Ok(()) if self.is_own() => self.shared.process.freshness.heard(began),
            Ok(()) => {}
            Err(error) => {
                tracing::debug!(%error, "the change log cannot be read");
                self.connection = None;
                self.blocks_due = true;
                self.shared.process.cache.clear();
            }
        }
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(RESTING)
            && let Some(queue) = queue.and_then(WeakSender::upgrade)
        {
            let has_written = self.shared.has_written.load(Ordering::Relaxed);
            let must_write = !has_written || lock(&self.shared.fault).is_some();
            // A full queue has more urgent work.
            let _ = queue.try_send(Job::EverySecond { must_write });
        }
    }

    /// Whether the file is the opened one, with the level of this process.
    fn is_own(&self) -> bool {
        self.shared.identity.check().is_ok() && self.shared.level.is_current().is_ok()
    }

    /// Reads the changes since the last time.
    fn follow(&mut self) -> rusqlite::Result<()> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => file::connect_reader(self.shared.identity.path())?,
        };
        let connection = self.connection.insert(connection);
        let (level, customer_key) = file::key_checks(connection)?;
        if self.shared.level.judge(&level).is_err() {
            return Ok(());
        }
        let key = &self.shared.process.customer_key;
        key.heed(customer_key.as_deref());
        let head = head(connection)?;
        if head == self.read && !self.blocks_due {
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
                    1 => cache.quota_changed(QuotaHash::from_bytes(key)),
                    3 => self.shared.process.wake_events(),
                    _ => self.blocks_due = true,
                }
            }
        } else {
            cache.clear();
            self.blocks_due = true;
            self.shared.process.wake_events();
        }
        self.read = head;
        // CTL-2: the file does not count as heard before that.
        let live = &self.shared.process.blocks;
        while self.blocks_due {
            let reading = live.reading();
            self.blocks_due = !live.replace(reading, read::standing(connection)?);
        }
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
