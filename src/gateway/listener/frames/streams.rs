//! The open streams of one connection, and an estimate of the memory that they take (HTTP-9).
//!
//! A stream is open until both sides have ended it, or one has reset it. Deliberately not here: the limit, and reading less when it
//! is reached.

use super::super::unsent::UnsentAnswers;
use std::sync::Arc;

/// The most memory of the streams of a connection, in bytes: until a signature on it has verified, and then. With TLS, the buffers
/// and the window for bodies, a connection takes at most 256 KiB, and then 2 MiB.
const BEFORE_SIGNATURE: u32 = 64 * 1024;
const AFTER_SIGNATURE: u32 = 1536 * 1024;

/// The memory of one open stream, in bytes: its task with the state of the request, and the library's own.
const STREAM: u32 = 16 * 1024;

/// The memory of one header field beside its bytes.
const FIELD: u32 = 128;

/// The open streams.
#[derive(Debug, Default)]
pub(super) struct OpenStreams {
    open: Vec<OpenStream>,
    memory: u32,
    /// Their answers, which requests wait for.
    unsent: Arc<UnsentAnswers>,
    /// Whether an answer has ended since the last flush.
    has_ended: bool,
}

#[derive(Debug)]
struct OpenStream {
    id: u32,
    memory: u32,
    client_ended: bool,
    gateway_ended: bool,
}

impl OpenStreams {
    /// No stream is open; `unsent` is told of their answers.
    pub(super) fn new(unsent: Arc<UnsentAnswers>) -> Self {
        Self {
            unsent,
            ..Self::default()
        }
    }

    /// Whether the streams take as much memory as they may.
    pub(super) const fn are_full(&self, is_verified: bool) -> bool {
        let most = match is_verified {
            true => AFTER_SIGNATURE,
            false => BEFORE_SIGNATURE,
        };
        self.memory >= most
    }

    /// The client opens a stream.
    pub(super) fn open(&mut self, id: u32) {
        self.open.push(OpenStream {
            id,
            memory: STREAM,
            client_ended: false,
            gateway_ended: false,
        });
        self.memory = self.memory.saturating_add(STREAM);
        self.unsent.begin(id);
    }

    /// A part of a stream's head has come: encoded bytes, and fields.
    pub(super) fn grow(&mut self, id: u32, bytes: u32, fields: u32) {
        let more = bytes.saturating_add(fields.saturating_mul(FIELD));
        let mut newest_first = self.open.iter_mut().rev();
        if let Some(stream) = newest_first.find(|stream| stream.id == id) {
            stream.memory = stream.memory.saturating_add(more);
            self.memory = self.memory.saturating_add(more);
        }
    }

    /// The client ends its side of a stream.
    pub(super) fn client_ends(&mut self, id: u32) {
        self.end(id, |stream| stream.client_ended = true);
    }

    /// The gateway has passed DATA of this length to TLS, or the last frame of its side of a stream.
    pub(super) fn gateway_wrote(&mut self, id: u32, length: u32, is_last: bool) {
        self.unsent.wrote(id, length, is_last);
        if is_last {
            self.has_ended = true;
            self.end(id, |stream| stream.gateway_ended = true);
        }
    }

    /// Everything that was passed to TLS is with the kernel.
    pub(super) fn flushed(&mut self) {
        if std::mem::take(&mut self.has_ended) {
            self.unsent.flushed();
        }
    }

    /// A side resets a stream.
    pub(super) fn reset(&mut self, id: u32) {
        self.unsent.reset(id);
        self.end(id, |stream| {
            stream.client_ended = true;
            stream.gateway_ended = true;
        });
    }

    fn end(&mut self, id: u32, end: impl FnOnce(&mut OpenStream)) {
        let Some(at) = self.open.iter().position(|stream| stream.id == id) else {
            return;
        };
        let Some(stream) = self.open.get_mut(at) else {
            return;
        };
        end(stream);
        if stream.client_ended && stream.gateway_ended {
            self.memory = self.memory.saturating_sub(stream.memory);
            self.open.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_counts_until_both_sides_end_it() {
        let mut streams = OpenStreams::default();
        for id in [1, 3, 5] {
            streams.open(id);
        }
        streams.grow(5, 1_000, 2);
        streams.grow(9, 1_000, 2);
        assert_eq!(streams.memory, 3 * STREAM + 1_000 + 2 * FIELD);
        streams.client_ends(5);
        streams.client_ends(5);
        streams.gateway_wrote(1, 0, true);
        assert_eq!(streams.open.len(), 3);
        streams.gateway_wrote(5, 9, true);
        assert_eq!(streams.memory, 2 * STREAM);
        streams.reset(1);
        streams.reset(1);
        streams.reset(7);
        assert_eq!(streams.memory, STREAM);
        streams.reset(3);
        assert_eq!((streams.memory, streams.open.len()), (0, 0));
    }
}
