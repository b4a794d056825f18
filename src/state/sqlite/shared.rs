//! The state that the threads of a store share.

use super::{cursors::Sweep, file::Identity, kept_clock::KeptClock};
use crate::{Counters, process::Process};
use std::sync::{Arc, Mutex, atomic::AtomicBool};

/// Shared by the threads.
pub(super) struct Shared {
    pub(super) identity: Identity,
    pub(super) process: Arc<Process>,
    pub(super) kept_clock: KeptClock,
    /// The reason why the last write failed; `None` if it succeeded.
    pub(super) fault: Mutex<Option<String>>,
    pub(super) counters: Mutex<Counters>,
    pub(super) sweep: Mutex<Sweep>,
    /// Whether most of the write-ahead log is checkpointed, and the writer must checkpoint the rest.
    pub(super) log_is_moved: AtomicBool,
    /// Whether a write has been durable since the start.
    pub(super) has_written: AtomicBool,
}
