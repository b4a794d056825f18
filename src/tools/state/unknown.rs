//! `portvakt state check` and `portvakt state drop-unknown`: agreements of unknown origin (SCA-17, SCA-22).
//!
//! A version before the mark of origin wrote them, and may have kept what a TPP named while PSUs were learned. Their ids are hashes, so they are
//! counted by TPP. Invariant: only contexts of agreements without a mark are dropped, and gateways that run read their PSUs again. Deliberately
//! not here: private contexts, which no TPP can invent.

use super::fault::StateFault;
use crate::state::{postgres::maintain::Maintenance, sqlite::file};
use rusqlite::{Connection, TransactionBehavior};
use std::{fmt::Write, path::Path, process::ExitCode};

/// The number of changes that a file keeps for other processes. A process that finds fewer than it expects reads everything again.
const KEPT_CHANGES: i64 = 4_096;

/// CTL-3: adds the events of the consents of a file that end, for contexts with a condition that follows.
const WITHDRAWN: &str = "INSERT INTO event (sequence, at, kind, tpp, customer, corporate)
    SELECT (SELECT last FROM outbox) + row_number() OVER (),
        coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'clock_latest'), 0),
        'consent-withdrawn', tpp.name, psu.pseudonym, 1
    FROM context JOIN psu USING (psu) JOIN tpp ON tpp.id = psu.tpp
    WHERE consent IS NOT NULL AND (psu.ended IS NULL OR psu.ended <> psu.last_sca) AND";

/// The agreements of unknown origin that one TPP has.
struct Unknown {
    tpp: String,
    /// Those of PSUs that were learned, and that the bank has not bound since.
    learned: i64,
    /// Those of PSUs that the bank bound.
    bound: i64,
}

/// Says how many there are in a file.
pub(super) fn check_file(path: &Path) -> Result<(String, ExitCode), StateFault> {
    let sql = |error| StateFault::Sql(path.to_owned(), error);
    let connection = file::connect_reader(path).map_err(sql)?;
    must_be_current(&connection, path)?;
    Ok(checked(&count(&connection, false).map_err(sql)?))
}

/// Drops those of a file, or only shows them.
pub(super) fn drop_in_file(
    path: &Path,
    learned_only: bool,
    yes: bool,
) -> Result<String, StateFault> {
    let sql = |error| StateFault::Sql(path.to_owned(), error);
    let mut connection = file::connect(path).map_err(sql)?;
    must_be_current(&connection, path)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(sql)?;
    let found = count(&transaction, learned_only).map_err(sql)?;
    if yes {
        let which = condition("x''", learned_only);
        let drop = format!(
            "INSERT INTO change (kind, key) SELECT DISTINCT 0, psu FROM context WHERE {which};
            {WITHDRAWN} {which};
            UPDATE outbox SET last = max(last, coalesce((SELECT max(sequence) FROM event), 0));
            INSERT INTO change (kind, key) VALUES (3, zeroblob(16));
            DELETE FROM change WHERE seq <= (SELECT max(seq) FROM change) - {KEPT_CHANGES};
            DELETE FROM context WHERE {which};"
        );
        transaction
            .execute_batch(&drop)
            .and_then(|()| transaction.commit())
            .map_err(sql)?;
    }
    Ok(dropped(&found, yes))
}

/// Says how many there are in a database.
pub(super) fn check_database(database: &Maintenance) -> Result<(String, ExitCode), StateFault> {
    Ok(checked(&count_in_database(database, false)?))
}

