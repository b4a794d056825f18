//! The head that goes upstream (FWD-1, FWD-2): written anew from an [`Admitted`], which holds the headers of the
//! allow-list, with what the gateway established beside them.

use crate::{
    admission::{Admitted, Grant, Unbuilt},
    interface::headers,
};
use http::{HeaderName, HeaderValue, Method, Version, header};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pingora::{Result, http::RequestHeader};
use std::net::IpAddr;

const TPP_ID: HeaderName = HeaderName::from_static("gateway-tpp-id");
const TPP_NAME: HeaderName = HeaderName::from_static("gateway-tpp-name");
const TPP_ROLES: HeaderName = HeaderName::from_static("gateway-tpp-roles");
const ENVIRONMENT: HeaderName = HeaderName::from_static("gateway-environment");
const OPERATION: HeaderName = HeaderName::from_static("gateway-operation");
const REQUEST_ID: HeaderName = HeaderName::from_static("gateway-request-id");
const SIGNED_HEADERS: HeaderName = HeaderName::from_static("gateway-signed-headers");
const PSU_PRESENT: HeaderName = HeaderName::from_static("gateway-psu-present");
const PSU_BOUND: HeaderName = HeaderName::from_static("gateway-psu-bound");
const SCA: HeaderName = HeaderName::from_static("gateway-sca");
const SCA_AT: HeaderName = HeaderName::from_static("gateway-sca-at");
const SCA_REDIRECT: HeaderName = HeaderName::from_static("gateway-sca-redirect");
const HISTORY_FROM: HeaderName = HeaderName::from_static("gateway-history-from");
const NOT_JUDGED: HeaderName = HeaderName::from_static("gateway-not-judged");
const OBSERVED: HeaderName = HeaderName::from_static("gateway-observed");

/// What is percent-encoded in a TPP's name, so that it is a header value in ASCII that reads back exactly.
const NAME_ENCODING: &AsciiSet = &CONTROLS.add(b'%');

/// Writes the head that goes upstream.
///
/// # Errors
/// A value that is no header value: a fault of the gateway, since every one was checked.
pub fn upstream_head(admitted: &Admitted) -> Result<Box<RequestHeader>> {
    let passed = admitted.headers();
    let mut head = RequestHeader::build_no_case(
        admitted.method().clone(),
        admitted.target(),
        Some(passed.len().saturating_add(15)),
    )?;
    head.set_version(Version::HTTP_11);
    head.insert_header(header::HOST, admitted.host())?;
    for (name, value) in passed {
        head.append_header(name.clone(), value.clone())?;
    }
    if !admitted.body().is_empty() || *admitted.method() != Method::GET {
        head.insert_header(header::CONTENT_LENGTH, admitted.body().len())?;
    }
    if let Some(peer) = admitted.peer() {
        head.insert_header(header::FORWARDED, forwarded(peer.ip()))?;
    }
    insert_established(admitted, &mut head)?;
    Ok(Box::new(head))
}

/// FWD-1, SIG-15. What rests on a check that does not hold is left out (FWD-6).
fn insert_established(admitted: &Admitted, head: &mut RequestHeader) -> Result<()> {
    head.insert_header(
        ENVIRONMENT,
        HeaderValue::from_static(admitted.environment().name()),
    )?;
    head.insert_header(OPERATION, admitted.operation().name.as_str())?;
    if let Some(id) = admitted
        .headers()
        .iter()
        .find(|(name, _)| *name == headers::X_REQUEST_ID.name)
    {
        head.insert_header(REQUEST_ID, id.1.clone())?;
    }
    if let Some(tpp) = admitted.tpp() {
        let certificate = tpp.certificate();
        head.insert_header(TPP_ID, certificate.tpp_id())?;
        head.insert_header(
            TPP_NAME,
            utf8_percent_encode(certificate.tpp_name(), NAME_ENCODING).to_string(),
        )?;
        head.insert_header(TPP_ROLES, certificate.roles().to_string())?;
        head.insert_header(
            PSU_PRESENT,
            HeaderValue::from_static(if admitted.psu_present() { "yes" } else { "no" }),
        )?;
    }
    if let Some(grant) = admitted.grant() {
        insert_grant(grant, head)?;
    }
    // SCA-21. What only reads gets its link with the core's 401 (SCA-14).
    if !admitted.method().is_safe()
        && let Some(href) = admitted.sca_redirect()
    {
        head.insert_header(SCA_REDIRECT, href)?;
    }
    // SIG-15. The list vouches for Digest too, so it goes with the body's integrity: all that stands behind `tpp`.
    if let Some(signed) = admitted.signed().filter(|_| admitted.tpp().is_some()) {
        head.insert_header(SIGNED_HEADERS, signed.headers())?;
    }
    if !Unbuilt::ALL.is_empty() {
        head.insert_header(NOT_JUDGED, HeaderValue::from_static(Unbuilt::HEADER))?;
    }
    let observed: Vec<_> = admitted.waived().map(|reason| reason.slug()).collect();
    if !observed.is_empty() {
        head.insert_header(OBSERVED, observed.join(", "))?;
    }
    Ok(())
}

/// What is known of the PSU (FWD-1, SCA-19, QUO-14).
fn insert_grant(grant: &Grant, head: &mut RequestHeader) -> Result<()> {
    let session = grant.session();
    let state = if session.is_some() { "session" } else { "none" };
    head.insert_header(SCA, HeaderValue::from_static(state))?;
    if let Some(at) = session.or_else(|| grant.last_sca()) {
        head.insert_header(SCA_AT, at.to_string())?;
    }
    if let Some(from) = grant.history_from() {
        head.insert_header(HISTORY_FROM, from.to_string())?;
    }
    if grant.psu().is_some() && !grant.bound() {
        head.insert_header(PSU_BOUND, HeaderValue::from_static("no"))?;
    }
    Ok(())
}

/// RFC 7239. Whatever the client said of itself in Forwarded is not passed on.
fn forwarded(peer: IpAddr) -> String {
    match peer {
        IpAddr::V4(address) => format!("for={address};proto=https"),
        IpAddr::V6(address) => format!("for=\"[{address}]\";proto=https"),
    }
}
