//! The validity period of a certificate.

use portvakt_base::clock::Timestamp;

/// When a certificate is valid, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub not_before: Timestamp,
    /// The last second.
    pub not_after: Timestamp,
}

impl Validity {
    /// Whether the period contains `now`.
    pub fn contains(self, now: Timestamp) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }
}
