//! The head that goes upstream (FWD-1, FWD-2): built from a [`Fresh`] request, which holds the headers of the allow-list and the
//! facts that the gateway established.

use super::failure;
use crate::{
    admission::{Admitted, Fresh, Grant},
    interface::{Reason, headers},
    state::Named,
    trust::Certificate,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Version, header, header::InvalidHeaderValue,
};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pingora::{ErrorType, OrErr, Result, http::RequestHeader};
use std::{collections::HashSet, net::IpAddr};

const TPP_ID: HeaderName = HeaderName::from_static("gateway-tpp-id");
const TPP_NAME: HeaderName = HeaderName::from_static("gateway-tpp-name");
const TPP_ROLES: HeaderName = HeaderName::from_static("gateway-tpp-roles");
const ENVIRONMENT: HeaderName = HeaderName::from_static("gateway-environment");
const OPERATION: HeaderName = HeaderName::from_static("gateway-operation");
const REQUEST_ID: HeaderName = HeaderName::from_static("gateway-request-id");
const SIGNED_HEADERS: HeaderName = HeaderName::from_static("gateway-signed-headers");
const PSU_PRESENT: HeaderName = HeaderName::from_static("gateway-psu-present");
const PSU_BOUND: HeaderName = HeaderName::from_static("gateway-psu-bound");
const PSU_CORPORATE_BOUND: HeaderName = HeaderName::from_static("gateway-psu-corporate-bound");
const SCA: HeaderName = HeaderName::from_static("gateway-sca");
const SCA_AT: HeaderName = HeaderName::from_static("gateway-sca-at");
const SCA_REDIRECT: HeaderName = HeaderName::from_static("gateway-sca-redirect");
const HISTORY_FROM: HeaderName = HeaderName::from_static("gateway-history-from");
const OBSERVED: HeaderName = HeaderName::from_static("gateway-observed");

/// The characters that are percent-encoded in a TPP's name, so that the header value is ASCII and decodes to the exact name.
const NAME_ENCODING: &AsciiSet = &CONTROLS.add(b'%');

/// The most headers that the gateway adds.
const ADDED: usize = 16;

/// A head that is ready before its connection is.
#[derive(Debug)]
pub(crate) struct HeadDraft {
    head: Box<RequestHeader>,
    /// The judgement that it was written by.
    judgement: u32,
}

impl HeadDraft {
    /// The head, for headers that follow from the others.
    pub(crate) fn head_mut(&mut self) -> &mut RequestHeader {
        &mut self.head
    }

    /// The head, if it was written by the judgement that is fresh (SCA-6, SCA-13).
    pub(crate) fn release(self, fresh: &Fresh<'_>) -> Option<Box<RequestHeader>> {
        (self.judgement == fresh.admitted().judgement()).then_some(self.head)
    }
}

/// Writes the head that goes upstream. `host` is the upstream's; the caller's Host is in Forwarded (FWD-2).
///
/// # Errors
/// A value is not a valid header value: a fault of the gateway, because every value was checked.
pub(crate) fn upstream_head(fresh: &Fresh<'_>, host: &HeaderValue) -> Result<HeadDraft> {
    let admitted = fresh.admitted();
    let fault = "a header value";
    let mut headers = headers(admitted, host).or_err(ErrorType::InvalidHTTPHeader, fault)?;
    // SCA-21. A safe request gets its link with the core's 401 (SCA-14).
    if !admitted.method().is_safe()
        && let Some(href) = admitted.sca_redirect().map_err(failure::no_link)?
    {
        let href = HeaderValue::try_from(href).or_err(ErrorType::InvalidHTTPHeader, fault)?;
        headers.insert(SCA_REDIRECT, href);
    }
    // pingora's own way to add a header copies its name twice.
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = admitted.method().clone();
    parts.version = Version::HTTP_11;
    parts.headers = headers;
    let mut head = RequestHeader::from(parts);
    head.set_raw_path(admitted.target())?;
    Ok(HeadDraft {
        head: Box::new(head),
        judgement: admitted.judgement(),
    })
}

