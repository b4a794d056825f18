//! The limits of the HTTP/2 library.
//!
//! Some of the library's limits are lower than what ordinary clients do, and some count over the life of a connection, so that a
//! client which cancels requests, or sends a body in small frames, would be disconnected. The budget of frames
//! ([`super::frames`]) decides about that instead; the library's limits are as high as the budget lets one burst be. Deliberately
//! not here: the budget, and the limits that the gateway itself applies to a head.

use crate::config::ListenerLimits;
use pingora::protocols::http::v2::server::{H2Options, default_h2_options};

/// The headers of one request beyond `max_head_size`, in bytes, each counted with 32 extra bytes. Above it, the library answers 431
/// by itself without a body, so the gateway's own limit is lower. The library also derives the number of CONTINUATION frames from
/// it: with the default of `max_head_size`, a head may have seven.
const MORE_THAN_HEAD: usize = 48 * 1024;

/// Concurrent requests on one connection.
const MAX_STREAMS: u32 = 64;

/// Requests that the client cancelled before the gateway took them, and streams that the gateway reset a moment ago: as many as
/// there can be requests. A client may cancel all its requests at once.
const MAX_RESETS: usize = 64;

/// The bytes of one answer that wait for the client.
const SEND_BUFFER: usize = 16 * 1024;

/// The bytes that small DATA frames take in memory beside their payload, up to 256 each: 160 may wait for the gateway at once.
const SMALL_DATA_OVERHEAD: usize = 40 * 1024;

/// The limits of a connection.
pub(in crate::gateway) fn http2_options(limits: &ListenerLimits) -> H2Options {
    let mut options = default_h2_options();
    let list_size = limits.head_size.saturating_add(MORE_THAN_HEAD);
    let list_size = u32::try_from(list_size).unwrap_or(u32::MAX);
    options
        .max_header_list_size(list_size)
        .max_concurrent_streams(MAX_STREAMS)
        .max_pending_accept_reset_streams(MAX_RESETS)
        .max_concurrent_reset_streams(MAX_RESETS)
        // Each reset spends the budget of frames.
        .max_local_error_reset_streams(None)
        .data_frame_budget(SMALL_DATA_OVERHEAD)
        .max_send_buffer_size(SEND_BUFFER);
    options
}
