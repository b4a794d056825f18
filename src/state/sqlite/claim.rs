//! What a request takes, and how it is given back.

use super::{seconds, timestamp, writer::Change};
use crate::{
    clock::Timestamp,
    state::{
        Hash, Left, Page,
        calls::Calls,
        verbs::{QuotaAsked, RequestAsked},
    },
};
use rusqlite::OptionalExtension;

/// How long later pages are counted with the call that they continue, in seconds (QUO-13).
pub(in crate::state) const PAGES: u64 = 15 * 60;

/// How far ahead of its call a list may be kept, in seconds: four calls of one second are one to three. Further ahead, the
/// clock stepped back.
const CLOSE: u64 = 60;

/// What has to be durable of what a request needs.
pub(in crate::state) struct Claimed {
    pub(in crate::state) request: Option<RequestAsked>,
    pub(in crate::state) quota: Option<QuotaAsked>,
    pub(in crate::state) now: Timestamp,
}

/// What came of it.
pub(in crate::state) enum Started {
    Held {
        call: Option<Call>,
        left: Option<Left>,
    },
    Replayed,
    NextAt(Timestamp),
}

/// What was taken of a quota.
#[derive(Clone, Copy, Debug)]
pub(in crate::state) enum Call {
    /// A call, at that time, and the list of pages that it began.
    Counted {
        key: Hash,
        at: Timestamp,
        list: Option<Begun>,
    },
    /// A page of an earlier call, and the entry that was the last before.
    Continued { page: Page, before: i64 },
}

/// A list of pages as a call began it.
#[derive(Clone, Copy, Debug)]
pub(in crate::state) struct Begun {
    page: Page,
    /// The time under which it is kept, which is no other call's: the call's own, or a little later.
    call: Timestamp,
}

impl Claimed {
    /// Replayed wins over used up, and nothing is written for either.
    pub(super) fn run(self, change: &mut Change<'_>) -> rusqlite::Result<Started> {
        if let Some(request) = self.request
            && is_used(change, request.id, self.now)?
        {
            return Ok(Started::Replayed);
        }
        let (call, left) = match self.quota {
            None => (None, None),
            Some(quota) => match take(change, quota, self.now)? {
                Ok((call, left)) => (Some(call), Some(left)),
                Err(next) => {
                    change.quota_used_up(quota.key, next);
                    return Ok(Started::NextAt(next));
                }
            },
        };
        if let Some(request) = self.request {
            change
                .sql
                .prepare_cached("INSERT OR REPLACE INTO request VALUES (?1, ?2)")?
                .execute((request.id.as_bytes(), seconds(request.until(self.now))))?;
        }
        Ok(Started::Held { call, left })
    }
}

/// Gives back what was taken of a quota (QUO-5). Whether a call was: one with which a page was counted stays counted, and so
/// does one of which nobody knows that any longer (QUO-13).
pub(in crate::state) fn give_back(change: &mut Change<'_>, call: Call) -> rusqlite::Result<bool> {
    match call {
        Call::Counted { key, at, list } => {
            if let Some(list) = list
                && !forget_list(change, list)?
            {
                return Ok(false);
            }
            let mut calls = calls(change, key)?;
            let was_used_up = calls.left(at).calls == 0;
            let given_back = calls.give_back(at);
            if given_back {
                keep(change, key, &calls)?;
            }
            if was_used_up {
                change.quota_changed(key)?;
            }
            Ok(given_back)
        }
        Call::Continued { page, before } => {
            change
                .sql
                .prepare_cached("UPDATE page SET last = ?3 WHERE key = ?1 AND last = ?2")?
                .execute((page.list.as_bytes(), page.last(), before))?;
            Ok(false)
        }
    }
}

/// Forgets a list of which no later page was counted. Whether it was one.
fn forget_list(change: &Change<'_>, list: Begun) -> rusqlite::Result<bool> {
    let (key, call) = (list.page.list, seconds(list.call));
    let forgotten = change
        .sql
        .prepare_cached("DELETE FROM page WHERE key = ?1 AND call = ?2 AND last = ?3")?
        .execute((key.as_bytes(), call, list.page.last()))?;
    Ok(forgotten > 0)
}

