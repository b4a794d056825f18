//! The positions of housekeeping in the tables.

use crate::rules::Table;

/// The cursors of all tables.
#[derive(Default)]
pub(super) struct Sweep {
    cursors: [Cursor; Table::ALL.len()],
    /// The number of rows of each table to visit next.
    pub(super) due: u32,
}

impl Sweep {
    /// The cursor of a table.
    pub(super) fn cursor(&mut self, table: Table) -> &mut Cursor {
        let [quotas, lists, requests, tokens, blocks, psus] = &mut self.cursors;
        match table {
            Table::Quota => quotas,
            Table::List => lists,
            Table::Request => requests,
            Table::Token => tokens,
            Table::Block => blocks,
            Table::Psu => psus,
        }
    }
}

/// A position in one table.
#[derive(Default)]
pub(super) struct Cursor {
    /// The last visited key.
    pub(super) after: Vec<u8>,
    /// The number of rows that were kept since the start of the table.
    pub(super) kept: u64,
    /// The number of valid sessions since then, in the table of PSUs.
    pub(super) sessions: u64,
}
