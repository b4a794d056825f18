//! A body that can be read once, so that the listener, the tests and the tools use the same pipeline.

use bytes::Bytes;
use std::future::Future;

/// A body that has not been read yet.
pub trait Incoming: Send {
    /// The announced size of the body.
    fn announced(&self) -> Announced;

    /// Reads the whole body, but at most `limit` bytes.
    fn read(&mut self, limit: usize) -> impl Future<Output = Result<Bytes, BodyFault>> + Send;
}

/// The announcement of a body in the head of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// There is no body.
    Nothing,
    /// The body has this many bytes.
    Length(u64),
    /// The length is known only at the end of the body.
    Unknown,
}

/// The reason why a body was not read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// The body has more bytes than the limit.
    TooLarge,
    /// The body did not arrive in time.
    TooSlow,
    /// The chunks of the body are malformed; the text is for the operator.
    Chunks(String),
    /// The connection or the stream ended early; the text is for the operator.
    Broken(String),
}

/// A body that is already in memory: in tests, benchmarks and tools, and for a request without a body.
impl Incoming for Bytes {
    fn announced(&self) -> Announced {
        match self.len() {
            0 => Announced::Nothing,
            length => u64::try_from(length).map_or(Announced::Unknown, Announced::Length),
        }
    }

    async fn read(&mut self, limit: usize) -> Result<Bytes, BodyFault> {
        if self.len() > limit {
            Err(BodyFault::TooLarge)
        } else {
            Ok(std::mem::take(self))
        }
    }
}
