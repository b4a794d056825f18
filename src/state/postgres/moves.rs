//! Reading and writing moves of TPPs in SQL (CTL-4).

use super::{
    commands::Command,
    parted::{Parted, RowFault, column, hash, keys},
    statements::Statements,
};
use crate::{
    Move, MoveHash,
    rows::Rows,
    stored::{seconds, timestamp},
};
use portvakt_interface::TppId;
use tokio_postgres::Row;
use uuid::Uuid;

/// Every row of a result.
pub(super) fn all(rows: &[Row]) -> Result<Vec<(MoveHash, Move)>, RowFault> {
    let rows = rows.iter().map(|row| {
        let key: Uuid = row.try_get(0)?;
        Ok((hash(key), read(row)?))
    });
    rows.collect()
}

/// A row. This program writes only valid ones, and one that it cannot read must not serve a former identity: it is refused.
pub(super) fn read(row: &Row) -> Result<Move, RowFault> {
    Ok(Move {
        from: TppId::parse(row.try_get(1)?).ok_or(RowFault::Move)?,
        to: TppId::parse(row.try_get(2)?).ok_or(RowFault::Move)?,
        since: timestamp(row.try_get(3)?),
    })
}

/// Adds the commands that write the rows that differ.
pub(super) fn write<'s>(s: &'s Statements, rows: &Rows, commands: &mut Vec<Command<'s>>) {
    Parted::new(&rows.moves).write(
        commands,
        [&s.add_moves, &s.set_moves, &s.remove_moves],
        |rows| {
            vec![
                keys(rows),
                column(rows, |moved: &Move| moved.from.as_str().to_owned()),
                column(rows, |moved: &Move| moved.to.as_str().to_owned()),
                column(rows, |moved: &Move| seconds(moved.since)),
            ]
        },
    );
}
