//! The settings of the state, and the reasons why it cannot be opened.

use super::postgres::settings::PostgresSettings;
use portvakt_interface::operations::Environment;
use std::{io, path::PathBuf};

/// The section `state` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSettings {
    /// The engine that stores the rows.
    pub engine: EngineSettings,
    /// The SQLite file, if that is the engine; the source of `portvakt state copy` otherwise. The first start creates the file and its
    /// folder.
    pub file: PathBuf,
    /// The file of the hash key: 32 random bytes, created at the first start.
    pub hash_key: PathBuf,
    /// The environment whose state this is (CRT-9): the first start records it, and another one is refused. `None` asks nothing.
    pub environment: Option<Environment>,
    /// The maximum number of PSUs in memory, about 0.5 KiB each.
    pub psus_in_memory: u64,
    /// The maximum number of request ids in memory (REP-1), whatever the method, about 50 bytes each. More ids within six minutes are
    /// refused.
    pub request_ids_in_memory: usize,
    /// The maximum number of used-up quotas in memory, about 0.2 KiB each.
    pub refusals_in_memory: u64,
    /// The events for the bank's services (CTL-3).
    pub events: EventSettings,
}

/// The section `state.events` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSettings {
    /// The file of the key that makes pseudonyms of the bank's customers: 32 random bytes that the bank holds. Without it events name no
    /// customer. It is never created.
    pub customer_key: Option<PathBuf>,
    /// The time for which an event is kept, in days.
    pub keep_days: u32,
}

impl EventSettings {
    /// The default time for which an event is kept, in days.
    pub const KEEP_DAYS: u32 = 30;
}

impl Default for EventSettings {
    fn default() -> Self {
        Self {
            customer_key: None,
            keep_days: Self::KEEP_DAYS,
        }
    }
}

impl StateSettings {
    /// The default number of PSUs in memory.
    pub const PSUS: u64 = 100_000;
    /// The default number of request ids in memory: 10 000 requests a second for three minutes.
    pub const REQUEST_IDS: usize = 2_000_000;
    /// The default number of used-up quotas in memory.
    pub const REFUSALS: u64 = 100_000;

    /// The defaults for a file and a key.
    pub fn new(file: impl Into<PathBuf>, hash_key: impl Into<PathBuf>) -> Self {
        Self {
            engine: EngineSettings::Sqlite,
            file: file.into(),
            hash_key: hash_key.into(),
            environment: None,
            psus_in_memory: Self::PSUS,
            request_ids_in_memory: Self::REQUEST_IDS,
            refusals_in_memory: Self::REFUSALS,
            events: EventSettings::default(),
        }
    }
}

/// What an opening does with a state of an earlier schema, which processes of an earlier version may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlierSchema {
    /// Migrates it.
    Migrated,
    /// Refuses it.
    Refused,
}

/// The engine of a state, with the settings that only this engine has. Code that depends on the engine matches every variant, so that the
/// compiler names it to whoever adds one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineSettings {
    /// The file of the settings, on one machine.
    Sqlite,
    /// A database that several gateways share.
    Postgres(Box<PostgresSettings>),
}

impl From<PostgresSettings> for EngineSettings {
    fn from(settings: PostgresSettings) -> Self {
        Self::Postgres(Box::new(settings))
    }
}

/// The row of `meta` with the check value of the hash key.
pub(super) const KEY_ROW: &str = "key_check";

/// The row of `meta` with the level of the hash key; there is none before the first rotation.
pub(super) const LEVEL_ROW: &str = "hash_key_level";

/// The row of `meta` with the environment.
pub(super) const ENVIRONMENT_ROW: &str = "environment";

/// The row of `meta` with the check value of the key for customers (CTL-3).
pub(super) const CUSTOMER_KEY_ROW: &str = "customer_key_check";

/// The rows of `meta` that a start compares, and records where they are missing.
pub(super) const RECORDED: [&str; 2] = [ENVIRONMENT_ROW, CUSTOMER_KEY_ROW];

