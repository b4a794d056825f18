//! The reasons for cutting a connection, with the error codes of RFC 9113 and the labels of the metric.

use super::super::header_block::BlockFault;

/// The reason for cutting a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Cut {
    /// Too many frames that make no progress.
    Flood,
    /// The first frame is not SETTINGS.
    NotSettings,
    /// A frame interrupts a header block, or is shorter than its fields require.
    Malformed,
    /// A header block is not valid HPACK.
    NotHpack,
    /// A trailer section has a pseudo-header.
    PseudoInTrailers,
    /// The preface or the first SETTINGS timed out.
    SlowPreface,
    /// A frame or a header block timed out.
    SlowHead,
    /// The client did not accept the gateway's bytes in time.
    BlockedWrite,
}

impl Cut {
    /// The error code (RFC 9113, section 7).
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::NotSettings | Self::Malformed | Self::PseudoInTrailers => 1,
            Self::SlowPreface => 4,
            Self::NotHpack => 9,
            Self::Flood | Self::SlowHead | Self::BlockedWrite => 11,
        }
    }

    /// The label of the metric.
    pub(in super::super) const fn label(self) -> &'static str {
        match self {
            Self::Flood => "frame_flood",
            Self::NotSettings | Self::Malformed | Self::NotHpack | Self::PseudoInTrailers => {
                "malformed_frame"
            }
            Self::SlowPreface => "slow_preface",
            Self::SlowHead => "slow_head",
            Self::BlockedWrite => "blocked_write",
        }
    }
}

impl From<BlockFault> for Cut {
    fn from(fault: BlockFault) -> Self {
        match fault {
            BlockFault::NotHpack => Self::NotHpack,
            BlockFault::PseudoInTrailers => Self::PseudoInTrailers,
        }
    }
}
