//! The lines of a source. The list of their beginnings would be longer than the source where every line is empty; a number for each block
//! is not.

/// The bytes of a block.
const BLOCK: usize = 4096;

/// How many lines end before each block of the source.
#[derive(Debug)]
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    /// Counts the lines of a source.
    pub(crate) fn of(source: &str) -> Self {
        let blocks = source.as_bytes().chunks(BLOCK);
        let before = blocks.scan(0, |ended, block| {
            let before = *ended;
            *ended += count(block);
            Some(before)
        });
        Self(before.collect())
    }

    /// The line of a position in the source, counted from 1.
    pub(crate) fn line(&self, source: &str, position: usize) -> usize {
        let block = (position / BLOCK).min(self.0.len().saturating_sub(1));
        let begin = block * BLOCK;
        let rest = source.as_bytes().get(begin..).unwrap_or_default();
        let within = rest.get(..position - begin).unwrap_or(rest);
        self.0.get(block).copied().unwrap_or_default() + count(within) + 1
    }
}

fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}