impl StateSettings {
    /// Judges what a state has recorded in one of [`RECORDED`]. Returns the value to record where there is none.
    pub(super) fn judge_recorded(
        &self,
        row: &str,
        found: Option<String>,
    ) -> Result<Option<String>, OpenFault> {
        match row {
            CUSTOMER_KEY_ROW => self.events.judge_key(found),
            _ => Ok(self.judge_environment(found)?.map(str::to_owned)),
        }
    }

    /// Judges the environment that a state has recorded. Returns the one to record where there is none.
    fn judge_environment(&self, found: Option<String>) -> Result<Option<&'static str>, OpenFault> {
        let Some(asked) = self.environment.map(Environment::name) else {
            return Ok(None);
        };
        match found {
            None => Ok(Some(asked)),
            Some(found) if found == asked => Ok(None),
            Some(found) => Err(OpenFault::OtherEnvironment { found, asked }),
        }
    }
}

/// The reason why the state cannot be opened. Existing files are not changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenFault {
    /// A folder cannot be created.
    #[error("{0}: the folder cannot be made: {1}")]
    Folder(PathBuf, #[source] io::Error),
    /// A file cannot be read or created.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// SQLite's log has no regular file.
    #[error(
        "{0} is no regular file, and SQLite keeps its log there: remove it, or name another state file"
    )]
    Log(PathBuf),
    /// The file is not a state file.
    #[error("{0} is not a state file of Portvakt; it is left as it is: name another file")]
    Foreign(PathBuf),
    /// SQLite cannot use the file.
    #[error("{0} cannot be used: {1}; it is left as it is: restore a backup, or name another file")]
    Damaged(PathBuf, String),
    /// The disk, or the rights of the file, are in the way.
    #[error(
        "{0} cannot be used now: {1}; nothing changed: make space, or mend the disk or the rights, then try again"
    )]
    Unusable(PathBuf, String),
    /// Another process holds the write lock.
    #[error("{0} is locked by another process: end that process, then start again")]
    Locked(PathBuf),
    /// A later version wrote the file.
    #[error(
        "{file} has schema {found}, and this version knows {known}: run the version that wrote it, or a later one; to go back, restore the copy from before the upgrade (state export)"
    )]
    Newer {
        /// The state file.
        file: PathBuf,
        /// The schema of the file.
        found: i64,
        /// The latest supported schema.
        known: i64,
    },
    /// The key file is missing.
    #[error(
        "{key} is missing, and {file} was made with it: restore the key; without it nothing in the file can be found again"
    )]
    KeyMissing {
        /// The key file.
        key: PathBuf,
        /// The state file.
        file: PathBuf,
    },
    /// The key belongs to another state file.
    #[error("{key} is not the key that {file} was made with: restore the key that belongs to it")]
    KeyForeign {
        /// The key file.
        key: PathBuf,
        /// The state file.
        file: PathBuf,
    },
    /// The state knows another key for customers (CTL-3).
    #[error(
        "{0} is not the customer_key of the other gateways of this state: name the same file at each; if the bank changes the key, say so \
         with `portvakt state accept-customer-key`, then start again"
    )]
    CustomerKeyForeign(PathBuf),
    /// Other users can read the key file.
    #[error("{0} can be read by others (mode {1:o}): chmod 600")]
    KeyReadable(PathBuf, u32),
    /// The key file does not have 32 bytes.
    #[error("{0} does not hold a key: it has to be 32 random bytes")]
    KeyMalformed(PathBuf),
    /// The file does not hold keys side by side.
    #[error(
        "{0} does not hold hash keys: its {1} bytes are not 32 random ones for each of at most 16 different keys; restore the file"
    )]
    KeysMalformed(PathBuf, usize),
    /// No further key fits.
    #[error(
        "{0} holds 16 keys already, and none can be added: after another leak, begin a new state (docs/state.md, \"A lost key\")"
    )]
    KeysFull(PathBuf),
    /// The file cannot be replaced by one with a further key.
    #[error(
        "{0}: no key can be added: {1}; nothing changed. Where the program cannot change the file, make the file of the next keys by hand \
         (docs/state.md, \"The hash key\")"
    )]
    KeyNotAdded(PathBuf, #[source] io::Error),
    /// The hash key of the state was rotated, and the file lacks the new key.
    #[error(
        "the hash key of the state was rotated to level {level}, and {key} lacks the last key, or is another file: copy it from the machine on \
         which `portvakt state rotate-hash-key` ran"
    )]
    KeyRotated {
        /// The key file.
        key: PathBuf,
        /// The level of the state.
        level: usize,
    },
    /// Another process rotated the hash key meanwhile.
    #[error("another process has rotated the hash key of the state: nothing changed")]
    RotatedMeanwhile,
    /// The connection failed at the end of a rotation.
    #[error(
        "{reason}: it is not known whether the hash key was rotated. Run the command without --yes: if the state has level {level}, \
         the rotation is done"
    )]
    RotationUnclear {
        /// The failure.
        reason: String,
        /// The level after the rotation.
        level: usize,
    },
    /// A table is locked.
    #[error(
        "{0}: a table is in use, as by pg_dump; nothing changed: run the command again after that"
    )]
    TableInUse(String),
    /// No key for the next level is in the file.
    #[error("{0} has no key that the state does not use: nothing changed")]
    NoNextKey(PathBuf),
    /// A row has no hash where every version writes one.
    #[error(
        "table {0} has a row that no version wrote: remove the row, then start again; nothing changed"
    )]
    OddRow(&'static str),
    /// The file has an earlier schema.
    #[error("{0} has an earlier schema: upgrade the gateway, or start it, with this version first")]
    Earlier(PathBuf),
    /// The database has an earlier schema.
    #[error(
        "the database has an earlier schema: stop every gateway of the version before, and start one of this version first"
    )]
    PostgresEarlier,
    /// The schema cannot be migrated.
    #[error(
        "the state has an earlier schema, and to migrate a copy of it failed: {0}; the state is as it was"
    )]
    Rehearsal(#[source] Box<OpenFault>),
    /// Gateways of an earlier version use the database.
    #[error(
        "a gateway of a version that cannot rotate the hash key uses the database, or a state file is copied into it: upgrade every gateway first; \
         nothing changed"
    )]
    EarlierGateways,
    /// The state is that of another environment.
    #[error(
        "the state is that of the environment {found}, and the configuration says {asked}: each has a state of its own (CRT-9); name another file or database"
    )]
    OtherEnvironment {
        /// The environment that the state has recorded.
        found: String,
        /// The environment of the configuration.
        asked: &'static str,
    },
    /// PostgreSQL cannot be used.
    #[error("PostgreSQL: {0}")]
    Postgres(String),
    /// The database has no tables of Portvakt.
    #[error(
        "the database has no tables of Portvakt: name the gateways' database in state.postgres"
    )]
    PostgresEmpty,
    /// Another version made the database.
    #[error(
        "the database has schema {found}, and this version knows {known}: run the version that made it, or a later one; to go back, restore the backup from before the upgrade"
    )]
    PostgresSchema {
        /// The schema of the database.
        found: String,
        /// The latest supported schema.
        known: &'static str,
    },
    /// The key file is missing, and the database was made with one.
    #[error(
        "{0} is missing, and the database was made with a hash key: copy the key of the other gateways; without it nothing in \
         the database can be found again"
    )]
    PostgresKeyMissing(PathBuf),
    /// The key belongs to another database.
    #[error(
        "{0} is not the hash key that the database was made with: copy the key of the other gateways"
    )]
    PostgresKeyForeign(PathBuf),
    /// A thread cannot be started.
    #[error("a thread of the store cannot be started: {0}")]
    Thread(#[source] io::Error),
}
