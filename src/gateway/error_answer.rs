//! Judges the body of an error answer of the core: JSON passes unchanged, anything else is replaced (ERR-6).
//!
//! The body is read before the head is sent, so that a page of the core's software never reaches a caller, whatever its Content-Type says.

use super::{caller_watch::work_for, core_head, upstream::CoreBody};
use http::{header, response::Parts};
use pingora::{Result, protocols::http::ServerSession as Session};
use serde::de::IgnoredAny;
use std::time::Duration;

/// The longest body that is read, in bytes; a longer one is replaced.
const MAX_BODY: usize = 256 * 1024;

/// Whether the body of an error is JSON by its head and by its bytes. The body is held by `body` then. `watched`: the wait for the core
/// ends when the caller disconnects. A body with a content coding cannot be read, so it is none.
///
/// # Errors
/// The core breaks off or times out, or the caller disconnected.
pub(super) async fn is_json(
    head: &Parts,
    body: &mut CoreBody,
    caller: &mut Session,
    watched: bool,
    read_timeout: Duration,
) -> Result<bool> {
    let is_coded = head.headers.contains_key(header::CONTENT_ENCODING);
    let is_long = core_head::content_length(head).is_some_and(|length| length > MAX_BODY);
    if is_coded || is_long || !core_head::is_json(head) {
        return Ok(false);
    }
    let mut whole = Vec::new();
    loop {
        let part = work_for(caller, watched, read_timeout, body.next()).await?;
        whole.extend_from_slice(&part.bytes.unwrap_or_default());
        if whole.len() > MAX_BODY {
            return Ok(false);
        }
        if part.is_last {
            break;
        }
    }
    let text = std::str::from_utf8(&whole).ok();
    let is_json = text.is_some_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    body.hold(whole.into());
    Ok(is_json)
}
