//! Where state is kept, how much of it is held in memory, and why it could not be opened.

use std::{io, path::PathBuf};

/// The section `state` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSettings {
    /// The SQLite file. It and its folder are made at the first start.
    pub file: PathBuf,
    /// The file of the hash key: 32 random bytes, made at the first start.
    pub hash_key: PathBuf,
    /// How many PSUs are held in memory, about 0.5 KiB each.
    pub psus_in_memory: u64,
    /// How many request ids are held in memory (REP-1), whatever the method, about 50 bytes each. More than that within six
    /// minutes are refused.
    pub request_ids_in_memory: usize,
    /// How many used-up quotas are held in memory, about 0.2 KiB each.
    pub refusals_in_memory: u64,
}

impl StateSettings {
    /// PSUs that are held in memory by default.
    pub const PSUS: u64 = 100_000;
    /// Request ids that are held in memory by default: 10 000 requests a second for three minutes.
    pub const REQUEST_IDS: usize = 2_000_000;
    /// Used-up quotas that are held in memory by default.
    pub const REFUSALS: u64 = 100_000;

    /// The defaults for a file and a key.
    pub fn new(file: impl Into<PathBuf>, hash_key: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            hash_key: hash_key.into(),
            psus_in_memory: Self::PSUS,
            request_ids_in_memory: Self::REQUEST_IDS,
            refusals_in_memory: Self::REFUSALS,
        }
    }
}

/// Why state cannot be opened. Files that are there are left as they are.
#[derive(Debug, thiserror::Error)]
pub enum OpenFault {
    /// A folder cannot be made.
    #[error("{0}: the folder cannot be made: {1}")]
    Folder(PathBuf, #[source] io::Error),
    /// A file cannot be read or made.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// Something else's file.
    #[error("{0} is not a state file of Portvakt; it is left as it is: name another file")]
    Foreign(PathBuf),
    /// SQLite cannot use it.
    #[error("{0} cannot be used: {1}; it is left as it is: restore a backup, or name another file")]
    Damaged(PathBuf, String),
    /// Another process writes and does not end.
    #[error("{0} is locked by another process: end that process, then start again")]
    Locked(PathBuf),
    /// A later version's file.
    #[error(
        "{file} has schema {found}, and this version knows {known}: run the version that wrote it, or a later one"
    )]
    Newer {
        /// The state file.
        file: PathBuf,
        /// Its schema.
        found: i64,
        /// The latest schema that is known.
        known: i64,
    },
    /// State without its key.
    #[error(
        "{key} is missing, and {file} was made with it: restore the key; without it nothing in the file can be found again"
    )]
    KeyMissing {
        /// The key file.
        key: PathBuf,
        /// The state file.
        file: PathBuf,
    },
    /// Another state's key.
    #[error("{key} is not the key that {file} was made with: restore the key that belongs to it")]
    KeyForeign {
        /// The key file.
        key: PathBuf,
        /// The state file.
        file: PathBuf,
    },
    /// The key is no secret.
    #[error("{0} can be read by others (mode {1:o}): chmod 600")]
    KeyReadable(PathBuf, u32),
    /// Not 32 bytes.
    #[error("{0} does not hold a hash key: it has to be 32 bytes")]
    KeyMalformed(PathBuf),
    /// A thread cannot be started.
    #[error("a thread of the store cannot be started: {0}")]
    Thread(#[source] io::Error),
}
