use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, jwk::JwkSet};
use sha2::{Digest, Sha256};

/// The claims of a Gateway-Assertion, where the gateway made it for this very request.
fn verify(assertion: &str, keys: &JwkSet, method: &str, target: &str, body: &[u8]) -> Option<serde_json::Value> {
    let key = keys.find(&decode_header(assertion).ok()?.kid?)?;
    let mut expected = Validation::new(Algorithm::ES256);
    expected.set_issuer(&["portvakt"]);
    expected.set_audience(&["core"]);
    let key = DecodingKey::from_jwk(key).ok()?;
    let claims = decode::<serde_json::Value>(assertion, &key, &expected).ok()?.claims;
    let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(body));
    let this = [("method", method), ("target", target), ("body_sha256", hash.as_str())];
    this.iter().all(|(name, value)| claims[name] == *value).then_some(claims)
}
