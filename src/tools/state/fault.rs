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
    /// A file could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
}
