//! Limits the log lines that unauthenticated clients can cause: 10 000 probes of one kind cause at most ten lines.

use crate::clock::Stopwatch;
use std::{sync::Mutex, time::Duration};

/// The most lines of one kind in [`PERIOD`]. Further ones are counted, and the next line reports their number.
const MOST: u32 = 5;

/// The period. Ten thousand probes in one of them, or in two that follow each other, cause at most ten lines.
const PERIOD: Duration = Duration::from_secs(60);

/// The lines of the current period.
#[derive(Debug, Default)]
pub(super) struct NoticeLimit(Mutex<Lines>);

#[derive(Debug)]
struct Lines {
    since: Stopwatch,
    written: u32,
    unsaid: u64,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            since: Stopwatch::start(),
            written: 0,
            unsaid: 0,
        }
    }
}

impl NoticeLimit {
    /// Writes a line if the limit allows it; `write` gets the number of lines suppressed before it.
    pub(super) fn warn(&self, write: impl FnOnce(u64)) {
        let Ok(unsaid) = self.0.lock().map(|mut lines| lines.take()) else {
            return;
        };
        if let Some(unsaid) = unsaid {
            write(unsaid);
        }
    }
}

impl Lines {
    fn take(&mut self) -> Option<u64> {
        if self.since.elapsed() >= PERIOD {
            self.since = Stopwatch::start();
            self.written = 0;
        }
        if self.written == MOST {
            self.unsaid = self.unsaid.saturating_add(1);
            return None;
        }
        self.written = self.written.saturating_add(1);
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(all(test, feature = "sandbox"))]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn ten_thousand_probes_cause_few_lines() {
        let limit = NoticeLimit::default();
        let probe = |count: usize| {
            let mut unsaid = Vec::new();
            (0..count).for_each(|_| limit.warn(|before| unsaid.push(before)));
            unsaid
        };
        assert_eq!(probe(5_000), [0; 5]);
        advance(PERIOD - Duration::from_millis(1)).await;
        assert_eq!(probe(5_000), [0; 0]);
        // The next line reports those before it.
        advance(Duration::from_millis(1)).await;
        assert_eq!(probe(10), [9_995, 0, 0, 0, 0]);
    }
}
