//! Reading and writing moves of TPPs in SQL (CTL-4).

use crate::{
    Hash, Move, MoveHash,
    hash::OfMove,
    rows::{ChangedRow, Loaded},
    stored::{seconds, timestamp},
};
use portvakt_interface::TppId;
use rusqlite::{Connection, OptionalExtension, Result, Row, types::Type};

/// The columns of a row.
const COLUMNS: &str = "SELECT key, tpp, now, since FROM moved";

/// Every row.
pub(super) fn all(sql: &Connection) -> Result<Vec<(MoveHash, Move)>> {
    sql.prepare_cached(COLUMNS)?.query_map([], read)?.collect()
}

/// The row of a key.
pub(super) fn find(sql: &Connection, key: MoveHash) -> Result<Option<Move>> {
    let found = sql
        .prepare_cached(&format!("{COLUMNS} WHERE key = ?1"))?
        .query_row([key.as_bytes()], read)
        .optional()?;
    Ok(found.map(|(_, moved)| moved))
}

/// Writes the rows that differ.
pub(super) fn write(sql: &Connection, rows: &Loaded<OfMove, Move>) -> Result<()> {
    for ChangedRow { key, row, .. } in rows.changed() {
        let key = key.as_bytes();
        let Some(Move { from, to, since }) = row else {
            sql.prepare_cached("DELETE FROM moved WHERE key = ?1")?
                .execute([key])?;
            continue;
        };
        sql.prepare_cached("INSERT OR REPLACE INTO moved VALUES (?1, ?2, ?3, ?4)")?
            .execute((key, from.as_str(), to.as_str(), seconds(*since)))?;
    }
    Ok(())
}

/// A row. This program writes only valid ones, and one that it cannot read must not serve a former identity: it is refused.
fn read(row: &Row<'_>) -> Result<(MoveHash, Move)> {
    let tpp = |column: usize, name: &str| -> Result<TppId> {
        let text: String = row.get(column)?;
        let wrong = || rusqlite::Error::InvalidColumnType(column, name.to_owned(), Type::Text);
        TppId::parse(&text).ok_or_else(wrong)
    };
    let moved = Move {
        from: tpp(1, "moved.tpp")?,
        to: tpp(2, "moved.now")?,
        since: timestamp(row.get(3)?),
    };
    Ok((Hash::from_bytes(row.get(0)?), moved))
}
