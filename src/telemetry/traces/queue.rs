//! The queue between requests and the thread that pushes, and the counts of both sides.

use super::spans::TracedRequest;
use std::sync::{atomic::AtomicU64, mpsc::SyncSender};

/// The capacity of the queue, in requests: two seconds of 1 000 sampled requests each, at some 500 bytes.
pub(super) const QUEUE: usize = 2 * 1024;

/// The numbers of spans by their fate.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) written: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) failed: AtomicU64,
}

/// An entry of the queue.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all entries are requests; boxing them would add an allocation"
)]
pub(super) enum Entry {
    Request(TracedRequest),
    /// The sender of this entry waits; it is dropped once all requests before it are pushed.
    Flush {
        _until: SyncSender<()>,
    },
}
