//! The frames that the gateway sends, as far as the budget of the connection needs them.

use super::{
    budget::Budget,
    header::{FrameHeader, PartialHeader, kind, part},
};

/// How many frames that carry nothing each answer allows: for one that comes in parts a client grants its window anew a few times.
const PER_ANSWER: u32 = 16;

/// How many bytes of an answer allow one more such frame.
const BYTES_PER_FRAME: u32 = 1024;

/// The frames that went out.
#[derive(Debug, Default)]
pub(super) struct WrittenFrames {
    header: PartialHeader,
    left: u32,
}

impl WrittenFrames {
    /// Whether the last frame is whole.
    pub(super) const fn is_between(&self) -> bool {
        self.left == 0 && self.header.is_empty()
    }

    /// Fills the budget by answers; what the client forces the gateway to say takes from it. False where it is used up.
    pub(super) fn pass(&mut self, mut bytes: &[u8], budget: &mut Budget) -> bool {
        let mut within = true;
        while !bytes.is_empty() {
            if self.left > 0 {
                let length = part(self.left, bytes.len());
                let passed = u32::try_from(length).unwrap_or(self.left);
                self.left = self.left.saturating_sub(passed);
                bytes = bytes.get(length..).unwrap_or_default();
                continue;
            }
            let (taken, header) = self.header.take(bytes);
            bytes = bytes.get(taken..).unwrap_or_default();
            let Some(FrameHeader { length, kind, .. }) = header else {
                continue;
            };
            self.left = length;
            match kind {
                kind::HEADERS => budget.fill(PER_ANSWER),
                kind::DATA => budget.fill(length / BYTES_PER_FRAME),
                // The client made a request that is none, or left one: "MadeYouReset".
                kind::RST_STREAM => within &= budget.spend(4),
                _ => {}
            }
        }
        within
    }
}
