//! The stream of events in SQL (CTL-3), its old events, and the consents that have ended.

use super::shared::Shared;
use crate::{
    CustomerPseudonym, Event, EventKind, PsuHash,
    outbox::Outbox,
    rules::{EXPIRED_AT_ONCE, Expiry, ended_through},
    stored::{seconds, timestamp},
};
use rusqlite::{Connection, Result, Row, types::Type};

/// The most events that are removed at once.
const REMOVED: u32 = 500;

/// Adds events to the stream. The only writer of the file numbers them, so they are read in the order of their transactions.
pub(super) fn add(sql: &Connection, events: &[Event]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let [_, mut last, _] = position(sql)?;
    let mut insert = sql.prepare_cached(
        "INSERT INTO event (sequence, at, kind, tpp, customer, corporate, accounts, until, detail)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for event in events {
        last += 1;
        insert.execute((
            last,
            seconds(event.at),
            event.kind.name(),
            &event.tpp,
            event.customer.as_ref().map(CustomerPseudonym::as_bytes),
            event.corporate,
            event.accounts.and_then(|count| i64::try_from(count).ok()),
            event.until.map(seconds),
            &event.detail,
        ))?;
    }
    sql.prepare_cached("UPDATE outbox SET last = ?1")?
        .execute([last])?;
    Ok(())
}

/// The stream after a number. Call this in a transaction.
pub(super) fn read(sql: &Connection, after: u64, most: u32) -> Result<Outbox> {
    let [stream, last, pruned] = position(sql)?.map(|number| u64::try_from(number).unwrap_or(0));
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let events = sql
        .prepare_cached(
            "SELECT sequence, at, kind, tpp, customer, corporate, accounts, until, detail
             FROM event WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
        )?
        .query_map((after, most), event)?
        .collect::<Result<Vec<_>>>()?;
    Ok(Outbox {
        stream,
        last,
        pruned,
        events,
    })
}

/// The id of the stream, the last number, and the last that was removed.
fn position(sql: &Connection) -> Result<[i64; 3]> {
    sql.prepare_cached("SELECT stream, last, pruned FROM outbox")?
        .query_row([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))
}

fn event(row: &Row<'_>) -> Result<Event> {
    let kind: String = row.get(2)?;
    let wrong = || rusqlite::Error::InvalidColumnType(2, "event.kind".to_owned(), Type::Text);
    let number = |column: usize| {
        let number: Option<i64> = row.get(column)?;
        Ok::<_, rusqlite::Error>(number.and_then(|number| u64::try_from(number).ok()))
    };
    let customer: Option<[u8; 32]> = row.get(4)?;
    let until: Option<i64> = row.get(7)?;
    Ok(Event {
        sequence: number(0)?.unwrap_or(0),
        at: timestamp(row.get(1)?),
        kind: EventKind::from_name(&kind).ok_or_else(wrong)?,
        tpp: row.get(3)?,
        customer: customer.map(CustomerPseudonym::from_bytes),
        corporate: row.get(5)?,
        accounts: number(6)?,
        until: until.map(timestamp),
        detail: row.get(8)?,
    })
}

/// Some PSUs whose consents have ended without a note of it; `None` if there is none.
pub(super) fn ended(sql: &Connection, shared: &Shared) -> Result<Option<Expiry>> {
    let now = shared.process.housekeeping_time();
    let Some(through) = now.and_then(ended_through) else {
        return Ok(None);
    };
    let psus = sql
        .prepare_cached(
            "SELECT psu FROM psu WHERE ended IS NOT last_sca AND last_sca > 0 AND last_sca <= ?1
             ORDER BY last_sca LIMIT ?2",
        )?
        .query_map((seconds(through), EXPIRED_AT_ONCE), |row| {
            row.get(0).map(PsuHash::from_bytes)
        })?
        .collect::<Result<Vec<_>>>()?;
    Ok((!psus.is_empty()).then_some(Expiry { psus, through }))
}

/// Removes some of the events that are too old or too many, the oldest first.
pub(super) fn prune(sql: &Connection, shared: &Shared) -> Result<()> {
    let Some(now) = shared.process.housekeeping_time() else {
        return Ok(());
    };
    let [_, last, pruned] = position(sql)?;
    let last = u64::try_from(last).unwrap_or(0);
    let (through, number) = shared.process.events_removed_through(now, last);
    let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let through: Option<i64> = sql
        .prepare_cached(
            "SELECT coalesce(min(sequence) FILTER (WHERE NOT is_due) - 1, max(sequence)) FROM
             (SELECT sequence, (sequence <= ?1 OR at <= ?2) AS is_due FROM event ORDER BY sequence LIMIT ?3)",
        )?
        .query_row((integer(number), integer(through), REMOVED), |row| {
            row.get(0)
        })?;
    let Some(through) = through.filter(|through| *through > pruned) else {
        return Ok(());
    };
    sql.prepare_cached("DELETE FROM event WHERE sequence <= ?1")?
        .execute([through])?;
    sql.prepare_cached("UPDATE outbox SET pruned = ?1")?
        .execute([through])?;
    Ok(())
}
