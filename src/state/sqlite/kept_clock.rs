//! The known content of the clock in the file.

use std::sync::atomic::AtomicU64;

/// The known content of the clock in the file.
#[derive(Debug)]
pub(super) struct KeptClock {
    /// The latest time in the file.
    pub(super) latest: AtomicU64,
    /// The number of changes of the writer's connection at the last check.
    pub(super) changes: AtomicU64,
}
