//! The one thread that writes, and how it is asked.

use super::{Shared, clock, file, lock, log::Log, tidy};
use crate::{
    clock::Stopwatch,
    state::{Hash, OpenFault, Unavailable, memory::Memory},
};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::{sync::Arc, thread::JoinHandle, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// The most changes in one transaction.
const BATCH: usize = 1_000;

/// The most changes that wait. One more is refused: who waits for longer than a client does, waits in vain.
const QUEUE: usize = 16_384;

/// After so many changes in one transaction the writer rests, so that those who ask at once again come into one commit
/// instead of every other one: fewer commits, and nobody waits for two.
const MANY: u64 = 8;

/// How long it rests.
const REST: Duration = Duration::from_micros(50);

/// How long a caller waits for an answer. A writer waits two seconds for another process; a disk that takes longer than
/// this is as good as none.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way to the thread.
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
}

/// A transaction in which a change is made, and what it means for memory.
pub(in crate::state) struct Change<'a> {
    pub(super) sql: &'a Transaction<'a>,
    pub(super) shared: &'a Shared,
    /// PSUs that changed: dropped from memory after the commit.
    psus: Vec<Hash>,
    /// Quotas that were found used up, and are held in memory already.
    used_up: Vec<Hash>,
}

impl<'a> Change<'a> {
    pub(super) fn memory(&self) -> &'a Memory {
        &self.shared.memory
    }

    /// A PSU changed, for this process and the others.
    pub(super) fn psu_changed(&mut self, psu: Hash) -> rusqlite::Result<()> {
        self.psus.push(psu);
        self.log(0, psu)
    }

    /// A quota was used up and is not any longer, for this process and the others.
    pub(super) fn quota_changed(&mut self, key: Hash) -> rusqlite::Result<()> {
        self.memory().quota_changed(key);
        self.log(1, key)
    }

    /// A quota is used up. It is held in memory before the commit: until then nobody else can give a call back, so that
    /// whoever does is heard later.
    pub(super) fn quota_used_up(&mut self, key: Hash, until: crate::clock::Timestamp) {
        self.memory().put_used_up(key, until);
        self.used_up.push(key);
    }

    /// The change log, of which only the end is kept: who has read less drops everything.
    fn log(&self, kind: i64, key: Hash) -> rusqlite::Result<()> {
        self.sql
            .prepare_cached("INSERT INTO change (kind, key) VALUES (?1, ?2)")?
            .execute((kind, key.as_bytes()))?;
        self.sql
            .prepare_cached("DELETE FROM change WHERE seq <= ?1 - 4096")?
            .execute([self.sql.last_insert_rowid()])?;
        Ok(())
    }
}

/// A change that waits, and who waits for it.
pub(super) trait Job: Send {
    /// Whether nobody waits any longer.
    fn is_abandoned(&self) -> bool;
    fn run(&mut self, change: &mut Change<'_>) -> rusqlite::Result<()>;
    fn answer(self: Box<Self>, committed: Result<(), Unavailable>);
}

struct Asked<T, F> {
    act: Option<F>,
    outcome: Option<T>,
    reply: oneshot::Sender<Result<T, Unavailable>>,
}

impl<T, F> Job for Asked<T, F>
where
    T: Send,
    F: FnOnce(&mut Change<'_>) -> rusqlite::Result<T> + Send,
{
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, change: &mut Change<'_>) -> rusqlite::Result<()> {
        if let Some(act) = self.act.take() {
            self.outcome = Some(act(change)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), Unavailable>) {
        let Self { outcome, reply, .. } = *self;
        let _ = reply.send(committed.and_then(|()| outcome.ok_or_else(away)));
    }
}

/// A change that nobody waits for.
pub(super) struct Chore<F>(pub(super) Option<F>);

impl<F> Job for Chore<F>
where
    F: FnOnce(&mut Change<'_>) -> rusqlite::Result<()> + Send,
{
    fn is_abandoned(&self) -> bool {
        false
    }

    fn run(&mut self, change: &mut Change<'_>) -> rusqlite::Result<()> {
        self.0.take().map_or(Ok(()), |act| act(change))
    }

    fn answer(self: Box<Self>, _: Result<(), Unavailable>) {}
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        log: Log,
        shared: Arc<Shared>,
    ) -> Result<(Self, JoinHandle<()>), OpenFault> {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("state-writer".into())
            .spawn(move || write_all(waiting, Some(connection), log, &shared))
            .map_err(OpenFault::Thread)?;
        Ok((Self { queue: Some(queue) }, thread))
    }

    /// Ends the thread when what waits is written, once nobody else holds the queue.
    pub(super) fn close(&mut self) {
        self.queue = None;
    }

    /// The queue, for whoever does not keep the thread alive.
    pub(super) fn weak(&self) -> Option<mpsc::WeakSender<Box<dyn Job>>> {
        self.queue.as_ref().map(mpsc::Sender::downgrade)
    }

    /// Makes a change, and answers when it is durable.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Change<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Asked {
            act: Some(act),
            outcome: None,
            reply,
        });
        let queue = self.queue.as_ref().ok_or_else(away)?;
        queue.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                Unavailable(format!("{QUEUE} changes wait to be written already"))
            }
            mpsc::error::TrySendError::Closed(_) => away(),
        })?;
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(away()),
            Err(_) => Err(Unavailable(format!(
                "nothing was written for {} s",
                PATIENCE.as_secs()
            ))),
        }
    }
}

