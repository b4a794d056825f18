//! One connection's budget for frames that make no progress. Received frames spend it; answers and time refill it. WINDOW_UPDATE
//! frames that acknowledge the bytes of answers do not spend it.

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

/// The number of WINDOW_UPDATE frames by which a client may acknowledge a DATA frame: one for the stream and one for the connection,
/// and those of clients that read it in small parts. Go sends both after 4 KiB.
const PER_DATA: u32 = 2;
const BYTES_PER_ACKNOWLEDGEMENT: u32 = 1024;

/// The most acknowledgements that may be outstanding: until a signature on the connection has verified, and then. Clients send them when
/// they read an answer, which may be long after its last byte. Strangers get errors and descriptions of the interface, and the
/// first bound covers 1 000 of those; the second covers 64 answers of 1 MiB, even if they come in small frames.
const FOR_STRANGERS: u32 = 4 * 1024;
const AFTER_SIGNATURE: u32 = 128 * 1024;

/// The remaining budget.
#[derive(Debug)]
pub(super) struct Budget {
    left: u32,
    filled: Stopwatch,
    /// The number of WINDOW_UPDATE frames that sent DATA frames cover.
    covered: u32,
}

impl Budget {
    /// Creates a full budget.
    pub(super) fn new() -> Self {
        Self {
            left: BURST,
            filled: Stopwatch::start(),
            covered: 0,
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

    /// Spends what a received frame costs; returns false if the budget is exhausted.
    pub(super) fn spend_on(&mut self, frame: FrameHeader) -> bool {
        if frame.kind == kind::WINDOW_UPDATE && self.covered > 0 {
            self.covered = self.covered.saturating_sub(1);
            return true;
        }
        self.spend(cost(frame))
    }

    /// A DATA frame of this length is sent: it may be acknowledged.
    pub(super) fn cover(&mut self, length: u32) {
        if length > 0 {
            let more = PER_DATA.saturating_add(length / BYTES_PER_ACKNOWLEDGEMENT);
            self.covered = self.covered.saturating_add(more).min(AFTER_SIGNATURE);
        }
    }

    /// Bounds the acknowledgements that may be outstanding. `is_verified`: a signature on the connection has verified.
    pub(super) fn limit(&mut self, is_verified: bool) {
        if !is_verified {
            self.covered = self.covered.min(FOR_STRANGERS);
        }
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
const fn cost(frame: FrameHeader) -> u32 {
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

    const fn window_update() -> FrameHeader {
        FrameHeader {
            length: 4,
            kind: kind::WINDOW_UPDATE,
            flags: 0,
            stream: 0,
        }
    }

    /// HTTP-9: acknowledgements are free as far as answers cover them, and strangers save up few.
    #[test]
    fn acknowledgements_of_answers() {
        let spent = |budget: &mut Budget| {
            let mut count = 0;
            while budget.left == BURST && budget.spend_on(window_update()) {
                count += 1;
            }
            count - 1
        };
        let mut budget = Budget::new();
        assert_eq!(spent(&mut budget), 0);
        let mut budget = Budget::new();
        budget.cover(0);
        budget.cover(300);
        budget.cover(16 * 1024);
        budget.limit(false);
        assert_eq!(spent(&mut budget), 2 + 2 + 16);
        let mut budget = Budget::new();
        for _ in 0..100_000 {
            budget.cover(16 * 1024);
        }
        assert_eq!(budget.covered, AFTER_SIGNATURE);
        budget.limit(false);
        assert_eq!(spent(&mut budget), FOR_STRANGERS);
    }

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
