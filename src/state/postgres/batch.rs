//! One transaction for a batch of changes: it locks and reads the rows in one round trip, decides, and writes and commits in another.
//!
//! Invariant: a batch counts as committed only after the server confirmed COMMIT without a warning, or after a later question answered
//! that the attempt's row is committed. With `require_sync` the server must also say, after COMMIT, that it waited for a standby. Where the
//! outcome is unknown, the batch is [`Attempt::Unclear`], and nothing is decided again before it is known: the transaction may still
//! take effect.

use super::{
    commands::{self, Command},
    connect::{Link, text},
    events,
    rows::{self, BatchKeys, RowFault, id},
    settings::PlantedFault,
    shared::Shared,
    tidy::clock_command,
};
use crate::{
    Event,
    change::{QueuedChange, undecided},
    rows::{Rows, UsedUp},
    rules,
};
use portvakt_base::clock::BootTime;
use std::{sync::atomic::Ordering, time::Duration};
use tokio::time::timeout;
use tokio_postgres::{
    Error,
    error::{DbError, Severity, SqlState},
    types::ToSql,
};
use uuid::Uuid;

/// The time for reading: longer than the server waits for a lock.
const READ: Duration = Duration::from_secs(4);

/// The time after which a commit is taken for lost, if later commits of this gateway succeed meanwhile.
const OVERTAKEN: Duration = Duration::from_secs(2);

/// The outcome of one attempt.
pub(super) enum Attempt {
    /// The changes are durable.
    Committed,
    /// Another gateway changed the rows meanwhile, or there is a newer primary: nothing was written, and the changes may be decided again at
    /// once.
    Overtaken(String),
    /// The connection ended before anything was written: the changes may be decided again on another.
    Lost(String),
    /// Nothing was written, and the connection must not be used again.
    Failed(String),
    /// The changes cannot be decided: a bug.
    Undecided,
    /// It is unknown whether the changes were written.
    Unclear(Uuid),
}

/// Decides the changes of a batch in one transaction.
pub(super) async fn attempt(
    link: &Link,
    batch: &mut [Box<dyn QueuedChange>],
    shared: &Shared,
) -> Attempt {
    let mut keys = Vec::new();
    for change in batch.iter() {
        change.keys(&mut keys);
    }
    let keys = BatchKeys::new(&keys);
    let loaded = tokio::select! {
        biased;
        // On the heap: it is a future of many statements, which would be copied whole.
        loaded = timeout(READ, Box::pin(rows::load(link, &keys, &shared.connector))) => loaded,
        // Nothing is written yet: the worker decides again on the newer primary.
        () = shared.connector.fence.passed(&link.origin) => {
            return Attempt::Overtaken("there is a newer primary".to_owned());
        }
    };
    let mut rows = match loaded {
        Ok(Ok(rows)) => rows,
        Ok(Err(RowFault::Sql(error))) => return before_commit(link, &error).await,
        Ok(Err(fault)) => return Attempt::Failed(fault.to_string()),
        Err(_) => return Attempt::Failed(format!("no answer for {} s", READ.as_secs())),
    };
    for change in batch.iter_mut() {
        change.decide(&mut rows);
    }
    if !rows.is_complete() {
        let _ = link.client.batch_execute("ROLLBACK").await;
        return Attempt::Undecided;
    }
    for decided in &rows.used_up {
        shared.process.cache.heed(*decided);
    }
    let may_be_lost = batch.iter().all(|change| change.may_be_lost());
    let new = rules::events(&rows, shared.process.clock.latest());
    let writing = Writing::new(link, &rows, &new, may_be_lost, shared);
    let outcome = writing.send(link, shared).await;
    if matches!(outcome, Attempt::Committed) {
        let blocks = &shared.process.blocks;
        blocks.apply(rows.changed_blocks(), rows.changed_moves());
        if !new.is_empty() {
            shared.process.wake_events();
        }
    } else {
        for decided in &rows.used_up {
            let (UsedUp::Until(key, _) | UsedUp::NoLonger(key)) = *decided;
            shared.process.cache.quota_changed(key);
        }
    }
    // Also after a failed commit, because it may have taken effect.
    for psu in rows.psus.changed() {
        shared.process.cache.psu_changed(psu.key);
    }
    outcome
}

