//! The number of seals of each key. Nonces are random, so at most 2³² tokens are safe under one key (NIST SP 800-38D, 8.3).
//!
//! A file beside the keys has a line for each key: its id, a space and a number. A gateway reserves seals in this file in blocks, durably,
//! before it uses the first seal of a block. So the number is never too low, and it is too high by at most one block for each start.
//! Processes that share the file lock it in turn; gateways on other machines have files of their own, and the total is the sum of all
//! files. Invariants: nothing is sealed without a place in a block, a number never decreases, and no block exceeds the limit. Deliberately
//! not here: sealing, and the rotation of a key at its limit.

// The file of the counts.
mod file;

pub use file::{SealsFault, check};

use super::key_id::ID_LENGTH;
use crate::private_file;
pub(super) use file::read as counts;
use file::{count_of, read, take_turn, text_of};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// The maximum number of tokens of one key.
pub const MOST_SEALS: u64 = 1 << 32;

/// The number of seals at which the operator is warned: half of the maximum.
pub const SEALS_ALERT: u64 = 1 << 31;

/// The first block of a process. It is small, so that a gateway that restarts repeatedly wastes few seals.
const FIRST_BLOCK: u64 = 1 << 10;

/// Blocks double up to this size: at 1 000 tokens a second the file is written about once a minute.
const LARGEST_BLOCK: u64 = 1 << 16;

/// The reason why nothing is sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealFault {
    /// The key has reached the safe number of seals.
    #[error(
        "the token key {0:08x} has sealed 2^32 tokens and seals no more: run \"portvakt sca rotate-key\" (docs/sca.md)"
    )]
    UsedUp(u32),
    /// The count cannot be written.
    #[error("the count of seals cannot be kept: {0}")]
    NotKept(String),
    /// No random numbers are available, or a text is too long for a token.
    #[error("the token cannot be made")]
    NotMade,
}

/// The counts of a gateway's keys.
#[derive(Debug)]
pub(super) struct Seals {
    /// `None` if the counts end with the process: in tests, and where seals are not counted.
    file: Option<PathBuf>,
    /// The counts of the file when it was opened.
    found: Vec<(u32, u64)>,
    counters: Mutex<Vec<Arc<Counter>>>,
}

impl Seals {
    /// Opens the counts of a file, and creates the file if there is none. A block is reserved at once, so that an unwritable file is found
    /// at the start.
    pub(super) fn open(path: &Path) -> Result<Self, SealsFault> {
        private_file::make_folder_of(path)?;
        let _turn = take_turn(path)?;
        let found = read(path)?;
        private_file::replace(path, text_of(&found).as_bytes())?;
        Ok(Self {
            file: Some(path.to_owned()),
            found,
            counters: Mutex::default(),
        })
    }

    /// Counts that end with the process.
    pub(super) fn in_memory() -> Self {
        Self {
            file: None,
            found: Vec::new(),
            counters: Mutex::default(),
        }
    }

    /// Whether these are the counts of a file.
    pub(super) fn is_of(&self, path: &Path) -> bool {
        self.file.as_deref() == Some(path)
    }

    /// The number of seals of all keys since the start.
    pub(super) fn taken(&self) -> u64 {
        let counters = locked(&self.counters);
        let taken = counters
            .iter()
            .map(|counter| counter.taken.load(Ordering::Relaxed));
        taken.sum()
    }

    /// The shared counter of a key.
    pub(super) fn counter(&self, id: [u8; ID_LENGTH]) -> Arc<Counter> {
        let id = u32::from_be_bytes(id);
        let mut counters = locked(&self.counters);
        if let Some(counter) = counters.iter().find(|counter| counter.id == id) {
            return Arc::clone(counter);
        }
        let counter = Arc::new(Counter {
            id,
            file: self.file.clone(),
            taken: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            total: AtomicU64::new(count_of(&self.found, id)),
            reserving: Mutex::new(Reserving {
                block: FIRST_BLOCK,
                fault: None,
            }),
        });
        counters.push(Arc::clone(&counter));
        counter
    }
}

