//! The only thread that writes, and its queue.

use super::{
    clock, events, file,
    log::Log,
    opened::{self, Failed, Open},
    rows,
    shared::Shared,
    tidy,
};
use crate::{
    Event, OpenFault, Unavailable,
    change::{self, BATCH, Change, QueuedChange},
    lock::lock,
    rows::{Rows, UsedUp},
    rules::{self, Table},
    sweep::Step,
};
use portvakt_base::clock::{Stopwatch, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::{
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

/// The maximum number of queued jobs. One more is refused, because its client would time out.
const QUEUE: usize = 16_384;

/// The number of jobs in one transaction after which the writer pauses, so that callers that send the next change at once share one commit:
/// there are fewer commits, and no caller waits for two.
const MANY: u64 = 8;

/// The length of the pause.
const REST: Duration = Duration::from_micros(50);

/// The time that a caller waits for an answer. A writer waits two seconds for another process; a slower disk counts as unavailable.
const PATIENCE: Duration = Duration::from_secs(5);

/// The number of entries in the change log: a process that is further behind drops its whole cache.
const CHANGE_LOG: i64 = 4_096;

/// The handle of the thread.
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Job>>,
}

/// A job for the next transaction.
pub(super) enum Job {
    /// A change that a caller waits for.
    Change(Box<dyn QueuedChange>),
    /// The work of every second. After a failed write something is written, so that the gateway becomes ready again without traffic.
    EverySecond { must_write: bool },
    /// A step of a full sweep.
    Sweep(Sweep),
}

/// A step of a full sweep, and the channel to its caller.
pub(super) struct Sweep {
    table: Table,
    now: Timestamp,
    is_first: bool,
    step: Option<Step>,
    reply: oneshot::Sender<Result<Step, Unavailable>>,
}

impl Job {
    fn is_abandoned(&self) -> bool {
        match self {
            Self::Change(change) => change.is_abandoned(),
            Self::EverySecond { .. } => false,
            Self::Sweep(sweep) => sweep.reply.is_closed(),
        }
    }

    fn answer(self, committed: Result<(), Unavailable>) {
        match self {
            Self::Change(change) => change.answer(committed),
            Self::EverySecond { .. } => {}
            Self::Sweep(Sweep { step, reply, .. }) => {
                let step = committed.and_then(|()| step.ok_or_else(ended));
                let _ = reply.send(step);
            }
        }
    }
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
            .spawn(move || write_all(waiting, Some(Open::new(connection)), log, &shared))
            .map_err(OpenFault::Thread)?;
        Ok((Self { queue: Some(queue) }, thread))
    }

    /// Makes the first write. A file that takes none is noticed before the first request.
    pub(super) fn try_to_write(&self) {
        if let Some(queue) = &self.queue {
            // The queue is empty.
            let _ = queue.try_send(Job::EverySecond { must_write: true });
        }
    }

    /// Ends the thread after the queued jobs, when no other handle of the queue is left.
    pub(super) fn close(&mut self) {
        self.queue = None;
    }

    /// A weak handle of the queue, which does not keep the thread alive.
    pub(super) fn weak(&self) -> Option<mpsc::WeakSender<Job>> {
        self.queue.as_ref().map(mpsc::Sender::downgrade)
    }

    /// Decides a change, and answers when it is durable.
    pub(super) async fn commit<C: Change>(&self, change: C) -> Result<C::Outcome, Unavailable> {
        let (change, outcome) = change::queued(change);
        self.ask(Job::Change(change), outcome).await
    }

    /// Takes one step of a full sweep.
    pub(super) async fn sweep(
        &self,
        table: Table,
        now: Timestamp,
        is_first: bool,
    ) -> Result<Step, Unavailable> {
        let (reply, step) = oneshot::channel();
        let sweep = Sweep {
            table,
            now,
            is_first,
            step: None,
            reply,
        };
        self.ask(Job::Sweep(sweep), step).await
    }

    async fn ask<T>(
        &self,
        job: Job,
        outcome: oneshot::Receiver<Result<T, Unavailable>>,
    ) -> Result<T, Unavailable> {
        let queue = self.queue.as_ref().ok_or_else(ended)?;
        queue.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                Unavailable(format!("{QUEUE} changes wait to be written already"))
            }
            mpsc::error::TrySendError::Closed(_) => ended(),
        })?;
        match tokio::time::timeout(PATIENCE, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(ended()),
            Err(_) => Err(Unavailable(format!(
                "nothing was written for {} s",
                PATIENCE.as_secs()
            ))),
        }
    }
}

fn ended() -> Unavailable {
    Unavailable("the store's writer has ended".into())
}

fn write_all(
    mut waiting: mpsc::Receiver<Job>,
    mut open: Option<Open>,
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
        let outcome = write(&mut open, &mut batch, shared);
        let size = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        note(shared, size, watch.lap(), &outcome);
        let must_write = |job: &Job| matches!(job, Job::EverySecond { must_write: true });
        if outcome.is_ok() && batch.iter().any(must_write) {
            shared.has_written.store(true, Ordering::Relaxed);
        }
        for job in batch {
            job.answer(outcome.clone());
        }
        if let Some(open) = &open {
            log.grew(size, &open.connection, shared);
        }
        if size >= MANY {
            std::thread::sleep(REST);
        }
    }
}

