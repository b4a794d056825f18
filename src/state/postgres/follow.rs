//! The connection that hears the database: it proves several times a second that commits succeed, and reads the changes of other gateways.
//!
//! A notification wakes the task, and the change log behind it says what changed, so that a lost notification costs a quarter of a second.
//! Invariant: the log is read by transaction: a change is read once, after its transaction ended, in whatever order transactions end. If
//! changes may have left the log unread, on a new connection, or if there are too many, the whole cache is dropped.

use super::{
    connect::{Link, text},
    fence::Proof,
    job::Job,
    look_up,
    migrate::{LOCK, NOTICES_ROTATION},
    rows::hash,
    shared::Shared,
    standby,
};
use crate::{clock::ClockRow, lock::lock};
use portvakt_base::clock::{BootTime, Stopwatch};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{mpsc::WeakSender, oneshot},
    time::{sleep, timeout},
};
use tokio_postgres::{Error, Row, types::ToSql};
use uuid::Uuid;

/// The interval of the proofs.
const INTERVAL: Duration = Duration::from_millis(250);

/// The time for a proof.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time for the first proof.
const START: Duration = Duration::from_secs(5);

/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(100);

/// The maximum time between two readings of the log: half the time after which the database removes a change. Both clocks count, the
/// gateway's and the database's, because the clock of a paused virtual machine stops.
const MAX_GAP: Duration = Duration::from_secs(300);

/// The maximum number of changes that are read at once. With more the cache is dropped, which costs less than to read them.
const CHANGES: usize = 10_000;

/// The task's state.
pub(super) struct Follower {
    link: Option<Link>,
    /// The timeline of the last connection; `None` before the first.
    timeline: Option<i64>,
    /// The last reading of the log; `None` if it was not read on this connection.
    position: Option<Position>,
    since_read: BootTime,
    /// Whether blocks of TPPs must be read again.
    blocks_due: bool,
    since_housekeeping: Stopwatch,
    shared: Arc<Shared>,
}