/// Keeps that a call begins a list of pages.
fn begin_list(change: &Change<'_>, page: Page, now: Timestamp) -> rusqlite::Result<Begun> {
    let before: Option<i64> = change
        .sql
        .prepare_cached("SELECT call FROM page WHERE key = ?1")?
        .query_row([page.list.as_bytes()], |row| row.get(0))
        .optional()?;
    // Calls of the same second are told apart.
    let next = before.map_or(0, |call| timestamp(call).unix().saturating_add(1));
    let is_close = next <= now.unix().saturating_add(CLOSE);
    let call = Timestamp::from_unix(now.unix().max(if is_close { next } else { 0 }));
    change
        .sql
        .prepare_cached("INSERT OR REPLACE INTO page VALUES (?1, ?2, ?3)")?
        .execute((page.list.as_bytes(), seconds(call), page.last()))?;
    Ok(Begun { page, call })
}

/// Gives back a request id that was claimed until then.
pub(in crate::state) fn forget(
    change: &mut Change<'_>,
    request: Hash,
    until: Timestamp,
) -> rusqlite::Result<()> {
    change
        .sql
        .prepare_cached("DELETE FROM request WHERE key = ?1 AND until = ?2")?
        .execute((request.as_bytes(), seconds(until)))?;
    Ok(())
}

fn is_used(change: &Change<'_>, request: Hash, now: Timestamp) -> rusqlite::Result<bool> {
    change
        .sql
        .prepare_cached("SELECT 1 FROM request WHERE key = ?1 AND until >= ?2")?
        .exists((request.as_bytes(), seconds(now)))
}

/// Takes a call, or continues one; or says when the next one is possible.
fn take(
    change: &Change<'_>,
    quota: QuotaAsked,
    now: Timestamp,
) -> rusqlite::Result<Result<(Call, Left), Timestamp>> {
    let mut calls = calls(change, quota.key)?;
    if let Some(page) = quota.page
        && let Some(before) = continued(change, page, now)?
    {
        change
            .sql
            .prepare_cached("UPDATE page SET last = ?2 WHERE key = ?1")?
            .execute((page.list.as_bytes(), page.last()))?;
        return Ok(Ok((Call::Continued { page, before }, calls.left(now))));
    }
    if let Err(next) = calls.take(now) {
        return Ok(Err(next));
    }
    keep(change, quota.key, &calls)?;
    let list = quota.page.map(|page| begin_list(change, page, now));
    let call = Call::Counted {
        key: quota.key,
        at: now,
        list: list.transpose()?,
    };
    Ok(Ok((call, calls.left(now))))
}

/// The last entry that was asked for of the list that a page continues; none where it begins a new one (QUO-13).
fn continued(change: &Change<'_>, page: Page, now: Timestamp) -> rusqlite::Result<Option<i64>> {
    let found: Option<(i64, i64)> = change
        .sql
        .prepare_cached("SELECT call, last FROM page WHERE key = ?1")?
        .query_row([page.list.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.and_then(|(call, last)| {
        let age = now.unix().saturating_sub(timestamp(call).unix());
        (i64::from(page.offset) > last && age < PAGES).then_some(last)
    }))
}

fn calls(change: &Change<'_>, key: Hash) -> rusqlite::Result<Calls> {
    let cells: Option<[Option<i64>; 4]> = change
        .sql
        .prepare_cached("SELECT a, b, c, d FROM quota WHERE key = ?1")?
        .query_row([key.as_bytes()], |row| {
            Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
        })
        .optional()?;
    let cells = cells.unwrap_or_default();
    Ok(Calls(cells.map(|cell| cell.map(|at| timestamp(at).unix()))))
}

/// Keeps the calls of a key; a key without calls is removed.
fn keep(change: &Change<'_>, key: Hash, calls: &Calls) -> rusqlite::Result<()> {
    let key = key.as_bytes();
    if calls.is_empty() {
        change
            .sql
            .prepare_cached("DELETE FROM quota WHERE key = ?1")?
            .execute([key])?;
        return Ok(());
    }
    let [a, b, c, d] = calls
        .0
        .map(|cell| cell.map(|at| seconds(Timestamp::from_unix(at))));
    change
        .sql
        .prepare_cached(
            "INSERT INTO quota VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (key) DO UPDATE SET a = ?2, b = ?3, c = ?4, d = ?5",
        )?
        .execute((key, a, b, c, d))?;
    Ok(())
}