/// The second half of a transaction, ready to be sent.
struct Writing<'l> {
    commands: Vec<Command<'l>>,
    /// Whether no row differs, so that nothing must be durable.
    is_unchanged: bool,
    attempt: Uuid,
    /// The latest time, which the transaction stores; 0 if it stores none.
    latest: u64,
    /// Whether the last command, after COMMIT, asks if the server waited for a standby.
    asks_for_standby: bool,
}

impl<'l> Writing<'l> {
    fn new(link: &'l Link, rows: &Rows, new: &[Event], may_be_lost: bool, shared: &Shared) -> Self {
        let mut commands = rows::write(&link.statements, rows);
        let is_unchanged = commands.is_empty();
        let attempt = Uuid::new_v4();
        // A transaction that waits for the standby may hold the clock's row.
        let latest = if may_be_lost {
            0
        } else {
            shared.process.clock.latest().unix()
        };
        let wakes = !shared.settings.has_planted(PlantedFault::LostNotify);
        log_changes(link, rows, new, wakes, &mut commands);
        if !is_unchanged {
            commands.push(Command::new(&link.statements.attempt, [attempt]));
            // After all other rows, because every transaction with events takes the same one.
            commands.extend(events::add(&link.statements, new));
            // Last, because every gateway writes this row.
            if latest > shared.kept_latest.load(Ordering::Relaxed) {
                commands.push(clock_command(link, shared, latest));
            }
        }
        // Also where nothing is written: locks of rows make COMMIT wait for the standby.
        if may_be_lost {
            commands.push(Command::of(&link.statements.commit_soon, Vec::new()));
        }
        commands.push(Command::of(&link.statements.commit, Vec::new()));
        let asks_for_standby = shared.settings.require_sync && !may_be_lost;
        if asks_for_standby {
            let settings = link.settings_of.clone();
            commands.push(Command::new(&link.statements.waited, [settings]));
        }
        Self {
            commands,
            is_unchanged,
            attempt,
            latest,
            asks_for_standby,
        }
    }

    /// Writes and commits, in one round trip.
    async fn send(self, link: &Link, shared: &Shared) -> Attempt {
        let unclear = Attempt::Unclear(self.attempt);
        if shared
            .settings
            .has_planted(PlantedFault::AnswerBeforeCommit)
        {
            let _ = timeout(Duration::ZERO, commands::send(link, self.commands)).await;
            return Attempt::Committed;
        }
        link.take_warning();
        let sent = BootTime::now();
        let outcome = tokio::select! {
            biased;
            outcome = commands::send(link, self.commands) => outcome,
            () = shared.connector.fence.passed(&link.origin) => return unclear,
            () = overtaken(shared, sent) => return unclear,
        };
        let is_cancelled = link.take_warning();
        match outcome {
            // The server has other settings now. The question waits for the standby, on a connection that knows them.
            Ok(0) if self.asks_for_standby => unclear,
            // Nothing was written, but the rows that were read may not be on the standby.
            Ok(_) if self.is_unchanged && is_cancelled => {
                Attempt::Overtaken("the wait for the standby was cancelled".to_owned())
            }
            Ok(_) if self.is_unchanged => Attempt::Committed,
            Ok(_) if is_cancelled => unclear,
            Ok(_) => {
                shared.kept_latest.fetch_max(self.latest, Ordering::Relaxed);
                Attempt::Committed
            }
            // A statement before COMMIT: the server refused it, so COMMIT, which was sent with it, has ended the transaction without effect.
            Err((error, after))
                if after > usize::from(self.asks_for_standby) && error.as_db_error().is_some() =>
            {
                if is_overtaken(&error) {
                    Attempt::Overtaken(text(&error))
                } else {
                    failed(&error)
                }
            }
            Err((error, _)) => {
                tracing::warn!(error = text(&error), "the outcome of a commit is unknown");
                unclear
            }
        }
    }
}

