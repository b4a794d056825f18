//! Reading the file, off the async workers: the lookup of a PSU, and every block of a TPP.

use super::{file, rows, shared::Shared};
use crate::state::{PsuHash, Unavailable, lock::lock, rows::BoundPsu};
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
    ) -> Result<Option<BoundPsu>, Unavailable> {
        let process = Arc::clone(&shared.process);
        let lookup = move |connection: &Connection| {
            let reading = process.cache.reading(psu);
            let bound = read(connection, psu)?;
            process.cache.put(psu, reading, bound.as_ref());
            Ok(bound)
        };
        self.read(shared, lookup).await
    }

    /// Reads with a connection of the pool.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        shared: &Arc<Shared>,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        let ended = || Unavailable("the store's readers have ended".into());
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| ended())?;
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
            // A failed connection is not used again.
            let found = read(&connection).map_err(fault)?;
            lock(&free).push(connection);
            drop(turn);
            Ok(found)
        });
        task.await.unwrap_or_else(|_| Err(ended()))
    }
}

fn read(connection: &Connection, psu: PsuHash) -> rusqlite::Result<Option<BoundPsu>> {
    let transaction = connection.unchecked_transaction()?;
    rows::psu(&transaction, psu)
}
