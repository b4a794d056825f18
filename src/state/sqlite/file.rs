//! Opening the file: it must be a state file, intact, of a supported schema, and with its own key; otherwise a message for the operator.
//!
//! Invariant: a file that is not a state file, or that cannot be used, is not changed. Schema migrations only go forward, each in one
//! transaction, and two processes may migrate at once.

use super::super::{OpenFault, StateSettings, hash_key, keys::Keys};
use crate::private_file;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};
use std::{
    fs::File,
    io::{ErrorKind, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

/// `application_id` of a state file: "Pvkt".
pub(crate) const APPLICATION_ID: i64 = 0x5076_6b74;

/// The steps from one schema to the next. The first makes schema 1 from an empty file. A step that was released never
/// changes.
const MIGRATIONS: [&str; 2] = [include_str!("schema.sql"), include_str!("learned.sql")];

/// The row of `meta` that shows whether a key belongs to the file.
const KEY_CHECK: &str = "key_check";

/// The time that a writer waits for another process.
const BUSY: Duration = Duration::from_secs(2);

/// The identity of the file, which changes if the file is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(path: &Path) -> std::io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the opened file is still at its path.
    ///
    /// # Errors
    /// The message for the operator.
    pub(super) fn check(&self) -> Result<(), String> {
        match Self::of(&self.path) {
            Ok(found) if found == *self => Ok(()),
            Ok(_) => Err(format!(
                "{} was replaced by another file: restart the gateway to use it",
                self.path.display()
            )),
            Err(error) => Err(format!("{}: {error}", self.path.display())),
        }
    }
}

/// Opens the file with its key; creates both if there are none.
pub(super) fn open(settings: &StateSettings) -> Result<(Connection, Identity, Keys), OpenFault> {
    let path = &settings.file;
    let fault = |error| OpenFault::File(path.clone(), error);
    let folder = private_file::folder_of(path);
    private_file::make_folder_of(path)
        .map_err(|error| OpenFault::Folder(folder.to_owned(), error))?;
    // SQLite does not wait when two connections enable the journal of a new file at the same time.
    let alone = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
    let _alone = alone.map_err(|error| OpenFault::File(folder.to_owned(), error))?;
    let found = header(path)?;
    let secret = match (hash_key::read(&settings.hash_key)?, &found) {
        (Some(secret), _) => secret,
        (None, Header::Ours) => {
            return Err(OpenFault::KeyMissing {
                key: settings.hash_key.clone(),
                file: path.clone(),
            });
        }
        (None, Header::Missing | Header::Empty) => hash_key::make(&settings.hash_key)?,
    };
    if let Header::Missing = found {
        match private_file::create(path) {
            Ok(file) => file.sync_all().map_err(fault)?,
            // Another process created it first.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fault(error)),
        }
        private_file::sync_folder_of(path).map_err(fault)?;
    }
    let identity = Identity::of(path).map_err(fault)?;
    let keys = Keys::new(&secret);
    let mut connection = connect(path).map_err(|error| damaged(path, &error))?;
    migrate(&mut connection, path, &check_value(&keys))?;
    prove_key(&connection, settings, &keys)?;
    let wal: String = connection
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(|error| damaged(path, &error))?;
    if wal != "wal" {
        return Err(OpenFault::Damaged(
            path.clone(),
            format!("its folder does not allow a write-ahead log (journal mode {wal})"),
        ));
    }
    Ok((connection, identity, keys))
}

/// A connection that writes durably. It checkpoints the write-ahead log only if `log` did not.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;
         PRAGMA journal_size_limit = 536870912; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 131072;",
    )?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// A connection that cannot write.
pub(crate) fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(
        "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cache_size = -4096;",
    )?;
    Ok(connection)
}

/// The kind of the file at a path, read without SQLite, which would recover the journal of a foreign file.
enum Header {
    Missing,
    Empty,
    Ours,
}

fn header(path: &Path) -> Result<Header, OpenFault> {
    let fault = |error| OpenFault::File(path.to_owned(), error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Header::Missing),
        Err(error) => return Err(fault(error)),
    };
    let mut head = Vec::new();
    file.take(100).read_to_end(&mut head).map_err(fault)?;
    if head.is_empty() {
        return Ok(Header::Empty);
    }
    let application = head
        .get(68..72)
        .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
        .map(|bytes| i64::from(u32::from_be_bytes(bytes)));
    if head.starts_with(b"SQLite format 3\0") && application == Some(APPLICATION_ID) {
        return Ok(Header::Ours);
    }
    Err(OpenFault::Foreign(path.to_owned()))
}

/// Checks a file without creating or changing anything: for the tools.
///
/// # Errors
/// There is no file, or it is not a state file.
pub(crate) fn must_be_ours(path: &Path) -> Result<(), OpenFault> {
    match header(path)? {
        Header::Ours => Ok(()),
        Header::Missing => Err(OpenFault::File(path.to_owned(), ErrorKind::NotFound.into())),
        Header::Empty => Err(OpenFault::Foreign(path.to_owned())),
    }
}

/// Migrates the schema to the latest one.
fn migrate(connection: &mut Connection, path: &Path, key_check: &str) -> Result<(), OpenFault> {
    let fault = |error| damaged(path, &error);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fault)?;
    let version: i64 = transaction
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(fault)?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if version > known {
        return Err(OpenFault::Newer {
            file: path.to_owned(),
            found: version,
            known,
        });
    }
    if version == known {
        return Ok(());
    }
    let done = usize::try_from(version).unwrap_or(0);
    for step in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(step).map_err(fault)?;
    }
    if done == 0 {
        transaction
            .execute("INSERT INTO meta VALUES (?1, ?2)", (KEY_CHECK, key_check))
            .map_err(fault)?;
    }
    transaction
        .pragma_update(None, "application_id", APPLICATION_ID)
        .and_then(|()| transaction.pragma_update(None, "user_version", known))
        .and_then(|()| transaction.commit())
        .map_err(fault)
}

fn prove_key(
    connection: &Connection,
    settings: &StateSettings,
    keys: &Keys,
) -> Result<(), OpenFault> {
    let path = &settings.file;
    let stored: Option<String> = connection
        .query_row(
            "SELECT value FROM meta WHERE name = ?1",
            [KEY_CHECK],
            |row| row.get(0),
        )
        .optional()
        .map_err(|error| damaged(path, &error))?;
    match stored {
        Some(stored) if stored == check_value(keys) => Ok(()),
        Some(_) => Err(OpenFault::KeyForeign {
            key: settings.hash_key.clone(),
            file: path.clone(),
        }),
        None => Err(OpenFault::Damaged(
            path.clone(),
            "it does not know its key".to_owned(),
        )),
    }
}

/// A hash that only the same key gives.
fn check_value(keys: &Keys) -> String {
    format!("{:032x}", u128::from_be_bytes(keys.check()))
}

pub(super) fn damaged(path: &Path, error: &rusqlite::Error) -> OpenFault {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => OpenFault::Locked(path.to_owned()),
        Some(ErrorCode::NotADatabase) => OpenFault::Foreign(path.to_owned()),
        _ => OpenFault::Damaged(path.to_owned(), error.to_string()),
    }
}
