//! The reasons for cutting a connection, with the error codes of RFC 9113, and the refusals of the HTTP/2 library; both with their
//! causes in metrics.

use super::super::header_block::BlockFault;
use crate::{interface::Reason, telemetry::CutCause};

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

    /// The cause in metrics and logs.
    pub(in super::super) const fn cause(self) -> CutCause {
        match self {
            Self::Flood => CutCause::FrameFlood,
            Self::NotSettings | Self::Malformed | Self::NotHpack | Self::PseudoInTrailers => {
                CutCause::MalformedFrame
            }
            Self::SlowPreface => CutCause::SlowPreface,
            Self::SlowHead => CutCause::SlowHead,
            Self::BlockedWrite => CutCause::BlockedWrite,
        }
    }

    /// The reason in the access log; `None` if no request was refused, or if its own line reports that.
    pub(in super::super) const fn reason(self) -> Option<Reason> {
        match self {
            Self::NotSettings | Self::Malformed | Self::NotHpack | Self::PseudoInTrailers => {
                Some(Reason::MalformedRequest)
            }
            Self::SlowHead => Some(Reason::RequestTimeout),
            Self::Flood | Self::SlowPreface | Self::BlockedWrite => None,
        }
    }
}

/// A refusal by the HTTP/2 library, which the gateway sees in the frames that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum LibraryRefusal {
    /// A request that is not well-formed: its stream was reset.
    MalformedStream,
    /// A request whose authority is not clear, answered with 400.
    BadRequest,
    /// A head beyond the library's limit, answered with 431.
    TooLarge,
    /// A request beyond the number of concurrent ones: its stream was refused, and the client may send it again.
    TooManyStreams,
    /// A frame that the state or the window of its stream does not allow: the stream was reset.
    StreamFault,
    /// The connection ended, because of frames that are not well-formed.
    MalformedFrame,
    /// The connection ended, because of too much work without progress.
    Flood,
}

impl LibraryRefusal {
    /// Whether the library ends the connection, and with it every answer under way.
    pub(in super::super) const fn ends_connection(self) -> bool {
        matches!(self, Self::MalformedFrame | Self::Flood)
    }

    /// The cause in metrics and logs.
    pub(in super::super) const fn cause(self) -> CutCause {
        match self {
            Self::MalformedStream | Self::BadRequest => CutCause::MalformedStream,
            Self::TooLarge => CutCause::LargeHead,
            Self::TooManyStreams => CutCause::TooManyStreams,
            Self::StreamFault => CutCause::StreamFault,
            Self::MalformedFrame => CutCause::MalformedFrame,
            Self::Flood => CutCause::FrameFlood,
        }
    }

    /// The reason in the access log; `None` if no request was refused, or if the request has a line of its own.
    pub(in super::super) const fn reason(self) -> Option<Reason> {
        match self {
            Self::MalformedStream | Self::BadRequest | Self::MalformedFrame => {
                Some(Reason::MalformedRequest)
            }
            Self::TooLarge => Some(Reason::HeadersTooLarge),
            Self::TooManyStreams => Some(Reason::TooManyAtOnce),
            Self::Flood | Self::StreamFault => None,
        }
    }

    /// The status of the library's answer, if there is one.
    pub(in super::super) const fn status(self) -> Option<u16> {
        match self {
            Self::BadRequest => Some(400),
            Self::TooLarge => Some(431),
            _ => None,
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
