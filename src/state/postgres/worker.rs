//! A worker: one connection that takes a batch, or a step of housekeeping, after the other.

use super::{
    batch::{self, Attempt},
    connect::Link,
    events,
    job::{Outcome, Sweep, Work},
    settings::PlantedFault,
    shared::Shared,
    tidy,
};
use crate::{
    Unavailable,
    change::{self, Change, QueuedChange},
    lock::lock,
    rows::RowKey,
    rules::Table,
    sweep::Step,
};
use portvakt_base::clock::Stopwatch;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{error::Elapsed, sleep, timeout},
};
use uuid::Uuid;

/// The number of times that a batch is decided again at once, because other gateways changed its rows.
const AGAIN: u32 = 20;

/// The pause between two questions about an unclear attempt, and after work that lost the connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The minimum number of rows of each table that housekeeping visits every second.
const RESTING: u32 = 200;

/// The time for housekeeping: it is cancelled where it takes longer, for example without the standby.
const HOUSEKEEPING: Duration = Duration::from_secs(10);

/// A worker's connection.
pub(super) struct Worker {
    pub(super) number: usize,
    pub(super) link: Option<Link>,
    pub(super) shared: Arc<Shared>,
}

impl Worker {
    /// Works until the queue ends.
    pub(super) async fn run(
        mut self,
        mut work: mpsc::Receiver<Work>,
        done: mpsc::UnboundedSender<Outcome>,
    ) {
        while let Some(work) = work.recv().await {
            let keys = match work {
                Work::Batch { changes, keys } => {
                    self.commit(changes, &keys).await;
                    keys
                }
                Work::Sweep(sweep) => {
                    let step = timeout(HOUSEKEEPING, self.sweep(&sweep)).await;
                    let step = self.in_time(step).await;
                    let _ = sweep.reply.send(step);
                    Vec::new()
                }
                Work::Connect => {
                    let _ = self.link().await;
                    Vec::new()
                }
                Work::Housekeeping { changes } => {
                    let kept = timeout(HOUSEKEEPING, self.keep_house(changes)).await;
                    match self.in_time(kept).await {
                        Ok(()) => self.shared.set_write_fault(None),
                        Err(fault) => {
                            tracing::debug!(%fault, "housekeeping failed");
                            if self.link.is_none() {
                                self.shared.set_write_fault(Some(fault.0));
                            }
                        }
                    }
                    Vec::new()
                }
            };
            let is_connected = self.link.is_some();
            if !is_connected {
                sleep(PAUSE).await;
            }
            let outcome = Outcome {
                number: self.number,
                keys,
                is_connected,
            };
            if done.send(outcome).is_err() {
                return;
            }
        }
    }

    /// Commits a batch, and answers its callers.
    async fn commit(&mut self, mut changes: Vec<Box<dyn QueuedChange>>, keys: &[RowKey]) {
        let mut watch = Stopwatch::start();
        let size = changes.len();
        let outcome = match self.shared.require_sync() {
            Ok(()) => self.decide(&mut changes, keys).await.map_err(Unavailable),
            Err(refused) => Err(refused),
        };
        self.shared.note(size, watch.lap(), &outcome);
        for change in changes {
            change.answer(outcome.clone());
        }
    }

    /// Decides until the outcome is known, or nobody waits for it.
    ///
    /// # Errors
    /// The last fault, also where nobody waits any more.
    async fn decide(
        &mut self,
        changes: &mut Vec<Box<dyn QueuedChange>>,
        keys: &[RowKey],
    ) -> Result<(), String> {
        let mut last = String::new();
        for _ in 0..AGAIN {
            changes.retain(|change| !change.is_abandoned());
            if changes.is_empty() {
                return if last.is_empty() { Ok(()) } else { Err(last) };
            }
            let shared = Arc::clone(&self.shared);
            let link = self.link().await?;
            match batch::attempt(link, changes, &shared).await {
                Attempt::Committed => return Ok(()),
                Attempt::Overtaken(fault) => last = fault,
                Attempt::Lost(fault) => {
                    self.link = None;
                    last = fault;
                }
                Attempt::Failed(fault) => {
                    self.link = None;
                    return Err(fault);
                }
                Attempt::Undecided => return Err(batch::bug()),
                Attempt::Unclear(attempt) => {
                    self.link = None;
                    let committed = if shared.settings.has_planted(PlantedFault::BlindRetry) {
                        Ok(false)
                    } else {
                        self.clear_up(attempt, changes).await
                    };
                    for key in keys {
                        if let RowKey::Psu(psu) = key {
                            self.shared.process.cache.psu_changed(*psu);
                        }
                    }
                    if committed? {
                        return Ok(());
                    }
                    "the transaction did not take effect".clone_into(&mut last);
                }
            }
        }
        Err(last)
    }

