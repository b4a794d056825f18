//! The reasons why a saved message cannot be read.

/// The reason why an input is unusable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedFault {
    /// The input is empty.
    #[error("the input is empty")]
    Empty,
    /// The first line is not method, target and version.
    #[error(
        "the first line is no request line such as `GET /v1/accounts HTTP/1.1`; expected a raw HTTP/1.1 request, the output of curl --trace, --trace-ascii or -v, a HAR, or flows of mitmproxy"
    )]
    RequestLine,
    /// The first line has method and target, but no version: the output of `portvakt tpp sign`, or an access log.
    #[error(
        "the first line has no version, such as HTTP/1.1: this is no whole request. `portvakt tpp sign --curl` prints a command, and with --trace FILE that saves one"
    )]
    NoVersion,
    /// The first line is not a status line.
    #[error("the first line is no status line such as `HTTP/1.1 200 OK`")]
    StatusLine,
    /// A line of the head is not a header. The HTTP layer refuses such a head.
    #[error(
        "line {line} of the head is no header: {why}. The HTTP layer refuses it: 400 malformed-request over HTTP/1.1; HTTP/2 may reset the stream instead (HTTP-7)"
    )]
    Header {
        /// The line of the head, from 1.
        line: usize,
        /// The fault.
        why: &'static str,
    },
    /// The trace has no `=> Send header`.
    #[error("the trace holds no request: no `=> Send header` with rows below it")]
    NoRequest,
    /// The flows of mitmproxy hold no request that can be read.
    #[error("the input begins as flows of mitmproxy do, and holds no request: {0}")]
    Flows(&'static str),
    /// The JSON is not a HAR.
    #[error("the input begins as JSON does but is no HAR: {0}")]
    Har(String),
    /// `--entry` names a request that does not exist.
    #[error("there is no request {wanted}: the input holds {found}, counted from 1")]
    Entry {
        /// The requested number.
        wanted: usize,
        /// The number of requests.
        found: usize,
    },
}
