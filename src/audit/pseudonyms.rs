//! Pseudonyms of PSUs in the audit, and their erasure.
//!
//! A pseudonym is an HMAC of the state's keyed hash under a random salt of this PSU, which is kept in a file of its own. To erase a PSU
//! is to delete the salt: then nothing leads from a PSU-ID to the records, no line changes, and the chain stays provable. A record says
//! that the pseudonym was erased. Deliberately not here: the records.

use crate::{
    clock::LogTime,
    hex, private_file,
    state::PsuHash,
    write_fault::{WriteCause, WriteFault},
};
use aws_lc_rs::{hmac, rand};
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use std::{collections::BTreeMap, io::ErrorKind, path::Path, time::Duration};

/// The name of the file in the folder of the audit.
const FILE: &str = "salts.db";

/// The time for which a process waits for another one.
const WAIT: Duration = Duration::from_secs(2);

/// The most salts in memory, about 100 bytes each. Beyond them, the memory is emptied.
const IN_MEMORY: usize = 100_000;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS salt (psu BLOB PRIMARY KEY, salt BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS erasure (id INTEGER PRIMARY KEY, pseudonym TEXT NOT NULL, at INTEGER NOT NULL);
";

/// Why the file of the salts cannot be written.
pub(super) fn fault(error: &rusqlite::Error) -> WriteFault {
    let cause = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => WriteCause::NoSpace,
        Some(ErrorCode::ReadOnly) => WriteCause::ReadOnly,
        Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => WriteCause::NoPermission,
        _ => WriteCause::Other,
    };
    WriteFault {
        cause,
        text: format!("{FILE}: {error}"),
    }
}

/// An erasure that the chain does not have yet.
#[derive(Debug)]
pub(super) struct Erasure {
    id: i64,
    /// The pseudonym.
    pub(super) pseudonym: String,
    /// When the PSU was erased.
    pub(super) at: LogTime,
}

/// The salts.
#[derive(Debug)]
pub(super) struct Pseudonyms {
    connection: Connection,
    known: BTreeMap<PsuHash, String>,
    version: i64,
}

impl Pseudonyms {
    /// Opens the file; creates it if it is missing.
    pub(super) fn open(audit: &Path) -> rusqlite::Result<Self> {
        let path = audit.join(FILE);
        match private_file::create(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(rusqlite::Error::ToSqlConversionFailure(error.into()));
            }
            _ => {}
        }
        let connection = Connection::open(path)?;
        connection.busy_timeout(WAIT)?;
        // A deleted salt is overwritten, and no log keeps a copy of it.
        connection.pragma_update(None, "secure_delete", true)?;
        connection.pragma_update(None, "journal_mode", "DELETE")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(SCHEMA)?;
        let mut pseudonyms = Self {
            connection,
            known: BTreeMap::new(),
            version: 0,
        };
        pseudonyms.has_changed()?;
        Ok(pseudonyms)
    }

    /// Whether another process changed the file since the last call. Then pseudonyms in memory are forgotten.
    pub(super) fn has_changed(&mut self) -> rusqlite::Result<bool> {
        let version = self
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))?;
        let is_new = version != self.version;
        if is_new {
            self.version = version;
            self.known.clear();
        }
        Ok(is_new)
    }

    /// The pseudonym of a PSU; makes its salt, durably, if there is none.
    pub(super) fn of(&mut self, psu: PsuHash) -> rusqlite::Result<String> {
        if let Some(known) = self.known.get(&psu) {
            return Ok(known.clone());
        }
        let salt = match self.salt(psu)? {
            Some(salt) => salt,
            None => self.make_salt(psu)?,
        };
        let pseudonym = pseudonym(&salt, psu);
        if self.known.len() >= IN_MEMORY {
            self.known.clear();
        }
        self.known.insert(psu, pseudonym.clone());
        Ok(pseudonym)
    }

    /// The pseudonym of a PSU that has one.
    pub(super) fn find(&self, psu: PsuHash) -> rusqlite::Result<Option<String>> {
        let salt = self.salt(psu)?;
        Ok(salt.map(|salt| pseudonym(&salt, psu)))
    }

    fn salt(&self, psu: PsuHash) -> rusqlite::Result<Option<Vec<u8>>> {
        let mut select = self
            .connection
            .prepare_cached("SELECT salt FROM salt WHERE psu = ?1")?;
        select
            .query_row([psu.audited_bytes()], |row| row.get(0))
            .optional()
    }

    fn make_salt(&self, psu: PsuHash) -> rusqlite::Result<Vec<u8>> {
        let mut salt = vec![0; 32];
        rand::fill(&mut salt).map_err(|_| rusqlite::Error::InvalidQuery)?;
        // If another process has just made one, that salt is used.
        self.connection.execute(
            "INSERT OR IGNORE INTO salt (psu, salt) VALUES (?1, ?2)",
            (psu.audited_bytes(), &salt),
        )?;
        self.salt(psu)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    /// Deletes the salt of a PSU, and leaves a note for the chain. Returns the pseudonym; `None` if the PSU has none and was not bound.
    pub(super) fn erase(
        &mut self,
        psu: PsuHash,
        was_bound: bool,
        at: LogTime,
    ) -> rusqlite::Result<Option<String>> {
        let pseudonym = match self.find(psu)? {
            Some(pseudonym) => pseudonym,
            // An imported PSU may have no record yet. Its erasure is recorded, too.
            None if was_bound => self.of(psu)?,
            None => return Ok(None),
        };
        let transaction = self.connection.transaction()?;
        transaction.execute("DELETE FROM salt WHERE psu = ?1", [psu.audited_bytes()])?;
        let at = i64::try_from(at.unix_milliseconds()).unwrap_or(i64::MAX);
        transaction.execute(
            "INSERT INTO erasure (pseudonym, at) VALUES (?1, ?2)",
            (&pseudonym, at),
        )?;
        transaction.commit()?;
        self.known.remove(&psu);
        Ok(Some(pseudonym))
    }

    /// The erasures that the chain does not have yet.
    pub(super) fn erasures(&self) -> rusqlite::Result<Vec<Erasure>> {
        let mut select = self
            .connection
            .prepare_cached("SELECT id, pseudonym, at FROM erasure ORDER BY id")?;
        let rows = select.query_map([], |row| {
            let at: i64 = row.get(2)?;
            Ok(Erasure {
                id: row.get(0)?,
                pseudonym: row.get(1)?,
                at: LogTime::from_unix_milliseconds(u64::try_from(at).unwrap_or_default()),
            })
        })?;
        rows.collect()
    }

    /// Forgets erasures that are in the chain.
    pub(super) fn noted(&self, erasures: &[Erasure]) -> rusqlite::Result<()> {
        for Erasure { id, .. } in erasures {
            self.connection
                .execute("DELETE FROM erasure WHERE id = ?1", [id])?;
        }
        Ok(())
    }
}