    /// Asks until it is known whether an attempt was committed, or nobody waits for it.
    ///
    /// # Errors
    /// Nobody waits any more, and it is unknown.
    async fn clear_up(
        &mut self,
        attempt: Uuid,
        changes: &mut [Box<dyn QueuedChange>],
    ) -> Result<bool, String> {
        lock(&self.shared.counters).unclear += 1;
        loop {
            let shared = Arc::clone(&self.shared);
            if let Ok(link) = self.link().await
                && let Some(committed) = batch::ask(link, attempt, &shared).await
            {
                return Ok(committed);
            }
            self.link = None;
            self.shared.require_sync().map_err(|refused| refused.0)?;
            if changes.iter().all(|change| change.is_abandoned()) {
                return Err("it is unknown whether the change took effect".to_owned());
            }
            sleep(PAUSE).await;
        }
    }

    /// The connection, opened again if it ended or if there is a newer primary.
    async fn link(&mut self) -> Result<&Link, String> {
        let connector = &self.shared.connector;
        let open = match self.link.take() {
            Some(link) if connector.is_usable(&link) => link,
            _ => connector.open().await?,
        };
        Ok(self.link.insert(open))
    }

    /// The outcome of housekeeping. Where it took too long, the server is told to end it, and the connection is not used again.
    async fn in_time<T>(
        &mut self,
        outcome: Result<Result<T, Unavailable>, Elapsed>,
    ) -> Result<T, Unavailable> {
        if let Ok(outcome) = outcome {
            return outcome;
        }
        if let Some(link) = self.link.take() {
            self.shared.connector.cancel(&link).await;
        }
        Err(Unavailable("housekeeping took too long".to_owned()))
    }

    async fn sweep(&mut self, sweep: &Sweep) -> Result<Step, Unavailable> {
        let shared = Arc::clone(&self.shared);
        let link = self.link().await.map_err(Unavailable)?;
        if sweep.is_first {
            tidy::begin(&shared, sweep.table);
        }
        keep_clock(link, &shared).await?;
        tidy::step(link, &shared, sweep.table, sweep.now, tidy::STEP).await
    }

    /// The work of every second, after this number of changes.
    async fn keep_house(&mut self, changes: u32) -> Result<(), Unavailable> {
        let shared = Arc::clone(&self.shared);
        let link = self.link().await.map_err(Unavailable)?;
        let Some(now) = shared.process.housekeeping_time() else {
            return Ok(());
        };
        keep_clock(link, &shared).await?;
        let rows = RESTING.saturating_add(changes.saturating_mul(2));
        for table in Table::ALL {
            tidy::step(link, &shared, table, now, rows).await?;
        }
        events::prune(link, &shared, now).await?;
        tidy::remove_short_lived(link)
            .await
            .map_err(|error| Unavailable(super::connect::text(&error)))?;
        let Some(expiry) = events::ended(link, now).await? else {
            return Ok(());
        };
        // Decided as every change is. Another gateway that found the same rows decides on what this one leaves.
        shared.require_sync()?;
        let mut keys = Vec::new();
        expiry.keys(&mut keys);
        let (queued, _outcome) = change::queued(expiry);
        self.decide(&mut vec![queued], &keys)
            .await
            .map_err(Unavailable)
    }
}

async fn keep_clock(link: &Link, shared: &Shared) -> Result<(), Unavailable> {
    tidy::keep_clock(link, shared)
        .await
        .map_err(|error| Unavailable(super::connect::text(&error)))
}
