//! State in an SQLite file: durable on one machine, and shared by the processes on it.
//!
//! One thread writes. It takes what waits, up to 1 000 changes, decides them in one transaction and answers when that is
//! on the disk: one sync for all of them, and whoever asks alone waits for one. What is decided rests on rows that were read
//! inside the transaction, so two processes on one file are right as well. What expired is removed along with it. Two
//! more threads read what other processes changed, and move the write-ahead log into the file. Looking a PSU up takes a
//! connection from a pool, off the async workers.
//!
//! Invariant: what was answered as done survives `kill -9` and loss of power; what failed left nothing behind.

mod apply;
mod claim;
pub(crate) mod clock;
pub(crate) mod file;
mod log;
mod read;
mod tidy;
mod watch;
mod writer;

pub(super) use apply::{Completed, NewBinding, Withdrawal};
pub(super) use claim::{Call, Claimed, Started, forget, give_back};

use super::{
    Counters, Keys, OpenFault, StateSettings, Unavailable,
    clock::Clock,
    memory::{Known, Memory},
    verbs::Finished,
};
use crate::{clock::Timestamp, state::Hash};
use log::Log;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
};
pub(super) use writer::Change;
use writer::Writer;

/// The store in a file.
pub(super) struct Sqlite {
    writer: Writer,
    readers: read::Readers,
    shared: Arc<Shared>,
    /// Ends the watching thread when it is dropped.
    watching: Option<std::sync::mpsc::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads share.
pub(super) struct Shared {
    identity: file::Identity,
    memory: Memory,
    clock: Clock,
    kept_clock: clock::KeptClock,
    /// Why the last write failed, if it did.
    fault: Mutex<Option<String>>,
    counters: Mutex<Counters>,
    /// The last time that a caller gave, for housekeeping.
    asked: AtomicU64,
    sweep: Mutex<tidy::Sweep>,
    /// Whether most of the write-ahead log was moved into the file, and the writer is to move the rest.
    log_is_moved: AtomicBool,
}

impl Sqlite {
    pub(super) fn open(settings: &StateSettings) -> Result<(Self, Keys), OpenFault> {
        let (connection, identity, keys) = file::open(settings)?;
        let path = settings.file.clone();
        let damaged = |error: rusqlite::Error| file::damaged(&path, &error);
        let readers = read::Readers::open(identity.path()).map_err(damaged)?;
        let watcher = file::connect_reader(identity.path()).map_err(damaged)?;
        let mover = file::connect(identity.path()).map_err(damaged)?;
        let (clock, kept_clock) = clock::open(&connection).map_err(damaged)?;
        let shared = Arc::new(Shared {
            identity,
            memory: Memory::new(settings, clock.latest()),
            clock,
            kept_clock,
            fault: Mutex::default(),
            counters: Mutex::default(),
            asked: AtomicU64::new(0),
            sweep: Mutex::default(),
            log_is_moved: AtomicBool::new(false),
        });
        let (log, moving) = Log::start(mover, Arc::clone(&shared))?;
        let (writer, writing) = Writer::start(connection, log, Arc::clone(&shared))?;
        let (watching, thread) = watch::start(watcher, &writer, Arc::clone(&shared))?;
        let sqlite = Self {
            writer,
            readers,
            shared,
            watching: Some(watching),
            threads: vec![thread, writing, moving],
        };
        Ok((sqlite, keys))
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// A PSU as the file has it; memory is brought up to date.
    pub(super) async fn psu(&self, psu: Hash) -> Result<Option<Known>, Unavailable> {
        self.readers.psu(psu, &self.shared).await
    }

    /// Claims what has to be durable.
    pub(super) async fn claim(&self, claim: Claimed) -> Result<Started, Unavailable> {
        self.shared.note(claim.now);
        self.writer.ask(move |change| claim.run(change)).await
    }

    /// Any other change.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Change<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        self.writer.ask(act).await
    }

    /// The same, and the caller's time is noted for housekeeping.
    pub(super) async fn finish(
        &self,
        completed: Completed,
        now: Timestamp,
    ) -> Result<Finished, Unavailable> {
        self.shared.note(now);
        self.writer.ask(move |change| completed.run(change)).await
    }

    /// One whole sweep over what expires, in steps. How many rows were removed.
    pub(super) async fn tidy(&self, now: Timestamp) -> Result<u64, Unavailable> {
        self.shared.note(now);
        let mut removed = 0;
        for table in tidy::tables() {
            self.writer
                .ask(move |change| {
                    tidy::begin(change, table);
                    Ok(())
                })
                .await?;
            loop {
                let step = self
                    .writer
                    .ask(move |change| tidy::step(change, table, now, tidy::STEP))
                    .await?;
                removed += step.removed;
                if step.around {
                    break;
                }
            }
        }
        Ok(removed)
    }

    /// The time, for housekeeping while nothing is written.
    pub(super) fn note(&self, now: Timestamp) {
        self.shared.note(now);
    }

    pub(super) fn health(&self) -> Result<(), Unavailable> {
        self.shared.identity.check().map_err(Unavailable)?;
        match &*lock(&self.shared.fault) {
            Some(fault) => Err(Unavailable(fault.clone())),
            None => Ok(()),
        }
    }

    pub(super) fn counters(&self) -> Counters {
        lock(&self.shared.counters).clone()
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.watching = None;
        self.writer.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// A caller gave a time. What is removed by it is removed by a time that the clock is held against.
    fn note(&self, now: Timestamp) {
        if self.clock.see(now).is_ok() {
            self.asked.store(now.unix(), Ordering::Relaxed);
        }
    }
}

/// A lock, whoever panicked while holding it: what it guards is replaced whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A time as SQLite has it.
fn seconds(at: Timestamp) -> i64 {
    i64::try_from(at.unix()).unwrap_or(i64::MAX)
}

/// A time as it was kept.
fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_unix(u64::try_from(seconds).unwrap_or(0))
}