fn headers(admitted: &Admitted, host: &HeaderValue) -> Result<HeaderMap, InvalidHeaderValue> {
    let passed = admitted.headers();
    let mut headers = HeaderMap::with_capacity(passed.len().saturating_add(ADDED));
    headers.insert(header::HOST, host.clone());
    for (name, value) in passed {
        headers.append(name, value.clone());
    }
    if !admitted.body().is_empty() || *admitted.method() != Method::GET {
        headers.insert(header::CONTENT_LENGTH, admitted.body().len().into());
    }
    if let Some(peer) = admitted.peer() {
        headers.insert(
            header::FORWARDED,
            forwarded(peer.ip(), admitted.host()).try_into()?,
        );
    }
    if let Some(traceparent) = admitted.trace().and_then(|trace| trace.traceparent()) {
        headers.insert(&headers::TRACEPARENT.name, traceparent);
    }
    insert_established(admitted, &mut headers)?;
    Ok(headers)
}

/// FWD-1, SIG-15. A fact that depends on a failed and waived check is omitted (FWD-6).
fn insert_established(admitted: &Admitted, head: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
    let environment = admitted.environment().name();
    head.insert(ENVIRONMENT, HeaderValue::from_static(environment));
    head.insert(OPERATION, admitted.operation().name.parse()?);
    if admitted.has_request_id()
        && let Some(id) = head.get(&headers::X_REQUEST_ID.name).cloned()
    {
        head.insert(REQUEST_ID, id);
    }
    if let Some(tpp) = admitted.tpp() {
        let [id, name, roles] = tpp.certificate().core_headers(tpp_headers)?.clone();
        head.insert(TPP_ID, id);
        head.insert(TPP_NAME, name);
        if admitted.entitled_tpp().is_some() {
            head.insert(TPP_ROLES, roles);
        }
        let present = if admitted.psu_present() { "yes" } else { "no" };
        head.insert(PSU_PRESENT, HeaderValue::from_static(present));
    }
    if let Some(grant) = admitted.grant() {
        insert_grant(grant, head)?;
    }
    // SIG-15. The list covers Digest too, so it is sent only if the body's integrity is proved, as is everything that requires
    // `tpp`.
    if let Some(signed) = admitted.signed().filter(|_| admitted.tpp().is_some()) {
        head.insert(SIGNED_HEADERS, signed.headers().parse()?);
    }
    if !admitted.waived().is_empty() {
        head.insert(OBSERVED, observed(admitted.waived()).try_into()?);
    }
    Ok(())
}

/// The reasons, each once.
fn observed(reasons: &[Reason]) -> String {
    let mut slugs: Vec<_> = reasons.iter().map(|reason| reason.slug()).collect();
    let mut seen = HashSet::new();
    slugs.retain(|slug| seen.insert(*slug));
    slugs.join(", ")
}

/// The header values of a TPP for the core: its identity, its name and its roles.
fn tpp_headers(certificate: &Certificate) -> Result<[HeaderValue; 3], InvalidHeaderValue> {
    let name = utf8_percent_encode(certificate.tpp_name(), NAME_ENCODING);
    Ok([
        certificate.tpp_id().as_str().parse()?,
        name.to_string().try_into()?,
        certificate.roles().to_string().try_into()?,
    ])
}

/// Inserts the facts about the PSU (FWD-1, SCA-19, SCA-22, QUO-14).
fn insert_grant(grant: &Grant, head: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
    let session = grant.session();
    let state = if session.is_some() { "session" } else { "none" };
    head.insert(SCA, HeaderValue::from_static(state));
    if let Some(at) = session.or_else(|| grant.last_sca()) {
        head.insert(SCA_AT, at.to_string().try_into()?);
    }
    if let Some(from) = grant.history_from() {
        head.insert(HISTORY_FROM, from.to_string().try_into()?);
    }
    if grant.named_psu().and_then(Named::claimed).is_some() {
        head.insert(PSU_BOUND, HeaderValue::from_static("no"));
    }
    if grant.named_corporate().and_then(Named::claimed).is_some() {
        head.insert(PSU_CORPORATE_BOUND, HeaderValue::from_static("no"));
    }
    Ok(())
}

/// RFC 7239. The client's own Forwarded is not passed on. A value that is not a token, such as an IPv6 address or a host with a
/// port, is quoted.
fn forwarded(peer: IpAddr, host: &[u8]) -> String {
    let quote = if host.contains(&b':') { "\"" } else { "" };
    // The host is well-formed, so it is ASCII.
    let host = std::str::from_utf8(host).unwrap_or_default();
    match peer {
        IpAddr::V4(address) => format!("for={address};host={quote}{host}{quote};proto=https"),
        IpAddr::V6(address) => {
            format!("for=\"[{address}]\";host={quote}{host}{quote};proto=https")
        }
    }
}
