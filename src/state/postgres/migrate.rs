//! The schema, and the key that belongs to the database.
//!
//! Invariant: an existing database with another key or a later schema is not changed. Two gateways may start at once: the second waits for
//! the first.

use super::connect::{SCHEMA, SCHEMA_ROW, SCHEMAS_BEFORE, Session, text};
use crate::{
    OpenFault, StateSettings,
    key_chain::KeyChain,
    keys::Keys,
    level,
    settings::{EarlierSchema, KEY_ROW, LEVEL_ROW, RECORDED},
};
use portvakt_base::private_file;
use std::{path::Path, time::Duration};
use tokio::time::{sleep, timeout};
use tokio_postgres::{Error, GenericClient, Transaction, types::ToSql};

/// The time for each step. The commit of a new schema waits for the standby.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time for a migration, which may rewrite large tables: that of a start in our unit of systemd.
const MIGRATION: Duration = Duration::from_mins(15);

/// The time in which the session of a gateway that has ended must end too, and the interval of looking.
const ENDING: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);

/// Held while the schema is made; with the number of the table `meta`, by gateways and by `portvakt state copy`. The bytes are "Pvkt".
pub(super) const LOCK: i64 = 0x5076_6b74;

/// Held by gateways beside [`LOCK`], with the same number, by every version that notices a rotation of the hash key.
pub(super) const NOTICES_ROTATION: i64 = LOCK + 1;

/// The tables of schema 1, and the steps from there. A step that was released never changes.
const TABLES: [&str; 5] = [
    include_str!("schema.sql"),
    BLOCKS,
    ORIGIN,
    CUSTOMERS_AND_MOVES,
    EVENTS,
];

/// CTL-2: the part of the step to schema 2 that makes the table of blocks.
const BLOCKS: &str = include_str!("blocks.sql");

/// SCA-17, SCA-22: the step from 2 to 3, which records who confirmed a context.
const ORIGIN: &str = include_str!("origin.sql");

/// CTL-1, CTL-4: the step from 3 to 4, for the keys of the bank's customers, the days of last use, and moves of TPPs.
const CUSTOMERS_AND_MOVES: &str = include_str!("customers_and_moves.sql");

/// CTL-3: the step from 4 to 5, for the stream of events and the customers in them.
const EVENTS: &str = include_str!("events.sql");

/// Makes the tables where there are none, of the newest level or of the one with the check value `level`, and checks schema and key. Returns
/// the keys of the database's level.
pub(super) async fn prepare(
    session: &mut Session,
    key: &Path,
    level: Option<&str>,
    earlier: EarlierSchema,
) -> Result<Keys, OpenFault> {
    let (keys, earlier) = in_time(make(session, key, level, earlier)).await?;
    if let Some((transaction, done)) = earlier {
        let migrated = async {
            let migrated = migrate(transaction, done).await;
            migrated.map_err(|error| OpenFault::Postgres(text(&error)))
        };
        within(MIGRATION, migrated).await?;
    }
    Ok(keys)
}

/// Refuses a database without tables.
pub(super) async fn must_exist(session: &mut Session) -> Result<(), OpenFault> {
    in_time(async {
        let fault = |error: Error| OpenFault::Postgres(text(&error));
        let transaction = session.client.transaction().await.map_err(fault)?;
        let found = meta(&transaction).await.map_err(fault)?;
        found.map(drop).ok_or(OpenFault::PostgresEmpty)
    })
    .await
}

/// Tries whether [`prepare`] would succeed. Changes nothing: the transaction ends without a commit.
pub(super) async fn check(session: &mut Session, key: &Path) -> Result<(), OpenFault> {
    in_time(try_make(session, key)).await
}

