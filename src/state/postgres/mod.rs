//! State in PostgreSQL: exact for several gateways, and over the loss of a database server with a synchronous standby.
//!
//! One thread has a runtime of its own. Its dispatcher gives the queued changes to workers, one connection each; a worker decides a batch in
//! one transaction of two round trips and answers when the commit is confirmed. Another task hears the database: it proves that commits
//! succeed, and reads the changes of other gateways.
//!
//! Invariant: a change that was answered as done is committed on a primary that no newer one has replaced, and with synchronous
//! replication on its standby. A failed change has no effect, or it is unknown whether it has; nothing is decided again before that is
//! known.

// Rows in SQL, and the two halves of a transaction.
mod batch;
mod blocks;
mod commands;
mod events;
mod parted;
mod rows;
mod statements;

// Connections to the primary.
mod connect;
mod fence;
pub mod maintain;
mod migrate;
mod moves;
pub mod rotate;
mod session;
pub(super) mod settings;
mod standby;
mod tls;

// The tasks: distribution of changes, workers, hearing the database, housekeeping.
mod dispatch;
mod follow;
mod job;
mod look_up;
mod others;
mod shared;
mod tidy;
mod worker;

use super::{
    Counters, CustomerHash, Dated, Keys, OpenFault, PsuHash, StateSettings, Unavailable,
    blocks::Standing,
    change::{self, Change},
    clock::ClockRow,
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
use connect::{Connector, Session, text};
use follow::Follower;
use job::{Job, Sweep};
use portvakt_base::clock::{BootTime, Timestamp};
use settings::{PostgresSettings, StaleReads};
use shared::Shared;
use std::{
    sync::{Arc, Mutex, atomic::AtomicU64},
    thread::JoinHandle,
    time::Duration,
};
use tokio::{
    runtime::Runtime,
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_postgres::types::ToSql;
use uuid::Uuid;
use worker::Worker;

/// The time that unfinished work has when the store is closed.
const CLOSING: Duration = Duration::from_secs(5);

/// The store in a database.
pub(super) struct Postgres {
    queue: Option<mpsc::Sender<Job>>,
    shared: Arc<Shared>,
    /// Ends the tasks when it is dropped.
    following: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Postgres {
    /// Whether the state was replaced, or its hash key rotated, since this process began.
    pub(super) fn needs_restart(&self) -> bool {
        self.shared.connector.check_state().is_err()
    }

    pub(super) fn open(
        settings: &StateSettings,
        postgres: &PostgresSettings,
        earlier: EarlierSchema,
    ) -> Result<(Self, Keys, Arc<Process>), OpenFault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(OpenFault::Thread)?;
        // The caller may be in another runtime, in which none can be waited for.
        let (settings, postgres) = (settings.clone(), postgres.clone());
        let (opened, open) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("state-postgres".into())
            .spawn(move || {
                let outcome = runtime.block_on(begin(&settings, postgres, earlier));
                let (started, report) = match outcome {
                    Ok((follower, keys)) => {
                        let shared = Arc::clone(follower.shared());
                        let (queue, jobs) = mpsc::channel(dispatch::QUEUE);
                        let (following, ended) = oneshot::channel();
                        let weak = queue.downgrade();
                        let handles = (queue, following, shared, keys);
                        (Some((follower, jobs, weak, ended)), Ok(handles))
                    }
                    Err(fault) => (None, Err(fault)),
                };
                if opened.send(report).is_ok()
                    && let Some((follower, jobs, weak, ended)) = started
                {
                    work(runtime, follower, jobs, weak, ended);
                }
            })
            .map_err(OpenFault::Thread)?;
        let report = open.recv();
        let ended = || OpenFault::Postgres("the store's thread has ended".to_owned());
        let (queue, following, shared, keys) = report.map_err(|_| ended())??;
        let process = Arc::clone(&shared.process);
        let engine = Self {
            queue: Some(queue),
            shared,
            following: Some(following),
            thread: Some(thread),
        };
        Ok((engine, keys, process))
    }

    /// Tries whether the database and its key can be used, without a change.
    pub(super) fn try_open(
        settings: &StateSettings,
        postgres: &PostgresSettings,
    ) -> Result<(), OpenFault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(OpenFault::Thread)?;
        let attempt = move || {
            runtime.block_on(async {
                let connector = Connector::new(postgres.clone());
                let mut session = first(&connector).await?;
                migrate::check(&mut session, &settings.hash_key).await?;
                migrate::keep_recorded(&mut session, settings, false).await?;
                if postgres.require_sync {
                    migrate::in_time(session.require_standby()).await?;
                }
                Ok(())
            })
        };
        // The caller may be in another runtime, in which none can be waited for.
        let done = std::thread::scope(|scope| scope.spawn(attempt).join());
        done.unwrap_or_else(|_| Err(OpenFault::Postgres("the trial has failed".to_owned())))
    }

    /// An answer whose question was sent at this moment.
    fn dated<T>(&self, began: BootTime, fact: T) -> Dated<T> {
        let as_of = self.shared.freshness.of_answer(began);
        Dated { fact, as_of }
    }

    async fn ask<T>(
        &self,
        job: Job,
        outcome: oneshot::Receiver<Result<T, Unavailable>>,
    ) -> Result<T, Unavailable> {
        let queue = self.queue.as_ref().ok_or_else(ended)?;
        queue.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => dispatch::full(),
            mpsc::error::TrySendError::Closed(_) => ended(),
        })?;
        let patience = self.shared.settings.patience();
        match timeout(patience, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(ended()),
            Err(_) => Err(Unavailable(format!(
                "nothing was written for {} s",
                patience.as_secs()
            ))),
        }
    }
}

