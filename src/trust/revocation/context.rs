//! The shared objects that the thread uses to ask sources.

use super::{cache::SourceCache, counters::Counters, disk::DiskThread, fetch::Fetcher};
use portvakt_base::clock::Clock;
use std::sync::Arc;

/// The shared objects that the thread uses.
#[derive(Clone, Debug)]
pub(super) struct EngineContext {
    pub(super) cache: Arc<SourceCache>,
    pub(super) counters: Arc<Counters>,
    pub(super) fetcher: Fetcher,
    pub(super) clock: Clock,
    /// The copies on disk; `None` if no folder is configured.
    pub(super) disk: Option<DiskThread>,
}