/// The first 128 bits of the HMAC, in hexadecimal digits.
fn pseudonym(salt: &[u8], psu: PsuHash) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, salt);
    let tag = hmac::sign(&key, psu.audited_bytes());
    hex::encode(tag.as_ref().get(..16).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erased_psu_has_another_pseudonym_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let mut own = Pseudonyms::open(folder.path()).unwrap();
        let [one, two] = [1, 2].map(|byte| PsuHash::from_bytes([byte; 16]));
        let first = own.of(one).unwrap();
        assert_eq!(own.of(one).unwrap(), first);
        assert_ne!(own.of(two).unwrap(), first);
        // Another process erases the PSU.
        let mut other = Pseudonyms::open(folder.path()).unwrap();
        let at = LogTime::from_unix_milliseconds(7);
        assert_eq!(other.erase(one, true, at).unwrap(), Some(first.clone()));
        assert_eq!(other.erase(one, false, at).unwrap(), None);
        assert!(own.has_changed().unwrap() && !own.has_changed().unwrap());
        assert_eq!(own.find(one).unwrap(), None);
        assert_ne!(own.of(one).unwrap(), first);
        let erasures = own.erasures().unwrap();
        assert_eq!((erasures.len(), &erasures[0].pseudonym), (1, &first));
        own.noted(&erasures).unwrap();
        assert!(own.erasures().unwrap().is_empty());
    }

    /// A PSU that was bound has a note for the chain, also without a record before.
    #[test]
    fn an_erasure_is_noted_also_without_a_salt() {
        let folder = tempfile::tempdir().unwrap();
        let mut pseudonyms = Pseudonyms::open(folder.path()).unwrap();
        let psu = PsuHash::from_bytes([1; 16]);
        let at = LogTime::from_unix_milliseconds(7);
        assert_eq!(pseudonyms.erase(psu, false, at).unwrap(), None);
        assert!(pseudonyms.erasures().unwrap().is_empty());
        let erased = pseudonyms.erase(psu, true, at).unwrap().unwrap();
        let erasures = pseudonyms.erasures().unwrap();
        assert_eq!((erasures.len(), &erasures[0].pseudonym), (1, &erased));
        // Nothing leads to it.
        assert_eq!(pseudonyms.find(psu).unwrap(), None);
        assert_ne!(pseudonyms.of(psu).unwrap(), erased);
    }
}
