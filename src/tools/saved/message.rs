//! A saved request and a saved answer.

use super::doubts::Doubts;
use crate::admission::Announced;
use http::HeaderMap;

/// A request.
#[derive(Debug)]
pub(in crate::tools) struct SavedRequest {
    /// The format of the file.
    pub(in crate::tools) form: &'static str,
    /// The method.
    pub(in crate::tools) method: String,
    /// Path and query.
    pub(in crate::tools) target: Vec<u8>,
    /// The framing on the wire.
    pub(in crate::tools) wire: Wire,
    /// The headers that can be read. Over HTTP/2 without Host; the authority replaces it.
    pub(in crate::tools) headers: HeaderMap,
    /// The body, without its framing.
    pub(in crate::tools) body: Vec<u8>,
    /// How much of the body the file has.
    pub(in crate::tools) kept: KeptBody,
    /// Assumptions and repairs.
    pub(in crate::tools) notes: Vec<String>,
    /// The lines of the head that are no headers, in words. The gateway refuses such a head.
    pub(in crate::tools) damage: Vec<String>,
    /// The places where the format may show other bytes than were sent.
    pub(in crate::tools) doubts: Doubts,
}

/// The framing of a request on the wire.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::tools) enum Wire {
    /// Text (HTTP/1.1): the head with its empty line.
    Lines(Vec<u8>),
    /// Frames (HTTP/2): `:authority`.
    Frames(Option<String>),
}

/// How much of the body a file has.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::tools) enum KeptBody {
    /// HTTP/1.1: the bytes behind the head as they were sent, such as chunks.
    Framed(Vec<u8>),
    /// The body alone, or a part of it: the head may say otherwise.
    Alone,
    /// The body was sent, and the file does not have it, or has other bytes.
    Lost(Announced),
}

/// An answer.
#[derive(Debug)]
pub(in crate::tools) struct SavedResponse {
    /// The status line.
    pub(in crate::tools) status: String,
    /// The headers.
    pub(in crate::tools) headers: HeaderMap,
    /// The body.
    pub(in crate::tools) body: Vec<u8>,
    /// Assumptions and repairs.
    pub(in crate::tools) notes: Vec<String>,
}
