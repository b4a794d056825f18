//! The lookup of a PSU in the file, off the async workers.

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
            let cache = &shared.process.cache;
            let reading = cache.reading(psu);
            // A failed connection is not used again.
            let bound = read(&connection, psu).map_err(fault)?;
            lock(&free).push(connection);
            cache.put(psu, reading, bound.as_ref());
            drop(turn);
            Ok(bound)
        });
        task.await.unwrap_or_else(|_| Err(ended()))
    }
}

fn read(connection: &Connection, psu: PsuHash) -> rusqlite::Result<Option<BoundPsu>> {
    let transaction = connection.unchecked_transaction()?;
    rows::psu(&transaction, psu)
}
