//! The frames that the gateway sends, as far as the connection's budget depends on them.

use super::{
    budget::Budget,
    header::{FrameHeader, PartialHeader, kind, part},
};

/// The number of frames without progress that each answer allows: for a long answer, a client sends WINDOW_UPDATE a few times.
const PER_ANSWER: u32 = 16;

/// The number of answer bytes that allow one more such frame.
const BYTES_PER_FRAME: u32 = 1024;

/// The sent frames.
#[derive(Debug, Default)]
pub(super) struct WrittenFrames {
    header: PartialHeader,
    left: u32,
    /// Whether the last frame is GOAWAY.
    is_goodbye: bool,
}

impl WrittenFrames {
    /// Whether a GOAWAY may follow: the last frame is complete and was none.
    pub(super) const fn may_end(&self) -> bool {
        self.left == 0 && self.header.is_empty() && !self.is_goodbye
    }

    /// Refills the budget by answers; frames that the client forces the gateway to send spend it. Returns false if it is
    /// exhausted.
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
            self.is_goodbye = kind == kind::GOAWAY;
            match kind {
                kind::HEADERS => budget.fill(PER_ANSWER),
                kind::DATA => budget.fill(length / BYTES_PER_FRAME),
                // The client sent an invalid request or made the gateway reset its stream ("MadeYouReset").
                kind::RST_STREAM => within &= budget.spend(4),
                _ => {}
            }
        }
        within
    }
}
