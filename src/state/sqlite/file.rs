//! Opening the file: it must be a state file, intact, of a supported schema, and with its own key; otherwise a message for the operator.
//!
//! Invariant: a file that is not a state file, or that cannot be used, is not changed. Schema migrations only go forward, each in one
//! transaction, and two processes may migrate at once.

use super::super::{
    OpenFault, StateSettings,
    key_chain::KeyChain,
    keys::Keys,
    level,
    settings::{CUSTOMER_KEY_ROW, EarlierSchema, KEY_ROW, LEVEL_ROW, RECORDED},
};
use super::{copies, identity::Identity, migrations::MIGRATIONS};
use portvakt_base::private_file;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior, config::DbConfig,
};
use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
    time::Duration,
};

/// `application_id` of a state file: "Pvkt".
pub(crate) const APPLICATION_ID: i64 = 0x5076_6b74;

/// The time that a writer waits for another process.
const BUSY: Duration = Duration::from_secs(2);

/// Tries whether [`open`] would succeed. Creates no file, and migrates none.
pub(super) fn try_open(settings: &StateSettings) -> Result<(), OpenFault> {
    let path = &settings.file;
    let folder = private_file::folder_of(path);
    private_file::try_make(path).map_err(|error| OpenFault::Folder(folder.to_owned(), error))?;
    try_log(path)?;
    let found = header(path)?;
    let Some(chain) = read_key(settings, &found)? else {
        let key = &settings.hash_key;
        return private_file::try_make_new(key)
            .map_err(|error| OpenFault::File(key.clone(), error));
    };
    if !matches!(found, Header::Ours) {
        return Ok(());
    }
    // SQLite would open a file that it cannot write as one that is only read.
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|error| OpenFault::File(path.clone(), error))?;
    let fault = |error| damaged(path, &error);
    let mut connection = connect_reader(path).map_err(fault)?;
    let version = schema(&connection).map_err(fault)?;
    check_known(path, version)?;
    prove_key(&connection, settings, &chain)?;
    to_record(&connection, settings)?;
    // Another process may hold the lock of writers, as a tool that was forgotten.
    connection
        .execute_batch("PRAGMA query_only = OFF")
        .and_then(|()| connection.transaction_with_behavior(TransactionBehavior::Immediate))
        .map(drop)
        .map_err(fault)
}

/// The files of SQLite's log beside the state: SQLite reports only that it "cannot open" one of them.
fn try_log(state: &Path) -> Result<(), OpenFault> {
    for suffix in ["-wal", "-shm"] {
        let mut path = state.as_os_str().to_owned();
        path.push(suffix);
        let path = PathBuf::from(path);
        match std::fs::metadata(&path) {
            Ok(found) if !found.is_file() => return Err(OpenFault::Log(path)),
            _ => {}
        }
    }
    Ok(())
}

/// The key; `None` if the first start makes it. A file without its key is a fault.
fn read_key(settings: &StateSettings, found: &Header) -> Result<Option<KeyChain>, OpenFault> {
    match (KeyChain::read(&settings.hash_key)?, found) {
        (None, Header::Ours) => Err(key_missing(settings)),
        (key, _) => Ok(key),
    }
}

fn key_missing(settings: &StateSettings) -> OpenFault {
    OpenFault::KeyMissing {
        key: settings.hash_key.clone(),
        file: settings.file.clone(),
    }
}

