//! Lines that were read before.
//!
//! Invariant: the memory is bounded, see [`KEPT`]. A line is known by a hash of 64 bits under a key of this process, so that two lines that
//! differ are taken for the same once in some ten thousand years of reports.

use std::{
    collections::{HashSet, hash_map::RandomState},
    hash::BuildHasher,
};

/// A line is compared with at least this number of lines before it, and at most twice as many. Their hashes take at most 160 MB.
pub(super) const KEPT: usize = 1 << 22;

/// The lines before.
#[derive(Debug)]
pub(super) struct SeenLines {
    key: RandomState,
    kept: usize,
    /// The latest lines, at most `kept`.
    new: HashSet<u64>,
    /// Those before them, `kept` or none.
    old: HashSet<u64>,
    /// Whether a line was forgotten.
    has_forgotten: bool,
}

impl SeenLines {
    /// No line yet.
    pub(super) fn new() -> Self {
        Self::keeping(KEPT)
    }

    fn keeping(kept: usize) -> Self {
        Self {
            key: RandomState::new(),
            kept,
            new: HashSet::new(),
            old: HashSet::new(),
            has_forgotten: false,
        }
    }

    /// Adds a line; false if it was there before.
    pub(super) fn add(&mut self, line: &[u8]) -> bool {
        let hash = self.key.hash_one(line);
        if self.old.contains(&hash) || !self.new.insert(hash) {
            return false;
        }
        if self.new.len() >= self.kept {
            self.has_forgotten |= !self.old.is_empty();
            self.old = std::mem::take(&mut self.new);
        }
        true
    }

    /// Whether there were more lines than could be compared.
    pub(super) const fn has_forgotten(&self) -> bool {
        self.has_forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_lines_are_known() {
        let mut seen = SeenLines::keeping(4);
        let line = |number: u32| number.to_string().into_bytes();
        for number in 0..100 {
            assert!(seen.add(&line(number)));
            assert!(seen.new.len() <= 4 && seen.old.len() <= 4);
            for back in 0..4.min(number + 1) {
                assert!(!seen.add(&line(number - back)), "{number}, {back} back");
            }
        }
        assert!(seen.has_forgotten());
        assert!(seen.add(&line(1)));
        let mut few = SeenLines::keeping(4);
        assert!((0..7).all(|number| few.add(&line(number))));
        assert!(!few.add(&line(0)) && !few.has_forgotten());
    }
}
