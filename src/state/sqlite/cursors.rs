//! Where housekeeping is in each table.

use crate::state::rules::Table;

/// Where the cursors stand.
#[derive(Default)]
pub(super) struct Sweep {
    cursors: [Cursor; Table::ALL.len()],
    /// Rows of each table that are due to be looked at.
    pub(super) due: u32,
}

impl Sweep {
    /// The cursor of a table.
    pub(super) fn cursor(&mut self, table: Table) -> &mut Cursor {
        let [quotas, lists, requests, tokens, psus] = &mut self.cursors;
        match table {
            Table::Quota => quotas,
            Table::List => lists,
            Table::Request => requests,
            Table::Token => tokens,
            Table::Psu => psus,
        }
    }
}

/// A place in one table.
#[derive(Default)]
pub(super) struct Cursor {
    /// The last key that was looked at.
    pub(super) after: Vec<u8>,
    /// Rows that were kept since the table's start.
    pub(super) kept: u64,
}
