//! Limits the log lines that unauthenticated clients can cause.

use crate::clock::Stopwatch;
use std::{sync::Mutex, time::Duration};

/// The most lines per second. Further ones are counted, and the next line reports their number.
const PER_SECOND: u32 = 10;

/// The lines of the current second.
#[derive(Debug)]
pub(super) struct NoticeLimit(Mutex<Lines>);

#[derive(Debug)]
struct Lines {
    since: Stopwatch,
    written: u32,
    unsaid: u64,
}

impl Default for NoticeLimit {
    fn default() -> Self {
        Self(Mutex::new(Lines {
            since: Stopwatch::start(),
            written: 0,
            unsaid: 0,
        }))
    }
}

impl NoticeLimit {
    /// Writes a line if this second's limit allows it; `write` gets the number of lines suppressed before it.
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
        if self.since.elapsed() >= Duration::from_secs(1) {
            self.since = Stopwatch::start();
            self.written = 0;
        }
        if self.written == PER_SECOND {
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
    fn ten_lines_a_second() {
        let limit = NoticeLimit::default();
        let mut written = 0;
        for _ in 0..1000 {
            limit.warn(|_| written += 1);
        }
        // On a loaded machine, another second may have begun.
        assert!((10..=30).contains(&written), "{written}");
        std::thread::sleep(Duration::from_millis(1010));
        let mut unsaid = None;
        limit.warn(|count| unsaid = Some(count));
        assert_eq!(unsaid, Some(1000 - written));
    }
}
