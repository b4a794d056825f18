//! Counts and inspects the frames of one HTTP/2 connection (RFC 9113) as they pass to the HTTP layer and back.
//!
//! The `h2` library sets no limit on frames that make no progress, accepts a first frame of any type, and cuts fragments off
//! paths. Here, every frame that does not advance a request spends a budget, which answers and time refill; a connection with an
//! exhausted budget ends with GOAWAY. Only frame headers and header blocks are parsed; nothing is copied or delayed.
//!
//! Invariant: a frame that is cut is never passed on completely, so the HTTP layer never acts on it; the bytes before it are
//! passed on. Deliberately not here: streams and their states, which belong to the library.

mod budget;
mod cut;
mod header;
mod streams;
mod written;

pub(super) use cut::{Cut, LibraryRefusal};

use super::{deadline::Awaited, header_block::HeaderBlocks, unsent::UnsentAnswers};
use budget::{Budget, cost_of_fields};
use header::{FrameHeader, PartialHeader, flag, kind, part};
use std::{io::IoSlice, sync::Arc};
use streams::OpenStreams;
use written::WrittenFrames;

/// The client's connection preface (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The reason for passing on only the first of the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The connection must be cut.
    Cut(Cut),
    /// The open streams take as much memory as they may: the rest must wait until one has ended.
    Full,
}

/// The frames of one connection.
#[derive(Debug)]
pub(super) struct FrameInspector {
    step: Step,
    header: PartialHeader,
    blocks: HeaderBlocks,
    /// Whether the current frame ends a header block.
    ends_block: bool,
    /// The stream with an incomplete header block.
    open_block: Option<u32>,
    settings_came: bool,
    /// The highest stream that the client opened.
    last_stream: u32,
    /// The number of complete header sections and other frames.
    completed: u32,
    /// The fields of the current header block that are charged.
    fields: u32,
    streams: OpenStreams,
    budget: Budget,
    written: WrittenFrames,
}

/// The meaning of the next byte.
#[derive(Clone, Copy, Debug)]
enum Step {
    Preface {
        missing: &'static [u8],
    },
    Header,
    /// The first byte of a padded HEADERS frame, followed by this much payload.
    PadLength {
        left: u32,
        priority: u32,
    },
    /// The priority fields, which are skipped; the block and its padding follow.
    Priority {
        left: u32,
        block: u32,
        padding: u32,
    },
    Block {
        left: u32,
        padding: u32,
    },
    /// Bytes that are not inspected.
    Payload {
        left: u32,
        is_data: bool,
    },
}

impl FrameInspector {
    /// The state of a new connection, with its answers.
    pub(super) fn new(unsent: Arc<UnsentAnswers>) -> Self {
        Self {
            step: Step::Preface { missing: PREFACE },
            header: PartialHeader::default(),
            blocks: HeaderBlocks::default(),
            ends_block: false,
            open_block: None,
            settings_came: false,
            last_stream: 0,
            completed: 0,
            fields: 0,
            streams: OpenStreams::new(unsent),
            budget: Budget::new(),
            written: WrittenFrames::default(),
        }
    }

    /// The element that must be completed in time, if one has begun.
    pub(super) fn awaited(&self) -> Option<Awaited> {
        if !self.settings_came {
            return Some(Awaited::Preface);
        }
        let is_between = match self.step {
            Step::Header => self.header.is_empty(),
            // The request has its own deadline for the body.
            Step::Payload { is_data, .. } => is_data,
            _ => false,
        };
        let is_idle = is_between && self.open_block.is_none();
        (!is_idle).then_some(Awaited::Head(self.completed))
    }

    /// Inspects received bytes, and changes each fragment in them. `is_verified`: a signature on this connection has verified.
    ///
    /// # Errors
    /// Only this many of the bytes may be passed on.
    pub(super) fn inspect(
        &mut self,
        bytes: &mut [u8],
        is_verified: bool,
    ) -> Result<(), (usize, Stop)> {
        self.budget.limit(is_verified);
        let whole = bytes.len();
        let mut rest = bytes;
        while !rest.is_empty() {
            let before = whole.saturating_sub(rest.len());
            if self.is_full(is_verified) {
                return Err((before, Stop::Full));
            }
            let step = self.step(rest);
            let (taken, after) = step.map_err(|cut| (before, Stop::Cut(cut)))?;
            if taken == 0 && after.len() == whole.saturating_sub(before) {
                // Every step consumes a byte; otherwise the connection would hang here.
                return Err((before, Stop::Cut(Cut::Malformed)));
            }
            rest = after;
        }
        Ok(())
    }

