//! The rotation of the hash key of a database: every row is rewritten in one transaction, and the keys stay in this process.
//!
//! The tables are locked, so that a gateway has committed before or waits. The rows of a table are read with a cursor, moved, written into
//! a temporary table, and back into the emptied table in the order of their new keys: the server removes the files of the emptied table at
//! the commit. From then on the server itself refuses what a session of another level writes.

use super::{
    connect::{LEVEL_SETTING, text},
    maintain::Maintenance,
    migrate::{self, LOCK, NOTICES_ROTATION},
    session::OF_LEVEL,
};
use crate::{
    OpenFault, StateSettings,
    keys::{Keys, NextLevel},
    rotation::{self, Levels, MovedRow, Rotated, TABLES, Table},
};
use portvakt_base::hex;
use std::sync::atomic::Ordering;
use tokio_postgres::{Error, Row, types::ToSql};
use uuid::Uuid;

/// The number of rows in one statement.
const CHUNK: usize = 5_000;

/// Gateways that use the database, of versions that do not notice a rotation.
fn earlier() -> String {
    let held = |lock: i64, of: &str| {
        format!(
            "{of}.locktype = 'advisory' AND {of}.classid = {lock} AND {of}.objid = 'meta'::regclass::oid AND {of}.objsubid = 2
            AND {of}.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
    };
    let (any, noticing) = (held(LOCK, "held"), held(NOTICES_ROTATION, "beside"));
    format!(
        "SELECT held.pid::text FROM pg_locks AS held WHERE {any}
        AND NOT EXISTS (SELECT FROM pg_locks AS beside WHERE beside.pid = held.pid AND {noticing})"
    )
}

/// The table that each transaction of a gateway writes to refuses sessions of another level. Its rows are not checked, nor are those of a
/// backup that is restored.
fn refuse_others(keys: &Keys) -> String {
    let check = keys.check_value();
    format!(
        "ALTER TABLE attempt DROP CONSTRAINT IF EXISTS {OF_LEVEL},
        ADD CONSTRAINT {OF_LEVEL} CHECK (coalesce(current_setting('{LEVEL_SETTING}', true), '') = '{check}') NOT VALID"
    )
}

impl Maintenance {
    /// The level of the database, and the number of keys.
    ///
    /// # Errors
    /// The database or its key cannot be used.
    pub fn levels(&self, settings: &StateSettings) -> Result<Levels, OpenFault> {
        self.keys(settings).map(|(_, levels)| levels)
    }

    /// Moves the database to the next level, for which there is a key.
    ///
    /// # Errors
    /// The reason: nothing changed.
    pub fn rotate(&self, settings: &StateSettings, planned: Levels) -> Result<Rotated, OpenFault> {
        // Longer than a gateway waits: its transactions end first.
        self.run("SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '20s'; SET bytea_output = 'hex'; BEGIN")?;
        if !self.column(&earlier())?.is_empty() {
            return Err(OpenFault::EarlierGateways);
        }
        let mut names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        names.extend(["change", "attempt"]);
        let names = names.join(", ");
        self.run(&format!("LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"))
            .map_err(|fault| OpenFault::TableInUse(fault.to_string()))?;
        let (keys, levels) = self.keys(settings)?;
        if levels.state != planned.state {
            return Err(OpenFault::RotatedMeanwhile);
        }
        let next = rotation::next_level(&keys, settings)?;
        let mut rows = Vec::new();
        for table in &TABLES {
            rows.push((table.name, self.rewrite(table, &next)?));
        }
        self.run("TRUNCATE change")?;
        self.run(&refuse_others(&next.keys))?;
        let record = "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        for (name, value) in next.keys.records() {
            self.query(record, &[&name, &value])?;
        }
        let to = next.keys.level();
        let warned = &self.session.warned;
        warned.store(false, Ordering::Release);
        let unclear = |fault: OpenFault| OpenFault::RotationUnclear {
            reason: fault.to_string(),
            level: to,
        };
        self.run("COMMIT").map_err(unclear)?;
        Ok(Rotated {
            from: levels.state,
            to,
            rows,
            log_is_empty: true,
            may_lack_standby: warned.load(Ordering::Acquire),
        })
    }

    fn keys(&self, settings: &StateSettings) -> Result<(Keys, Levels), OpenFault> {
        let found = self.runtime.block_on(migrate::meta(&self.session.client));
        let found = found.map_err(|error| OpenFault::Postgres(text(&error)))?;
        let found = found.ok_or(OpenFault::PostgresEmpty)?;
        let (keys, count) = found.keys(&settings.hash_key)?;
        let levels = Levels {
            state: keys.level(),
            keys: count,
        };
        Ok((keys, levels))
    }

    /// Rewrites a table. Returns the number of its rows.
    fn rewrite(&self, table: &Table, next: &NextLevel) -> Result<u64, OpenFault> {
        let (name, key) = (table.name, table.key);
        let columns = self.columns(name)?;
        let texts: Vec<String> = columns
            .iter()
            .map(|(of, _)| format!("{of}::text"))
            .collect();
        let texts = texts.join(", ");
        self.run(&format!(
            "CREATE TEMP TABLE moving (LIKE {name}) ON COMMIT DROP;
            DECLARE found NO SCROLL CURSOR FOR SELECT {texts} FROM {name}"
        ))?;
        let insert = insert(&columns);
        let fetch = format!("FETCH {CHUNK} FROM found");
        let mut rows = 0_u64;
        loop {
            let chunk = self.query(&fetch, &[])?;
            if chunk.is_empty() {
                break;
            }
            rows = rows.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
            let moved = chunk.iter().map(|row| {
                let mut row = TextRow::new(&columns, row)?;
                table.advance(next, &mut row)?;
                Ok(row.values)
            });
            self.insert(
                &insert,
                columns.len(),
                moved.collect::<Result<_, OpenFault>>()?,
            )?;
        }
        self.run(&format!(
            "CLOSE found; TRUNCATE {name}; INSERT INTO {name} SELECT * FROM moving ORDER BY {key}; DROP TABLE moving"
        ))?;
        Ok(rows)
    }

    /// The names and types of a table's columns, in their order.
    fn columns(&self, table: &str) -> Result<Vec<(String, String)>, OpenFault> {
        let names = "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
            WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
        let rows = self.query(names, &[&table])?;
        let columns = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        let columns: Result<_, Error> = columns.collect();
        columns.map_err(|error| OpenFault::Postgres(text(&error)))
    }

    fn insert(
        &self,
        statement: &str,
        columns: usize,
        mut rows: Vec<Vec<Option<String>>>,
    ) -> Result<(), OpenFault> {
        let arrays: Vec<Vec<Option<String>>> = (0..columns)
            .map(|column| {
                let cells = rows.iter_mut().map(|row| row.get_mut(column)?.take());
                cells.collect()
            })
            .collect();
        let parameters: Vec<&(dyn ToSql + Sync)> = arrays
            .iter()
            .map(|array| -> &(dyn ToSql + Sync) { array })
            .collect();
        self.query(statement, &parameters).map(drop)
    }
}

