//! The progress of housekeeping: a cursor visits each table in the order of its keys.
//!
//! Deliberately not here: when a row expires (`rules/expiry.rs`), and the statements, which are the engine's.

use crate::{Rows, rules::Table};

/// SCA-16: the time for which a session is valid, in seconds.
pub(crate) const SESSION_LASTS: u64 = 3_600;

/// A step over one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The number of removed rows.
    pub(crate) removed: u64,
    /// Whether the step reached the end of the table.
    pub(crate) around: bool,
}

/// The cursors of all tables, with positions in the form of the engine.
#[derive(Default)]
pub(crate) struct Cursors<P>([Cursor<P>; Table::ALL.len()]);

impl<P> Cursors<P> {
    /// The cursor of a table.
    pub(crate) const fn of(&mut self, table: Table) -> &mut Cursor<P> {
        let [quotas, lists, requests, tokens, blocks, psus] = &mut self.0;
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
pub(crate) struct Cursor<P> {
    /// Where the next step begins; the default is the beginning of the table.
    pub(crate) position: P,
    /// The number of rows that were kept since the start of the table.
    pub(crate) kept: u64,
    /// The number of valid sessions since then, in the table of PSUs.
    pub(crate) sessions: u64,
}

impl Rows {
    /// Takes the counts of a cursor that has reached the end of its table.
    pub(crate) const fn take<P>(&mut self, table: Table, cursor: &Cursor<P>) {
        *self.of(table) = Some(cursor.kept);
        if let Table::Psu = table {
            self.sessions = Some(cursor.sessions);
        }
    }
}
