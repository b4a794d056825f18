//! The reasons why a source could not be used.

/// The reason why a source could not be used. The texts are for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceFault {
    /// The gateway may not call the address of the source.
    #[error("its address is loopback, private or otherwise not public")]
    Forbidden,
    /// The connection failed, or the backoff after a failure has not ended.
    #[error("it cannot be reached")]
    Unreachable,
    /// The source does not answer in time.
    #[error("it did not answer in 5 s")]
    Slow,
    /// The status is not 200; redirects are not followed.
    #[error("it answered with status {0}")]
    Status(u16),
    /// The answer is too long.
    #[error("its answer is larger than 5 MiB")]
    TooLarge,
    /// The answer is not valid.
    #[error("{0}")]
    Invalid(&'static str),
}
