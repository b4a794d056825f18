//! `portvakt state copy`: from the state file to PostgreSQL, while no gateway runs.
//!
//! All rows are written in one transaction, read back, and compared by their number and by a hash of all of them; only then is it
//! committed. Invariant: the file is not changed, a database that has rows is not written to, and rows are copied only together with the
//! hash key that they were made with.

use super::{
    fault::StateFault,
    tables::{ColumnType, TABLES, Table},
};
use crate::hex;
use crate::state::{
    PostgresSettings, StateSettings,
    postgres::maintain::Maintenance,
    sqlite::{clock, file, rotate},
};
use rusqlite::{Connection, types::ValueRef};
use sha2::{Digest, Sha256};
use std::{io::Write, path::Path};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

/// The number of rows in one statement.
const CHUNK: usize = 5_000;

/// The number of rows between two lines of progress: some seconds. A multiple of [`CHUNK`].
const PROGRESS: u64 = 100_000;

/// A value of either database, in one form.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Null,
    Integer(i64),
    Bytes(Vec<u8>),
}

/// The number of rows and the hash of a table, on one side.
#[derive(Default)]
struct Proof {
    rows: u64,
    hash: Sha256,
}

impl Proof {
    fn add(&mut self, row: &[Cell]) {
        self.rows += 1;
        for cell in row {
            match cell {
                Cell::Null => self.hash.update([0]),
                Cell::Integer(number) => {
                    self.hash.update([1]);
                    self.hash.update(number.to_be_bytes());
                }
                Cell::Bytes(bytes) => {
                    self.hash.update([2]);
                    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    self.hash.update(length.to_be_bytes());
                    self.hash.update(bytes);
                }
            }
        }
    }

    /// The number of rows, and the hash in hexadecimal.
    fn end(self) -> (u64, String) {
        (self.rows, hex::encode(&self.hash.finalize()))
    }
}

/// Copies the file of the settings into the database of the settings. `out` gets the progress, and a line for each table.
///
/// # Errors
/// The hash key is not that of the file, the file or the database is in use, the database has rows, or the copy differs: the database is as
/// before.
pub(super) fn copy(
    settings: &StateSettings,
    postgres: &PostgresSettings,
    out: &mut impl Write,
) -> Result<(), StateFault> {
    let path = settings.file.as_path();
    let file = open_alone(path)?;
    let level = file::prove(&file, settings)?;
    let database = Maintenance::open(settings, postgres, &level)?;
    if database.column("SELECT value FROM meta WHERE name = 'key_check'")? != [level] {
        let database = database.levels(settings)?.state;
        let file = rotate::levels_of(&file, settings)?.state;
        return Err(StateFault::OtherLevel { file, database });
    }
    database.run("SET idle_in_transaction_session_timeout = 0; BEGIN")?;
    database
        .keep_gateways_out()
        .map_err(StateFault::DatabaseInUse)?;
    for table in &TABLES {
        let name = table.name;
        let found = database.column(&format!(
            "SELECT key::text FROM (SELECT {} AS key FROM {name} LIMIT 1) AS first",
            first_column(table)
        ))?;
        if !found.is_empty() {
            return Err(StateFault::NotEmpty(name));
        }
    }
    for table in &TABLES {
        let name = table.name;
        // A closed output does not stop the copy.
        let mut tell = |proof: &Proof, step: &str| {
            if proof.rows > 0 && proof.rows.is_multiple_of(PROGRESS) {
                let _ = writeln!(out, "{name:<10} {:>12} rows {step}", proof.rows);
            }
        };
        let written = write(&file, path, &database, table, &mut tell)?.end();
        let read = read_back(&database, table, &mut tell)?.end();
        if written != read {
            return Err(StateFault::Differs(name));
        }
        let (rows, hash) = written;
        let _ = writeln!(
            out,
            "{name:<10} {rows:>12} rows, SHA-256 {hash} on both sides"
        );
    }
    let (latest, stepped_back) = clock::latest(&file).map_err(sql(path))?;
    let latest = i64::try_from(latest).unwrap_or(i64::MAX);
    database.query(
        "UPDATE clock SET latest = greatest(latest, $1), stepped_back = stepped_back OR $2",
        &[&latest, &stepped_back],
    )?;
    // CTL-3: the stream goes on, so that cursors of the file remain valid.
    let outbox = "SELECT stream, last, pruned FROM outbox";
    let [stream, last, pruned]: [i64; 3] = file
        .query_row(outbox, [], |row| {
            Ok([row.get(0)?, row.get(1)?, row.get(2)?])
        })
        .map_err(sql(path))?;
    database.query(
        "UPDATE outbox SET stream = $1, last = $2, pruned = $3",
        &[&stream, &last, &pruned],
    )?;
    database.run("COMMIT")?;
    let _ = writeln!(out, "committed; {} is unchanged", path.display());
    Ok(())
}

fn first_column(table: &Table) -> &'static str {
    table.columns.first().map_or("1", |(name, _)| name)
}

fn sql(path: &Path) -> impl Fn(rusqlite::Error) -> StateFault {
    move |error| StateFault::Sql(path.to_owned(), error)
}

/// Opens the file for this process alone: a gateway that uses it holds a lock.
fn open_alone(path: &Path) -> Result<Connection, StateFault> {
    let connection = file::connect(path).map_err(sql(path))?;
    let alone = connection
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE")
        .and_then(|()| connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)));
    match alone {
        Ok(_) => Ok(connection),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
            Err(StateFault::InUse(path.to_owned()))
        }
        Err(error) => Err(sql(path)(error)),
    }
}

