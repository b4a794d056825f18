//! The connection that writes, what its file says of its keys, and why a transaction fails.
//!
//! Invariant: each transaction knows the level of the hash key that the file has in it. It is read again when another connection has
//! committed, since only others change it.

use super::{file, shared::Shared};
use rusqlite::{Connection, Transaction};

/// The connection that writes.
pub(super) struct Open {
    pub(super) connection: Connection,
    pub(super) checked: Option<Checked>,
}

/// What the file says of its keys. This connection never changes it.
pub(super) struct Checked {
    /// The file's version for this connection: another one once another connection has committed.
    version: i64,
    customer_key: Option<String>,
}

impl Open {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            checked: None,
        }
    }
}

/// The reason why a transaction failed.
pub(super) enum Failed {
    Sql(rusqlite::Error),
    /// A decision read a row that was not loaded.
    Undecided,
    /// The hash key was rotated: the rows of this process cannot be found.
    Rotated(String),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// The check value of the file's key for customers; the transaction fails if the file has another level of the hash key.
pub(super) fn customer_key(
    sql: &Transaction<'_>,
    checked: &mut Option<Checked>,
    shared: &Shared,
) -> Result<Option<String>, Failed> {
    let version = sql
        .prepare_cached("PRAGMA data_version")?
        .query_row([], |row| row.get(0))?;
    let known = checked.take().filter(|it| it.version == version);
    let found = match known {
        Some(known) => known,
        None => {
            let (level, customer_key) = file::key_checks(sql)?;
            shared.level.judge(&level).map_err(Failed::Rotated)?;
            Checked {
                version,
                customer_key,
            }
        }
    };
    Ok(checked.insert(found).customer_key.clone())
}
