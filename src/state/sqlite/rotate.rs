//! The rotation of the hash key of a file: every row is rewritten in one transaction.
//!
//! The rows of a table are moved into a temporary table, which SQLite keeps in a file of its own, and written back in the order of their
//! new keys. Memory is bounded, and no page of the table holds a hash of the level before: the pages that become free are overwritten.
//! Other processes read meanwhile what was there before, and cannot write.

use super::file;
use crate::{
    OpenFault, StateSettings,
    keys::{Keys, NextLevel},
    rotation::{self, Levels, MovedRow, Rotated, TABLES, Table},
};
use rusqlite::{Connection, Transaction, TransactionBehavior, params_from_iter, types::Value};
use std::{path::Path, time::Duration};

/// The time to wait for the lock of writers, and for readers of the log.
const PATIENCE: Duration = Duration::from_secs(60);

/// The settings of the connection: 64 MiB of pages, free pages are overwritten, and what does not fit into memory is in temporary files.
const SETTINGS: &str =
    "PRAGMA secure_delete = ON; PRAGMA temp_store = FILE; PRAGMA cache_size = -65536";

/// The level of a file, and the number of keys.
///
/// # Errors
/// The file or its key cannot be used, or another version wrote the file.
pub fn levels(settings: &StateSettings) -> Result<Levels, OpenFault> {
    let connection = file::connect_reader(&settings.file).map_err(fault(&settings.file))?;
    levels_of(&connection, settings)
}

/// The same, of an open file.
///
/// # Errors
/// The file or its key cannot be used, or another version wrote the file.
pub fn levels_of(connection: &Connection, settings: &StateSettings) -> Result<Levels, OpenFault> {
    Ok(keys(connection, settings)?.1)
}

/// Moves the file to the next level, for which there is a key.
///
/// # Errors
/// The reason: nothing changed.
pub fn rotate(settings: &StateSettings, planned: Levels) -> Result<Rotated, OpenFault> {
    let path = settings.file.as_path();
    let mut connection = file::connect(path).map_err(fault(path))?;
    let ready = connection.busy_timeout(PATIENCE);
    ready
        .and_then(|()| connection.execute_batch(SETTINGS))
        .map_err(fault(path))?;
    let sql = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fault(path))?;
    let (keys, levels) = keys(&sql, settings)?;
    if levels.state != planned.state {
        return Err(OpenFault::RotatedMeanwhile);
    }
    let next = rotation::next_level(&keys, settings)?;
    let mut rows = Vec::new();
    for table in &TABLES {
        rows.push((table.name, rewrite(&sql, path, table, &next)?));
    }
    record(&sql, &next.keys)
        .and_then(|()| sql.commit())
        .map_err(fault(path))?;
    Ok(Rotated {
        from: levels.state,
        to: next.keys.level(),
        rows,
        log_is_empty: empty_log(&connection).unwrap_or(false),
        may_lack_standby: false,
    })
}

fn fault(path: &Path) -> impl Fn(rusqlite::Error) -> OpenFault {
    move |error| file::damaged(path, &error)
}

/// The keys of the file's level, and its levels.
fn keys(connection: &Connection, settings: &StateSettings) -> Result<(Keys, Levels), OpenFault> {
    if !file::is_current(connection, &settings.file)? {
        return Err(OpenFault::Earlier(settings.file.clone()));
    }
    let (keys, count) = file::prove_levels(connection, settings)?;
    let levels = Levels {
        state: keys.level(),
        keys: count,
    };
    Ok((keys, levels))
}

fn record(sql: &Transaction<'_>, keys: &Keys) -> rusqlite::Result<()> {
    sql.execute("DELETE FROM change", [])?;
    for row in keys.records() {
        sql.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", row)?;
    }
    Ok(())
}

/// Checkpoints the log and cuts it off. False if a reader is in the way.
fn empty_log(connection: &Connection) -> rusqlite::Result<bool> {
    let busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(busy == 0)
}

