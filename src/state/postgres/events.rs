//! The stream of events in SQL (CTL-3), its old events, and the consents that have ended.
//!
//! Invariant: a transaction with events locks the row of `outbox` before it numbers them, and until its commit. So events become visible in
//! the order of their numbers, and a reader that has seen one has seen all before it. Transactions without events do not touch the row.

use super::{
    commands::{Command, Parameter},
    connect::{Link, text},
    parted::{RowFault, hash},
    shared::Shared,
    statements::Statements,
};
use crate::{
    CustomerPseudonym, Event, EventKind, Unavailable,
    outbox::Outbox,
    rules::{EXPIRED_AT_ONCE, Expiry, ended_through},
    stored::{seconds, timestamp},
};
use portvakt_base::clock::Timestamp;
use tokio_postgres::{Error, Row, types::ToSql};
use uuid::Uuid;

/// The most events that are removed at once.
const REMOVED: i64 = 1_000;

/// The command that adds events to the stream; `None` if there is none.
pub(super) fn add<'s>(s: &'s Statements, events: &[Event]) -> Option<Command<'s>> {
    fn column<T>(events: &[Event], value: impl Fn(&Event) -> T) -> Parameter
    where
        T: ToSql + Sync + Send + 'static,
    {
        let values: Vec<T> = events.iter().map(value).collect();
        Box::new(values)
    }
    if events.is_empty() {
        return None;
    }
    let columns = vec![
        column(events, |event| seconds(event.at)),
        column(events, |event| event.kind.name()),
        column(events, |event| event.tpp.clone()),
        column(events, |event| {
            event.customer.map(|customer| customer.as_bytes().to_vec())
        }),
        column(events, |event| event.corporate),
        column(events, |event| {
            event.accounts.and_then(|count| i64::try_from(count).ok())
        }),
        column(events, |event| event.until.map(seconds)),
        column(events, |event| event.detail.clone()),
    ];
    Some(Command::of(&s.add_events, columns))
}

/// The stream of a result, which has at least one row.
pub(super) fn read(rows: &[Row]) -> Result<Outbox, RowFault> {
    let first = rows.first().ok_or(RowFault::Event)?;
    let number = |column: usize| {
        let number: i64 = first.try_get(column)?;
        Ok::<_, Error>(u64::try_from(number).unwrap_or(0))
    };
    let mut events = Vec::new();
    for row in rows {
        events.extend(event(row)?);
    }
    Ok(Outbox {
        stream: number(0)?,
        last: number(1)?,
        pruned: number(2)?,
        events,
    })
}

/// The event of a row; `None` if the stream has none.
fn event(row: &Row) -> Result<Option<Event>, RowFault> {
    let Some(sequence) = row.try_get::<_, Option<i64>>(3)? else {
        return Ok(None);
    };
    let customer: Option<&[u8]> = row.try_get(7)?;
    let customer = customer.map(|bytes| <[u8; 32]>::try_from(bytes).map_err(|_| RowFault::Event));
    let accounts: Option<i64> = row.try_get(9)?;
    let until: Option<i64> = row.try_get(10)?;
    Ok(Some(Event {
        sequence: u64::try_from(sequence).map_err(|_| RowFault::Event)?,
        at: timestamp(row.try_get(4)?),
        kind: EventKind::from_name(row.try_get(5)?).ok_or(RowFault::Event)?,
        tpp: row.try_get(6)?,
        customer: customer.transpose()?.map(CustomerPseudonym::from_bytes),
        corporate: row.try_get(8)?,
        accounts: accounts.and_then(|count| u64::try_from(count).ok()),
        until: until.map(timestamp),
        detail: row.try_get(11)?,
    }))
}

/// Some PSUs whose consents have ended without a note of it; `None` if there is none.
///
/// # Errors
/// They cannot be read.
pub(super) async fn ended(link: &Link, now: Timestamp) -> Result<Option<Expiry>, Unavailable> {
    let Some(through) = ended_through(now) else {
        return Ok(None);
    };
    let (latest, most) = (seconds(through), i64::from(EXPIRED_AT_ONCE));
    let parameters: [&(dyn ToSql + Sync); 2] = [&latest, &most];
    let found = link.client.query(&link.statements.ended, &parameters);
    let found = found.await.map_err(|error| fault(&error))?;
    let psus = found.iter().map(|row| row.try_get::<_, Uuid>(0).map(hash));
    let psus: Vec<_> = psus
        .collect::<Result<_, Error>>()
        .map_err(|error| fault(&error))?;
    Ok((!psus.is_empty()).then_some(Expiry { psus, through }))
}

/// Removes some of the events that are too old or too many, the oldest first.
///
/// # Errors
/// They cannot be removed.
pub(super) async fn prune(link: &Link, shared: &Shared, now: Timestamp) -> Result<(), Unavailable> {
    let (through, _) = shared.process.events_removed_through(now, 0);
    let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (_, most) = shared.process.events_kept;
    let parameters: [&(dyn ToSql + Sync); 3] = [&integer(through), &integer(most), &REMOVED];
    let pruning = link
        .client
        .execute(&link.statements.prune_events, &parameters);
    pruning.await.map(drop).map_err(|error| fault(&error))
}

fn fault(error: &Error) -> Unavailable {
    Unavailable(format!("events: {}", text(error)))
}
