//! A saved request and a saved answer.

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
    /// The headers. Over HTTP/2 without Host; the authority replaces it.
    pub(in crate::tools) headers: HeaderMap,
    /// The body, without its framing.
    pub(in crate::tools) body: Vec<u8>,
    /// Assumptions and repairs.
    pub(in crate::tools) notes: Vec<String>,
}

/// The framing of a request on the wire.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::tools) enum Wire {
    /// Text (HTTP/1.1): the head with its empty line.
    Lines(Vec<u8>),
    /// Frames (HTTP/2): `:authority`.
    Frames(Option<String>),
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