/// Rewrites a table. Returns the number of its rows.
fn rewrite(
    sql: &Transaction<'_>,
    path: &Path,
    table: &Table,
    next: &NextLevel,
) -> Result<u64, OpenFault> {
    let (name, key) = (table.name, table.key);
    let (columns, indices) = parts(sql, name).map_err(fault(path))?;
    let names = columns.join(", ");
    let begin = format!("CREATE TEMP TABLE moving AS SELECT {names} FROM main.{name} WHERE 0");
    sql.execute_batch(&begin).map_err(fault(path))?;
    let rows = copy(sql, path, table, &columns, next)?;
    let mut end = String::new();
    for (index, _) in &indices {
        end += &format!("DROP INDEX main.{index};");
    }
    end += &format!(
        "DELETE FROM main.{name};
        INSERT INTO main.{name} ({names}) SELECT {names} FROM temp.moving ORDER BY {key};
        DROP TABLE temp.moving;"
    );
    for (_, make) in &indices {
        end += &format!("{make};");
    }
    sql.execute_batch(&end).map_err(fault(path))?;
    Ok(rows)
}

/// The names of a table's columns, and its indices that a statement made: name and statement.
#[expect(clippy::type_complexity, reason = "two lists")]
fn parts(
    sql: &Transaction<'_>,
    table: &str,
) -> rusqlite::Result<(Vec<String>, Vec<(String, String)>)> {
    let columns = sql
        .prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?
        .query_map([table], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let indices = sql
        .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ?1 AND sql IS NOT NULL")?
        .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    Ok((columns, indices))
}

/// Copies the rows of a table, moved, into the temporary table. Returns their number.
fn copy(
    sql: &Transaction<'_>,
    path: &Path,
    table: &Table,
    columns: &[String],
    next: &NextLevel,
) -> Result<u64, OpenFault> {
    let fault = fault(path);
    let names = columns.join(", ");
    let select = format!("SELECT {names} FROM main.{}", table.name);
    let places = vec!["?"; columns.len()].join(", ");
    let insert = format!("INSERT INTO temp.moving VALUES ({places})");
    let mut select = sql.prepare(&select).map_err(&fault)?;
    let mut insert = sql.prepare(&insert).map_err(&fault)?;
    let mut found = select.query([]).map_err(&fault)?;
    let mut rows = 0_u64;
    while let Some(row) = found.next().map_err(&fault)? {
        let values = (0..columns.len()).map(|column| row.get(column));
        let mut row = FileRow {
            columns,
            values: values.collect::<Result<_, _>>().map_err(&fault)?,
        };
        table.advance(next, &mut row)?;
        let done = insert.execute(params_from_iter(row.values));
        done.map_err(&fault)?;
        rows = rows.saturating_add(1);
    }
    Ok(rows)
}

/// A row of the file.
struct FileRow<'c> {
    columns: &'c [String],
    values: Vec<Value>,
}

impl FileRow<'_> {
    fn value(&self, column: &str) -> Option<&Value> {
        let mut cells = self.columns.iter().zip(&self.values);
        cells
            .find(|(name, _)| *name == column)
            .map(|(_, value)| value)
    }
}

impl MovedRow for FileRow<'_> {
    fn bytes(&self, column: &str) -> Option<Vec<u8>> {
        match self.value(column)? {
            Value::Null => None,
            Value::Blob(bytes) => Some(bytes.clone()),
            // No version writes one; no hash has this length.
            Value::Integer(_) | Value::Real(_) | Value::Text(_) => Some(vec![0]),
        }
    }

    fn text(&self, column: &str) -> Option<String> {
        match self.value(column)? {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn set(&mut self, column: &str, bytes: Vec<u8>) {
        let mut cells = self.columns.iter().zip(&mut self.values);
        if let Some((_, value)) = cells.find(|(name, _)| *name == column) {
            *value = Value::Blob(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::migrations::MIGRATIONS, *};

    /// A column of bytes that a later schema adds is moved, or named as none with hashes.
    #[test]
    fn every_column_of_bytes_is_known() {
        let sql = Connection::open_in_memory().unwrap();
        for step in MIGRATIONS {
            sql.execute_batch(step).unwrap();
        }
        let columns: Vec<(String, String)> = sql
            .prepare(
                "SELECT of.name, col.name FROM sqlite_master AS of, pragma_table_info(of.name) AS col
                WHERE of.type = 'table' AND col.type = 'BLOB'",
            )
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(columns.len(), 17, "{columns:?}");
        for (table, column) in &columns {
            assert!(rotation::is_known(table, column), "{table}.{column}");
        }
        for table in &TABLES {
            for (column, _) in table.columns {
                let known = (table.name.to_owned(), (*column).to_owned());
                assert!(columns.contains(&known), "{known:?}");
            }
        }
    }
}