/// The count of one key.
pub(super) struct Counter {
    id: u32,
    file: Option<PathBuf>,
    /// Seals used since the start.
    taken: AtomicU64,
    /// Seals reserved since the start.
    reserved: AtomicU64,
    /// Seals reserved by all processes that share the file, when the file was last read.
    total: AtomicU64,
    reserving: Mutex<Reserving>,
}

struct Reserving {
    /// The size of the next block.
    block: u64,
    /// The reason why the last attempt failed; `None` if it succeeded.
    fault: Option<SealFault>,
}

impl Counter {
    /// Takes one seal: the next token has its place in a block.
    pub(super) fn take(&self) -> Result<(), SealFault> {
        // The place is taken before the check, so that two threads never share a place.
        let place = self.taken.fetch_add(1, Ordering::Relaxed);
        if place < self.reserved.load(Ordering::Acquire) {
            return Ok(());
        }
        self.reserve(place).inspect_err(|_| {
            self.taken.fetch_sub(1, Ordering::Relaxed);
        })
    }

    /// Whether the next seal is available, by the last known state. A failed reservation is tried again.
    pub(super) fn health(&self) -> Result<(), SealFault> {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken < self.reserved.load(Ordering::Acquire) {
            return Ok(());
        }
        let has_failed = locked(&self.reserving).fault.is_some();
        if has_failed || self.total.load(Ordering::Relaxed) >= MOST_SEALS {
            return self.reserve(taken);
        }
        Ok(())
    }

    /// The number of seals of the key by the file: never too low.
    pub(super) fn count(&self) -> u64 {
        let reserved = self.reserved.load(Ordering::Acquire);
        let unused = reserved.saturating_sub(self.taken.load(Ordering::Relaxed));
        self.total.load(Ordering::Relaxed).saturating_sub(unused)
    }

    /// The key's id, as its file writes it.
    pub(super) fn key(&self) -> String {
        format!("{:08x}", self.id)
    }

    /// Reserves blocks until they include the place.
    fn reserve(&self, place: u64) -> Result<(), SealFault> {
        let mut reserving = locked(&self.reserving);
        while self.reserved.load(Ordering::Relaxed) <= place {
            match self.reserve_block(reserving.block) {
                Ok(block) => {
                    reserving.block = reserving.block.saturating_mul(2).min(LARGEST_BLOCK);
                    reserving.fault = None;
                    self.reserved.fetch_add(block, Ordering::Release);
                }
                Err(fault) => {
                    if reserving.fault.as_ref() != Some(&fault) {
                        tracing::error!(%fault, "no SCA can be started");
                    }
                    reserving.fault = Some(fault.clone());
                    return Err(fault);
                }
            }
        }
        Ok(())
    }

    /// Reserves one block durably, and returns its size, which is smaller than `most` only just below the limit.
    fn reserve_block(&self, most: u64) -> Result<u64, SealFault> {
        let not_kept = |fault: SealsFault| SealFault::NotKept(fault.to_string());
        let _turn = match &self.file {
            Some(path) => Some(take_turn(path).map_err(|error| not_kept(error.into()))?),
            None => None,
        };
        let mut counts = match &self.file {
            Some(path) => read(path).map_err(not_kept)?,
            None => Vec::new(),
        };
        // The removal of the file does not reset the count.
        let before = count_of(&counts, self.id).max(self.total.load(Ordering::Relaxed));
        let block = most.min(MOST_SEALS.saturating_sub(before));
        if block == 0 {
            return Err(SealFault::UsedUp(self.id));
        }
        let after = before.saturating_add(block);
        if let Some(path) = &self.file {
            counts.retain(|(id, _)| *id != self.id);
            counts.push((self.id, after));
            private_file::replace(path, text_of(&counts).as_bytes())
                .map_err(|error| not_kept(error.into()))?;
        }
        self.total.store(after, Ordering::Relaxed);
        if before < SEALS_ALERT && after >= SEALS_ALERT {
            let key = self.key();
            tracing::warn!(key, "a token key has sealed 2^31 tokens: rotate the keys");
        }
        Ok(block)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Counter({}: {})", self.key(), self.count())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