/// A reading of the log.
struct Position {
    /// The transactions whose changes were read, in PostgreSQL's form.
    snapshot: String,
    /// Seconds, by the database's clock.
    at: i64,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            link: None,
            timeline: None,
            position: None,
            since_read: BootTime::now(),
            blocks_due: true,
            since_housekeeping: Stopwatch::start(),
            shared,
        }
    }

    /// Follows the database until the sender of `ended` is dropped.
    pub(super) async fn run(
        mut self,
        queue: Option<WeakSender<Job>>,
        mut ended: oneshot::Receiver<()>,
    ) {
        loop {
            let pause = tokio::select! {
                biased;
                _ = &mut ended => return,
                pause = self.round() => pause,
            };
            self.wake_housekeeping(queue.as_ref());
            let notified = self.link.as_ref().map(|link| Arc::clone(&link.notified));
            let woken = async {
                match notified {
                    Some(notified) => notified.notified().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = &mut ended => return,
                () = woken => {}
                () = sleep(pause) => {}
            }
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The first proof, at the start.
    ///
    /// # Errors
    /// The reason for the operator.
    pub(super) async fn begin(&mut self) -> Result<(), String> {
        self.link().await?;
        let beat = timeout(START, self.beat()).await;
        beat.unwrap_or_else(|_| Err(format!("no commit succeeded for {} s", START.as_secs())))?;
        self.keep_reader().await
    }

    /// One proof, and the changes since the last one. Returns the pause before the next.
    async fn round(&mut self) -> Duration {
        let fault = match self.link().await {
            Err(fault) => fault,
            Ok(()) => match timeout(PATIENCE, self.beat()).await {
                Ok(Ok(())) => {
                    // First, because on a new connection the cache was dropped: every PSU is looked up.
                    let reader = self.keep_reader().await;
                    self.shared.set_fault(reader.err());
                    return INTERVAL;
                }
                Ok(Err(fault)) => fault,
                Err(_) => {
                    // The server may be a former primary: its rows are not read while it is told to end the proof.
                    *lock(&self.shared.reader) = None;
                    self.cancel().await;
                    format!("no commit succeeded for {} s", PATIENCE.as_secs())
                }
            },
        };
        self.link = None;
        *lock(&self.shared.reader) = None;
        let state = self.shared.connector.check_state();
        if state.is_err() {
            self.shared.freshness.end();
        }
        self.shared.set_fault(Some(state.err().unwrap_or(fault)));
        PAUSE
    }

    /// Opens the connection if it ended, or if there is a newer primary.
    async fn link(&mut self) -> Result<(), String> {
        let connector = &self.shared.connector;
        if self.link.as_ref().is_some_and(|it| connector.is_usable(it)) {
            return Ok(());
        }
        let link = connector.open().await?;
        let timeline = link.origin.timeline;
        let last = self.timeline.replace(timeline);
        if last.is_some_and(|last| last != timeline) {
            tracing::warn!(timeline, "there is a new primary");
        }
        // After a crash of the server a transaction may have the number of an earlier one that left no trace.
        self.position = None;
        // The first lock keeps `portvakt state copy` out, and waits for one that is under way. The second one tells a rotation of the hash
        // key that this version notices it.
        let listen = format!(
            "SELECT pg_advisory_lock_shared({LOCK}, 'meta'::regclass::oid::integer);
            SELECT pg_advisory_lock_shared({NOTICES_ROTATION}, 'meta'::regclass::oid::integer); LISTEN portvakt_change"
        );
        let listening = timeout(PATIENCE, link.client.batch_execute(&listen)).await;
        listening
            .map_err(|_| "no answer; or a state file is copied into the database".to_owned())?
            .map_err(|error| text(&error))?;
        self.link = Some(link);
        Ok(())
    }

    /// Commits a row, and reads the clock and the changes.
    async fn beat(&mut self) -> Result<(), String> {
        let Some(link) = &self.link else {
            return Err("no connection".to_owned());
        };
        let statements = &link.statements;
        let process = &self.shared.process;
        let began = BootTime::now();
        link.take_warning();
        let latest = i64::try_from(process.clock.latest().unix()).unwrap_or(i64::MAX);
        let stepped_back = process.clock.stepped_back();
        let accepted = self.shared.accepted.load(Ordering::Relaxed);
        let accepted = i64::try_from(accepted).unwrap_or(i64::MAX);
        let snapshot = self.position.as_ref().map(|it| it.snapshot.as_str());
        let most = i64::try_from(CHANGES).unwrap_or(i64::MAX);
        let last = self.shared.connector.fence.proof();
        let proof: [&(dyn ToSql + Sync); 3] =
            [&link.id, &last.map(|it| it.id), &last.map(|it| it.at)];
        let clock: [&(dyn ToSql + Sync); 3] = [&latest, &stepped_back, &accepted];
        let log: [&(dyn ToSql + Sync); 2] = [&snapshot, &most];
        let client = &link.client;
        let (beat, _, standing, changes) = tokio::try_join!(
            biased;
            client.query_opt(&statements.beat, &proof),
            client.execute(&statements.follow_clock, &clock),
            client.query_one(&statements.standing, &[]),
            client.query(&statements.changes, &log),
        )
        .map_err(|error| text(&error))?;
        let fence = &self.shared.connector.fence;
        let Some(beat) = beat else {
            if let Some(last) = last {
                fence.miss(last, &link.origin)?;
                fence.forget();
            }
            return Err("the database lacks the last proof".to_owned());
        };
        if link.take_warning() {
            return Err("a commit did not reach the standby".to_owned());
        }
        let fault = |error: Error| text(&error);
        let is_safe = self.heed_standing(&standing).map_err(fault)?;
        fence.keep(Proof {
            id: link.id,
            at: beat.try_get(0).map_err(fault)?,
            timeline: link.origin.timeline,
            is_safe,
        });
        self.drop_changed(&changes)?;
        self.read_blocks().await?;
        self.shared.freshness.heard(began);
        Ok(())
    }

    /// Applies the stored clock, and heeds the key for customers. Notes and returns whether commits wait for a standby.
    fn heed_standing(&self, row: &Row) -> Result<bool, Error> {
        let number = |column: usize| {
            let number: Result<i64, Error> = row.try_get(column);
            number.map(|number| u64::try_from(number).unwrap_or(0))
        };
        let stored = ClockRow {
            latest: number(0)?,
            stepped_back: row.try_get(1)?,
            accepted: number(2)?,
        };
        self.shared
            .kept_latest
            .store(stored.latest, Ordering::Relaxed);
        self.shared
            .accepted
            .store(stored.accepted, Ordering::Relaxed);
        self.shared.process.heed_clock(stored);
        self.shared.process.customer_key.heed(row.try_get(5)?);
        let (commit, standbys): (&str, &str) = (row.try_get(3)?, row.try_get(4)?);
        let reason = standby::unsafe_commits(commit, standbys);
        let is_safe = reason.is_none();
        self.shared.set_unsafe_commits(reason);
        Ok(is_safe)
    }

    /// Drops the rows that changed; everything, if not all changes were read.
    fn drop_changed(&mut self, read: &[Row]) -> Result<(), String> {
        let fault = |error: Error| text(&error);
        let first = read.first().ok_or("the change log cannot be read")?;
        let now = Position {
            snapshot: first.try_get(0).map_err(fault)?,
            at: first.try_get(1).map_err(fault)?,
        };
        let last = self.position.as_ref();
        let is_complete = last.is_some_and(|last| {
            read.len() < CHANGES && is_log_complete(last.at, now.at, self.since_read.elapsed())
        });
        let cache = &self.shared.process.cache;
        if is_complete {
            for row in read {
                let Some(key) = row.try_get::<_, Option<Uuid>>(3).map_err(fault)? else {
                    continue;
                };
                match row.try_get::<_, i16>(2).map_err(fault)? {
                    0 => cache.psu_changed(hash(key)),
                    1 => cache.quota_changed(hash(key)),
                    3 => self.shared.process.wake_events(),
                    _ => self.blocks_due = true,
                }
            }
        } else {
            cache.clear();
            self.blocks_due = true;
            self.shared.process.wake_events();
        }
        self.position = Some(now);
        self.since_read = BootTime::now();
        Ok(())
    }

    /// Reads the blocks and moves of TPPs again if one changed (CTL-2, CTL-4). The database does not count as heard before that.
    async fn read_blocks(&mut self) -> Result<(), String> {
        let Some(link) = &self.link else {
            return Ok(());
        };
        let live = &self.shared.process.blocks;
        while self.blocks_due {
            let reading = live.reading();
            let rows = look_up::standing(link).await?;
            self.blocks_due = !live.replace(reading, rows);
        }
        Ok(())
    }

    /// Opens the connection for lookups if there is none.
    ///
    /// # Errors
    /// The reason for the operator: only PSUs in memory are known.
    async fn keep_reader(&self) -> Result<(), String> {
        let connector = &self.shared.connector;
        let reader = lock(&self.shared.reader).clone();
        let is_good = reader.is_some_and(|link| connector.is_usable(&link));
        if !is_good {
            let link = connector.open().await;
            let link = link.map_err(|fault| format!("no connection for look-ups: {fault}"))?;
            *lock(&self.shared.reader) = Some(Arc::new(link));
        }
        Ok(())
    }

    /// Cancels a proof that did not succeed in time, so that the database's process for it ends.
    async fn cancel(&self) {
        if let Some(link) = &self.link {
            self.shared.connector.cancel(link).await;
        }
    }

    fn wake_housekeeping(&mut self, queue: Option<&WeakSender<Job>>) {
        if self.since_housekeeping.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.since_housekeeping = Stopwatch::start();
        if let Some(queue) = queue.and_then(WeakSender::upgrade) {
            // A full queue has more urgent work.
            let _ = queue.try_send(Job::EverySecond);
        }
    }
}

/// Whether no change since the last reading can have been removed from the log. `last` and `now`: the times of the two readings by the
/// database's clock, in seconds; `passed`: the time between them by this machine's clock.
fn is_log_complete(last: i64, now: i64, passed: Duration) -> bool {
    Duration::from_secs(now.abs_diff(last)).max(passed) < MAX_GAP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_after_five_minutes_by_either_clock_may_have_missed_changes() {
        for (now, passed, has) in [
            (1_000, 0, true),
            (1_299, 299, true),
            // A virtual machine was paused, and its clock stopped.
            (1_300, 1, false),
            (1_001, 300, false),
            (700, 1, false),
        ] {
            assert_eq!(
                is_log_complete(1_000, now, Duration::from_secs(passed)),
                has,
                "{now}"
            );
        }
    }
}