/// Records the environment and the key for customers where none are, or only judges them, and refuses others (CRT-9, CTL-3).
pub(super) async fn keep_recorded(
    session: &mut Session,
    settings: &StateSettings,
    writes: bool,
) -> Result<(), OpenFault> {
    in_time(async {
        let fault = |error: Error| OpenFault::Postgres(text(&error));
        let transaction = session.client.transaction().await.map_err(fault)?;
        if meta(&transaction).await.map_err(fault)?.is_none() {
            return Ok(());
        }
        if writes {
            // Of two gateways that start at once, the second compares with what the first records.
            let lock = "SELECT pg_advisory_xact_lock($1)";
            transaction.query(lock, &[&LOCK]).await.map_err(fault)?;
        }
        for row in RECORDED {
            let select = "SELECT value FROM meta WHERE name = $1";
            let found = transaction.query_opt(select, &[&row]).await;
            let found = found.map_err(fault)?.map(|row| row.try_get(0));
            let own = settings.judge_recorded(row, found.transpose().map_err(fault)?)?;
            let Some(own) = own.filter(|_| writes) else {
                continue;
            };
            // An earlier version, which takes no lock, may record it at the same time: the next start compares.
            let record = "INSERT INTO meta VALUES ($1, $2) ON CONFLICT DO NOTHING";
            let parameters: [&(dyn ToSql + Sync); 2] = [&row, &own];
            let recording = transaction.execute(record, &parameters);
            recording.await.map_err(fault)?;
        }
        transaction.commit().await.map_err(fault)
    })
    .await
}

/// A step of the start, given up when a server that was reached no longer answers.
pub(super) async fn in_time<T>(
    step: impl Future<Output = Result<T, OpenFault>>,
) -> Result<T, OpenFault> {
    within(PATIENCE, step).await
}

async fn within<T>(
    limit: Duration,
    step: impl Future<Output = Result<T, OpenFault>>,
) -> Result<T, OpenFault> {
    let late = || format!("no answer for {} s", limit.as_secs());
    let done = timeout(limit, step).await;
    done.unwrap_or_else(|_| Err(OpenFault::Postgres(late())))
}

