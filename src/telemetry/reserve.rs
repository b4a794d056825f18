//! The places of lines for which the queue of a log has none (FWD-8): each subject has its own.
//!
//! Invariant: while the reader of a log is too slow, the lines of one subject drop none of the first [`OWN`] of another. Nothing here is
//! touched while the queue has places, so it costs nothing then.

use super::{
    shares::{Most, Shares},
    subject::Subject,
};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The lines of each subject: with 1 024 TPPs and 256 shares of networks, at most 31 000 lines.
pub(super) const OWN: u32 = 24;

/// The lines that found no place in the queue.
#[derive(Debug)]
pub(super) struct Reserve<L> {
    lines: Mutex<Vec<L>>,
    shares: Shares,
}

impl<L> Default for Reserve<L> {
    fn default() -> Self {
        Self {
            lines: Mutex::default(),
            shares: Shares::new(Most {
                own: OWN,
                common: 0,
                // The writer frees the places.
                within: Duration::MAX,
            }),
        }
    }
}

impl<L> Reserve<L> {
    /// Keeps a line if its subject has a place. False if not: it is counted as left out.
    pub(super) fn keep(&self, subject: Subject, line: L) -> bool {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let has_place = self.shares.take(subject);
        if has_place {
            lines.push(line);
        }
        has_place
    }

    /// Takes all lines, to be written.
    pub(super) fn take(&self) -> Vec<L> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if !lines.is_empty() {
            self.shares.free();
        }
        std::mem::take(&mut lines)
    }

    /// The lines that found no place.
    pub(super) const fn shares(&self) -> &Shares {
        &self.shares
    }
}
