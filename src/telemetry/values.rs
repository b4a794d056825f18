//! Closed sets of label values, as types: what is counted, logged or compared is a variant, and a value that no row of the table knows
//! does not compile.

/// Declares an enum whose variants have a name in metrics and logs.
macro_rules! values {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// All, in the order of the declaration.
            pub(super) const ALL: &[Self] = &[$(Self::$variant),+];

            /// The value of the label.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

values! {
    /// Why an attempt to get an answer of the core failed.
    FailureKind {
        /// The connection was refused.
        Refused = "refused",
        /// No route or no address leads to the endpoint, or none is left.
        Unreachable = "unreachable",
        /// The TLS handshake failed.
        Tls = "tls",
        /// The core took longer than it may.
        Timeout = "timeout",
        /// The connection ended before a byte of an answer.
        Reset = "reset",
        /// It ended within an answer.
        Truncated = "truncated",
        /// What came is no answer.
        Garbage = "garbage",
        /// The caller of a safe request left (FWD-4).
        Abandoned = "abandoned",
    }
}

values! {
    /// Why the gateway ended a connection, a stream or an answer, or did not send a request.
    CutCause {
        /// The first bytes of HTTP/2 came too slowly.
        SlowPreface = "slow_preface",
        /// A head came too slowly.
        SlowHead = "slow_head",
        /// The caller takes nothing.
        BlockedWrite = "blocked_write",
        /// The caller takes an answer too slowly.
        SlowAnswer = "slow_answer",
        /// The core's answer is too large.
        LargeAnswer = "large_answer",
        /// Too many frames that make no progress.
        FrameFlood = "frame_flood",
        /// A frame that is not well-formed.
        MalformedFrame = "malformed_frame",
        /// A request that is not well-formed.
        MalformedStream = "malformed_stream",
        /// A head beyond the limit.
        LargeHead = "large_head",
        /// More concurrent requests than a connection may have.
        TooManyStreams = "too_many_streams",
        /// A frame that the state of its stream does not allow.
        StreamFault = "stream_fault",
        /// The core has as many requests as it may.
        CoreBusy = "core_busy",
        /// It has as many of this TPP.
        CoreBusyWithTpp = "core_busy_with_tpp",
    }
}
