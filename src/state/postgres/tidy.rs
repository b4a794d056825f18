//! Housekeeping: expired rows are removed in small steps, without an index on times.
//!
//! A cursor visits each table in the order of its keys. Each gateway reads twice as many rows as it wrote, and some every second. A row that
//! a transaction holds is left for the next round. Deliberately not here: when a row expires (`rules/expiry.rs`).

use super::{
    commands::{self, Command},
    connect::{Link, text},
    shared::Shared,
};
use crate::{
    Unavailable,
    lock::lock,
    rules::Table,
    stored::seconds,
    sweep::{Cursor, SESSION_LASTS, Step},
};
use portvakt_base::clock::Timestamp;
use std::sync::atomic::Ordering;
use tokio_postgres::{Error, Statement};
use uuid::Uuid;

/// The maximum number of rows of a table in one step of a full sweep.
pub(super) const STEP: u32 = 1_000;

/// The tables without keys of their own: rows that only the last minutes need, and proofs, without which a gateway does not come back.
const SHORT_LIVED: &str = "DELETE FROM attempt WHERE at < now() - interval '10 minutes';
    DELETE FROM change WHERE at < now() - interval '10 minutes';
    DELETE FROM heartbeat WHERE at < now() - interval '1 day'";

/// Removes the rows of gateways' own bookkeeping.
pub(super) async fn remove_short_lived(link: &Link) -> Result<(), Error> {
    link.client.batch_execute(SHORT_LIVED).await
}

/// Stores the latest time, if the database does not have it. Rows are removed only by a time that the database has.
pub(super) async fn keep_clock(link: &Link, shared: &Shared) -> Result<(), Error> {
    let latest = shared.process.clock.latest().unix();
    if latest <= shared.kept_latest.load(Ordering::Relaxed) {
        return Ok(());
    }
    let command = clock_command(link, shared, latest);
    commands::send(link, vec![command])
        .await
        .map_err(|(error, _)| error)?;
    shared.kept_latest.fetch_max(latest, Ordering::Relaxed);
    Ok(())
}

/// The command that stores the latest time, unless an operator accepted an earlier one meanwhile.
pub(super) fn clock_command<'l>(link: &'l Link, shared: &Shared, latest: u64) -> Command<'l> {
    let accepted = shared.accepted.load(Ordering::Relaxed);
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let parameters = [number(latest), number(accepted)];
    Command::new(&link.statements.keep_clock, parameters)
}

/// Starts the next step over one table at its beginning.
pub(super) fn begin(shared: &Shared, table: Table) {
    *lock(&shared.cursors).of(table) = Cursor::default();
}

/// One step over one table, as of `now`.
pub(super) async fn step(
    link: &Link,
    shared: &Shared,
    table: Table,
    now: Timestamp,
    rows: u32,
) -> Result<Step, Unavailable> {
    let mut cursor = *lock(&shared.cursors).of(table);
    let step = advance(link, table, &mut cursor, now, rows)
        .await
        .map_err(|error| Unavailable(format!("housekeeping: {}", text(&error))))?;
    if step.around {
        lock(&shared.counters).rows.take(table, &cursor);
        cursor = Cursor::default();
    }
    *lock(&shared.cursors).of(table) = cursor;
    Ok(step)
}

async fn advance(
    link: &Link,
    table: Table,
    cursor: &mut Cursor<Uuid>,
    now: Timestamp,
    rows: u32,
) -> Result<Step, Error> {
    // No row has a time before 1970.
    let through = match table {
        Table::Psu => i64::try_from(now.unix().saturating_sub(SESSION_LASTS)).unwrap_or(-1),
        _ => table.removed_through(now).map_or(-1, seconds),
    };
    let row = link
        .client
        .query_one(
            statement(link, table),
            &[&cursor.position, &through, &i64::from(rows)],
        )
        .await?;
    let number = |column: usize| {
        let number: Result<i64, Error> = row.try_get(column);
        number.map(|number| u64::try_from(number).unwrap_or(0))
    };
    let (found, counted) = (number(0)?, number(1)?);
    let last: Option<Uuid> = row.try_get(2)?;
    let next = last.and_then(|last| last.as_u128().checked_add(1));
    let removed = if table == Table::Psu { 0 } else { counted };
    if table == Table::Psu {
        cursor.sessions += counted;
    }
    cursor.kept += found.saturating_sub(removed);
    cursor.position = Uuid::from_u128(next.unwrap_or(0));
    Ok(Step {
        removed,
        around: found < u64::from(rows) || next.is_none(),
    })
}

fn statement(link: &Link, table: Table) -> &Statement {
    let statements = &link.statements;
    match table {
        Table::Quota => &statements.step_quota,
        Table::List => &statements.step_page,
        Table::Request => &statements.step_request,
        Table::Token => &statements.step_token,
        Table::Block => &statements.step_block,
        Table::Psu => &statements.count_psus,
    }
}