fn ended() -> Unavailable {
    Unavailable("the store's thread has ended".into())
}

/// Connects, checks the database and proves that it commits.
async fn begin(
    settings: &StateSettings,
    postgres: PostgresSettings,
    earlier: EarlierSchema,
) -> Result<(Follower, Keys), OpenFault> {
    let connector = Connector::new(postgres.clone());
    let mut session = first(&connector).await?;
    let keys = migrate::prepare(&mut session, &settings.hash_key, None, earlier).await?;
    migrate::keep_recorded(&mut session, settings, true).await?;
    let clock = migrate::in_time(stored_clock(&session)).await?;
    // The connections below need its place.
    drop(session);
    let is_ignored = postgres.reads == StaleReads::Allow;
    let freshness = Arc::new(Freshness::new(Reads::AsProven, is_ignored));
    connector.set_level(OwnLevel::new(&keys, settings, Arc::clone(&freshness)));
    let process = Process::new(settings, clock, Arc::clone(&freshness));
    let shared = Arc::new(Shared {
        settings: postgres,
        connector,
        process: Arc::new(process),
        freshness,
        kept_latest: AtomicU64::new(clock.latest),
        accepted: AtomicU64::new(clock.accepted),
        reader: Mutex::default(),
        fault: Mutex::default(),
        write_fault: Mutex::default(),
        unsafe_commits: Mutex::default(),
        counters: Mutex::default(),
        cursors: Mutex::default(),
    });
    let mut follower = Follower::new(Arc::clone(&shared));
    follower.begin().await.map_err(OpenFault::Postgres)?;
    shared
        .require_sync()
        .map_err(|refused| OpenFault::Postgres(refused.0))?;
    Ok((follower, keys))
}

/// The first session, to a database that is no pool of transactions.
async fn first(connector: &Connector) -> Result<Session, OpenFault> {
    let session = connector.connect().await.map_err(OpenFault::Postgres)?;
    let other = connector.connect().await.map_err(OpenFault::Postgres)?;
    migrate::in_time(session.require_own_server(&other)).await?;
    Ok(session)
}

/// The clock of the database.
async fn stored_clock(session: &Session) -> Result<ClockRow, OpenFault> {
    let fault = |error: tokio_postgres::Error| OpenFault::Postgres(text(&error));
    let row = session
        .client
        .query_one("SELECT latest, stepped_back, accepted FROM clock", &[])
        .await
        .map_err(fault)?;
    let number = |column: usize| {
        let number = row.try_get::<_, i64>(column).map_err(fault);
        number.map(|number| u64::try_from(number).unwrap_or(0))
    };
    Ok(ClockRow {
        latest: number(0)?,
        stepped_back: row.try_get(1).map_err(fault)?,
        accepted: number(2)?,
    })
}

