//! How far the clock in the file is known without a look at it.

use std::sync::atomic::AtomicU64;

/// How far the file's clock is known.
#[derive(Debug)]
pub(super) struct KeptClock {
    /// The latest time that the file has.
    pub(super) latest: AtomicU64,
    /// Changes of the writer's connection when it was last looked at.
    pub(super) changes: AtomicU64,
}