    /// Consumes the next bytes; returns their number, and the bytes after them.
    fn step<'b>(&mut self, rest: &'b mut [u8]) -> Result<(usize, &'b mut [u8]), Cut> {
        match self.step {
            Step::Header => {
                let (taken, header) = self.header.take(rest);
                let header = header.map(|header| self.begin(header)).transpose()?;
                if header.is_some_and(|header| header.length == 0) {
                    self.end_frame();
                }
                Ok((
                    taken,
                    rest.split_at_mut_checked(taken).unwrap_or_default().1,
                ))
            }
            Step::PadLength { left, priority } => {
                let (first, after) = rest.split_first_mut().ok_or(Cut::Malformed)?;
                let padding = u32::from(*first);
                let block = left.checked_sub(priority.saturating_add(padding));
                let block = block.ok_or(Cut::Malformed)?;
                self.step = Step::Priority {
                    left: priority,
                    block,
                    padding,
                };
                self.settle();
                Ok((1, after))
            }
            Step::Preface { missing } => {
                let length = missing.len().min(rest.len());
                let (bytes, after) = rest.split_at_mut_checked(length).unwrap_or_default();
                let missing = missing.strip_prefix(&*bytes).ok_or(Cut::Malformed)?;
                self.step = match missing {
                    [] => Step::Header,
                    _ => Step::Preface { missing },
                };
                Ok((length, after))
            }
            Step::Priority { left, .. } | Step::Payload { left, .. } => Ok(self.pass(rest, left)),
            Step::Block { left, .. } => {
                let length = part(left, rest.len());
                let (bytes, after) = rest.split_at_mut_checked(length).unwrap_or_default();
                self.blocks.walk(bytes)?;
                self.charge(length)?;
                self.advance(length);
                Ok((length, after))
            }
        }
    }

    /// Whether nothing more may be read before a stream ends. A frame or a header block that has begun is read to its end.
    pub(super) fn is_full(&self, is_verified: bool) -> bool {
        let is_between = matches!(self.step, Step::Header) && self.header.is_empty();
        is_between && self.open_block.is_none() && self.streams.are_full(is_verified)
    }

    /// Charges a part of a header block: its memory, and the budget for fields that no request needs.
    fn charge(&mut self, length: usize) -> Result<(), Cut> {
        let now = self.blocks.fields();
        let before = std::mem::replace(&mut self.fields, now);
        if let Some(stream) = self.open_block {
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            self.streams
                .grow(stream, length, now.saturating_sub(before));
        }
        match cost_of_fields(before, now) {
            0 => Ok(()),
            cost => self.budget.spend(cost).then_some(()).ok_or(Cut::Flood),
        }
    }

    /// Skips bytes of an element with `left` bytes left.
    fn pass<'b>(&mut self, rest: &'b mut [u8], left: u32) -> (usize, &'b mut [u8]) {
        let length = part(left, rest.len());
        self.advance(length);
        (
            length,
            rest.split_at_mut_checked(length).unwrap_or_default().1,
        )
    }

    /// Consumes bytes of the current step.
    fn advance(&mut self, length: usize) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        match &mut self.step {
            Step::Priority { left, .. } | Step::Block { left, .. } | Step::Payload { left, .. } => {
                *left = left.saturating_sub(length)
            }
            Step::Preface { .. } | Step::Header | Step::PadLength { .. } => {}
        }
        self.settle();
    }

    /// Advances to the next nonempty part of a frame.
    fn settle(&mut self) {
        if let Step::Priority {
            left: 0,
            block,
            padding,
        } = self.step
        {
            self.step = Step::Block {
                left: block,
                padding,
            };
        }
        if let Step::Block { left: 0, padding } = self.step {
            self.step = Step::Payload {
                left: padding,
                is_data: false,
            };
        }
        if let Step::Payload { left: 0, .. } = self.step {
            self.end_frame();
        }
    }

    /// Ends a complete frame.
    fn end_frame(&mut self) {
        self.step = Step::Header;
        if std::mem::take(&mut self.ends_block) {
            self.open_block = None;
        }
        // The deadline is that of the whole section: a CONTINUATION does not extend it.
        if self.open_block.is_none() {
            self.completed = self.completed.wrapping_add(1);
        }
    }

    /// Counts the streams that a frame opens or ends.
    fn count_stream(&mut self, header: FrameHeader) {
        let is_new =
            header.stream > self.last_stream && header.stream <= self.written.last_stream();
        if header.kind == kind::HEADERS && is_new {
            self.streams.open(header.stream);
        }
        if header.kind == kind::RST_STREAM {
            self.streams.reset(header.stream);
        } else if header.ends_stream() {
            self.streams.client_ends(header.stream);
        }
    }

    /// Begins a frame.
    fn begin(&mut self, header: FrameHeader) -> Result<FrameHeader, Cut> {
        let (length, kind, flags, stream) =
            (header.length, header.kind, header.flags, header.stream);
        if !self.settings_came {
            if kind != kind::SETTINGS || flags & flag::ACK != 0 {
                return Err(Cut::NotSettings);
            }
            self.settings_came = true;
        }
        if !self.budget.spend_on(header) {
            return Err(Cut::Flood);
        }
        let continues = kind == kind::CONTINUATION;
        if self.open_block != continues.then_some(stream) {
            return Err(Cut::Malformed);
        }
        let is_block = continues || kind == kind::HEADERS;
        self.count_stream(header);
        if !is_block {
            let is_data = kind == kind::DATA;
            self.step = Step::Payload {
                left: length,
                is_data,
            };
            return Ok(header);
        }
        self.ends_block = flags & flag::END_HEADERS != 0;
        self.open_block = Some(stream);
        if continues {
            self.step = Step::Block {
                left: length,
                padding: 0,
            };
            return Ok(header);
        }
        self.blocks.begin(stream <= self.last_stream);
        self.fields = 0;
        self.last_stream = self.last_stream.max(stream);
        let priority = if flags & flag::PRIORITY != 0 { 5 } else { 0 };
        self.step = if flags & flag::PADDED != 0 {
            let left = length.checked_sub(1).ok_or(Cut::Malformed)?;
            Step::PadLength { left, priority }
        } else {
            let block = length.checked_sub(priority).ok_or(Cut::Malformed)?;
            Step::Priority {
                left: priority,
                block,
                padding: 0,
            }
        };
        if length > 0 {
            self.settle();
        }
        Ok(header)
    }

    /// Inspects sent bytes. Returns false if the client made the gateway send too many frames that make no progress.
    pub(super) fn wrote(&mut self, bytes: &[u8]) -> bool {
        self.written
            .pass(bytes, &mut self.budget, &mut self.streams)
    }

    /// Everything that was sent is with the kernel.
    pub(super) fn flushed(&mut self) {
        self.streams.flushed();
    }

    /// The refusals by the library in the sent bytes, since the last call.
    pub(super) fn take_refusals(&mut self) -> Vec<LibraryRefusal> {
        self.written.take_refusals()
    }

    /// As [`Self::wrote`], for bytes in several slices.
    pub(super) fn wrote_all(&mut self, slices: &[IoSlice<'_>], count: usize) -> bool {
        let mut left = count;
        let mut within = true;
        for slice in slices {
            let bytes = slice.get(..left.min(slice.len())).unwrap_or_default();
            left = left.saturating_sub(bytes.len());
            within &= self.wrote(bytes);
            if left == 0 {
                break;
            }
        }
        within
    }

    /// The GOAWAY that ends the connection, with NO_ERROR or the code of a cut; `None` if the last sent frame is incomplete, or
    /// was GOAWAY. Its last stream is never above that of an earlier GOAWAY (RFC 9113, section 6.8): the client would take a request
    /// that was ignored for one that was processed, and not repeat it.
    pub(super) fn goaway(&self, cut: Option<Cut>) -> Option<Vec<u8>> {
        let code = cut.map_or(0, Cut::code);
        let may_end = self.written.may_end();
        let last_stream = self.last_stream.min(self.written.last_stream());
        may_end.then(|| header::goaway(last_stream, code))
    }
}
