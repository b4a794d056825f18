//! The frames that the gateway sends, as far as the connection's budget depends on them, and the refusals among them.
//!
//! The HTTP/2 library refuses some requests by itself, before the gateway sees them: it resets their stream, answers with a status
//! and nothing else, or ends the connection. Such frames are found here, so that they are counted and logged (ERR-8).

use super::{
    budget::Budget,
    cut::LibraryRefusal,
    header::{FrameHeader, PartialHeader, kind, part},
    streams::OpenStreams,
};

/// The number of frames without progress that each answer allows.
const PER_ANSWER: u32 = 16;

/// The number of answer bytes that allow one more such frame.
const BYTES_PER_FRAME: u32 = 1024;

/// The longest header block with a status alone: an index, a length, and three digits. Answers of the gateway have more fields.
const STATUS_ALONE: u32 = 5;

/// RFC 7541, appendix A: the index of `:status: 400`, as a header field.
const STATUS_400: u8 = 0x80 | 12;

/// RFC 9113, section 7: error codes.
mod code {
    pub(super) const NO_ERROR: u8 = 0;
    pub(super) const PROTOCOL_ERROR: u8 = 1;
    pub(super) const INTERNAL_ERROR: u8 = 2;
    pub(super) const REFUSED_STREAM: u8 = 7;
    pub(super) const CANCEL: u8 = 8;
    pub(super) const ENHANCE_YOUR_CALM: u8 = 11;
}

/// The sent frames.
#[derive(Debug, Default)]
pub(super) struct WrittenFrames {
    header: PartialHeader,
    left: u32,
    /// The current frame, if it is a part of an answer.
    answering: Option<FrameHeader>,
    /// The current frame, if its payload is of interest, and the first bytes of that.
    watched: Option<FrameHeader>,
    payload: [u8; 8],
    count: usize,
    /// The stream that the library answered last: a reset of it says nothing new.
    answered: u32,
    /// Whether the last frame is GOAWAY, and the last stream that the last GOAWAY named.
    is_goodbye: bool,
    last_stream: Option<u32>,
    refusals: Vec<LibraryRefusal>,
}

impl WrittenFrames {
    /// Whether a GOAWAY may follow: the last frame is complete and was none.
    pub(super) const fn may_end(&self) -> bool {
        self.left == 0 && self.header.is_empty() && !self.is_goodbye
    }

    /// The last stream that a sent GOAWAY named: the library ignores later ones, and the client repeats their requests. Without a GOAWAY,
    /// every stream is within.
    pub(super) fn last_stream(&self) -> u32 {
        self.last_stream.unwrap_or(u32::MAX)
    }

    /// The refusals since the last call.
    pub(super) fn take_refusals(&mut self) -> Vec<LibraryRefusal> {
        std::mem::take(&mut self.refusals)
    }

    /// Refills the budget by answers; frames that the client forces the gateway to send spend it. Returns false if it is
    /// exhausted.
    pub(super) fn pass(
        &mut self,
        mut bytes: &[u8],
        budget: &mut Budget,
        streams: &mut OpenStreams,
    ) -> bool {
        let mut within = true;
        while !bytes.is_empty() {
            if self.left > 0 {
                let length = part(self.left, bytes.len());
                let (passed, rest) = bytes.split_at_checked(length).unwrap_or_default();
                self.payload(passed);
                self.end_frame(streams);
                bytes = rest;
                continue;
            }
            let (taken, header) = self.header.take(bytes);
            bytes = bytes.get(taken..).unwrap_or_default();
            let Some(header) = header else {
                continue;
            };
            let FrameHeader {
                length,
                kind,
                stream,
                ..
            } = header;
            self.left = length;
            self.is_goodbye = kind == kind::GOAWAY;
            self.watched = is_watched(header).then_some(header);
            self.count = 0;
            match kind {
                kind::HEADERS => budget.fill(PER_ANSWER),
                kind::DATA => {
                    budget.fill(length / BYTES_PER_FRAME);
                    budget.cover(length);
                }
                // The client sent an invalid request or made the gateway reset its stream ("MadeYouReset").
                kind::RST_STREAM => within &= budget.spend(4),
                _ => {}
            }
            let is_part = kind == kind::DATA || header.ends_stream();
            self.answering = is_part.then_some(header);
            if kind == kind::RST_STREAM {
                streams.reset(stream);
            }
            self.end_frame(streams);
        }
        within
    }

    /// Notes the end of a frame of an answer, if that is reached.
    fn end_frame(&mut self, streams: &mut OpenStreams) {
        if self.left == 0
            && let Some(header) = self.answering.take()
        {
            let length = match header.kind {
                kind::DATA => header.length,
                _ => 0,
            };
            streams.gateway_wrote(header.stream, length, header.ends_stream());
        }
    }

    /// Passes bytes of a payload.
    fn payload(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).unwrap_or(self.left);
        self.left = self.left.saturating_sub(length);
        let Some(header) = self.watched else {
            return;
        };
        let own = self.payload.iter_mut().skip(self.count);
        own.zip(bytes).for_each(|(own, byte)| *own = *byte);
        self.count = self.count.saturating_add(bytes.len());
        if self.left == 0 || self.count >= self.payload.len() {
            self.watched = None;
            let refusal = self.refusal(header);
            self.refusals.extend(refusal);
        }
    }

    /// The refusal that this frame is, if any.
    fn refusal(&mut self, header: FrameHeader) -> Option<LibraryRefusal> {
        let [first, second, third, reset, _, _, _, goaway] = self.payload;
        if header.kind == kind::GOAWAY {
            self.last_stream = Some(u32::from_be_bytes([first, second, third, reset]));
        }
        match header.kind {
            kind::HEADERS => {
                self.answered = header.stream;
                Some(match first {
                    STATUS_400 => LibraryRefusal::BadRequest,
                    _ => LibraryRefusal::TooLarge,
                })
            }
            kind::RST_STREAM if header.stream == self.answered => None,
            kind::RST_STREAM => match reset {
                // An exchange of the gateway ended like that, and is reported.
                code::NO_ERROR | code::INTERNAL_ERROR | code::CANCEL => None,
                code::REFUSED_STREAM => Some(LibraryRefusal::TooManyStreams),
                code::PROTOCOL_ERROR => Some(LibraryRefusal::MalformedStream),
                _ => Some(LibraryRefusal::StreamFault),
            },
            _ => match goaway {
                code::NO_ERROR => None,
                code::ENHANCE_YOUR_CALM => Some(LibraryRefusal::Flood),
                _ => Some(LibraryRefusal::MalformedFrame),
            },
        }
    }
}

/// Whether the payload of a frame can tell a refusal.
const fn is_watched(header: FrameHeader) -> bool {
    match header.kind {
        kind::HEADERS => header.ends_stream() && header.length <= STATUS_ALONE,
        kind::RST_STREAM | kind::GOAWAY => true,
        _ => false,
    }
}
