//! Verifies the gateway's assertion, which proves that the gateway is the caller (docs/upstream-contract.md, "The assertion").
//!
//! A core team may copy this module. Invariants: no fact of a request is trusted before its assertion is verified for this very
//! request, including the bytes of the body; facts are claims, not headers; the assertion of a request that changes something is
//! accepted once. Keys come from the gateway's control listener, and are fetched at most once a minute.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use axum::http::HeaderMap;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use portvakt_base::clock::Clock;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::control::Control;

/// The tolerated difference of the gateway's clock, in seconds.
const SKEW: u64 = 5;

/// The least interval between two fetches of the gateway's keys, in seconds.
const ASK_EVERY: u64 = 60;

/// The headers whose values are hashed together, in this order.
const HASHED: [&str; 3] = ["signature", "x-psu-identity", "psu-context"];

/// The parts of a request that an assertion covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered<'a> {
    /// The method.
    pub(super) method: &'a str,
    /// Path and query.
    pub(super) target: &'a str,
    /// The headers.
    pub(super) headers: &'a HeaderMap,
    /// The body, whole.
    pub(super) body: &'a [u8],
}

/// The reason why a caller is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotTheGateway {
    /// The assertion is missing or repeated.
    #[error("there is no Gateway-Assertion, or more than one")]
    Missing,
    /// The assertion is not a JSON Web Token in the compact form with ES256.
    #[error("Gateway-Assertion is no ES256 token")]
    Malformed,
    /// No published key has its kid, or the keys cannot be fetched.
    #[error("Gateway-Assertion was signed with an unknown key")]
    UnknownKey,
    /// The signature is invalid.
    #[error("the signature of Gateway-Assertion does not verify")]
    Signature,
    /// The audience or the time is wrong.
    #[error("Gateway-Assertion is for another audience or another time")]
    Claims,
    /// It was made for another request.
    #[error("Gateway-Assertion was made for another request")]
    AnotherRequest,
    /// It was used before.
    #[error("Gateway-Assertion was used before")]
    Used,
}

/// The verifier of assertions.
#[derive(Debug)]
pub(super) struct Assertions {
    issuer: String,
    audience: String,
    clock: Clock,
    keys: Mutex<Keys>,
    /// The ids of assertions that changed something, until they expire.
    used: Mutex<HashMap<String, u64>>,
}

/// Points on P-256 by kid, and the time of the last fetch.
#[derive(Debug, Default)]
struct Keys {
    points: HashMap<String, Vec<u8>>,
    asked: Option<u64>,
}

impl Assertions {
    /// Creates a verifier for this issuer (the gateway's `system`) and this audience (its `assertion.audience`).
    pub(super) fn new(issuer: &str, audience: &str, clock: Clock) -> Self {
        Self {
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
            clock,
            keys: Mutex::default(),
            used: Mutex::default(),
        }
    }

    /// Verifies that the gateway made the assertion for this very request; returns its claims.
    pub(super) async fn verify(
        &self,
        covered: &Covered<'_>,
        control: &Control,
    ) -> Result<Map<String, Value>, NotTheGateway> {
        let mut all = covered.headers.get_all("gateway-assertion").iter();
        let (Some(token), None) = (all.next(), all.next()) else {
            return Err(NotTheGateway::Missing);
        };
        let token = token.to_str().map_err(|_| NotTheGateway::Malformed)?;
        let (signed, signature) = token.rsplit_once('.').ok_or(NotTheGateway::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(NotTheGateway::Malformed)?;
        let header = object(header).ok_or(NotTheGateway::Malformed)?;
        let text = |name: &str| header.get(name).and_then(Value::as_str);
        let (Some("ES256"), Some(kid)) = (text("alg"), text("kid")) else {
            return Err(NotTheGateway::Malformed);
        };
        let point = self.key(kid, control).await;
        let point = point.ok_or(NotTheGateway::UnknownKey)?;
        let signature = decode(signature).ok_or(NotTheGateway::Malformed)?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| NotTheGateway::Signature)?;
        let claims = object(claims).ok_or(NotTheGateway::Malformed)?;
        self.judge(&claims, covered)?;
        Ok(claims)
    }

    /// Checks everything except the signature.
    fn judge(
        &self,
        claims: &Map<String, Value>,
        covered: &Covered<'_>,
    ) -> Result<(), NotTheGateway> {
        let now = self.clock.now().unix();
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let time = |name: &str| claims.get(name).and_then(Value::as_u64);
        let issued = time("iat").is_some_and(|iat| iat <= now.saturating_add(SKEW));
        let expires = time("exp").filter(|exp| exp.saturating_add(SKEW) > now);
        let (true, Some(expires)) = (issued, expires) else {
            return Err(NotTheGateway::Claims);
        };
        if text("iss") != Some(&self.issuer) || text("aud") != Some(&self.audience) {
            return Err(NotTheGateway::Claims);
        }
        let expected = [
            ("method", covered.method.to_owned()),
            ("target", covered.target.to_owned()),
            ("body_sha256", hash(covered.body)),
            ("headers_sha256", hash(&hashed_lines(covered.headers))),
        ];
        if expected
            .iter()
            .any(|(name, value)| text(name) != Some(value))
        {
            return Err(NotTheGateway::AnotherRequest);
        }
        // A GET may be sent again with the same id ("Sent again"); a request that changes something may not.
        if covered.method == "GET" {
            return Ok(());
        }
        let id = text("jti").ok_or(NotTheGateway::Claims)?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, expires| expires.saturating_add(SKEW) > now);
        match used.insert(id.to_owned(), expires) {
            None => Ok(()),
            Some(_) => Err(NotTheGateway::Used),
        }
    }

    /// The key of this id: a cached one, or one that the gateway publishes now.
    async fn key(&self, kid: &str, control: &Control) -> Option<Vec<u8>> {
        let keys = || self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now().unix();
        {
            let mut keys = keys();
            if let Some(point) = keys.points.get(kid) {
                return Some(point.clone());
            }
            let recently = |asked: u64| now.saturating_sub(asked) < ASK_EVERY;
            if keys.asked.is_some_and(recently) && !keys.points.is_empty() {
                return None;
            }
            keys.asked = Some(now);
        }
        let published = control.published_keys().await.ok()?;
        let points = published.get("keys")?.as_array()?.iter().filter_map(point);
        let points: HashMap<_, _> = points.collect();
        let found = points.get(kid).cloned();
        keys().points = points;
        found
    }
}

/// The lines that `headers_sha256` covers.
fn hashed_lines(headers: &HeaderMap) -> Vec<u8> {
    let mut lines = Vec::new();
    for name in HASHED {
        if let Some(value) = headers.get(name) {
            lines.extend_from_slice(name.as_bytes());
            lines.extend_from_slice(b": ");
            lines.extend_from_slice(value.as_bytes().trim_ascii());
            lines.push(b'\n');
        }
    }
    lines
}

/// An entry of a JWK set: kid, and the point without compression (SEC 1, section 2.3.3).
fn point(jwk: &Value) -> Option<(String, Vec<u8>)> {
    let text = |name: &str| jwk.get(name)?.as_str();
    if (text("kty"), text("crv")) != (Some("EC"), Some("P-256")) {
        return None;
    }
    let mut point = vec![4];
    point.extend(decode(text("x")?)?);
    point.extend(decode(text("y")?)?);
    Some((text("kid")?.to_owned(), point))
}

fn hash(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(bytes))
}

fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&decode(text)?).ok()
}

#[cfg(test)]
mod tests;