/// Makes the tables where there are none. Returns the keys and, where the schema is an earlier one that nobody uses, its lock and the number
/// of its steps.
async fn make<'s>(
    session: &'s mut Session,
    key: &Path,
    level: Option<&str>,
    earlier: EarlierSchema,
) -> Result<(Keys, Option<(Transaction<'s>, usize)>), OpenFault> {
    let fault = |error: Error| OpenFault::Postgres(text(&error));
    let transaction = session.client.transaction().await.map_err(fault)?;
    transaction
        .query("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await
        .map_err(fault)?;
    let found = meta(&transaction).await.map_err(fault)?;
    let Some(found) = found else {
        let keys = key_of_a_new_database(key, level)?;
        for step in TABLES {
            transaction.batch_execute(step).await.map_err(fault)?;
        }
        let schema = (SCHEMA_ROW, SCHEMA.to_owned());
        for (name, value) in std::iter::once(schema).chain(keys.records()) {
            transaction
                .execute("INSERT INTO meta VALUES ($1, $2)", &[&name, &value])
                .await
                .map_err(fault)?;
        }
        transaction.commit().await.map_err(fault)?;
        return Ok((keys, None));
    };
    let Some(done) = steps_done(&found.schema) else {
        return Err(OpenFault::PostgresSchema {
            found: found.schema,
            known: SCHEMA,
        });
    };
    let keys = found.keys(key)?.0;
    if found.schema == SCHEMA {
        return Ok((keys, None));
    }
    let is_refused = earlier == EarlierSchema::Refused;
    if is_refused || !is_unused(&transaction).await.map_err(fault)? {
        return Err(OpenFault::PostgresEarlier);
    }
    Ok((keys, Some((transaction, done))))
}

/// Whether no gateway uses the database: each holds this lock (`follow`). The session of one that ended a moment ago may still be there.
async fn is_unused(transaction: &Transaction<'_>) -> Result<bool, Error> {
    let take = format!("SELECT pg_try_advisory_xact_lock({LOCK}, 'meta'::regclass::oid::integer)");
    let unused = async {
        while !transaction.query_one(&take, &[]).await?.try_get(0)? {
            sleep(LOOK).await;
        }
        Ok(())
    };
    let unused = timeout(ENDING, unused).await;
    unused.map_or(Ok(false), |taken: Result<(), Error>| taken.map(|()| true))
}

/// The number of steps that made a schema; `None` if this version does not know the schema.
fn steps_done(schema: &str) -> Option<usize> {
    let mut known = SCHEMAS_BEFORE.into_iter().chain([SCHEMA]);
    known.position(|known| known == schema).map(|at| at + 1)
}

/// Migrates an earlier schema, which took this many steps, to the latest one.
async fn migrate(transaction: Transaction<'_>, done: usize) -> Result<(), Error> {
    for step in TABLES.into_iter().skip(done) {
        transaction.batch_execute(step).await?;
    }
    let set = "UPDATE meta SET value = $2 WHERE name = $1";
    transaction.execute(set, &[&SCHEMA_ROW, &SCHEMA]).await?;
    transaction.commit().await
}

async fn try_make(session: &mut Session, key: &Path) -> Result<(), OpenFault> {
    let fault = |error: Error| OpenFault::Postgres(text(&error));
    let transaction = session.client.transaction().await.map_err(fault)?;
    let found = meta(&transaction).await.map_err(fault)?;
    let Some(found) = found else {
        return match KeyChain::read(key)? {
            Some(_) => Ok(()),
            None => private_file::try_make_new(key)
                .map_err(|error| OpenFault::Folder(private_file::folder_of(key).into(), error)),
        };
    };
    if steps_done(&found.schema).is_none() {
        return Err(OpenFault::PostgresSchema {
            found: found.schema,
            known: SCHEMA,
        });
    }
    found.keys(key).map(drop)
}

/// What the database says of itself. A row that is not there is empty.
pub(super) struct Meta {
    schema: String,
    key_check: String,
    level: Option<String>,
}

impl Meta {
    /// The keys of the database's level, and the number of keys in the file.
    pub(super) fn keys(&self, key: &Path) -> Result<(Keys, usize), OpenFault> {
        let chain = KeyChain::read(key)?;
        let chain = chain.ok_or_else(|| OpenFault::PostgresKeyMissing(key.to_owned()))?;
        if let Some(keys) = chain.with_check(&self.key_check) {
            return Ok((keys, chain.count()));
        }
        let other = OpenFault::PostgresKeyForeign(key.to_owned());
        Err(level::foreign(key, self.level.clone(), other))
    }
}

/// What the database says of itself; `None` if it has no tables of Portvakt.
pub(super) async fn meta(transaction: &impl GenericClient) -> Result<Option<Meta>, Error> {
    let exists: bool = transaction
        .query_one("SELECT to_regclass('meta') IS NOT NULL", &[])
        .await?
        .try_get(0)?;
    if !exists {
        return Ok(None);
    }
    let value = async |name: &str| -> Result<Option<String>, Error> {
        let row = transaction
            .query_opt("SELECT value FROM meta WHERE name = $1", &[&name])
            .await?;
        row.map(|row| row.try_get(0)).transpose()
    };
    Ok(Some(Meta {
        schema: value(SCHEMA_ROW).await?.unwrap_or_default(),
        key_check: value(KEY_ROW).await?.unwrap_or_default(),
        level: value(LEVEL_ROW).await?,
    }))
}

fn key_of_a_new_database(path: &Path, level: Option<&str>) -> Result<Keys, OpenFault> {
    let chain = match KeyChain::read(path)? {
        Some(chain) => chain,
        None => {
            private_file::make_folder_of(path)
                .map_err(|error| OpenFault::Folder(private_file::folder_of(path).into(), error))?;
            KeyChain::make(path)?
        }
    };
    match level {
        None => Ok(chain.newest()),
        Some(check) => {
            let keys = chain.with_check(check);
            keys.ok_or_else(|| OpenFault::PostgresKeyForeign(path.to_owned()))
        }
    }
}
