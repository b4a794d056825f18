//! `portvakt state show`.

use super::fault::StateFault;
use crate::state::sqlite::{clock, file};
use jiff::Timestamp;
use rusqlite::Connection;
use std::{fmt::Write, path::Path};

/// The counted tables: label, table, and the column with the time of a row.
const KINDS: [(&str, &str, &str); 6] = [
    ("PSUs, by their last SCA", "psu", "nullif(last_sca, 0)"),
    (
        "contexts, by the time of their consent",
        "context",
        "consent",
    ),
    (
        "quotas, by their last call",
        "quota",
        "max(ifnull(a, 0), ifnull(b, 0), ifnull(c, 0), ifnull(d, 0))",
    ),
    ("lists read page by page, by their call", "page", "call"),
    ("request ids, by their end", "request", "until"),
    ("spent SCA tokens, by their end", "token", "until"),
];

/// The whole output.
pub(super) fn show(path: &Path) -> Result<String, StateFault> {
    let sql = |error| StateFault::Sql(path.to_owned(), error);
    let connection = file::connect_reader(path).map_err(sql)?;
    let mut text = String::new();
    let schema = pragma(&connection, "user_version").map_err(sql)?;
    let _ = writeln!(text, "{}: schema {schema}", path.display());
    for (name, size) in sizes(path) {
        let _ = writeln!(text, "  {name:<40} {size:>12} bytes");
    }
    let free = pragma(&connection, "freelist_count").map_err(sql)?;
    let page = pragma(&connection, "page_size").map_err(sql)?;
    let _ = writeln!(
        text,
        "  {:<40} {:>12} bytes",
        "free inside, for vacuum",
        free.saturating_mul(page)
    );
    for (name, table, time) in KINDS {
        let (count, from, to) = count(&connection, table, time).map_err(sql)?;
        let range = match (from, to) {
            (Some(from), Some(to)) => format!("{} to {}", iso(from), iso(to)),
            _ => String::new(),
        };
        let line = format!("  {name:<40} {count:>12} {range}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let (latest, stepped_back) = clock::latest(&connection).map_err(sql)?;
    let latest = Timestamp::from_second(i64::try_from(latest).unwrap_or(i64::MAX));
    let _ = writeln!(
        text,
        "  {:<40} {}{}",
        "latest time that was seen",
        latest.unwrap_or(Timestamp::MAX),
        if stepped_back {
            ", the clock stepped back since: see accept-clock"
        } else {
            ""
        }
    );
    let check: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(sql)?;
    let _ = writeln!(
        text,
        "  {:<40} {}",
        "integrity",
        if check == "ok" { "good" } else { &check }
    );
    Ok(text)
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
}

/// The sizes of the file and of its write-ahead log.
fn sizes(path: &Path) -> Vec<(&'static str, u64)> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    [("file", path.to_owned()), ("write-ahead log", log.into())]
        .into_iter()
        .filter_map(|(name, path)| Some((name, std::fs::metadata(path).ok()?.len())))
        .collect()
}

fn count(
    connection: &Connection,
    table: &str,
    time: &str,
) -> rusqlite::Result<(i64, Option<i64>, Option<i64>)> {
    let query = format!("SELECT count(*), min({time}), max({time}) FROM {table}");
    connection.query_row(&query, [], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })
}

fn iso(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |at| at.to_string())
}