/// The statement that adds rows to the temporary table, from an array of texts for each column.
fn insert(columns: &[(String, String)]) -> String {
    let numbered = || columns.iter().zip(1..);
    let cells: Vec<_> = numbered()
        .map(|((_, of), at)| format!("n.c{at}::{of}"))
        .collect();
    let arrays: Vec<_> = numbered().map(|(_, at)| format!("${at}::text[]")).collect();
    let names: Vec<_> = numbered().map(|(_, at)| format!("c{at}")).collect();
    let (cells, arrays, names) = (cells.join(", "), arrays.join(", "), names.join(", "));
    format!("INSERT INTO moving SELECT {cells} FROM unnest({arrays}) AS n ({names})")
}

/// The bytes of hexadecimal digits.
fn bytea(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| hex::byte(*high, *low));
    bytes.collect::<Option<_>>().filter(|_| rest.is_empty())
}

/// A row as text, in the forms of uuid and of bytea.
struct TextRow<'c> {
    columns: &'c [(String, String)],
    values: Vec<Option<String>>,
}

impl<'c> TextRow<'c> {
    fn new(columns: &'c [(String, String)], row: &Row) -> Result<Self, OpenFault> {
        let values = (0..columns.len()).map(|column| row.try_get(column));
        let values: Result<_, Error> = values.collect();
        let values = values.map_err(|error| OpenFault::Postgres(text(&error)))?;
        Ok(Self { columns, values })
    }

    fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|(name, _)| name == column)
    }
}

impl MovedRow for TextRow<'_> {
    fn bytes(&self, column: &str) -> Option<Vec<u8>> {
        let text = self.text(column)?;
        // No hash has the length of what cannot be read.
        Some(match text.strip_prefix("\\x") {
            Some(digits) => bytea(digits).unwrap_or(vec![0]),
            None => Uuid::parse_str(&text).map_or(vec![0], |id| id.into_bytes().to_vec()),
        })
    }

    fn text(&self, column: &str) -> Option<String> {
        self.values.get(self.position(column)?)?.clone()
    }

    fn set(&mut self, column: &str, bytes: Vec<u8>) {
        let Some(position) = self.position(column) else {
            return;
        };
        let is_uuid = self
            .columns
            .get(position)
            .is_some_and(|(_, of)| of == "uuid");
        let digits = hex::encode(&bytes);
        if let Some(value) = self.values.get_mut(position) {
            *value = Some(if is_uuid {
                digits
            } else {
                format!("\\x{digits}")
            });
        }
    }
}
