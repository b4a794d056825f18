//! One connection's budget for frames that make no progress. Received frames spend it; answers and time refill it.

use super::header::{FrameHeader, flag, kind};
use crate::clock::Stopwatch;
use std::time::Duration;

/// The most frames without progress that may arrive at once. Clients send five to ten when they open a connection, and two per
/// answer.
const BURST: u32 = 256;

/// The number of such frames that each second allows. A client that cancels ten requests in each second spends 40; checks whether
/// the connection is alive come every few seconds.
const PER_SECOND: u64 = 64;

/// A DATA frame that is shorter, in bytes, counts as a frame that makes no progress.
const SMALL_DATA: u32 = 256;

/// The remaining budget.
#[derive(Debug)]
pub(super) struct Budget {
    left: u32,
    filled: Stopwatch,
}

impl Budget {
    /// Creates a full budget.
    pub(super) fn new() -> Self {
        Self {
            left: BURST,
            filled: Stopwatch::start(),
        }
    }

    /// Spends a part of the budget; returns false if it is exhausted. Only then is the time read.
    pub(super) fn spend(&mut self, cost: u32) -> bool {
        if self.left < cost {
            let elapsed = self.filled.elapsed();
            self.fill(earned(elapsed));
            if self.left >= cost {
                self.filled = Stopwatch::start();
            }
        }
        let left = self.left.checked_sub(cost);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Refills the budget, up to [`BURST`].
    pub(super) fn fill(&mut self, more: u32) {
        self.left = self.left.saturating_add(more).min(BURST);
    }
}

/// The refill for this time.
fn earned(elapsed: Duration) -> u32 {
    let frames = u128::from(PER_SECOND).saturating_mul(elapsed.as_millis()) / 1000;
    u32::try_from(frames).unwrap_or(u32::MAX)
}

/// The fields of one header block that cost nothing. A request has at most 100 by default; the gateway refuses one with some more.
const FREE_FIELDS: u32 = 128;

/// The number of further fields that cost as much as one frame: tiny ones take a byte each, and a hundred times that in memory.
const FIELDS_PER_FRAME: u32 = 4;

/// The cost of the fields of a header block between two of its parts.
pub(super) const fn cost_of_fields(before: u32, now: u32) -> u32 {
    cost_of_all(now).saturating_sub(cost_of_all(before))
}

const fn cost_of_all(fields: u32) -> u32 {
    fields.saturating_sub(FREE_FIELDS) / FIELDS_PER_FRAME
}

/// The cost of a received frame.
pub(super) const fn cost(frame: FrameHeader) -> u32 {
    match frame.kind {
        kind::DATA if frame.flags & flag::END_STREAM != 0 || frame.length >= SMALL_DATA => 0,
        kind::DATA if frame.length == 0 => 2,
        // Opening a stream and resetting it at once costs the gateway the most.
        kind::RST_STREAM => 3,
        // The gateway must answer each of these.
        kind::SETTINGS if frame.flags & flag::ACK == 0 => 4,
        kind::CONTINUATION if frame.length == 0 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HTTP-9: a client may cancel ten requests in each second for as long as it likes.
    #[test]
    fn cancelled_requests() {
        let header = |kind, flags, length| FrameHeader {
            length,
            kind,
            flags,
            stream: 1,
        };
        let request = cost(header(kind::HEADERS, 0x5, 2_000));
        let cancelled = request + cost(header(kind::RST_STREAM, 0, 4));
        assert!(earned(Duration::from_secs(1)) >= 10 * cancelled);
        // All concurrent requests may be cancelled at once.
        assert!(BURST >= 64 * cancelled);
    }
}
