//! The backoff of an address or a source after failures.

use portvakt_base::clock::Timestamp;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The backoff after the first failure, in seconds; each further failure doubles it.
const FIRST_PAUSE: u64 = 10;

/// The longest backoff, in seconds.
const LONGEST_PAUSE: u64 = 600;

/// The state of an address: one request to it at a time, with backoff after failures.
#[derive(Debug, Default)]
pub(super) struct AddressState {
    pub(super) turn: tokio::sync::Mutex<()>,
    pub(super) backoff: Backoff,
}

/// The time of the next attempt.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    until: AtomicU64,
    failures: AtomicU32,
}

impl Backoff {
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        now.unix() >= self.until.load(Ordering::Relaxed)
    }

    pub(super) fn begin(&self, now: Timestamp) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).min(10);
        let backoff = FIRST_PAUSE.saturating_mul(1 << failures).min(LONGEST_PAUSE);
        self.until
            .store(now.unix().saturating_add(backoff), Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.failures.store(0, Ordering::Relaxed);
        self.until.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let at = Timestamp::from_unix;
        let backoff = Backoff::default();
        assert!(backoff.is_over(at(0)));
        for (now, until) in [(100, 110), (110, 130), (130, 170)] {
            backoff.begin(at(now));
            assert!(!backoff.is_over(at(until - 1)) && backoff.is_over(at(until)));
        }
        for _ in 0..20 {
            backoff.begin(at(1_000));
        }
        assert!(!backoff.is_over(at(1_599)) && backoff.is_over(at(1_600)));
        backoff.end();
        assert!(backoff.is_over(at(0)));
    }
}
