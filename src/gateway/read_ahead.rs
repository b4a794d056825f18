//! Memory for answers that callers take slowly: the core's answer is read on meanwhile, so that a slow caller does not keep the core
//! busy (HTTP-9).
//!
//! Invariant: all answers together keep about `listener.read_ahead` bytes, and one of them [`MOST`]; beyond that the core waits for the
//! caller. Nothing is written to a disk, for answers are account data. Deliberately not here: the time-outs of slow callers, which the
//! connection keeps.

use crate::telemetry::Telemetry;
use bytes::Bytes;
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The most bytes of one answer that are read ahead, but for one part: no answer takes all memory.
const MOST: usize = 2 * 1024 * 1024;

/// The memory of a part besides its bytes, so that many small ones count too.
const PART: usize = 128;

/// The memory of all answers that are read ahead.
pub(super) struct ReadAhead {
    size: usize,
    used: AtomicUsize,
    telemetry: Arc<Telemetry>,
}

impl ReadAhead {
    /// `size`: the most bytes; with 0, no answer is read ahead.
    pub(super) const fn new(size: usize, telemetry: Arc<Telemetry>) -> Self {
        Self {
            size,
            used: AtomicUsize::new(0),
            telemetry,
        }
    }

    /// The parts of an answer, none yet.
    pub(super) const fn begin(&self) -> PartsAhead<'_> {
        PartsAhead {
            memory: self,
            parts: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ReadAhead")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// A part of an answer's body, as the caller gets it.
pub(super) struct CallerPart {
    /// The bytes; `None` or empty where this part has none for the caller.
    pub(super) bytes: Option<Bytes>,
    /// Whether it is the last part.
    pub(super) is_last: bool,
}

/// The parts of one answer that the core has sent and its caller has not taken.
pub(super) struct PartsAhead<'a> {
    memory: &'a ReadAhead,
    parts: VecDeque<CallerPart>,
    /// The memory that they count for.
    bytes: usize,
}

impl PartsAhead<'_> {
    /// Whether another part may be read.
    pub(super) fn has_room(&self) -> bool {
        let is_ended = self.parts.back().is_some_and(|part| part.is_last);
        let used = self.memory.used.load(Ordering::Relaxed);
        !is_ended && self.bytes < MOST && used < self.memory.size
    }

    pub(super) fn push(&mut self, part: CallerPart) {
        let bytes = size_of(&part);
        self.bytes = self.bytes.saturating_add(bytes);
        self.memory.used.fetch_add(bytes, Ordering::Relaxed);
        self.memory.telemetry.read_ahead(bytes);
        self.parts.push_back(part);
    }

    pub(super) fn pop(&mut self) -> Option<CallerPart> {
        let part = self.parts.pop_front()?;
        self.release(size_of(&part));
        Some(part)
    }

    fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.memory.used.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.telemetry.taken(bytes);
    }
}

impl Drop for PartsAhead<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.release(self.bytes);
        }
    }
}

fn size_of(part: &CallerPart) -> usize {
    part.bytes
        .as_ref()
        .map_or(0, Bytes::len)
        .saturating_add(PART)
}
