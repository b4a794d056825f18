//! The jobs of the engine's queue, and the work of its workers.

use crate::{Unavailable, change::QueuedChange, rows::RowKey, rules::Table, sweep::Step};
use portvakt_base::clock::Timestamp;
use tokio::sync::oneshot;

/// A job in the queue.
pub(super) enum Job {
    /// A change that a caller waits for.
    Change(Box<dyn QueuedChange>),
    /// A step of a full sweep.
    Sweep(Sweep),
    /// The housekeeping of a second.
    EverySecond,
}

/// A step of a full sweep, and the channel to its caller.
pub(super) struct Sweep {
    pub(super) table: Table,
    pub(super) now: Timestamp,
    pub(super) is_first: bool,
    pub(super) reply: oneshot::Sender<Result<Step, Unavailable>>,
}

/// The work of one worker.
pub(super) enum Work {
    /// Changes for one transaction, and the keys of all their rows.
    Batch {
        changes: Vec<Box<dyn QueuedChange>>,
        keys: Vec<RowKey>,
    },
    Sweep(Sweep),
    /// Nothing but a connection, after it could not be opened.
    Connect,
    /// Housekeeping after this number of changes.
    Housekeeping {
        changes: u32,
    },
}

/// A worker that is free again, and the keys that are free with it.
pub(super) struct Outcome {
    pub(super) number: usize,
    pub(super) keys: Vec<RowKey>,
    /// Whether the worker has a connection.
    pub(super) is_connected: bool,
}
