//! Reading the file, off the async workers: the lookup of PSUs, and the bank's words about TPPs.

use super::{blocks, file, moves, rows, shared::Shared};
use crate::{Dated, PsuHash, Unavailable, blocks::Standing, lock::lock, rows::BoundPsu};
use portvakt_base::clock::BootTime;
use rusqlite::Connection;
use std::{
    path::Path,
    sync::{Arc, Mutex},
};
use tokio::sync::Semaphore;

/// The maximum number of connections that read at once.
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

    /// A PSU, independent of its TPP. The row is cached.
    pub(super) async fn psu(
        &self,
        psu: PsuHash,
        shared: &Arc<Shared>,
    ) -> Result<Dated<Option<BoundPsu>>, Unavailable> {
        let process = Arc::clone(&shared.process);
        let lookup = move |connection: &Connection| {
            let reading = process.cache.reading(psu);
            let bound = read(connection, psu)?;
            process.cache.put(psu, reading, bound.as_ref());
            Ok(bound)
        };
        self.read(shared, lookup).await
    }

    /// Reads with a connection of the pool. The answer is as of the moment at which its turn came.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        shared: &Arc<Shared>,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<Dated<T>, Unavailable> {
        let ended = || Unavailable("the store's readers have ended".into());
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| ended())?;
        let (free, shared) = (Arc::clone(&self.free), Arc::clone(shared));
        let task = tokio::task::spawn_blocking(move || {
            // First: a file that is replaced after the look at it is not known as of later.
            let began = BootTime::now();
            shared.identity.check().map_err(Unavailable)?;
            let path = shared.identity.path();
            let fault =
                |error: rusqlite::Error| Unavailable(format!("{}: {error}", path.display()));
            let kept = lock(&free).pop();
            let connection = kept
                .map_or_else(|| file::connect_reader(path), Ok)
                .map_err(fault)?;
            // A failed connection is not used again.
            let found = read(&connection).map_err(fault)?;
            // Last: a file that has the own level now had it when the rows were read.
            let (check, _) = file::key_checks(&connection).map_err(fault)?;
            shared.level.judge(&check).map_err(Unavailable)?;
            lock(&free).push(connection);
            drop(turn);
            Ok(Dated {
                fact: found,
                as_of: shared.process.freshness.of_answer(began),
            })
        });
        task.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// The blocks and the moves of one moment.
pub(super) fn standing(connection: &Connection) -> rusqlite::Result<Standing> {
    let transaction = connection.unchecked_transaction()?;
    Ok(Standing {
        blocks: blocks::all(&transaction)?,
        moves: moves::all(&transaction)?,
    })
}

fn read(connection: &Connection, psu: PsuHash) -> rusqlite::Result<Option<BoundPsu>> {
    let transaction = connection.unchecked_transaction()?;
    rows::psu(&transaction, psu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StateSettings, engine::Engine, settings::EarlierSchema, sqlite::Sqlite};

    /// SCA-13: a question that waited for its turn has an answer of its turn. As of the question, the answers of a busy machine would be too
    /// old before they come.
    #[tokio::test]
    async fn an_answer_is_as_of_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name| folder.path().join(name);
        let settings = StateSettings::new(file("portvakt.db"), file("hash.key"));
        let (sqlite, _, _) = Sqlite::open(&settings, EarlierSchema::Refused).unwrap();
        let most = u32::try_from(READERS).unwrap();
        let turns = Arc::clone(&sqlite.readers.turns).acquire_many_owned(most);
        let turns = turns.await.unwrap();
        let releasing = async {
            tokio::task::yield_now().await;
            let turn = BootTime::now();
            drop(turns);
            turn
        };
        let (answer, turn) = tokio::join!(sqlite.psu(PsuHash::from_bytes([1; 16])), releasing);
        assert!(answer.unwrap().as_of.is_not_before(turn));
    }
}
