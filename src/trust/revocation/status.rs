//! The revocation status of a chain.

use portvakt_base::clock::Timestamp;

/// The revocation status of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationStatus {
    /// No member of the chain is revoked.
    Good,
    /// A member is revoked; the end-entity certificate is at depth 0.
    Revoked {
        /// The depth of the member in the chain.
        depth: usize,
        /// The revocation date.
        since: Timestamp,
    },
    /// A source of a member has never answered and is being asked. Until it answers or fails, no request passes.
    Awaited {
        /// The depth of the member in the chain.
        depth: usize,
    },
    /// No source can tell the status of a member.
    Unknown {
        /// The depth of the member in the chain.
        depth: usize,
    },
}

impl RevocationStatus {
    /// The worse status of two chains: revoked before awaited, awaited before unknown; `self` if both rank equal.
    pub const fn worse(self, other: Self) -> Self {
        if other.rank() > self.rank() {
            other
        } else {
            self
        }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Unknown { .. } => 1,
            Self::Awaited { .. } => 2,
            Self::Revoked { .. } => 3,
        }
    }
}