/// Works until the store is closed, and then for the queued changes.
fn work(
    runtime: Runtime,
    follower: Follower,
    jobs: mpsc::Receiver<Job>,
    queue: mpsc::WeakSender<Job>,
    ended: oneshot::Receiver<()>,
) {
    let shared = Arc::clone(follower.shared());
    let (done, free) = mpsc::unbounded_channel();
    runtime.block_on(async move {
        let workers = (0..shared.settings.pool).map(|number| {
            let (queue, work) = mpsc::channel(1);
            let worker = Worker {
                number,
                link: None,
                shared: Arc::clone(&shared),
            };
            tokio::spawn(worker.run(work, done.clone()));
            queue
        });
        let workers = workers.collect();
        let following = tokio::spawn(follower.run(Some(queue), ended));
        let watching = tokio::spawn(others::watch(Arc::clone(&shared)));
        let dispatching = tokio::spawn(dispatch::run(jobs, workers, free));
        // Both end when the store is dropped.
        let _ = following.await;
        watching.abort();
        let _ = timeout(CLOSING, dispatching).await;
    });
    runtime.shutdown_background();
}

impl Engine for Postgres {
    async fn psu(&self, psu: PsuHash) -> Result<Dated<Option<BoundPsu>>, Unavailable> {
        let link = look_up::reader(&self.shared).await?;
        let began = BootTime::now();
        let cache = &self.shared.process.cache;
        let reading = cache.reading(psu);
        let key = rows::id(psu);
        let parameters: [&(dyn ToSql + Sync); 1] = [&key];
        let question = look_up::rows(&link, &link.statements.psu, &parameters);
        let found = look_up::answer(&self.shared, &link, question).await?;
        let bound = rows::joined_psus(&found).map_err(|fault| Unavailable(fault.to_string()))?;
        let bound = bound.into_iter().next().map(|(_, bound)| bound);
        cache.put(psu, reading, bound.as_ref());
        Ok(self.dated(began, bound))
    }

    async fn psus_of(
        &self,
        customer: CustomerHash,
        after: Option<PsuHash>,
        most: u32,
    ) -> Result<Vec<(PsuHash, BoundPsu)>, Unavailable> {
        let link = look_up::reader(&self.shared).await?;
        let key = rows::id(customer);
        let after = after.map_or_else(Uuid::nil, rows::id);
        let most = i64::from(most);
        let parameters: [&(dyn ToSql + Sync); 3] = [&key, &after, &most];
        let question = look_up::rows(&link, &link.statements.psus_of_customer, &parameters);
        let found = look_up::answer(&self.shared, &link, question).await?;
        rows::joined_psus(&found).map_err(|fault| Unavailable(fault.to_string()))
    }

    async fn standing(&self) -> Result<Dated<Standing>, Unavailable> {
        let link = look_up::reader(&self.shared).await?;
        let began = BootTime::now();
        let found = look_up::answer(&self.shared, &link, look_up::standing(&link)).await?;
        Ok(self.dated(began, found))
    }

    async fn events(&self, after: u64, most: u32) -> Result<Outbox, Unavailable> {
        let link = look_up::reader(&self.shared).await?;
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let most = i64::from(most);
        let parameters: [&(dyn ToSql + Sync); 2] = [&after, &most];
        let question = look_up::rows(&link, &link.statements.events, &parameters);
        let found = look_up::answer(&self.shared, &link, question).await?;
        events::read(&found).map_err(|fault| Unavailable(fault.to_string()))
    }

    async fn commit<C: Change>(&self, change: C) -> Result<C::Outcome, Unavailable> {
        let (change, outcome) = change::queued(change);
        self.ask(Job::Change(change), outcome).await
    }

    async fn sweep(
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
            reply,
        };
        self.ask(Job::Sweep(sweep), step).await
    }

    fn health(&self) -> Result<(), Unavailable> {
        self.shared.health()
    }

    /// The proofs that keep memory fresh are commits.
    fn has_written(&self) -> bool {
        self.shared.freshness.of_memory().is_some()
    }

    fn counters(&self) -> Counters {
        lock(&self.shared.counters).clone()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.queue = None;
        self.following = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

// A primary, its standby and a former primary, in every order.
#[cfg(test)]
mod model;