/// Writes the rows of a table, in the order of their keys, and tells the progress.
fn write(
    file: &Connection,
    path: &Path,
    database: &Maintenance,
    table: &Table,
    tell: &mut impl FnMut(&Proof, &str),
) -> Result<Proof, StateFault> {
    let mut statement = file.prepare(table.from_file).map_err(sql(path))?;
    let mut rows = statement.query([]).map_err(sql(path))?;
    let (mut proof, mut chunk) = (Proof::default(), Vec::new());
    while let Some(row) = rows.next().map_err(sql(path))? {
        let mut cells = Vec::new();
        for column in 0..table.columns.len() {
            cells.push(match row.get_ref(column).map_err(sql(path))? {
                ValueRef::Integer(number) => Cell::Integer(number),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
                ValueRef::Null | ValueRef::Real(_) => Cell::Null,
            });
        }
        proof.add(&cells);
        chunk.push(cells);
        if chunk.len() >= CHUNK {
            insert(database, table, &std::mem::take(&mut chunk))?;
            tell(&proof, "written");
        }
    }
    insert(database, table, &chunk)?;
    Ok(proof)
}

fn insert(database: &Maintenance, table: &Table, rows: &[Vec<Cell>]) -> Result<(), StateFault> {
    let mut arrays: Vec<Box<dyn ToSql + Sync>> = Vec::new();
    let mut types = Vec::new();
    for (index, (_, kind)) in table.columns.iter().enumerate() {
        let column = rows.iter().map(|row| row.get(index).unwrap_or(&Cell::Null));
        types.push(format!("${}::{}[]", index + 1, kind.name()));
        arrays.push(kind.array(column));
    }
    let statement = format!(
        "INSERT INTO {} ({}) SELECT * FROM unnest({})",
        table.name,
        names(table),
        types.join(", ")
    );
    let parameters: Vec<&(dyn ToSql + Sync)> = arrays.iter().map(AsRef::as_ref).collect();
    database.query(&statement, &parameters)?;
    Ok(())
}

fn names(table: &Table) -> String {
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// Reads a table from the database, in the order of its keys, and tells the progress.
fn read_back(
    database: &Maintenance,
    table: &Table,
    tell: &mut impl FnMut(&Proof, &str),
) -> Result<Proof, StateFault> {
    let mut proof = Proof::default();
    let (names, name, key) = (names(table), table.name, table.key);
    database.run(&format!(
        "DECLARE copied NO SCROLL CURSOR FOR SELECT {names} FROM {name} ORDER BY {key}"
    ))?;
    loop {
        let rows = database.query(&format!("FETCH {CHUNK} FROM copied"), &[])?;
        for row in &rows {
            let cells = table.columns.iter().enumerate();
            let cells = cells.map(|(index, (_, kind))| kind.cell(row, index));
            let cells: Result<Vec<Cell>, _> = cells.collect();
            proof.add(&cells.map_err(|_| StateFault::Differs(table.name))?);
        }
        if rows.is_empty() {
            database.run("CLOSE copied")?;
            return Ok(proof);
        }
        tell(&proof, "read back");
    }
}

impl ColumnType {
    const fn name(self) -> &'static str {
        match self {
            Self::Uuid => "uuid",
            Self::Integer => "bigint",
            Self::Boolean => "boolean",
            Self::Bytes => "bytea",
            Self::Text => "text",
        }
    }

    /// The values of a column. A value of another type becomes NULL, and then the copy differs.
    fn array<'c>(self, cells: impl Iterator<Item = &'c Cell>) -> Box<dyn ToSql + Sync> {
        fn array<'c, T: ToSql + Sync + 'static>(
            cells: impl Iterator<Item = &'c Cell>,
            value: impl Fn(&Cell) -> Option<T>,
        ) -> Box<dyn ToSql + Sync> {
            let values: Vec<Option<T>> = cells.map(value).collect();
            Box::new(values)
        }
        let bytes = |cell: &Cell| match cell {
            Cell::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        };
        let integer = |cell: &Cell| match cell {
            Cell::Integer(number) => Some(*number),
            _ => None,
        };
        match self {
            Self::Uuid => array(cells, |cell| Uuid::from_slice(&bytes(cell)?).ok()),
            Self::Integer => array(cells, integer),
            Self::Boolean => array(cells, |cell| integer(cell).map(|number| number != 0)),
            Self::Bytes => array(cells, bytes),
            Self::Text => array(cells, |cell| String::from_utf8(bytes(cell)?).ok()),
        }
    }

    fn cell(self, row: &Row, column: usize) -> Result<Cell, tokio_postgres::Error> {
        let bytes = |bytes: Option<Vec<u8>>| bytes.map_or(Cell::Null, Cell::Bytes);
        let integer = |number: Option<i64>| number.map_or(Cell::Null, Cell::Integer);
        Ok(match self {
            Self::Uuid => {
                let id: Option<Uuid> = row.try_get(column)?;
                bytes(id.map(|id| id.into_bytes().to_vec()))
            }
            Self::Integer => integer(row.try_get(column)?),
            Self::Boolean => integer(row.try_get::<_, Option<bool>>(column)?.map(i64::from)),
            Self::Bytes => bytes(row.try_get(column)?),
            Self::Text => bytes(
                row.try_get::<_, Option<String>>(column)?
                    .map(String::into_bytes),
            ),
        })
    }
}
