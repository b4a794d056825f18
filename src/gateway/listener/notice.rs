//! Limits the log lines that unauthenticated clients can cause: 10 000 probes of one kind cause at most ten lines.

use crate::clock::Stopwatch;
use std::{sync::Mutex, time::Duration};

/// The most lines of one kind in [`PERIOD`]. Further ones are counted, and the next line reports their number.
const MOST: u32 = 5;

/// The period. Ten thousand probes in one of them, or in two that follow each other, cause at most ten lines.
const PERIOD: Duration = Duration::from_secs(60);

/// The lines of the current period.
#[derive(Debug)]
pub(super) struct NoticeLimit {
    period: Duration,
    lines: Mutex<Lines>,
}

#[derive(Debug)]
struct Lines {
    since: Stopwatch,
    written: u32,
    unsaid: u64,
}

impl Default for NoticeLimit {
    fn default() -> Self {
        Self::new(PERIOD)
    }
}

impl NoticeLimit {
    /// Allows [`MOST`] lines in each period.
    fn new(period: Duration) -> Self {
        Self {
            period,
            lines: Mutex::new(Lines {
                since: Stopwatch::start(),
                written: 0,
                unsaid: 0,
            }),
        }
    }

    /// Writes a line if the limit allows it; `write` gets the number of lines suppressed before it.
    pub(super) fn warn(&self, write: impl FnOnce(u64)) {
        let Ok(unsaid) = self.lines.lock().map(|mut lines| lines.take(self.period)) else {
            return;
        };
        if let Some(unsaid) = unsaid {
            write(unsaid);
        }
    }
}

impl Lines {
    fn take(&mut self, period: Duration) -> Option<u64> {
        if self.since.elapsed() >= period {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_probes_cause_few_lines() {
        let limit = NoticeLimit::default();
        let mut written = 0;
        for _ in 0..10_000 {
            limit.warn(|_| written += 1);
        }
        assert!((5..=10).contains(&written), "{written}");
    }

    #[test]
    fn the_next_line_reports_those_before_it() {
        let limit = NoticeLimit::new(Duration::from_millis(500));
        let mut written = 0;
        for _ in 0..1_000 {
            limit.warn(|_| written += 1);
        }
        std::thread::sleep(Duration::from_millis(510));
        let mut unsaid = None;
        limit.warn(|count| unsaid = Some(count));
        // On a loaded machine, another period may have begun meanwhile.
        assert!(unsaid.is_some_and(|unsaid| unsaid > 0 && unsaid <= 1_000 - written));
    }
}
