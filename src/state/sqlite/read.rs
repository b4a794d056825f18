//! Looking a PSU up in the file, off the async workers.

use super::{Shared, file, lock, timestamp};
use crate::{
    clock::Timestamp,
    state::{Accounts, Consent, Context, Hash, Psu, Session, Unavailable, memory::Known},
};
use rusqlite::{Connection, OptionalExtension};
use std::{
    path::Path,
    sync::{Arc, Mutex},
};
use tokio::sync::Semaphore;

/// Connections that read at once.
const READERS: usize = 4;

/// A pool of connections.
pub(super) struct Readers {
    free: Arc<Mutex<Vec<Connection>>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn open(path: &Path) -> rusqlite::Result<Self> {
        let free = (0..READERS).map(|_| file::connect_reader(path));
        let free = free.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(Self {
            free: Arc::new(Mutex::new(free)),
            turns: Arc::new(Semaphore::new(READERS)),
        })
    }

    /// A PSU, whichever TPP it is bound to. What is found is put into memory.
    pub(super) async fn psu(
        &self,
        psu: Hash,
        shared: &Arc<Shared>,
    ) -> Result<Option<Known>, Unavailable> {
        let away = || Unavailable("the store's readers have ended".into());
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| away())?;
        let (free, shared) = (Arc::clone(&self.free), Arc::clone(shared));
        let task = tokio::task::spawn_blocking(move || {
            shared.identity.check().map_err(Unavailable)?;
            let path = shared.identity.path();
            let fault =
                |error: rusqlite::Error| Unavailable(format!("{}: {error}", path.display()));
            let kept = lock(&free).pop();
            let connection = kept
                .map_or_else(|| file::connect_reader(path), Ok)
                .map_err(fault)?;
            let reading = shared.memory.reading(psu);
            // A connection that failed is not used again.
            let found = read(&connection, psu).map_err(fault)?;
            lock(&free).push(connection);
            shared.memory.put(psu, reading, found.as_ref());
            drop(turn);
            Ok(found)
        });
        task.await.unwrap_or_else(|_| Err(away()))
    }
}

/// Both statements see the same state of the file.
fn read(connection: &Connection, psu: Hash) -> rusqlite::Result<Option<Known>> {
    let transaction = connection.unchecked_transaction()?;
    let found = transaction
        .prepare_cached(
            "SELECT tpp.name, psu.last_sca, psu.session, psu.completed, psu.learned
             FROM psu JOIN tpp ON tpp.id = psu.tpp WHERE psu.psu = ?1",
        )?
        .query_row([psu.as_bytes()], |row| {
            let session: Option<[u8; 16]> = row.get(2)?;
            let completed: Option<i64> = row.get(3)?;
            let session = session.zip(completed).map(|(id, completed)| Session {
                id: Hash::from_bytes(id),
                completed: timestamp(completed),
            });
            let psu = Psu {
                learned: row.get(4)?,
                last_sca: known_time(row.get(1)?),
                session,
                contexts: Vec::new(),
            };
            Ok((Arc::from(row.get::<_, String>(0)?), psu))
        })
        .optional()?;
    let Some((tpp, mut found)) = found else {
        return Ok(None);
    };
    found.contexts = transaction
        .prepare_cached(
            "SELECT corporate, last_sca, consent, accounts FROM context WHERE psu = ?1 ORDER BY corporate",
        )?
        .query_map([psu.as_bytes()], context)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(Some(Known {
        tpp,
        psu: Arc::new(found),
    }))
}

fn context(row: &rusqlite::Row<'_>) -> rusqlite::Result<Context> {
    let corporate: Vec<u8> = row.get(0)?;
    let accounts: Option<Vec<u8>> = row.get(3)?;
    let given: Option<i64> = row.get(2)?;
    Ok(Context {
        corporate: hash(&corporate),
        last_sca: known_time(row.get(1)?),
        consent: given.map(|given| Consent {
            given: timestamp(given),
            accounts: accounts.map_or(Accounts::All, |accounts| {
                Accounts::Named(accounts.chunks(16).filter_map(hash).collect())
            }),
        }),
    })
}

/// A time as it was kept, where 0 says that nobody knows it.
fn known_time(seconds: i64) -> Option<Timestamp> {
    (seconds > 0).then(|| timestamp(seconds))
}

fn hash(bytes: &[u8]) -> Option<Hash> {
    bytes.try_into().ok().map(Hash::from_bytes)
}