/// Opens the file with its key; creates both if there are none.
pub(super) fn open(
    settings: &StateSettings,
    earlier: EarlierSchema,
) -> Result<(Connection, Identity, Keys), OpenFault> {
    let path = &settings.file;
    let fault = |error| OpenFault::File(path.clone(), error);
    let folder = private_file::folder_of(path);
    private_file::make_folder_of(path)
        .map_err(|error| OpenFault::Folder(folder.to_owned(), error))?;
    // SQLite does not wait when two connections enable the journal of a new file at the same time.
    let alone = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
    let _alone = alone.map_err(|error| OpenFault::File(folder.to_owned(), error))?;
    let found = header(path)?;
    let chain = match read_key(settings, &found)? {
        Some(chain) => chain,
        None => KeyChain::make(&settings.hash_key)?,
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
    let mut connection = connect(path).map_err(|error| damaged(path, &error))?;
    let found = earlier_schema(&connection, path)?;
    if let Some(schema) = found.filter(|_| earlier == EarlierSchema::Migrated) {
        copies::keep(&connection, path, schema)?;
    }
    migrate(&mut connection, path, &chain.newest(), earlier)?;
    let keys = prove_key(&connection, settings, &chain)?;
    for row in to_record(&connection, settings)? {
        let done = connection.execute("INSERT INTO meta VALUES (?1, ?2)", row);
        done.map_err(|error| damaged(path, &error))?;
    }
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
pub fn connect(path: &Path) -> rusqlite::Result<Connection> {
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
    // Otherwise a statement with a range is prepared anew whenever its parameters change: that was a fifth of a transaction's work.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// A connection that cannot write.
pub fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(
        "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cache_size = -4096;",
    )?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
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
    let file = match private_file::open(path) {
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
pub fn must_be_ours(path: &Path) -> Result<(), OpenFault> {
    match header(path)? {
        Header::Ours => Ok(()),
        Header::Missing => Err(OpenFault::File(path.to_owned(), ErrorKind::NotFound.into())),
        Header::Empty => Err(OpenFault::Foreign(path.to_owned())),
    }
}

/// Proves that the hash key of the settings is the one that an open file was made with: for the tools. Returns the check value of the file.
///
/// # Errors
/// There is no key, or it belongs to another file.
pub fn prove(connection: &Connection, settings: &StateSettings) -> Result<String, OpenFault> {
    prove_levels(connection, settings).map(|(keys, _)| keys.check_value())
}

/// The same. Returns the keys of the file's level, and the number of keys.
pub(super) fn prove_levels(
    connection: &Connection,
    settings: &StateSettings,
) -> Result<(Keys, usize), OpenFault> {
    match KeyChain::read(&settings.hash_key)? {
        Some(chain) => Ok((prove_key(connection, settings, &chain)?, chain.count())),
        None => Err(key_missing(settings)),
    }
}

/// The check value of the file's hash key, and that of the key for customers if the file has one.
pub(super) fn key_checks(connection: &Connection) -> rusqlite::Result<(String, Option<String>)> {
    connection
        .prepare_cached(
            "SELECT value, (SELECT value FROM meta WHERE name = ?2) FROM meta WHERE name = ?1",
        )?
        .query_row([KEY_ROW, CUSTOMER_KEY_ROW], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
}

/// Whether an open file has the latest schema: for the tools, which migrate none.
///
/// # Errors
/// The file has a later schema, or cannot be read.
pub fn is_current(connection: &Connection, path: &Path) -> Result<bool, OpenFault> {
    let found = schema(connection).map_err(|error| damaged(path, &error))?;
    Ok(check_known(path, found)? == found)
}

/// The schema of an open file, if it is an earlier one.
fn earlier_schema(connection: &Connection, path: &Path) -> Result<Option<i64>, OpenFault> {
    let found = schema(connection).map_err(|error| damaged(path, &error))?;
    let known = check_known(path, found)?;
    Ok((0 < found && found < known).then_some(found))
}

/// Migrates the schema to the latest one. A new file has none yet.
fn migrate(
    connection: &mut Connection,
    path: &Path,
    new: &Keys,
    earlier: EarlierSchema,
) -> Result<(), OpenFault> {
    let fault = |error| damaged(path, &error);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fault)?;
    let version = schema(&transaction).map_err(fault)?;
    let known = check_known(path, version)?;
    if version == known {
        return Ok(());
    }
    let done = usize::try_from(version).unwrap_or(0);
    if done > 0 && earlier == EarlierSchema::Refused {
        return Err(OpenFault::Earlier(path.to_owned()));
    }
    for step in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(step).map_err(fault)?;
    }
    if done == 0 {
        for (name, value) in new.records() {
            let insert = transaction.execute("INSERT INTO meta VALUES (?1, ?2)", (name, value));
            insert.map_err(fault)?;
        }
    }
    transaction
        .pragma_update(None, "application_id", APPLICATION_ID)
        .and_then(|()| transaction.pragma_update(None, "user_version", known))
        .and_then(|()| transaction.commit())
        .map_err(fault)
}

fn schema(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// The latest schema; a fault if the file has a later one.
fn check_known(path: &Path, found: i64) -> Result<i64, OpenFault> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(OpenFault::Newer {
            file: path.to_owned(),
            found,
            known,
        });
    }
    Ok(known)
}

/// Judges what an open file has recorded. Returns the rows of `meta` that it lacks.
fn to_record(
    connection: &Connection,
    settings: &StateSettings,
) -> Result<Vec<(&'static str, String)>, OpenFault> {
    let mut missing = Vec::new();
    for row in RECORDED {
        let found = recorded(connection, &settings.file, row)?;
        let own = settings.judge_recorded(row, found)?;
        missing.extend(own.map(|own| (row, own)));
    }
    Ok(missing)
}

/// Records the key for customers of the settings in place of the one before (CTL-3): for the tools. Returns whether the settings name one.
///
/// # Errors
/// The key or the file cannot be used: nothing changed.
pub fn accept_customer_key(
    connection: &Connection,
    settings: &StateSettings,
) -> Result<bool, OpenFault> {
    let Some(own) = settings.events.key_check()? else {
        return Ok(false);
    };
    let replace = "INSERT OR REPLACE INTO meta VALUES (?1, ?2)";
    let done = connection.execute(replace, (CUSTOMER_KEY_ROW, own));
    done.map_err(|error| damaged(&settings.file, &error))?;
    Ok(true)
}

/// A row of `meta`.
fn recorded(connection: &Connection, path: &Path, row: &str) -> Result<Option<String>, OpenFault> {
    connection
        .query_row("SELECT value FROM meta WHERE name = ?1", [row], |row| {
            row.get(0)
        })
        .optional()
        .map_err(|error| damaged(path, &error))
}

/// The keys of the level that an open file has.
fn prove_key(
    connection: &Connection,
    settings: &StateSettings,
    chain: &KeyChain,
) -> Result<Keys, OpenFault> {
    let path = &settings.file;
    let Some(stored) = recorded(connection, path, KEY_ROW)? else {
        return Err(OpenFault::Damaged(
            path.clone(),
            "it does not know its key".to_owned(),
        ));
    };
    if let Some(keys) = chain.with_check(&stored) {
        return Ok(keys);
    }
    let other = OpenFault::KeyForeign {
        key: settings.hash_key.clone(),
        file: path.clone(),
    };
    let level = recorded(connection, path, LEVEL_ROW)?;
    Err(level::foreign(&settings.hash_key, level, other))
}

pub(super) fn damaged(path: &Path, error: &rusqlite::Error) -> OpenFault {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => OpenFault::Locked(path.to_owned()),
        Some(ErrorCode::NotADatabase) => OpenFault::Foreign(path.to_owned()),
        Some(
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory,
        ) => OpenFault::Unusable(path.to_owned(), error.to_string()),
        _ => OpenFault::Damaged(path.to_owned(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn a_disk_that_is_in_the_way_is_no_damage() {
        let said = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            damaged(Path::new("portvakt.db"), &error).to_string()
        };
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR,
            ffi::SQLITE_READONLY,
            ffi::SQLITE_CANTOPEN,
        ] {
            let text = said(code);
            assert!(text.contains("nothing changed: make space"), "{text}");
        }
        assert!(said(ffi::SQLITE_CORRUPT).contains("restore a backup"));
    }
}
