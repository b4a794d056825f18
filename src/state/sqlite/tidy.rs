//! Housekeeping: what expired is removed in small steps, without an index on times.
//!
//! A cursor goes around each table in the order of its keys, within the transactions of what is written: it looks at twice
//! as many rows as were written, so that no table can grow beyond twice what lives in it, and takes the rows that expired
//! with it. Every second it is sent on as well. Rows stay a minute longer than they have to, for clocks that differ,
//! request ids three, and spent tokens a day, for clocks that step back.
//! Deliberately not here: PSUs and their consents, which do not expire (a PSU-ID stays bound: SCA-19).

use super::{lock, seconds, writer::Change};
use crate::clock::Timestamp;
use crate::state::{
    calls::WINDOW,
    replay::{DAY, STAYS},
};
use std::sync::atomic::Ordering;

/// The most rows of each table that one step of a whole sweep looks at.
pub(super) const STEP: u32 = 500;

/// The least rows of each table that a step looks at: fewer are not worth its queries.
const LEAST: u32 = 64;

/// Rows of each table that are looked at every second in any case.
const RESTING: u32 = 200;

/// How long a row stays beyond its end, in seconds.
const GRACE: u64 = 60;

/// The tables, and which of their rows have expired at `?2`.
const TABLES: [(&str, &str); 5] = [
    (
        "quota",
        "ifnull(a, 0) <= ?2 - 86400 AND ifnull(b, 0) <= ?2 - 86400
         AND ifnull(c, 0) <= ?2 - 86400 AND ifnull(d, 0) <= ?2 - 86400",
    ),
    ("page", "call <= ?2 - 900"),
    // STAYS, of which GRACE is in ?2.
    ("request", "until < ?2 - 120"),
    // SCA-12: no clock that stepped back by 24 hours or less makes a token valid again.
    ("token", "until < ?2 - 86400"),
    // Only counted.
    ("psu", "0"),
];

/// Where the cursors stand.
#[derive(Default)]
pub(super) struct Sweep {
    cursors: [Cursor; TABLES.len()],
    /// Rows of each table that are due to be looked at.
    due: u32,
}

#[derive(Default)]
struct Cursor {
    /// The last key that was looked at.
    after: Vec<u8>,
    /// Rows that were kept since the table's start.
    kept: u64,
}

/// A step over one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Rows that were removed.
    pub(super) removed: u64,
    /// Whether it came to the end of the table.
    pub(super) around: bool,
}

/// The tables that are swept.
pub(super) fn tables() -> std::ops::Range<usize> {
    0..TABLES.len()
}

/// The next step over one table begins at its start.
pub(super) fn begin(change: &Change<'_>, table: usize) {
    if let Some(cursor) = lock(&change.shared.sweep).cursors.get_mut(table) {
        *cursor = Cursor::default();
    }
}

/// A second has gone by.
pub(super) fn send_on(change: &Change<'_>) {
    lock(&change.shared.sweep).due += RESTING;
}

/// After so many changes: looks at what is due, by the time that callers last gave.
pub(super) fn follow(change: &Change<'_>, changes: usize) -> rusqlite::Result<()> {
    let now = change.shared.asked.load(Ordering::Relaxed);
    let rows = {
        let mut sweep = lock(&change.shared.sweep);
        let changes = u32::try_from(changes).unwrap_or(u32::MAX);
        sweep.due = sweep.due.saturating_add(changes.saturating_mul(2));
        if sweep.due < LEAST {
            return Ok(());
        }
        std::mem::take(&mut sweep.due)
    };
    // Nobody said yet what time it is, or nobody knows.
    if now == 0 || change.shared.clock.stepped_back() {
        return Ok(());
    }
    tables().try_for_each(|table| step(change, table, Timestamp::from_unix(now), rows).map(drop))
}

/// One step over one table, as of `now`.
pub(super) fn step(
    change: &Change<'_>,
    table: usize,
    now: Timestamp,
    rows: u32,
) -> rusqlite::Result<Step> {
    const {
        assert!(
            WINDOW == 86_400 && DAY == 86_400 && super::claim::PAGES == 900 && STAYS == GRACE + 120
        )
    };
    let by = Timestamp::from_unix(now.unix().saturating_sub(GRACE));
    let mut sweep = lock(&change.shared.sweep);
    let (Some(named), Some(cursor)) = (TABLES.get(table), sweep.cursors.get_mut(table)) else {
        return Ok(Step {
            removed: 0,
            around: true,
        });
    };
    let (removed, around) = advance(change, *named, cursor, by, rows)?;
    if around {
        let kept = std::mem::take(&mut cursor.kept);
        let rows = &mut lock(&change.shared.counters).rows;
        let count = match table {
            0 => &mut rows.quotas,
            1 => &mut rows.pages,
            2 => &mut rows.requests,
            3 => &mut rows.tokens,
            _ => &mut rows.psus,
        };
        *count = Some(kept);
    }
    Ok(Step { removed, around })
}

fn advance(
    change: &Change<'_>,
    (table, expired): (&str, &str),
    cursor: &mut Cursor,
    now: Timestamp,
    rows: u32,
) -> rusqlite::Result<(u64, bool)> {
    let key = if table == "psu" { "psu" } else { "key" };
    let seen = format!(
        "SELECT max({key}), count(*), total(expired) FROM
         (SELECT {key}, ({expired}) AS expired FROM {table} WHERE {key} > ?1 ORDER BY {key} LIMIT ?3)"
    );
    let (last, found, due): (Option<Vec<u8>>, i64, f64) = change
        .sql
        .prepare_cached(&seen)?
        .query_row((&cursor.after, seconds(now), rows), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let found = u64::try_from(found).unwrap_or(0);
    let around = found < u64::from(rows);
    let mut removed = 0;
    if let Some(last) = last {
        if due > 0.0 {
            let remove =
                format!("DELETE FROM {table} WHERE {key} > ?1 AND {key} <= ?3 AND ({expired})");
            let gone = change.sql.prepare_cached(&remove)?.execute((
                &cursor.after,
                seconds(now),
                &last,
            ))?;
            removed = u64::try_from(gone).unwrap_or(0);
        }
        cursor.after = last;
    }
    cursor.kept += found.saturating_sub(removed);
    if around {
        cursor.after.clear();
    }
    Ok((removed, around))
}
