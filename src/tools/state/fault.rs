//! The reasons why a command on the state failed.

use crate::{config::ConfigFaults, state::OpenFault};
use std::{io, path::PathBuf};

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum StateFault {
    /// The configuration was refused.
    #[error("{0}")]
    Config(ConfigFaults),
    /// The state cannot be used.
    #[error(transparent)]
    State(#[from] OpenFault),
    /// SQLite reported an error.
    #[error("{0}: {1}")]
    Sql(PathBuf, #[source] rusqlite::Error),
    /// The state is in PostgreSQL, which has programs of its own for the work.
    #[error("the state is in PostgreSQL: use {0}")]
    InPostgres(&'static str),
    /// The configuration names no database.
    #[error("the configuration has no state.postgres to copy to")]
    NoPostgres,
    /// The configuration names no key for customers.
    #[error("the configuration has no state.events.customer_key: name the new key first")]
    NoCustomerKey,
    /// Another process uses the file.
    #[error("{0} is in use: stop every gateway on it, then start again")]
    InUse(PathBuf),
    /// A gateway uses the database.
    #[error("a gateway uses the database: stop every gateway on it, then start again ({0})")]
    DatabaseInUse(#[source] OpenFault),
    /// The database has rows already.
    #[error("table {0} of the database has rows: copy into an empty database")]
    NotEmpty(&'static str),
    /// The file and the database have different levels of the hash key.
    #[error(
        "the file has level {file} of the hash key, and the database level {database}: rotate the one with the lower level first (portvakt state \
         rotate-hash-key --yes, of the file with a configuration without state.postgres)"
    )]
    OtherLevel {
        /// The level of the file.
        file: usize,
        /// The level of the database.
        database: usize,
    },
    /// The rows that were written are not those of the file.
    #[error("table {0} differs from the file: nothing was committed")]
    Differs(&'static str),
    /// A file could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
}
