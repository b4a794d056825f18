//! The treatment of a certificate with unknown revocation status (CRT-6).

/// The treatment of a request with unknown revocation status, after every fetch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenUnknown {
    /// The request passes, and is counted and logged.
    Open,
    /// The request is refused with 503.
    Closed,
}