/// Ends when a commit that this gateway began later has succeeded: then this one was lost on the way.
async fn overtaken(shared: &Shared, sent: BootTime) {
    loop {
        tokio::time::sleep(OVERTAKEN).await;
        if shared.freshness.was_heard_since(sent.after(OVERTAKEN)) {
            return;
        }
    }
}

/// Whether another transaction came first.
fn is_overtaken(error: &Error) -> bool {
    let again = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
    ];
    error.code().is_some_and(|code| again.contains(code))
}

/// The outcome after an error before COMMIT was sent: nothing was written.
async fn before_commit(link: &Link, error: &Error) -> Attempt {
    if is_overtaken(error) {
        let ended = timeout(READ, link.client.batch_execute("ROLLBACK")).await;
        if let Ok(Ok(())) = ended {
            return Attempt::Overtaken(text(error));
        }
    }
    failed(error)
}

/// The outcome after an error that wrote nothing.
fn failed(error: &Error) -> Attempt {
    let reason = text(error);
    match error.as_db_error().map(DbError::parsed_severity) {
        None | Some(Some(Severity::Fatal | Severity::Panic)) => Attempt::Lost(reason),
        Some(_) => Attempt::Failed(reason),
    }
}

/// Logs the rows that other gateways must drop from their caches or read again, and wakes them for PSUs, blocks and events. A quota that is no longer used up wakes nobody,
/// because notifications make commits wait for each other.
fn log_changes<'l>(
    link: &'l Link,
    rows: &Rows,
    new: &[Event],
    wakes: bool,
    commands: &mut Vec<Command<'l>>,
) {
    let mut kinds: Vec<i16> = Vec::new();
    let mut keys: Vec<Uuid> = Vec::new();
    for psu in rows.psus.changed() {
        kinds.push(0);
        keys.push(id(psu.key));
    }
    for block in rows.blocks.changed() {
        kinds.push(2);
        keys.push(id(block.key));
    }
    for moved in rows.moves.changed() {
        kinds.push(2);
        keys.push(id(moved.key));
    }
    if !new.is_empty() {
        kinds.push(3);
        keys.push(Uuid::nil());
    }
    let wakes = wakes && !keys.is_empty();
    for decided in &rows.used_up {
        if let UsedUp::NoLonger(key) = decided {
            kinds.push(1);
            keys.push(id(*key));
        }
    }
    if !keys.is_empty() {
        let parameters: Vec<commands::Parameter> = vec![Box::new(kinds), Box::new(keys)];
        commands.push(Command::of(&link.statements.log_changes, parameters));
    }
    if wakes {
        commands.push(Command::of(&link.statements.notify, Vec::new()));
    }
}

/// Asks whether an attempt was committed, and prevents it from being committed later. `None` if that is still unknown, or if the answer did
/// not wait for a standby although it must.
pub(super) async fn ask(link: &Link, attempt: Uuid, shared: &Shared) -> Option<bool> {
    link.take_warning();
    let (statements, settings) = (&link.statements, &link.settings_of);
    let asking = async {
        let parameters: [&(dyn ToSql + Sync); 1] = [&attempt];
        let answer = link.client.query_one(&statements.ask, &parameters);
        if !shared.settings.require_sync {
            return answer.await.map(|row| (row, 1));
        }
        let parameters: [&(dyn ToSql + Sync); 1] = [settings];
        let waited = link.client.execute(&statements.waited, &parameters);
        tokio::try_join!(biased; answer, waited)
    };
    let answer = tokio::select! {
        biased;
        answer = timeout(READ, asking) => answer,
        () = shared.connector.fence.passed(&link.origin) => return None,
    };
    match answer {
        Ok(Ok((row, waited))) if waited > 0 && !link.take_warning() => row.try_get(0).ok(),
        _ => None,
    }
}

/// The fault of a batch that a bug left undecided.
pub(super) fn bug() -> String {
    undecided().0
}
