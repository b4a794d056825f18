//! The simulated bank: all its state, in one SQLite file (SBX-15), or in memory if no file is named.
//!
//! Invariants: each request is one transaction, applied completely or not at all, and durable before its answer; the time is that
//! of the clock given at opening. The tables are in schema.sql; the modules beside this one read and write them.

use super::calendar::TIME_ZONE;
use super::rates::Rates;
use jiff::ZonedDateTime;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use portvakt_base::clock::Clock;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::path::Path;
use uuid::Uuid;

const SCHEMA: &str = include_str!("schema.sql");

/// The tables' version, `PRAGMA user_version`. A file of another version is refused, not changed.
const VERSION: i64 = 1;

/// The bank.
pub(super) struct Bank {
    /// The database.
    pub(super) db: Connection,
    /// The exchange rates.
    pub(super) rates: Rates,
    /// The key from which PSU-IDs are derived.
    pub(super) psu_key: String,
    /// Whether lists of pending transactions show the interface's known issue (SBX-10).
    pub(super) has_known_issue: bool,
    clock: Clock,
    zone: TimeZone,
}

/// The reason why the bank fails: a fault of the machine, or of this program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BankFault {
    /// The ledger cannot be read or written.
    #[error("the ledger: {0}")]
    Store(#[from] rusqlite::Error),
    /// Its folder cannot be made.
    #[error("the ledger's folder: {0}")]
    Folder(std::io::Error),
    /// Another version of the program made it.
    #[error(
        "the ledger has version {0}, and this program reads version {VERSION}: remove the file to begin anew"
    )]
    Version(i64),
    /// A stored value is invalid.
    #[error("the ledger holds {0} that is none")]
    Kept(&'static str),
    /// The bookings of a posting do not sum to zero.
    #[error("a posting whose bookings do not sum to zero")]
    Unbalanced,
    /// A sum overflows.
    #[error("a sum is too large")]
    TooLarge,
    /// The time zone or the time is unknown.
    #[error("the time: {0}")]
    Time(#[from] jiff::Error),
}

impl Bank {
    /// Opens a ledger, or creates one with its folder and the customers of SBX-1. The bank is without the known issue.
    pub(super) fn open(file: Option<&Path>, rates: Rates, clock: Clock) -> Result<Self, BankFault> {
        let db = match file {
            None => Connection::open_in_memory()?,
            Some(file) => {
                if let Some(folder) = file.parent() {
                    std::fs::create_dir_all(folder).map_err(BankFault::Folder)?;
                }
                Connection::open(file)?
            }
        };
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "foreign_keys", true)?;
        db.set_prepared_statement_cache_capacity(128);
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version != VERSION && version != 0 {
            return Err(BankFault::Version(version));
        }
        let mut bank = Self {
            db,
            rates,
            psu_key: String::new(),
            has_known_issue: false,
            clock,
            zone: TimeZone::get(TIME_ZONE)?,
        };
        bank.psu_key = bank.atomically(|bank| {
            bank.db.execute_batch(SCHEMA)?;
            bank.db.pragma_update(None, "user_version", VERSION)?;
            if let Some(key) = bank.setting("psu-key")? {
                return Ok::<_, BankFault>(key);
            }
            let key = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
            bank.set("psu-key", &key)?;
            bank.initialise()?;
            Ok(key)
        })?;
        Ok(bank)
    }

    /// Runs `work` in one transaction, committed on return unless it fails.
    pub(super) fn atomically<T, E: From<BankFault>>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        // Dropping it without a commit, after an error or in a panic, rolls it back.
        let transaction = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate);
        let transaction = transaction.map_err(BankFault::from)?;
        let done = work(self)?;
        transaction.commit().map_err(BankFault::from)?;
        Ok(done)
    }

    /// The bank's time, in its own time zone.
    pub(super) fn now(&self) -> ZonedDateTime {
        let second = i64::try_from(self.clock.now().unix()).unwrap_or(i64::MAX);
        jiff::Timestamp::from_second(second)
            .unwrap_or(jiff::Timestamp::MAX)
            .to_zoned_datetime(self.zone.clone())
    }

    /// The current day at the bank.
    pub(super) fn today(&self) -> Date {
        self.now().date()
    }

    /// A setting of the ledger's own.
    pub(super) fn setting(&self, name: &str) -> Result<Option<String>, BankFault> {
        let mut found = self
            .db
            .prepare_cached("SELECT value FROM setting WHERE name = ?1")?;
        Ok(found.query_row([name], |row| row.get(0)).optional()?)
    }

    /// Stores a setting.
    pub(super) fn set(&self, name: &str, value: &str) -> Result<(), BankFault> {
        let mut keep = self
            .db
            .prepare_cached("INSERT OR REPLACE INTO setting (name, value) VALUES (?1, ?2)")?;
        keep.execute(params![name, value])?;
        Ok(())
    }
}

/// Parses a stored day.
pub(super) fn day(text: &str) -> Result<Date, BankFault> {
    text.parse().map_err(|_| BankFault::Kept("a day"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use portvakt_base::clock::Timestamp;

    /// Monday, 2 March 2026, 12:00 at the bank.
    pub(in super::super) const NOON: Timestamp = Timestamp::from_unix(1_772_449_200);

    /// A bank in memory, and its clock.
    pub(in super::super) fn bank() -> (Bank, Clock) {
        let clock = Clock::standing(NOON);
        let rates = Rates::load(None).unwrap();
        (Bank::open(None, rates, clock.clone()).unwrap(), clock)
    }

    #[test]
    fn the_bank_has_its_own_day() {
        let (bank, clock) = bank();
        assert_eq!(bank.now().time().to_string(), "12:00:00");
        assert_eq!(bank.today().to_string(), "2026-03-02");
        clock.set(Timestamp::from_unix(NOON.unix() + 11 * 3_600 + 1));
        assert_eq!(bank.today().to_string(), "2026-03-02");
        clock.set(Timestamp::from_unix(NOON.unix() + 12 * 3_600));
        assert_eq!(bank.today().to_string(), "2026-03-03");
    }

    #[test]
    fn what_fails_leaves_nothing() {
        let (bank, _) = bank();
        let failed: Result<(), BankFault> = bank.atomically(|bank| {
            bank.set("a", "b")?;
            Err(BankFault::TooLarge)
        });
        assert!(failed.is_err());
        assert_eq!(bank.setting("a").unwrap(), None);
        let panicked = std::panic::AssertUnwindSafe(|| {
            bank.atomically(|bank| -> Result<(), BankFault> {
                bank.set("a", "b")?;
                panic!("in the middle")
            })
        });
        assert!(std::panic::catch_unwind(panicked).is_err());
        assert_eq!(bank.setting("a").unwrap(), None);
        bank.atomically(|bank| bank.set("a", "b")).unwrap();
        assert_eq!(bank.setting("a").unwrap().as_deref(), Some("b"));
    }

    #[test]
    fn a_ledger_of_another_version_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/ledger.db");
        let open = || {
            let rates = Rates::load(None).unwrap();
            Bank::open(Some(&file), rates, Clock::standing(NOON))
        };
        let bank = open().unwrap();
        bank.db.pragma_update(None, "user_version", 7).unwrap();
        drop(bank);
        assert!(matches!(open(), Err(BankFault::Version(7))));
    }
}
