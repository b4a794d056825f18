//! Refuses strangers while the threads of the public listener cannot keep up (ERR-4).
//!
//! A task that sleeps for a fixed time measures how late it continues: that is the time for which tasks that are ready wait for a thread.
//! If the shortest of a few such delays exceeds the limit, the queue does not drain, and the share of strangers that are served is halved;
//! otherwise it grows again, step by step. A stranger is a new connection, before its handshake, and a request on a connection on which
//! no signature has been verified, except the first: its handshake has been paid for. Invariants: a TPP whose signature was verified on
//! its connection is not refused here; the share never reaches zero, so that a TPP with a new connection gets in after some attempts.
//! Deliberately not here: the limit of requests in flight to the core ([`crate::upstreams::InFlightRequest`]), and rates (QUO-12).

use crate::{
    clock::Stopwatch,
    interface::{Reason, Refusal},
    telemetry::{Stranger, Telemetry},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;

/// The share of strangers at which all of them are served.
const ALL: u32 = 1 << 16;

/// The smallest share: one stranger of 64.
const LEAST: u32 = ALL / 64;

/// The growth of the share after an interval without overload: from the smallest to all within 1.6 s.
const STEP: u32 = ALL / 16;

/// The time that the measuring task sleeps. An interval has [`SAMPLES`] of them, a tenth of a second as in CoDel (RFC 8289, 3.2).
const PAUSE: Duration = Duration::from_millis(20);

/// The delays of one interval. The shortest counts, so that a single long task is no overload.
const SAMPLES: u32 = 5;

/// 2^32 divided by the golden ratio: multiples of it, modulo 2^32, are spread evenly. Hence every part of a sequence of strangers has
/// about the same share of served ones.
const SPREAD: u32 = 0x9e37_79b9;

/// The share of strangers that are served.
#[derive(Debug)]
pub(super) struct Overload {
    limit: Option<Duration>,
    share: AtomicU32,
    turn: AtomicU32,
    telemetry: Arc<Telemetry>,
}

impl Overload {
    /// Creates the measurement with the limit of the delay; without a limit, every stranger is served.
    pub(super) fn new(limit: Option<Duration>, telemetry: Arc<Telemetry>) -> Arc<Self> {
        Arc::new(Self {
            limit,
            share: AtomicU32::new(ALL),
            turn: AtomicU32::new(0),
            telemetry,
        })
    }

    /// Whether strangers are being refused.
    fn is_refusing(&self) -> bool {
        self.share.load(Ordering::Relaxed) < ALL
    }

    /// Whether this stranger is served; counts it otherwise.
    pub(super) fn serves(&self, stranger: Stranger) -> bool {
        let share = self.share.load(Ordering::Relaxed);
        if share >= ALL {
            return true;
        }
        let turn = self.turn.fetch_add(SPREAD, Ordering::Relaxed);
        let is_served = turn >> 16 < share;
        if !is_served {
            self.telemetry.shed(stranger);
        }
        is_served
    }

    /// Refuses a stranger's request, if the threads cannot keep up. Only then `is_strange` is asked.
    ///
    /// # Errors
    /// It is refused.
    pub(super) fn judge(&self, is_strange: impl FnOnce() -> bool) -> Result<(), Refusal> {
        match self.is_refusing() && is_strange() && !self.serves(Stranger::Request) {
            true => Err(Refusal::new(Reason::Overloaded)),
            false => Ok(()),
        }
    }

    /// Measures the delay of tasks in the runtime that calls this. Never returns.
    pub(super) async fn watch(&self) {
        loop {
            let mut shortest = Duration::MAX;
            for _ in 0..SAMPLES {
                let begun = Stopwatch::start();
                sleep(PAUSE).await;
                shortest = shortest.min(begun.elapsed().saturating_sub(PAUSE));
            }
            self.adjust(shortest);
        }
    }

    fn adjust(&self, delay: Duration) {
        let share = self.share.load(Ordering::Relaxed);
        let next = match self.limit {
            Some(limit) if delay > limit => (share / 2).max(LEAST),
            _ => share.saturating_add(STEP).min(ALL),
        };
        self.share.store(next, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overload(limit: Option<u64>) -> Arc<Overload> {
        let limit = limit.map(Duration::from_millis);
        Overload::new(limit, Arc::new(Telemetry::new(None)))
    }

    fn served(overload: &Overload, of: usize) -> usize {
        let all = (0..of).filter(|_| overload.serves(Stranger::Request));
        all.count()
    }

    #[test]
    fn the_share_of_strangers_falls_and_recovers() {
        let overload = overload(Some(50));
        let after = |delay: u64| {
            overload.adjust(Duration::from_millis(delay));
            served(&overload, 640)
        };
        assert_eq!(after(50), 640, "the limit itself is no overload");
        assert!((319..=321).contains(&after(51)));
        assert!((159..=161).contains(&after(51)));
        assert!(overload.is_refusing());
        for _ in 0..20 {
            after(1_000);
        }
        assert!((9..=11).contains(&after(51)), "one of 64 is served");
        let growing: Vec<_> = (0..16).map(|_| after(0)).collect();
        assert!(growing.is_sorted() && growing[0] > 40 && growing[14] < 640);
        assert_eq!(growing[15], 640);
        assert!(!overload.is_refusing());
    }

    #[test]
    fn no_limit_refuses_nobody() {
        let overload = overload(None);
        overload.adjust(Duration::from_secs(60));
        assert_eq!(served(&overload, 640), 640);
    }
}
