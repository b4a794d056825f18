//! A body that can be read once, so that the listener, the tests and the tools run the same pipeline.

use bytes::Bytes;
use std::future::Future;

/// A body that has not been read yet.
pub trait Incoming: Send {
    /// The announced size of the body.
    fn announced(&self) -> Announced;

    /// Reads all of it, but never more than `limit` bytes.
    fn read(&mut self, limit: usize) -> impl Future<Output = Result<Bytes, BodyFault>> + Send;
}

/// The announcement of a body in the head of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// There is none.
    Nothing,
    /// This many bytes.
    Length(u64),
    /// It will be seen when it ends.
    Unknown,
}

/// Why a body was not read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// It has more bytes than the limit.
    TooLarge,
    /// It did not arrive in time.
    TooSlow,
    /// It broke off or was framed wrongly; the text is for the operator.
    Broken(String),
}

/// A body that was received before: in tests, benchmarks and tools, and for a request without one.
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
