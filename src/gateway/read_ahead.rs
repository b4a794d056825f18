//! Memory for answers that callers take slowly: the core's answer is read on meanwhile, so that a slow caller does not keep the core
//! busy (HTTP-9).
//!
//! Invariant: all answers together keep about `listener.read_ahead` bytes, and one of them [`MOST`]; beyond that the core waits for the
//! caller. Nothing is written to a disk, for answers are account data. Deliberately not here: the time-outs of slow callers, which the
//! connection keeps.

use crate::telemetry::Telemetry;
use bytes::{Bytes, BytesMut};
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

/// The memory of a part besides its bytes.
const PART: usize = 128;

/// The memory in which smaller parts are joined: a core that sends an answer in many small chunks does not use up more than its bytes.
const JOINED: usize = 16 * 1024;

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
            is_ended: false,
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

/// The bytes of one answer that the core has sent and its caller has not taken.
pub(super) struct PartsAhead<'a> {
    memory: &'a ReadAhead,
    /// Each with the memory that it counts for.
    parts: VecDeque<(BytesMut, usize)>,
    /// Whether the core has sent the last part.
    is_ended: bool,
    /// The memory that all parts count for.
    bytes: usize,
}

impl PartsAhead<'_> {
    /// Whether another part may be read.
    pub(super) fn has_room(&self) -> bool {
        let used = self.memory.used.load(Ordering::Relaxed);
        !self.is_ended && self.bytes < MOST && used < self.memory.size
    }

    pub(super) fn push(&mut self, part: CallerPart) {
        self.is_ended = part.is_last;
        let Some(bytes) = part.bytes.filter(|bytes| !bytes.is_empty()) else {
            return;
        };
        if let Some((last, _)) = self.parts.back_mut()
            && bytes.len() <= last.capacity().saturating_sub(last.len())
        {
            last.extend_from_slice(&bytes);
            return;
        }
        let mut own = BytesMut::with_capacity(bytes.len().max(JOINED));
        own.extend_from_slice(&bytes);
        let taken = own.capacity().saturating_add(PART);
        self.parts.push_back((own, taken));
        self.bytes = self.bytes.saturating_add(taken);
        self.memory.used.fetch_add(taken, Ordering::Relaxed);
        self.memory.telemetry.read_ahead(taken);
    }

    /// The next part for the caller; `None` if the core has to send it first.
    pub(super) fn pop(&mut self) -> Option<CallerPart> {
        if let Some((bytes, taken)) = self.parts.pop_front() {
            self.release(taken);
            return Some(CallerPart {
                bytes: Some(bytes.freeze()),
                is_last: self.is_ended && self.parts.is_empty(),
            });
        }
        self.is_ended.then_some(CallerPart {
            bytes: None,
            is_last: true,
        })
    }

    fn release(&mut self, taken: usize) {
        self.bytes = self.bytes.saturating_sub(taken);
        self.memory.used.fetch_sub(taken, Ordering::Relaxed);
        self.memory.telemetry.taken(taken);
    }
}

impl Drop for PartsAhead<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.release(self.bytes);
        }
    }
}
