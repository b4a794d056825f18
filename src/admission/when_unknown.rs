//! The treatment of a certificate of which nobody can say whether it is revoked (CRT-6).

/// The treatment of a request whose certificate no source judges, once every fetch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenUnknown {
    /// It passes, counted and logged.
    Open,
    /// It is refused: 503.
    Closed,
}
