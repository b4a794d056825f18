//! What the answers of a deprecated operation say (FWD-5): since when it is deprecated (RFC 9745), until when it answers
//! (RFC 8594), and what takes its place (the link relation successor-version, RFC 5829).

use super::respond::value;
use crate::{
    clock::Timestamp,
    interface::{
        headers::date,
        operations::{Catalogue, Deprecated},
    },
};
use http::{HeaderMap, HeaderName, header};
use pingora::Result;

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// Adds it to the head of an answer. What the core said of the same is replaced; its links stay.
pub(super) fn say(
    headers: &mut HeaderMap,
    deprecated: &Deprecated,
    catalogue: &Catalogue,
) -> Result<()> {
    if let Some(since) = Timestamp::midnight(deprecated.since) {
        headers.insert(DEPRECATION, value(format!("@{}", since.unix()))?);
    }
    if let Some(sunset) = deprecated.sunset.and_then(Timestamp::midnight) {
        headers.insert(SUNSET, value(date::format(sunset))?);
    }
    let successor = deprecated.successor.as_deref();
    if let Some(successor) = successor.and_then(|name| catalogue.named(name)) {
        let link = format!("<{}>; rel=\"successor-version\"", successor.path);
        headers.append(header::LINK, value(link)?);
    }
    Ok(())
}
