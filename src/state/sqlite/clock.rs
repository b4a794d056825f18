//! The latest time, stored in the file, so that a clock that stepped back is detected after a restart too; and an operator's acceptance of
//! the clock, which running gateways on the file apply.
//!
//! The time is written with other changes, at most once a second. Invariant: an expired row is removed only by a time that the file has.

use super::{kept_clock::KeptClock, shared::Shared};
use crate::{
    clock::{AcceptedClock, ClockRow},
    stored::seconds,
};
use portvakt_base::clock::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of `meta`: the latest time; whether the clock stepped back too far; the number of times that an operator accepted the clock.
const LATEST: &str = "clock_latest";
const STEPPED_BACK: &str = "clock_stepped_back";
const ACCEPTED: &str = "clock_accepted";

/// The interval in seconds after which the latest time is written if nothing else is.
const RESTING: u64 = 3_600;

/// Moves times that are ahead of the accepted clock back to it: no session, consent or call ends later than if it had been made now.
/// Request ids are not changed, because their Dates will be valid again.
const AHEAD: [&str; 7] = [
    "UPDATE psu SET last_sca = min(last_sca, ?1), completed = min(completed, ?1)
     WHERE last_sca > ?1 OR completed > ?1",
    "UPDATE context SET last_sca = min(last_sca, ?1), consent = min(consent, ?1), used = min(used, ?1 - ?1 % 86400)
     WHERE last_sca > ?1 OR consent > ?1 OR used > ?1",
    "UPDATE quota SET a = ?1 WHERE a > ?1",
    "UPDATE quota SET b = ?1 WHERE b > ?1",
    "UPDATE quota SET c = ?1 WHERE c > ?1",
    "UPDATE quota SET d = ?1 WHERE d > ?1",
    "UPDATE page SET call = ?1 WHERE call > ?1",
];

/// Reads the stored clock.
pub(super) fn open(connection: &Connection) -> rusqlite::Result<(ClockRow, KeptClock)> {
    let row = read(connection)?;
    let kept = KeptClock {
        latest: AtomicU64::new(row.latest),
        changes: AtomicU64::new(0),
    };
    Ok((row, kept))
}

/// Stores the latest time at the end of a transaction, if something was written and a second has passed.
pub(super) fn keep(sql: &Transaction<'_>, shared: &Shared) -> rusqlite::Result<()> {
    let kept = &shared.kept_clock;
    let changes = sql.total_changes();
    let wrote = kept.changes.swap(changes, Ordering::Relaxed) != changes;
    let latest = shared.process.clock.latest().unix();
    if !wrote || latest <= kept.latest.load(Ordering::Relaxed) {
        return Ok(());
    }
    heed(sql, shared, true)
}

/// Every second: applies an operator's acceptance and the time of other processes, and stores whether the clock stepped back.
pub(super) fn follow(sql: &Transaction<'_>, shared: &Shared) -> rusqlite::Result<()> {
    let kept = &shared.kept_clock;
    let resting = kept.latest.load(Ordering::Relaxed).saturating_add(RESTING);
    heed(sql, shared, resting <= shared.process.clock.latest().unix())
}

fn heed(sql: &Transaction<'_>, shared: &Shared, write: bool) -> rusqlite::Result<()> {
    let kept = &shared.kept_clock;
    let before = read(sql)?;
    let now = shared.process.heed_clock(before);
    if write && now.latest > before.latest {
        put(sql, LATEST, now.latest)?;
        // The write of the clock alone is not a reason to write it again.
        kept.changes.store(sql.total_changes(), Ordering::Relaxed);
    }
    let latest = if write { now.latest } else { before.latest };
    kept.latest.store(latest, Ordering::Relaxed);
    if now.stepped_back && !before.stepped_back {
        put(sql, STEPPED_BACK, 1)?;
    }
    Ok(())
}

/// Makes a test write, at the start and after a failed write.
pub(super) fn write_something(sql: &Transaction<'_>, shared: &Shared) -> rusqlite::Result<()> {
    let now = shared.process.clock.latest().unix();
    put(sql, "written_at", now)
}

/// Records that an operator accepts the clock, which shows `now`.
///
/// # Errors
/// It could not be written: nothing changed.
pub fn accept(connection: &mut Connection, now: Timestamp) -> rusqlite::Result<AcceptedClock> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let kept = read(&transaction)?;
    if !kept.stepped_back && kept.latest <= now.unix() {
        return Ok(AcceptedClock::Nothing);
    }
    let before = transaction.total_changes();
    for ahead in AHEAD {
        transaction.execute(ahead, [seconds(now)])?;
    }
    let moved = transaction.total_changes().saturating_sub(before);
    put(&transaction, LATEST, now.unix())?;
    put(&transaction, ACCEPTED, kept.accepted.saturating_add(1))?;
    transaction.execute("DELETE FROM meta WHERE name = ?1", [STEPPED_BACK])?;
    transaction.commit()?;
    Ok(AcceptedClock::Now {
        latest: Timestamp::from_unix(kept.latest),
        moved,
    })
}

