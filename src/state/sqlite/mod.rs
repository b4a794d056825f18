//! State in an SQLite file: durable on one machine, and shared by the processes on it.
//!
//! One thread writes. It takes the queued changes, up to 1 000, lets the rules decide them in one transaction and answers when the
//! transaction is on the disk: one sync for all of them. The decisions depend on rows that were read inside the transaction, so two
//! processes on one file are correct too. Expired rows are removed in the same transactions. Two more threads read the changes of other
//! processes, and checkpoint the write-ahead log. A lookup of a PSU takes a connection from a pool, off the async workers.
//!
//! Invariant: a change that was answered as done survives `kill -9` and loss of power; a failed change has no effect.

mod blocks;
pub mod clock;
pub mod copies;
mod events;
pub mod file;
mod identity;
mod kept_clock;
mod log;
mod migrations;
mod moves;
mod opened;
mod read;
pub mod rotate;
mod rows;
mod shared;
mod tidy;
mod watch;
mod writer;

use super::{
    Counters, CustomerHash, Dated, Keys, OpenFault, PsuHash, StateSettings, Unavailable,
    blocks::Standing,
    change::Change,
    engine::Engine,
    freshness::{Freshness, Reads},
    level::OwnLevel,
    lock::lock,
    outbox::Outbox,
    process::Process,
    rows::BoundPsu,
    rules::Table,
    settings::EarlierSchema,
    sweep::Step,
};
use log::Log;
use portvakt_base::clock::Timestamp;
use rusqlite::Connection;
use shared::Shared;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};
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

impl Sqlite {
    pub(super) fn open(
        settings: &StateSettings,
        earlier: EarlierSchema,
    ) -> Result<(Self, Keys, Arc<Process>), OpenFault> {
        let (connection, identity, keys) = file::open(settings, earlier)?;
        let path = settings.file.clone();
        if earlier == EarlierSchema::Migrated {
            copies::remove_rehearsed(&path);
        }
        let damaged = |error: rusqlite::Error| file::damaged(&path, &error);
        let readers = read::Readers::open(identity.path()).map_err(damaged)?;
        let watcher = file::connect_reader(identity.path()).map_err(damaged)?;
        let mover = file::connect(identity.path()).map_err(damaged)?;
        let (clock, kept_clock) = clock::open(&connection).map_err(damaged)?;
        let freshness = Arc::new(Freshness::new(Reads::AsRead, false));
        let level = OwnLevel::new(&keys, settings, Arc::clone(&freshness));
        let process = Arc::new(Process::new(settings, clock, freshness));
        let shared = Arc::new(Shared {
            identity,
            level,
            process: Arc::clone(&process),
            kept_clock,
            fault: Mutex::default(),
            counters: Mutex::default(),
            cursors: Mutex::default(),
            due_rows: Mutex::default(),
            log_is_moved: AtomicBool::new(false),
            has_written: AtomicBool::new(false),
        });
        let (log, moving) = Log::start(mover, Arc::clone(&shared))?;
        let (writer, writing) = Writer::start(connection, log, Arc::clone(&shared))?;
        writer.try_to_write();
        let (watching, thread) = watch::start(watcher, &writer, Arc::clone(&shared))?;
        let sqlite = Self {
            writer,
            readers,
            shared,
            watching: Some(watching),
            threads: vec![thread, writing, moving],
        };
        Ok((sqlite, keys, process))
    }

    /// Tries whether the state can be opened, without a change.
    pub(super) fn try_open(settings: &StateSettings) -> Result<(), OpenFault> {
        file::try_open(settings)
    }

    /// Opens a copy of the file, with its migration: the key, each row and the space of the disk are tried, and the process that uses the
    /// file goes on.
    pub(super) fn rehearse(settings: &StateSettings) -> Result<(), OpenFault> {
        file::try_open(settings)?;
        let path = &settings.file;
        let connection = file::connect(path).map_err(|error| file::damaged(path, &error))?;
        let tried = copies::copy_to_rehearse(&connection, path).and_then(|file| {
            let settings = StateSettings {
                file,
                ..settings.clone()
            };
            file::open(&settings, EarlierSchema::Migrated).map(drop)
        });
        copies::remove_rehearsed(path);
        tried.map_err(|fault| OpenFault::Rehearsal(Box::new(fault)))
    }
}

impl Engine for Sqlite {
    async fn psu(&self, psu: PsuHash) -> Result<Dated<Option<BoundPsu>>, Unavailable> {
        self.readers.psu(psu, &self.shared).await
    }

    async fn psus_of(
        &self,
        customer: CustomerHash,
        after: Option<PsuHash>,
        most: u32,
    ) -> Result<Vec<(PsuHash, BoundPsu)>, Unavailable> {
        let read = move |sql: &Connection| {
            let transaction = sql.unchecked_transaction()?;
            rows::psus_of(&transaction, customer, after, most)
        };
        Ok(self.readers.read(&self.shared, read).await?.fact)
    }

    async fn standing(&self) -> Result<Dated<Standing>, Unavailable> {
        self.readers.read(&self.shared, read::standing).await
    }

    async fn events(&self, after: u64, most: u32) -> Result<Outbox, Unavailable> {
        let read = move |sql: &Connection| {
            let transaction = sql.unchecked_transaction()?;
            events::read(&transaction, after, most)
        };
        Ok(self.readers.read(&self.shared, read).await?.fact)
    }

    async fn commit<C: Change>(&self, change: C) -> Result<C::Outcome, Unavailable> {
        self.writer.commit(change).await
    }

    async fn sweep(
        &self,
        table: Table,
        now: Timestamp,
        is_first: bool,
    ) -> Result<Step, Unavailable> {
        self.writer.sweep(table, now, is_first).await
    }

    fn health(&self) -> Result<(), Unavailable> {
        self.shared.identity.check().map_err(Unavailable)?;
        self.shared.level.is_current().map_err(Unavailable)?;
        match &*lock(&self.shared.fault) {
            Some(fault) => Err(Unavailable(fault.clone())),
            None => Ok(()),
        }
    }

    fn has_written(&self) -> bool {
        self.shared.has_written.load(Ordering::Relaxed)
    }

    fn counters(&self) -> Counters {
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
