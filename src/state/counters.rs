//! What a store counts of its own work, for the metrics.

use portvakt_base::clock::Timestamp;
use std::time::Duration;

/// A store's activity since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of failed transactions.
    pub failed: u64,
    /// The number of commits whose outcome was unknown at first: a database on another machine was lost at COMMIT.
    pub unclear: u64,
    /// The number of requested changes, in all transactions.
    pub changes: u64,
    /// The transactions by the number of their changes: up to each of [`Counters::CHANGES`], and beyond. Failed ones are included.
    pub by_changes: [u64; Self::CHANGES.len() + 1],
    /// The time spent in transactions.
    pub spent: Duration,
    /// The transactions by their time: up to each of [`Counters::SECONDS`], and beyond. Failed ones are included.
    pub by_seconds: [u64; Self::SECONDS.len() + 1],
    /// The numbers of rows at the last count of housekeeping.
    pub rows: Rows,
    /// Whether requests are refused because the clock stepped back (REP-1).
    pub clock_stepped_back: bool,
    /// The number of times that the clock went back by more than a second.
    pub clock_steps: u64,
    /// The latest time that the store knows.
    pub latest: Option<Timestamp>,
}

impl Counters {
    /// The bounds of [`Counters::by_changes`]. A transaction has at most a thousand changes.
    pub const CHANGES: &'static [f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0];

    /// The bounds of [`Counters::by_seconds`]: from a fast disk to a writer that waits for another process.
    pub const SECONDS: &'static [f64] = &[
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0,
    ];

    /// The number of transactions, including failed ones.
    pub fn batches(&self) -> u64 {
        self.by_changes.iter().sum()
    }

    /// Counts a transaction of some changes and its time.
    pub(super) fn count(&mut self, changes: u32, took: Duration) {
        self.changes = self.changes.saturating_add(changes.into());
        self.spent = self.spent.saturating_add(took);
        count_in(&mut self.by_changes, Self::CHANGES, changes.into());
        count_in(&mut self.by_seconds, Self::SECONDS, took.as_secs_f64());
    }
}

/// Counts a value in the first bucket whose bound it does not exceed, or in the last.
fn count_in(buckets: &mut [u64], bounds: &[f64], value: f64) {
    let bucket = bounds.iter().position(|bound| value <= *bound);
    if let Some(count) = buckets.get_mut(bucket.unwrap_or(bounds.len())) {
        *count = count.saturating_add(1);
    }
}

/// Rows by kind; `None` until housekeeping has visited the whole table once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Quotas with a call.
    pub quotas: Option<u64>,
    /// Lists that are read page by page.
    pub pages: Option<u64>,
    /// Request ids that are stored durably.
    pub requests: Option<u64>,
    /// Spent SCA tokens.
    pub tokens: Option<u64>,
    /// Blocks of TPPs by the bank's calls (CTL-2): those in force, and those that ended within a day.
    pub blocks: Option<u64>,
    /// Bound PSUs.
    pub psus: Option<u64>,
    /// Valid sessions of them (SCA-16).
    pub sessions: Option<u64>,
}