/// One transaction. After a failure the connection is opened again, because the cause may be gone by the next batch.
fn write(kept: &mut Option<Open>, batch: &mut [Job], shared: &Shared) -> Result<(), Unavailable> {
    shared.identity.check().map_err(Unavailable)?;
    shared.level.is_current().map_err(Unavailable)?;
    let fault = |error: rusqlite::Error| {
        Unavailable(format!("{}: {error}", shared.identity.path().display()))
    };
    let mut open = match kept.take() {
        Some(open) => open,
        None => Open::new(file::connect(shared.identity.path()).map_err(fault)?),
    };
    let mut rows = Rows::default();
    let outcome = transact(&mut open, batch, &mut rows, shared);
    let cache = &shared.process.cache;
    match &outcome {
        Ok(has_events) => {
            *kept = Some(open);
            let blocks = &shared.process.blocks;
            blocks.apply(rows.changed_blocks(), rows.changed_moves());
            if *has_events {
                shared.process.wake_events();
            }
        }
        Err(_) => {
            for decided in &rows.used_up {
                let (UsedUp::Until(key, _) | UsedUp::NoLonger(key)) = *decided;
                cache.quota_changed(key);
            }
        }
    }
    // Also after a failed commit, because it may have taken effect.
    for psu in rows.psus.changed() {
        cache.psu_changed(psu.key);
    }
    outcome.map(drop).map_err(|failed| match failed {
        Failed::Sql(error) => fault(error),
        Failed::Undecided => change::undecided(),
        Failed::Rotated(fault) => Unavailable(fault),
    })
}

/// Loads the rows of a batch, decides, writes and commits. No other process writes meanwhile. Returns whether there are new events.
fn transact(
    open: &mut Open,
    batch: &mut [Job],
    rows: &mut Rows,
    shared: &Shared,
) -> Result<bool, Failed> {
    let immediate = TransactionBehavior::Immediate;
    let sql = open.connection.transaction_with_behavior(immediate)?;
    rows.customer_key = opened::customer_key(&sql, &mut open.checked, shared)?;
    let mut keys = Vec::new();
    for job in batch.iter() {
        if let Job::Change(change) = job {
            change.keys(&mut keys);
        }
    }
    let is_second = batch
        .iter()
        .any(|job| matches!(job, Job::EverySecond { .. }));
    let ended = if is_second {
        events::ended(&sql, shared)?
    } else {
        None
    };
    if let Some(ended) = &ended {
        ended.keys(&mut keys);
    }
    rows::load(&sql, &keys, rows)?;
    for job in batch.iter_mut() {
        if let Job::Change(change) = job {
            change.decide(rows);
        }
    }
    if let Some(ended) = &ended {
        ended.decide(rows);
    }
    if !rows.is_complete() {
        return Err(Failed::Undecided);
    }
    for decided in &rows.used_up {
        shared.process.cache.heed(*decided);
    }
    rows::write(&sql, rows)?;
    let new = rules::events(rows, shared.process.clock.latest());
    events::add(&sql, &new)?;
    log_changes(&sql, rows, &new)?;
    for job in batch.iter_mut() {
        match job {
            Job::Change(_) => {}
            Job::EverySecond { must_write } => every_second(&sql, shared, *must_write)?,
            Job::Sweep(sweep) => {
                if sweep.is_first {
                    tidy::begin(shared, sweep.table);
                }
                let step = tidy::step(&sql, shared, sweep.table, sweep.now, tidy::STEP)?;
                sweep.step = Some(step);
            }
        }
    }
    tidy::follow(&sql, shared, batch.len())?;
    clock::keep(&sql, shared)?;
    sql.commit()?;
    Ok(!new.is_empty())
}

/// Logs the rows that the other processes on the file must drop from their caches, or read again: PSUs that changed, quotas that are no
/// longer used up, and blocks and moves of TPPs; and that there are events. Only the end of the log is kept.
fn log_changes(sql: &Transaction<'_>, rows: &Rows, events: &[Event]) -> rusqlite::Result<()> {
    let psus = rows.psus.changed().map(|psu| (0, *psu.key.as_bytes()));
    let quotas = rows.used_up.iter().filter_map(|decided| match decided {
        UsedUp::NoLonger(key) => Some((1, *key.as_bytes())),
        UsedUp::Until(..) => None,
    });
    let blocks = rows.blocks.changed();
    let blocks = blocks.map(|block| (2, *block.key.as_bytes()));
    let moves = rows.moves.changed();
    let moves = moves.map(|moved| (2, *moved.key.as_bytes()));
    let event = events.first().map(|_| (3, [0; 16]));
    let changes = psus.chain(quotas).chain(blocks).chain(moves).chain(event);
    let changes: Vec<(i64, [u8; 16])> = changes.collect();
    if changes.is_empty() {
        return Ok(());
    }
    let mut insert = sql.prepare_cached("INSERT INTO change (kind, key) VALUES (?1, ?2)")?;
    for (kind, key) in changes {
        insert.execute((kind, key))?;
    }
    sql.prepare_cached("DELETE FROM change WHERE seq <= ?1")?
        .execute([sql.last_insert_rowid().saturating_sub(CHANGE_LOG)])?;
    Ok(())
}

fn every_second(sql: &Transaction<'_>, shared: &Shared, must_write: bool) -> rusqlite::Result<()> {
    tidy::send_on(shared);
    clock::follow(sql, shared)?;
    events::prune(sql, shared)?;
    if must_write {
        clock::write_something(sql, shared)?;
    }
    Ok(())
}

fn note(shared: &Shared, size: u64, took: Duration, outcome: &Result<(), Unavailable>) {
    let mut counters = lock(&shared.counters);
    counters.count(u32::try_from(size).unwrap_or(u32::MAX), took);
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
