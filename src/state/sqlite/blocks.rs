//! Reading and writing blocks of TPPs in SQL (CTL-2).

use crate::{
    Block, BlockHash, BlockScope, Hash,
    hash::OfBlock,
    rows::{ChangedRow, Loaded},
    stored::{seconds, timestamp},
};
use portvakt_interface::ForbiddenTpp;
use rusqlite::{Connection, OptionalExtension, Result, Row, types::Type};

/// The columns of a row.
const COLUMNS: &str = "SELECT key, tpp, scope, psu, reason, since, until FROM block";

/// Every row.
pub(super) fn all(sql: &Connection) -> Result<Vec<(BlockHash, Block)>> {
    sql.prepare_cached(COLUMNS)?.query_map([], read)?.collect()
}

/// The row of a key.
pub(super) fn find(sql: &Connection, key: BlockHash) -> Result<Option<Block>> {
    let found = sql
        .prepare_cached(&format!("{COLUMNS} WHERE key = ?1"))?
        .query_row([key.as_bytes()], read)
        .optional()?;
    Ok(found.map(|(_, block)| block))
}

/// Writes the rows that differ.
pub(super) fn write(sql: &Connection, rows: &Loaded<OfBlock, Block>) -> Result<()> {
    for ChangedRow { key, row, .. } in rows.changed() {
        let key = key.as_bytes();
        let Some(block) = row else {
            sql.prepare_cached("DELETE FROM block WHERE key = ?1")?
                .execute([key])?;
            continue;
        };
        let psu = block.scope.psu();
        sql.prepare_cached("INSERT OR REPLACE INTO block VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
            .execute((
                key,
                block.tpp.as_str(),
                block.scope.name(),
                psu.as_ref().map(Hash::as_bytes),
                &block.reason,
                seconds(block.since),
                block.until.map(seconds),
            ))?;
    }
    Ok(())
}

/// A row. This program writes only valid ones, and a row that it cannot read must not unblock a TPP: it is refused.
fn read(row: &Row<'_>) -> Result<(BlockHash, Block)> {
    let text = |column: usize| row.get::<_, String>(column);
    let wrong = |column: usize, name: &str| {
        rusqlite::Error::InvalidColumnType(column, name.to_owned(), Type::Text)
    };
    let psu: Option<[u8; 16]> = row.get(3)?;
    let until: Option<i64> = row.get(6)?;
    let block = Block {
        tpp: ForbiddenTpp::stored(&text(1)?).ok_or_else(|| wrong(1, "block.tpp"))?,
        scope: BlockScope::stored(&text(2)?, psu.map(Hash::from_bytes))
            .ok_or_else(|| wrong(2, "block.scope"))?,
        reason: text(4)?,
        since: timestamp(row.get(5)?),
        until: until.map(timestamp),
    };
    Ok((Hash::from_bytes(row.get(0)?), block))
}
