//! The state that the threads of a store share.

use super::{identity::Identity, kept_clock::KeptClock};
use crate::{Counters, level::OwnLevel, process::Process, sweep::Cursors};
use std::sync::{Arc, Mutex, atomic::AtomicBool};

/// Shared by the threads.
pub(super) struct Shared {
    pub(super) identity: Identity,
    pub(super) level: OwnLevel,
    pub(super) process: Arc<Process>,
    pub(super) kept_clock: KeptClock,
    /// The reason why the last write failed; `None` if it succeeded.
    pub(super) fault: Mutex<Option<String>>,
    pub(super) counters: Mutex<Counters>,
    /// Housekeeping, with the last visited keys.
    pub(super) cursors: Mutex<Cursors<Vec<u8>>>,
    /// The number of rows of each table that housekeeping visits next.
    pub(super) due_rows: Mutex<u32>,
    /// Whether most of the write-ahead log is checkpointed, and the writer must checkpoint the rest.
    pub(super) log_is_moved: AtomicBool,
    /// Whether a write has been durable since the start.
    pub(super) has_written: AtomicBool,
}
