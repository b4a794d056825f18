//! Copies of a state file: those that a migration makes beside it, one on which it is tried and one for the way back, and an operator's.
//!
//! Invariant: no file is migrated without a copy of it that an earlier version can use.

use super::{super::OpenFault, migrations::MIGRATIONS};
use portvakt_base::private_file;
use rusqlite::{
    Connection,
    types::{ToSqlOutput, ValueRef},
};
use std::{
    fmt::Display,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The suffixes of a file and of what SQLite puts beside it.
const BESIDE: [&str; 4] = ["", "-journal", "-wal", "-shm"];

/// The copy on which a migration is tried.
fn rehearsed(path: &Path) -> PathBuf {
    with_suffix(path, ".rehearsal")
}

/// The copy for the way back.
fn kept(path: &Path, schema: impl Display) -> PathBuf {
    with_suffix(path, &format!(".schema-{schema}"))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn remove(copy: &Path) {
    for suffix in BESIDE {
        // One that stays is in the way of the next copy, which says so.
        let _ = std::fs::remove_file(with_suffix(copy, suffix));
    }
}

/// Removes what a rehearsal has left whose process was killed.
pub(super) fn remove_rehearsed(path: &Path) {
    let copy = rehearsed(path);
    for schema in 1..MIGRATIONS.len() {
        remove(&kept(&copy, schema));
    }
    remove(&copy);
}

/// Copies the file for a rehearsal, to the returned place.
///
/// # Errors
/// The file cannot be copied.
pub(super) fn copy_to_rehearse(connection: &Connection, path: &Path) -> Result<PathBuf, OpenFault> {
    remove_rehearsed(path);
    let copy = rehearsed(path);
    write(connection, &copy)?;
    Ok(copy)
}

/// Copies a file of an earlier schema, which is migrated next. The name has the schema: `portvakt.db.schema-5`.
///
/// # Errors
/// The file cannot be copied.
pub(super) fn keep(connection: &Connection, path: &Path, schema: i64) -> Result<(), OpenFault> {
    let copy = kept(path, schema);
    // That of an earlier migration, from which somebody went back.
    remove(&copy);
    write(connection, &copy)?;
    let copy = copy.display();
    tracing::info!(schema, %copy, "the state is copied before its schema is migrated");
    Ok(())
}

/// Writes a durable copy of mode 0600, which is a complete state with the same key. Gateways may use the file meanwhile.
///
/// # Errors
/// There is a file of that name, which stays, or the copy cannot be written.
pub fn write(connection: &Connection, copy: &Path) -> Result<(), OpenFault> {
    let fault = |error| OpenFault::File(copy.to_owned(), error);
    // SQLite fills an empty file, which has the right mode from the start.
    let file = private_file::create(copy).map_err(fault)?;
    // A name need not be UTF-8.
    let name = ToSqlOutput::Borrowed(ValueRef::Text(copy.as_os_str().as_bytes()));
    let copied = connection.execute("VACUUM INTO ?1", [name]);
    let copied = copied.map_err(|error| OpenFault::Unusable(copy.to_owned(), error.to_string()));
    let written = copied.and_then(|_| {
        file.sync_all()
            .and_then(|()| private_file::sync_folder_of(copy))
            .map_err(fault)
    });
    if written.is_err() {
        remove(copy);
    }
    written
}
