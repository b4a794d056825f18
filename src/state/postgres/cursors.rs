//! The positions of housekeeping in the tables.

use crate::rules::Table;
use uuid::Uuid;

/// The cursors of all tables.
#[derive(Default)]
pub(super) struct Sweep {
    cursors: [Cursor; Table::ALL.len()],
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
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor {
    /// The first key to visit.
    pub(super) from: Uuid,
    /// The number of rows that were kept since the start of the table.
    pub(super) kept: u64,
    /// The number of valid sessions since then, in the table of PSUs.
    pub(super) sessions: u64,
}