/// The latest known time, and whether the clock stepped back since: for the tools.
pub fn latest(connection: &Connection) -> rusqlite::Result<(u64, bool)> {
    read(connection).map(|kept| (kept.latest, kept.stepped_back))
}

fn read(connection: &Connection) -> rusqlite::Result<ClockRow> {
    let mut statement =
        connection.prepare_cached("SELECT CAST(value AS INTEGER) FROM meta WHERE name = ?1")?;
    let mut one = |name: &str| -> rusqlite::Result<Option<u64>> {
        let found: Option<i64> = statement.query_row([name], |row| row.get(0)).optional()?;
        Ok(found.map(|value| u64::try_from(value).unwrap_or(0)))
    };
    Ok(ClockRow {
        latest: one(LATEST)?.unwrap_or(0),
        stepped_back: one(STEPPED_BACK)?.is_some(),
        accepted: one(ACCEPTED)?.unwrap_or(0),
    })
}

fn put(connection: &Connection, name: &str, value: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?
        .execute((name, value.to_string()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::migrations::MIGRATIONS, *};

    const NOW: u64 = 1_790_000_000;

    fn file() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        for step in MIGRATIONS {
            connection.execute_batch(step).unwrap();
        }
        connection
    }

    #[test]
    fn a_clock_that_did_not_step_back_is_left_alone() {
        let mut connection = file();
        let now = Timestamp::from_unix(NOW);
        assert_eq!(
            accept(&mut connection, now).unwrap(),
            AcceptedClock::Nothing
        );
        put(&connection, LATEST, NOW).unwrap();
        assert_eq!(
            accept(&mut connection, now).unwrap(),
            AcceptedClock::Nothing
        );
        assert_eq!(read(&connection).unwrap().accepted, 0);
    }

    #[test]
    fn what_lies_ahead_moves_back_and_request_ids_stay() {
        let mut connection = file();
        put(&connection, LATEST, NOW + 100).unwrap();
        put(&connection, STEPPED_BACK, 1).unwrap();
        connection
            .execute_batch(&format!(
                "INSERT INTO psu (psu, tpp, last_sca, session, completed) VALUES (x'01', 1, {0}, x'02', {0}), (x'03', 1, {1}, NULL, NULL);
                 INSERT INTO context (psu, corporate, last_sca, consent, used) VALUES
                    (x'01', x'', {0}, {0}, {0} + 86400), (x'03', x'', {1}, NULL, NULL);
                 INSERT INTO quota VALUES (x'01', {0}, {1}, NULL, {0});
                 INSERT INTO page VALUES (x'01', {0}, 199);
                 INSERT INTO request VALUES (x'01', {0});",
                NOW + 50,
                NOW - 50
            ))
            .unwrap();
        let accepted = accept(&mut connection, Timestamp::from_unix(NOW)).unwrap();
        let latest = Timestamp::from_unix(NOW + 100);
        assert_eq!(accepted, AcceptedClock::Now { latest, moved: 5 });
        let expected = ClockRow {
            latest: NOW,
            stepped_back: false,
            accepted: 1,
        };
        assert_eq!(read(&connection).unwrap(), expected);
        for (query, expected) in [
            (
                "SELECT max(last_sca, completed) FROM psu WHERE psu = x'01'",
                NOW,
            ),
            ("SELECT last_sca FROM psu WHERE psu = x'03'", NOW - 50),
            (
                "SELECT max(last_sca, consent) FROM context WHERE psu = x'01'",
                NOW,
            ),
            ("SELECT count(*) FROM context WHERE consent IS NULL", 1),
            (
                "SELECT used FROM context WHERE psu = x'01'",
                NOW - NOW % 86_400,
            ),
            ("SELECT max(a, d) FROM quota", NOW),
            ("SELECT b FROM quota", NOW - 50),
            ("SELECT count(c) FROM quota", 0),
            ("SELECT call FROM page", NOW),
            ("SELECT until FROM request", NOW + 50),
        ] {
            let found: i64 = connection.query_row(query, [], |row| row.get(0)).unwrap();
            assert_eq!(found, i64::try_from(expected).unwrap(), "{query}");
        }
    }
}
