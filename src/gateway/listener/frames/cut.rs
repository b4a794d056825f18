//! Why a connection is cut, as RFC 9113 and the metric call it.

use super::super::header_block::BlockFault;

/// Why a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Cut {
    /// Too many frames that carry nothing.
    Flood,
    /// The first frame is not SETTINGS.
    NotSettings,
    /// A frame breaks off a header block, or is shorter than its parts.
    Malformed,
    /// A header block is not HPACK.
    NotHpack,
    /// A trailer section has a pseudo-header.
    PseudoInTrailers,
    /// The preface or the first SETTINGS did not come in time.
    SlowPreface,
    /// A frame or a header block did not come to its end in time.
    SlowHead,
    /// What was to be sent was not taken in time.
    BlockedWrite,
}

impl Cut {
    /// RFC 9113, section 7.
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
