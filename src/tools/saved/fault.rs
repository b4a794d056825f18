//! The reasons why a saved message cannot be read.

/// The reason why an input is unusable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedFault {
    /// The input is empty.
    #[error("the input is empty")]
    Empty,
    /// The first line is not method, target and version.
    #[error(
        "the first line is no request line such as `GET /v1/accounts HTTP/1.1`; expected a raw HTTP/1.1 request, the output of curl --trace-ascii, or a HAR"
    )]
    RequestLine,
    /// The first line has method and target, but no version: the output of `portvakt tpp sign`, or an access log.
    #[error(
        "the first line has no version, such as HTTP/1.1: this is no whole request. `portvakt tpp sign --curl` prints a command, and with --trace-ascii FILE that saves one"
    )]
    NoVersion,
    /// The output of `curl -v`.
    #[error(
        "this is what curl -v prints, without the body and with the gateway's answer in between: save the request with curl --trace-ascii FILE"
    )]
    Verbose,
    /// The first line is not a status line.
    #[error("the first line is no status line such as `HTTP/1.1 200 OK`")]
    StatusLine,
    /// A line of the head is not a header. The gateway's HTTP layer refuses such a request by itself.
    #[error(
        "line {line} of the head is no header: {why}. The HTTP layer refuses it; a request is answered with 400 and no body (HTTP-7)"
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
