//! Gateway-Assertion (FWD-1): what the head that goes upstream says, signed and bound to this request.
//!
//! Invariant: it says what the Gateway- headers of the head say, no more and no less, so that what rests on a waived
//! check is in neither (FWD-6); beside them stand the PSU whom the grant is for, and the request that it is about.

use crate::{
    admission::{Admitted, Grant},
    clock::Timestamp,
    signing::Asserter,
};
use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::HeaderName;
use pingora::{Error, ErrorType, Result, http::RequestHeader};
use serde_json::{Map, Value, json};
use uuid::Uuid;

const ASSERTION: HeaderName = HeaderName::from_static("gateway-assertion");

/// Whose id the assertion has (`jti`), where the request has one.
const REQUEST_ID: &str = "gateway-request-id";

/// Signs what a head says, and adds it to the head.
///
/// # Errors
/// The machine gives no random numbers.
pub(crate) fn insert(
    asserter: &Asserter,
    admitted: &Admitted,
    head: &mut RequestHeader,
    now: Timestamp,
) -> Result<()> {
    let facts = facts(admitted, head);
    let id = facts.get(REQUEST_ID).and_then(Value::as_str);
    let id = id.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
    let assertion = asserter.assert(&id, facts, now).ok_or_else(|| {
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
    let hash = digest::digest(&digest::SHA256, admitted.body());
    let hash = BASE64_URL_SAFE_NO_PAD.encode(hash);
    facts.insert("body_sha256".into(), json!(hash));
    let grant = admitted.grant();
    for (name, id) in [
        ("psu_id", grant.and_then(Grant::psu)),
        ("psu_corporate_id", grant.and_then(Grant::corporate)),
    ] {
        if let Some(id) = id {
            facts.insert(name.into(), json!(Uuid::from_u128(id).to_string()));
        }
    }
    let established = head.headers.iter();
    for (name, value) in established.filter(|(name, _)| name.as_str().starts_with("gateway-")) {
        let value = String::from_utf8_lossy(value.as_bytes());
        facts.insert(name.as_str().into(), json!(value));
    }
    facts
}
