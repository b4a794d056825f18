//! The calls of this process, for its metrics. They outlive a reload, as counters must.

use crate::fault::{Cause, Purpose};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The bounds of the histogram, in seconds: from a local module to the longest timeout.
pub const BOUNDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];

/// The calls of one purpose since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct PurposeCounts {
    /// Signatures by the time that the caller waited; the last are those beyond every bound.
    pub by_seconds: [u64; BOUNDS.len() + 1],
    /// The sum of those times.
    pub spent: Duration,
    /// Calls without a signature, in the order of [`Cause::ALL`].
    pub errors: [u64; Cause::ALL.len()],
}

static COUNTS: Mutex<[PurposeCounts; Purpose::ALL.len()]> = Mutex::new(
    [PurposeCounts {
        by_seconds: [0; BOUNDS.len() + 1],
        spent: Duration::ZERO,
        errors: [0; Cause::ALL.len()],
    }; Purpose::ALL.len()],
);

/// The calls of each purpose.
pub fn counts() -> Vec<(Purpose, PurposeCounts)> {
    let counts = *COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    Purpose::ALL.iter().copied().zip(counts).collect()
}

/// Counts a call that took this time.
pub(crate) fn count(purpose: Purpose, fault: Option<Cause>, time: Duration) {
    let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(counts) = counts.get_mut(purpose.index()) else {
        return;
    };
    let counter = match fault {
        Some(cause) => counts.errors.get_mut(cause.index()),
        None => {
            counts.spent = counts.spent.saturating_add(time);
            let seconds = time.as_secs_f64();
            let bucket = BOUNDS.iter().position(|bound| seconds <= *bound);
            counts.by_seconds.get_mut(bucket.unwrap_or(BOUNDS.len()))
        }
    };
    if let Some(counter) = counter {
        *counter = counter.saturating_add(1);
    }
}
