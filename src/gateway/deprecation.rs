//! The headers of a deprecated operation's answers (FWD-5): the time of deprecation (RFC 9745), the time of removal (RFC 8594),
//! and its successor (the link relation successor-version, RFC 5829).

use crate::{
    clock::Timestamp,
    interface::{
        headers::date,
        operations::{Catalogue, Deprecated},
    },
};
use http::{HeaderMap, HeaderName, header, header::InvalidHeaderValue};

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// Writes the headers of a deprecated operation's answer. The core's own Deprecation and Sunset are replaced; its links stay.
///
/// # Errors
/// A value is not a valid header value: a fault of the gateway.
pub(super) fn write_headers(
    headers: &mut HeaderMap,
    deprecated: &Deprecated,
    catalogue: &Catalogue,
) -> Result<(), InvalidHeaderValue> {
    if let Some(since) = Timestamp::midnight(deprecated.since) {
        headers.insert(DEPRECATION, format!("@{}", since.unix()).try_into()?);
    }
    if let Some(sunset) = deprecated.sunset.and_then(Timestamp::midnight) {
        headers.insert(SUNSET, date::format(sunset).try_into()?);
    }
    let successor = deprecated.successor.as_deref();
    if let Some(successor) = successor.and_then(|name| catalogue.named(name)) {
        let link = format!("<{}>; rel=\"successor-version\"", successor.path);
        headers.append(header::LINK, link.try_into()?);
    }
    Ok(())
}
