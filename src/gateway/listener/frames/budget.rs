//! The budget of one connection for frames that carry nothing. What comes takes from it; answers and time fill it up.

use super::header::{FrameHeader, flag, kind};
use crate::clock::Stopwatch;
use std::time::Duration;

/// How many frames that carry nothing may come at once. Clients that open a connection send five to ten, and two for each answer.
const BURST: u32 = 256;

/// How many of them each second allows. Clients that ask whether the connection lives do so every few seconds.
const PER_SECOND: u64 = 16;

/// A part of a body that is shorter counts as a frame that carries nothing.
const SMALL_DATA: u32 = 256;

/// How many frames that carry nothing may still come.
#[derive(Debug)]
pub(super) struct Budget {
    left: u32,
    filled: Stopwatch,
}

impl Budget {
    /// A full budget.
    pub(super) fn new() -> Self {
        Self {
            left: BURST,
            filled: Stopwatch::start(),
        }
    }

    /// Takes from it. False where it is used up. The time is read only then.
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

    /// Adds to it, up to [`BURST`].
    pub(super) fn fill(&mut self, more: u32) {
        self.left = self.left.saturating_add(more).min(BURST);
    }
}

/// What time has added.
fn earned(elapsed: Duration) -> u32 {
    let frames = u128::from(PER_SECOND).saturating_mul(elapsed.as_millis()) / 1000;
    u32::try_from(frames).unwrap_or(u32::MAX)
}

/// What a frame that came takes from the budget.
pub(super) const fn cost(frame: FrameHeader) -> u32 {
    match frame.kind {
        kind::DATA if frame.flags & flag::END_STREAM != 0 || frame.length >= SMALL_DATA => 0,
        kind::DATA if frame.length == 0 => 2,
        // A stream that is opened and reset at once costs the most.
        kind::RST_STREAM => 3,
        // Each is answered.
        kind::SETTINGS if frame.flags & flag::ACK == 0 => 4,
        kind::CONTINUATION if frame.length == 0 => 4,
        _ => 1,
    }
}
