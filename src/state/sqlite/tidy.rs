//! Housekeeping: expired rows are removed in small steps, without an index on times.
//!
//! A cursor visits each table in the order of its keys, within the transactions of the changes: it reads twice as many rows as were
//! written, so that no table can grow beyond twice its live rows, and removes the expired ones. It also advances every second. Deliberately
//! not here: when a row expires (`rules/expiry.rs`).

use super::shared::Shared;
use crate::{
    lock::lock,
    rules::Table,
    stored::seconds,
    sweep::{Cursor, SESSION_LASTS, Step},
};
use portvakt_base::clock::Timestamp;
use rusqlite::Connection;

/// The maximum number of rows of each table in one step of a full sweep.
pub(super) const STEP: u32 = 500;

/// The minimum number of rows of each table in a step: fewer are not worth the queries.
const LEAST: u32 = 64;

/// The number of rows of each table that are visited every second in any case.
const RESTING: u32 = 200;

/// The name of a table, its key, and the SQL condition for removal, with the time as `?2`.
const fn in_sql(table: Table) -> (&'static str, &'static str, &'static str) {
    match table {
        Table::Quota => (
            "quota",
            "key",
            "ifnull(a, 0) <= ?2 AND ifnull(b, 0) <= ?2 AND ifnull(c, 0) <= ?2 AND ifnull(d, 0) <= ?2",
        ),
        Table::List => ("page", "key", "call <= ?2"),
        Table::Request => ("request", "key", "until <= ?2"),
        Table::Token => ("token", "key", "until <= ?2"),
        // A block without an end has none that is due.
        Table::Block => ("block", "key", "ifnull(until <= ?2, 0)"),
        Table::Psu => ("psu", "psu", "0"),
    }
}

/// Starts the next step over one table at its beginning.
pub(super) fn begin(shared: &Shared, table: Table) {
    *lock(&shared.cursors).of(table) = Cursor::default();
}

/// Makes the rows of one second due.
pub(super) fn send_on(shared: &Shared) {
    *lock(&shared.due_rows) += RESTING;
}

/// Visits the due rows after this number of changes, by the last time of the callers.
pub(super) fn follow(sql: &Connection, shared: &Shared, changes: usize) -> rusqlite::Result<()> {
    let rows = {
        let mut due = lock(&shared.due_rows);
        let changes = u32::try_from(changes).unwrap_or(u32::MAX);
        *due = due.saturating_add(changes.saturating_mul(2));
        if *due < LEAST {
            return Ok(());
        }
        std::mem::take(&mut *due)
    };
    let Some(now) = shared.process.housekeeping_time() else {
        return Ok(());
    };
    Table::ALL
        .into_iter()
        .try_for_each(|table| step(sql, shared, table, now, rows).map(drop))
}

/// One step over one table, as of `now`.
pub(super) fn step(
    sql: &Connection,
    shared: &Shared,
    table: Table,
    now: Timestamp,
    rows: u32,
) -> rusqlite::Result<Step> {
    let mut cursors = lock(&shared.cursors);
    let cursor = cursors.of(table);
    let step = advance(sql, table, cursor, now, rows)?;
    if step.around {
        lock(&shared.counters).rows.take(table, cursor);
        *cursor = Cursor::default();
    }
    Ok(step)
}

fn advance(
    sql: &Connection,
    table: Table,
    cursor: &mut Cursor<Vec<u8>>,
    now: Timestamp,
    rows: u32,
) -> rusqlite::Result<Step> {
    let (name, key, expired) = in_sql(table);
    // No row has a time before 1970.
    let through = table.removed_through(now).map_or(-1, seconds);
    let looked_at = format!(
        "SELECT max({key}), count(*), total(expired) FROM
         (SELECT {key}, ({expired}) AS expired FROM {name} WHERE {key} > ?1 ORDER BY {key} LIMIT ?3)"
    );
    let (last, found, due): (Option<Vec<u8>>, i64, f64) = sql
        .prepare_cached(&looked_at)?
        .query_row((&cursor.position, through, rows), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let found = u64::try_from(found).unwrap_or(0);
    let around = found < u64::from(rows);
    let mut removed = 0;
    if let Some(last) = last {
        if due > 0.0 {
            let remove =
                format!("DELETE FROM {name} WHERE {key} > ?1 AND {key} <= ?3 AND ({expired})");
            let gone = sql
                .prepare_cached(&remove)?
                .execute((&cursor.position, through, &last))?;
            removed = u64::try_from(gone).unwrap_or(0);
        }
        if table == Table::Psu {
            cursor.sessions += sessions(sql, &cursor.position, &last, now)?;
        }
        cursor.position = last;
    }
    cursor.kept += found.saturating_sub(removed);
    Ok(Step { removed, around })
}

/// The valid sessions of the PSUs after one key and through another; for the metric, since admission decides whether a session is valid.
fn sessions(
    sql: &Connection,
    after: &[u8],
    through: &[u8],
    now: Timestamp,
) -> rusqlite::Result<u64> {
    let since = Timestamp::from_unix(now.unix().saturating_sub(SESSION_LASTS));
    let found: i64 = sql
        .prepare_cached("SELECT count(*) FROM psu WHERE psu > ?1 AND psu <= ?2 AND completed > ?3")?
        .query_row((after, through, seconds(since)), |row| row.get(0))?;
    Ok(u64::try_from(found).unwrap_or(0))
}
