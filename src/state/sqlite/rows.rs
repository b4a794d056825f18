//! Reading and writing rows in SQL.
//!
//! Deliberately not here: any decision. A row is written as the rules left it, or removed if they removed it.

use super::{blocks, moves};
use crate::{
    Consent, Context, ContextOrigin, CustomerHash, CustomerPseudonym, Hash, ListHash, Psu, PsuHash,
    QuotaHash, RequestHash, Session, TokenHash,
    hash::{OfList, OfPsu, OfQuota, OfRequest, OfToken},
    moves::WrittenAs,
    rows::{BoundPsu, ChangedRow, ListRow, RowKey, Rows, TokenRow},
    rules::Calls,
    stored::{accounts, accounts_bytes, corporate, corporate_bytes, seconds, timestamp},
};
use portvakt_base::clock::Timestamp;
use portvakt_interface::TppId;
use rusqlite::{Connection, OptionalExtension, Result};
use std::sync::Arc;

/// Loads the rows of these keys that were not loaded yet.
pub(super) fn load(sql: &Connection, keys: &[RowKey], rows: &mut Rows) -> Result<()> {
    for key in keys {
        match *key {
            RowKey::Quota(key) if !rows.quotas.has(key) => rows.quotas.load(key, quota(sql, key)?),
            RowKey::List(key) if !rows.lists.has(key) => rows.lists.load(key, list(sql, key)?),
            RowKey::Request(key) if !rows.requests.has(key) => {
                rows.requests.load(key, request(sql, key)?);
            }
            RowKey::Token(key) if !rows.tokens.has(key) => rows.tokens.load(key, token(sql, key)?),
            RowKey::Psu(key) if !rows.psus.has(key) => rows.psus.load(key, psu(sql, key)?),
            RowKey::Block(key) if !rows.blocks.has(key) => {
                rows.blocks.load(key, blocks::find(sql, key)?);
            }
            RowKey::Move(key) if !rows.moves.has(key) => {
                rows.moves.load(key, moves::find(sql, key)?);
            }
            RowKey::AllMoves if !rows.has_all_moves => {
                for (key, moved) in moves::all(sql)? {
                    if !rows.moves.has(key) {
                        rows.moves.load(key, Some(moved));
                    }
                }
                rows.has_all_moves = true;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes the rows that differ.
pub(super) fn write(sql: &Connection, rows: &Rows) -> Result<()> {
    for changed in rows.quotas.changed() {
        write_quota(sql, &changed)?;
    }
    for changed in rows.lists.changed() {
        write_list(sql, &changed)?;
    }
    for changed in rows.requests.changed() {
        write_request(sql, &changed)?;
    }
    for changed in rows.tokens.changed() {
        write_token(sql, &changed)?;
    }
    for changed in rows.psus.changed() {
        write_psu(sql, &changed)?;
    }
    blocks::write(sql, &rows.blocks)?;
    moves::write(sql, &rows.moves)
}

fn quota(sql: &Connection, key: QuotaHash) -> Result<Option<Calls>> {
    let cells: Option<[Option<i64>; 4]> = sql
        .prepare_cached("SELECT a, b, c, d FROM quota WHERE key = ?1")?
        .query_row([key.as_bytes()], |row| {
            Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
        })
        .optional()?;
    Ok(cells.map(|cells| Calls(cells.map(|cell| cell.map(|at| timestamp(at).unix())))))
}

fn write_quota(sql: &Connection, changed: &ChangedRow<'_, OfQuota, Calls>) -> Result<()> {
    let Some(calls) = changed.row else {
        return delete(sql, "DELETE FROM quota WHERE key = ?1", changed.key);
    };
    let cells = calls.0;
    let [a, b, c, d] = cells.map(|cell| cell.map(|at| seconds(Timestamp::from_unix(at))));
    sql.prepare_cached(
        "INSERT INTO quota VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (key) DO UPDATE SET a = ?2, b = ?3, c = ?4, d = ?5",
    )?
    .execute((changed.key.as_bytes(), a, b, c, d))?;
    Ok(())
}

fn list(sql: &Connection, key: ListHash) -> Result<Option<ListRow>> {
    sql.prepare_cached("SELECT call, last FROM page WHERE key = ?1")?
        .query_row([key.as_bytes()], |row| {
            Ok(ListRow {
                call: timestamp(row.get(0)?),
                last: row.get(1)?,
            })
        })
        .optional()
}

fn write_list(sql: &Connection, changed: &ChangedRow<'_, OfList, ListRow>) -> Result<()> {
    let Some(list) = changed.row else {
        return delete(sql, "DELETE FROM page WHERE key = ?1", changed.key);
    };
    sql.prepare_cached("INSERT OR REPLACE INTO page VALUES (?1, ?2, ?3)")?
        .execute((changed.key.as_bytes(), seconds(list.call), list.last))?;
    Ok(())
}

fn request(sql: &Connection, key: RequestHash) -> Result<Option<Timestamp>> {
    sql.prepare_cached("SELECT until FROM request WHERE key = ?1")?
        .query_row([key.as_bytes()], |row| row.get(0).map(timestamp))
        .optional()
}

fn write_request(sql: &Connection, changed: &ChangedRow<'_, OfRequest, Timestamp>) -> Result<()> {
    let Some(until) = changed.row else {
        return delete(sql, "DELETE FROM request WHERE key = ?1", changed.key);
    };
    sql.prepare_cached("INSERT OR REPLACE INTO request VALUES (?1, ?2)")?
        .execute((changed.key.as_bytes(), seconds(*until)))?;
    Ok(())
}

fn token(sql: &Connection, key: TokenHash) -> Result<Option<TokenRow>> {
    sql.prepare_cached("SELECT said, until FROM token WHERE key = ?1")?
        .query_row([key.as_bytes()], |row| {
            Ok(TokenRow {
                said: Hash::from_bytes(row.get(0)?),
                expires: timestamp(row.get(1)?),
            })
        })
        .optional()
}

fn write_token(sql: &Connection, changed: &ChangedRow<'_, OfToken, TokenRow>) -> Result<()> {
    let Some(spent) = changed.row else {
        return delete(sql, "DELETE FROM token WHERE key = ?1", changed.key);
    };
    let (said, expires) = (spent.said.as_bytes(), seconds(spent.expires));
    sql.prepare_cached("INSERT OR REPLACE INTO token VALUES (?1, ?2, ?3)")?
        .execute((changed.key.as_bytes(), said, expires))?;
    Ok(())
}

fn delete<K>(sql: &Connection, statement: &str, key: Hash<K>) -> Result<()> {
    sql.prepare_cached(statement)?.execute([key.as_bytes()])?;
    Ok(())
}

/// A PSU with its contexts. Call this in a transaction: its two statements must see the same state.
pub(super) fn psu(sql: &Connection, key: PsuHash) -> Result<Option<BoundPsu>> {
    let found = sql
        .prepare_cached(
            "SELECT tpp.name, psu.last_sca, psu.session, psu.completed, psu.learned, psu.customer, psu.pseudonym,
                psu.ended
             FROM psu JOIN tpp ON tpp.id = psu.tpp WHERE psu.psu = ?1",
        )?
        .query_row([key.as_bytes()], |row| {
            let session: Option<[u8; 16]> = row.get(2)?;
            let completed: Option<i64> = row.get(3)?;
            let customer: Option<[u8; 16]> = row.get(5)?;
            let pseudonym: Option<[u8; 32]> = row.get(6)?;
            let ended: Option<i64> = row.get(7)?;
            let session = session.zip(completed).map(|(id, completed)| Session {
                id: Hash::from_bytes(id),
                completed: timestamp(completed),
            });
            let psu = Psu {
                learned: row.get(4)?,
                last_sca: known_time(row.get(1)?),
                session,
                contexts: Vec::new(),
                customer: customer.map(Hash::from_bytes),
                pseudonym: pseudonym.map(CustomerPseudonym::from_bytes),
                consents_ended: ended.map(timestamp),
            };
            Ok((tpp(row)?, psu))
        })
        .optional()?;
    let Some((tpp, mut psu)) = found else {
        return Ok(None);
    };
    psu.contexts = sql
        .prepare_cached(
            "SELECT corporate, last_sca, consent, accounts, origin, used FROM context WHERE psu = ?1 ORDER BY corporate",
        )?
        .query_map([key.as_bytes()], context)?
        .collect::<Result<Vec<_>>>()?;
    let psu = Arc::new(psu);
    let written = WrittenAs::new(tpp);
    Ok(Some(BoundPsu { written, psu }))
}

/// PSUs of a customer of the bank (CTL-1), after one of them. Call this in a transaction.
pub(super) fn psus_of(
    sql: &Connection,
    customer: CustomerHash,
    after: Option<PsuHash>,
    most: u32,
) -> Result<Vec<(PsuHash, BoundPsu)>> {
    let after = after.as_ref().map_or(&[][..], |psu| psu.as_bytes());
    let keys = sql
        .prepare_cached(
            "SELECT psu FROM psu WHERE customer = ?1 AND psu > ?2 ORDER BY psu LIMIT ?3",
        )?
        .query_map((customer.as_bytes(), after, most), |row| {
            row.get(0).map(PsuHash::from_bytes)
        })?
        .collect::<Result<Vec<_>>>()?;
    let mut psus = Vec::new();
    for key in keys {
        psus.extend(psu(sql, key)?.map(|bound| (key, bound)));
    }
    Ok(psus)
}

/// The TPP of a row. This program writes only valid identities, so a row without one is refused.
fn tpp(row: &rusqlite::Row<'_>) -> Result<TppId> {
    let name: String = row.get(0)?;
    TppId::parse(&name).ok_or(rusqlite::Error::InvalidColumnType(
        0,
        "tpp.name".to_owned(),
        rusqlite::types::Type::Text,
    ))
}

fn context(row: &rusqlite::Row<'_>) -> Result<Context> {
    let agreement: Vec<u8> = row.get(0)?;
    let named: Option<Vec<u8>> = row.get(3)?;
    let given: Option<i64> = row.get(2)?;
    let used: Option<i64> = row.get(5)?;
    Ok(Context {
        corporate: corporate(&agreement),
        origin: ContextOrigin::stored(row.get(4)?),
        last_sca: known_time(row.get(1)?),
        consent: given.map(|given| Consent {
            given: timestamp(given),
            accounts: accounts(named.as_deref()),
        }),
        used: used.map(timestamp),
    })
}

fn write_psu(sql: &Connection, changed: &ChangedRow<'_, OfPsu, BoundPsu>) -> Result<()> {
    let stored = contexts(changed.stored);
    let contexts = contexts(changed.row);
    for context in stored {
        if !contexts.iter().any(|it| it.corporate == context.corporate) {
            sql.prepare_cached("DELETE FROM context WHERE psu = ?1 AND corporate = ?2")?
                .execute((changed.key.as_bytes(), corporate_bytes(context.corporate)))?;
        }
    }
    let Some(BoundPsu { written, psu }) = changed.row else {
        return delete(sql, "DELETE FROM psu WHERE psu = ?1", changed.key);
    };
    let tpp = written.as_stored();
    sql.prepare_cached("INSERT INTO tpp (name) VALUES (?1) ON CONFLICT (name) DO NOTHING")?
        .execute([tpp.as_str()])?;
    sql.prepare_cached(
        "INSERT INTO psu (psu, tpp, last_sca, session, completed, learned, customer, pseudonym, ended)
         VALUES (?1, (SELECT id FROM tpp WHERE name = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (psu) DO UPDATE SET
            tpp = excluded.tpp, last_sca = ?3, session = ?4, completed = ?5, learned = ?6, customer = ?7,
            pseudonym = ?8, ended = ?9",
    )?
    .execute((
        changed.key.as_bytes(),
        tpp.as_str(),
        psu.last_sca.map_or(0, seconds),
        psu.session.as_ref().map(|session| session.id.as_bytes()),
        psu.session.map(|session| seconds(session.completed)),
        psu.learned,
        psu.customer.as_ref().map(Hash::as_bytes),
        psu.pseudonym.as_ref().map(CustomerPseudonym::as_bytes),
        psu.consents_ended.map(seconds),
    ))?;
    for context in contexts.iter().filter(|context| !stored.contains(context)) {
        write_context(sql, changed.key, context)?;
    }
    Ok(())
}

fn write_context(sql: &Connection, psu: PsuHash, context: &Context) -> Result<()> {
    let consent = context.consent.as_ref();
    sql.prepare_cached(
        "INSERT INTO context (psu, corporate, last_sca, consent, accounts, origin, used)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (psu, corporate) DO UPDATE SET last_sca = ?3, consent = ?4, accounts = ?5, origin = ?6, used = ?7",
    )?
    .execute((
        psu.as_bytes(),
        corporate_bytes(context.corporate),
        context.last_sca.map_or(0, seconds),
        consent.map(|consent| seconds(consent.given)),
        consent.and_then(|consent| accounts_bytes(&consent.accounts)),
        context.origin.number(),
        context.used.map(seconds),
    ))?;
    Ok(())
}

fn contexts(bound: Option<&BoundPsu>) -> &[Context] {
    bound.map_or(&[], |bound| bound.psu.contexts.as_slice())
}

/// A stored time; 0 means unknown.
fn known_time(seconds: i64) -> Option<Timestamp> {
    (seconds > 0).then(|| timestamp(seconds))
}