fn away() -> Unavailable {
    Unavailable("the store's writer has ended".into())
}

fn write_all(
    mut waiting: mpsc::Receiver<Box<dyn Job>>,
    mut connection: Option<Connection>,
    mut log: Log,
    shared: &Shared,
) {
    while let Some(first) = waiting.blocking_recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Ok(next) = waiting.try_recv()
        {
            batch.push(next);
        }
        batch.retain(|job| !job.is_abandoned());
        if batch.is_empty() {
            continue;
        }
        let mut watch = Stopwatch::start();
        let outcome = write(&mut connection, &mut batch, shared);
        let size = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        note(shared, size, watch.lap(), &outcome);
        for job in batch {
            job.answer(outcome.clone());
        }
        if let Some(connection) = &connection {
            log.grew(size, connection, shared);
        }
        if size >= MANY {
            std::thread::sleep(REST);
        }
    }
}

/// One transaction. After a failure the connection is made anew: whatever was wrong may be right by the next batch.
fn write(
    connection: &mut Option<Connection>,
    batch: &mut [Box<dyn Job>],
    shared: &Shared,
) -> Result<(), Unavailable> {
    shared.identity.check().map_err(Unavailable)?;
    let fault = |error: rusqlite::Error| {
        Unavailable(format!("{}: {error}", shared.identity.path().display()))
    };
    let mut open = match connection.take() {
        Some(open) => open,
        None => file::connect(shared.identity.path()).map_err(fault)?,
    };
    let (outcome, psus, used_up) = transact(&mut open, batch, shared);
    match &outcome {
        Ok(()) => *connection = Some(open),
        Err(_) => used_up
            .into_iter()
            .for_each(|key| shared.memory.quota_changed(key)),
    }
    // Also where the commit failed: it is not always known whether it did.
    psus.into_iter()
        .for_each(|psu| shared.memory.psu_changed(psu));
    outcome.map_err(fault)
}

/// What came of a transaction, the PSUs that it changed, and the quotas that it found used up.
type Transacted = (rusqlite::Result<()>, Vec<Hash>, Vec<Hash>);

fn transact(
    connection: &mut Connection,
    batch: &mut [Box<dyn Job>],
    shared: &Shared,
) -> Transacted {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = match begun {
        Ok(transaction) => transaction,
        Err(error) => return (Err(error), Vec::new(), Vec::new()),
    };
    let mut change = Change {
        sql: &transaction,
        shared,
        psus: Vec::new(),
        used_up: Vec::new(),
    };
    let outcome = batch
        .iter_mut()
        .try_for_each(|job| job.run(&mut change))
        .and_then(|()| tidy::follow(&change, batch.len()))
        .and_then(|()| clock::keep(&change));
    let Change { psus, used_up, .. } = change;
    let outcome = outcome.and_then(|()| transaction.commit());
    (outcome, psus, used_up)
}

fn note(shared: &Shared, size: u64, took: Duration, outcome: &Result<(), Unavailable>) {
    let mut counters = lock(&shared.counters);
    counters.batches += 1;
    counters.changes += size;
    counters.largest_batch = counters.largest_batch.max(size);
    counters.spent += took;
    if outcome.is_err() {
        counters.failed += 1;
    }
    drop(counters);
    let fault = outcome.as_ref().err().map(|fault| fault.0.clone());
    let mut last = lock(&shared.fault);
    match (&*last, &fault) {
        (None, Some(fault)) => tracing::error!(fault, "state cannot be written"),
        (Some(_), None) => tracing::info!("state is written again"),
        _ => {}
    }
    *last = fault;
}
