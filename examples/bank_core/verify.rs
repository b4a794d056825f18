use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, jwk::JwkSet};
use sha2::{Digest, Sha256};

/// The claims of a Gateway-Assertion, where the gateway made it for this very request. `header` gives the bytes of one.
fn verify<'h>(
    assertion: &str, keys: &JwkSet, method: &str, target: &str, header: impl Fn(&str) -> Option<&'h [u8]>, body: &[u8],
) -> Option<serde_json::Value> {
    let key = keys.find(&decode_header(assertion).ok()?.kid?)?;
    let mut expected = Validation::new(Algorithm::ES256);
    expected.set_issuer(&["portvakt"]);
    expected.set_audience(&["core"]);
    let key = DecodingKey::from_jwk(key).ok()?;
    let claims = decode::<serde_json::Value>(assertion, &key, &expected).ok()?.claims;
    let sha256 = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
    let line = |name: &str| header(name).map(|value| [name.as_bytes(), b": ", value.trim_ascii(), b"\n"].concat());
    let lines: Vec<_> = ["signature", "x-psu-identity", "psu-context"].into_iter().filter_map(line).flatten().collect();
    let claim = |name: &str| claims.get(name).and_then(serde_json::Value::as_str);
    let this = [("method", method), ("target", target)].map(|(name, value)| claim(name) == Some(value));
    let hashes = [("body_sha256", body), ("headers_sha256", &lines[..])].map(|(name, bytes)| claim(name) == Some(&*sha256(bytes)));
    (this == [true; 2] && hashes == [true; 2]).then_some(claims)
}
