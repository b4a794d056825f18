//! Reading and writing blocks of TPPs in SQL (CTL-2).

use super::{
    commands::Command,
    parted::{Parted, RowFault, column, hash, id, keys},
    statements::Statements,
};
use crate::{
    Block, BlockHash, BlockScope,
    rows::Rows,
    stored::{seconds, timestamp},
};
use portvakt_interface::ForbiddenTpp;
use tokio_postgres::Row;
use uuid::Uuid;

/// Every row of a result.
pub(super) fn all(rows: &[Row]) -> Result<Vec<(BlockHash, Block)>, RowFault> {
    let rows = rows.iter().map(|row| {
        let key: Uuid = row.try_get(0)?;
        Ok((hash(key), read(row)?))
    });
    rows.collect()
}

/// A row. This program writes only valid ones, and a row that it cannot read must not unblock a TPP: it is refused.
pub(super) fn read(row: &Row) -> Result<Block, RowFault> {
    let psu: Option<Uuid> = row.try_get(3)?;
    let until: Option<i64> = row.try_get(6)?;
    let scope = BlockScope::stored(row.try_get(2)?, psu.map(hash));
    Ok(Block {
        tpp: ForbiddenTpp::stored(row.try_get(1)?).ok_or(RowFault::Block)?,
        scope: scope.ok_or(RowFault::Block)?,
        reason: row.try_get(4)?,
        since: timestamp(row.try_get(5)?),
        until: until.map(timestamp),
    })
}

/// Adds the commands that write the rows that differ.
pub(super) fn write<'s>(s: &'s Statements, rows: &Rows, commands: &mut Vec<Command<'s>>) {
    Parted::new(&rows.blocks).write(
        commands,
        [&s.add_blocks, &s.set_blocks, &s.remove_blocks],
        |rows| {
            vec![
                keys(rows),
                column(rows, |block: &Block| block.tpp.as_str().to_owned()),
                column(rows, |block: &Block| block.scope.name().to_owned()),
                column(rows, |block: &Block| block.scope.psu().map(id)),
                column(rows, |block: &Block| block.reason.clone()),
                column(rows, |block: &Block| seconds(block.since)),
                column(rows, |block: &Block| block.until.map(seconds)),
            ]
        },
    );
}
