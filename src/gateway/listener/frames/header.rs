//! The header of a frame (RFC 9113, section 4.1): its types and flags, and its assembly from partial reads.

/// The length of a frame header in bytes (RFC 9113, section 4.1).
const HEADER: usize = 9;

/// RFC 9113, section 6: the types of frames.
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

/// RFC 9113, section 6: flags.
pub(super) mod flag {
    pub(in super::super) const END_STREAM: u8 = 0x1;
    pub(in super::super) const ACK: u8 = 0x1;
    pub(in super::super) const END_HEADERS: u8 = 0x4;
    pub(in super::super) const PADDED: u8 = 0x8;
    pub(in super::super) const PRIORITY: u8 = 0x20;
}

/// A partially received frame header.
#[derive(Debug, Default)]
pub(super) struct PartialHeader {
    bytes: [u8; HEADER],
    count: usize,
}

/// A frame's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameHeader {
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

/// The number of available bytes that belong to an element with `left` bytes left.
pub(super) fn part(left: u32, available: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(available)
}

impl PartialHeader {
    /// Takes bytes up to the header's end; returns their number, and the header if it is complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (usize, Option<FrameHeader>) {
        let missing = HEADER.saturating_sub(self.count);
        let taken = bytes.get(..missing.min(bytes.len())).unwrap_or_default();
        let own = self.bytes.iter_mut().skip(self.count);
        own.zip(taken).for_each(|(own, byte)| *own = *byte);
        self.count = self.count.saturating_add(taken.len());
        let is_whole = self.count == HEADER;
        if is_whole {
            self.count = 0;
        }
        (taken.len(), is_whole.then(|| FrameHeader::of(self.bytes)))
    }

    /// Whether no part of a header has arrived.
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A GOAWAY with this last stream and code (RFC 9113, section 6.8).
pub(super) fn goaway(last_stream: u32, code: u8) -> Vec<u8> {
    let header = [0, 0, 8, kind::GOAWAY, 0, 0, 0, 0, 0];
    let last_stream = last_stream.to_be_bytes();
    [header.as_slice(), &last_stream, &[0, 0, 0, code]].concat()
}

impl FrameHeader {
    /// Whether the frame ends its sender's side of the stream.
    pub(super) const fn ends_stream(self) -> bool {
        matches!(self.kind, kind::HEADERS | kind::DATA) && self.flags & flag::END_STREAM != 0
    }

    const fn of([a, b, c, kind, flags, e, f, g, h]: [u8; HEADER]) -> Self {
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes([e, f, g, h]) & 0x7fff_ffff,
        }
    }
}
