//! Gateway-Assertion (FWD-1): the facts in the head that goes upstream, signed and bound to this request.
//!
//! Invariant: the assertion contains exactly the facts of the head's Gateway- headers, so a fact that depends on a waived check
//! is in neither (FWD-6). The assertion also contains the PSU and the agreement of the grant, where they are known (SCA-22), and identifies the
//! request.

use crate::{
    admission::{Admitted, Grant},
    clock::Timestamp,
    interface::headers::{self, Header},
    signing::AssertionSigner,
};
use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::HeaderName;
use pingora::{Error, ErrorType, Result, http::RequestHeader};
use serde_json::{Map, Value, json};
use uuid::Uuid;

const ASSERTION: HeaderName = HeaderName::from_static("gateway-assertion");

/// The claims from which the assertion's id (`jti`) is computed if both are present. Two TPPs may choose the same X-Request-ID.
const IDENTIFYING: [&str; 2] = ["gateway-tpp-id", "gateway-request-id"];

/// The headers that `headers_sha256` covers, in this order. The hash of an identity number alone could be reversed by trying
/// every number.
const BOUND: [&Header; 3] = [
    &headers::SIGNATURE,
    &headers::X_PSU_IDENTITY,
    &headers::PSU_CONTEXT,
];

/// Signs the facts of a head, and adds the assertion to the head.
///
/// # Errors
/// The machine provides no random numbers.
pub(crate) fn insert(
    signer: &AssertionSigner,
    admitted: &Admitted,
    head: &mut RequestHeader,
    now: Timestamp,
) -> Result<()> {
    let facts = facts(admitted, head);
    let id = own_id(&facts).unwrap_or_else(|| Uuid::new_v4().to_string());
    let assertion = signer.assert(&id, facts, now).ok_or_else(|| {
        Error::explain(ErrorType::InternalError, "the assertion cannot be signed")
    })?;
    head.insert_header(ASSERTION, assertion)
}

/// The claims: the request, the PSU, and each Gateway- header by its name in lower case.
fn facts(admitted: &Admitted, head: &RequestHeader) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("method".into(), json!(admitted.method().as_str()));
    let target = String::from_utf8_lossy(admitted.target());
    facts.insert("target".into(), json!(target));
    facts.insert("body_sha256".into(), json!(sha256(admitted.body())));
    if let Some(lines) = bound_lines(head) {
        facts.insert("headers_sha256".into(), json!(sha256(&lines)));
    }
    let grant = admitted.grant();
    if let Some(psu) = grant.and_then(Grant::psu) {
        facts.insert("psu_id".into(), json!(psu.get().hyphenated()));
    }
    if let Some(corporate) = grant.and_then(Grant::corporate) {
        facts.insert(
            "psu_corporate_id".into(),
            json!(corporate.get().hyphenated()),
        );
    }
    let established = head.headers.iter();
    for (name, value) in established.filter(|(name, _)| name.as_str().starts_with("gateway-")) {
        let value = String::from_utf8_lossy(value.as_bytes());
        facts.insert(name.as_str().into(), json!(value));
    }
    facts
}

/// The assertion's id: equal for every repetition of a TPP's request, and different for every other request. `None` if the TPP or
/// the request id is unknown.
fn own_id(facts: &Map<String, Value>) -> Option<String> {
    let [tpp, request] = IDENTIFYING.map(|name| facts.get(name).and_then(Value::as_str));
    let text = [tpp?, request?].join("\n");
    Some(sha256(text.as_bytes()))
}

/// `name: value` and LF for each header that goes upstream; `None` without a Signature, because the other values alone could be
/// guessed from the hash.
fn bound_lines(head: &RequestHeader) -> Option<Vec<u8>> {
    head.headers.get(&headers::SIGNATURE.name)?;
    let mut lines = Vec::new();
    for header in BOUND {
        for value in head.headers.get_all(&header.name) {
            lines.extend_from_slice(header.name.as_str().as_bytes());
            lines.extend_from_slice(b": ");
            lines.extend_from_slice(headers::trim(value.as_bytes()));
            lines.push(b'\n');
        }
    }
    Some(lines)
}

fn sha256(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, bytes))
}