/// Drops those of a database, or only shows them.
pub(super) fn drop_in_database(
    database: &Maintenance,
    learned_only: bool,
    yes: bool,
) -> Result<String, StateFault> {
    let which = condition("''", learned_only);
    database.run("BEGIN")?;
    if yes {
        // As gateways do: the rows of PSUs first, in the order of their keys, and then their contexts.
        database.run(&format!(
            "DO $$ BEGIN PERFORM FROM psu WHERE psu IN (SELECT psu FROM context WHERE {which}) ORDER BY psu FOR UPDATE; END $$"
        ))?;
    }
    let found = count_in_database(database, learned_only)?;
    if yes {
        database.run(&format!(
            "WITH gone AS (DELETE FROM context WHERE {which} RETURNING psu, consent),
            ended AS (SELECT psu.tpp, psu.pseudonym FROM gone JOIN psu USING (psu)
                WHERE gone.consent IS NOT NULL AND (psu.ended IS NULL OR psu.ended IS DISTINCT FROM psu.last_sca)),
            number AS (SELECT count(*) AS of FROM ended),
            taken AS (UPDATE outbox SET last = last + number.of FROM number RETURNING last - number.of AS before),
            noted AS (INSERT INTO event (sequence, at, kind, tpp, customer, corporate)
                SELECT taken.before + row_number() OVER (), clock.latest, 'consent-withdrawn', ended.tpp, ended.pseudonym, true
                FROM ended, taken, clock)
            INSERT INTO change (kind, key) SELECT DISTINCT 0, psu FROM gone UNION ALL SELECT 3, '00000000-0000-0000-0000-000000000000'::uuid;
            SELECT pg_notify('portvakt_change', '')"
        ))?;
    }
    database.run("COMMIT")?;
    Ok(dropped(&found, yes))
}

fn must_be_current(connection: &Connection, path: &Path) -> Result<(), StateFault> {
    match file::is_current(connection, path)? {
        true => Ok(()),
        false => Err(crate::state::OpenFault::Earlier(path.to_owned()).into()),
    }
}

/// The condition in SQL; `private` is the key of the private context.
fn condition(private: &str, learned_only: bool) -> String {
    let of = match learned_only {
        true => " AND psu IN (SELECT psu FROM psu WHERE learned)",
        false => "",
    };
    format!("corporate <> {private} AND origin = 0{of}")
}

fn count(connection: &Connection, learned_only: bool) -> rusqlite::Result<Vec<Unknown>> {
    let which = condition("x''", learned_only);
    let query = format!(
        "SELECT tpp.name, count(*) FILTER (WHERE learned), count(*) FILTER (WHERE NOT learned)
        FROM context JOIN psu USING (psu) JOIN tpp ON tpp.id = psu.tpp WHERE {which} GROUP BY tpp.name ORDER BY tpp.name"
    );
    let mut statement = connection.prepare(&query)?;
    let rows = statement.query_map([], |row| {
        Ok(Unknown {
            tpp: row.get(0)?,
            learned: row.get(1)?,
            bound: row.get(2)?,
        })
    })?;
    rows.collect()
}

fn count_in_database(
    database: &Maintenance,
    learned_only: bool,
) -> Result<Vec<Unknown>, StateFault> {
    let which = condition("''", learned_only);
    let query = format!(
        "SELECT tpp, count(*) FILTER (WHERE learned), count(*) FILTER (WHERE NOT learned)
        FROM context JOIN psu USING (psu) WHERE {which} GROUP BY tpp ORDER BY tpp"
    );
    let rows = database.query(&query, &[])?;
    let found = rows.iter().map(|row| {
        Ok(Unknown {
            tpp: row.try_get(0)?,
            learned: row.try_get(1)?,
            bound: row.try_get(2)?,
        })
    });
    let found: Result<_, tokio_postgres::Error> = found.collect();
    found.map_err(|error| StateFault::State(crate::state::OpenFault::Postgres(error.to_string())))
}

fn total(found: &[Unknown]) -> i64 {
    found.iter().map(|of| of.learned + of.bound).sum()
}

/// A line for each TPP.
fn lines(found: &[Unknown]) -> String {
    let mut text = String::new();
    for Unknown {
        tpp,
        learned,
        bound,
    } in found
    {
        let _ = writeln!(
            text,
            "{tpp}: {} agreements of unknown origin, {learned} of PSUs that were learned, {bound} of PSUs that the bank bound",
            learned + bound
        );
    }
    text
}

fn checked(found: &[Unknown]) -> (String, ExitCode) {
    if found.is_empty() {
        let text = "the origin of every agreement is known\n".to_owned();
        return (text, ExitCode::SUCCESS);
    }
    let mut text = lines(found);
    let _ = writeln!(
        text,
        "in all: {}. If PSUs were ever learned, a TPP may have invented them: see drop-unknown",
        total(found)
    );
    (text, ExitCode::FAILURE)
}

fn dropped(found: &[Unknown], yes: bool) -> String {
    let mut text = lines(found);
    let total = total(found);
    let _ = match yes {
        true => writeln!(text, "dropped: {total}"),
        false => writeln!(
            text,
            "would be dropped: {total}. Nothing changed: --yes drops them"
        ),
    };
    text
}
