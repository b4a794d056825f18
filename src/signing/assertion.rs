//! The assertion (FWD-1): the facts that the gateway established about one request, as a JSON Web Token. The core verifies
//! the token, so it need not trust every client that can reach it.

use super::key::{AssertionKey, AssertionKeyFault};
use crate::clock::Timestamp;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The lifetime of an assertion, in seconds. The core gets it at once, so this is the tolerance for its clock.
const LIFETIME: u64 = 60;

/// The settings for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssertionSettings {
    /// The file of the signing key; the first start creates it.
    pub key: PathBuf,
    /// The file of a key that is published but does not sign: the previous key or the next one.
    pub previous: Option<PathBuf>,
    /// The audience of the assertion, `aud`. Default `core`.
    pub audience: String,
}

impl AssertionSettings {
    /// The signer for these settings; creates the key if there is none. `system` is the `iss` claim.
    ///
    /// # Errors
    /// The file that cannot be used, and why.
    pub fn signer(&self, system: &str) -> Result<AssertionSigner, (PathBuf, AssertionKeyFault)> {
        let key = AssertionKey::read_or_make(&self.key);
        self.signer_of(key, system)
    }

    /// The signer after a reload, which creates no key: the core would refuse a new one in place of a lost file.
    ///
    /// # Errors
    /// The file that cannot be used, and why.
    pub fn signer_again(
        &self,
        system: &str,
    ) -> Result<AssertionSigner, (PathBuf, AssertionKeyFault)> {
        self.signer_of(AssertionKey::read(&self.key), system)
    }

    fn signer_of(
        &self,
        key: Result<AssertionKey, AssertionKeyFault>,
        system: &str,
    ) -> Result<AssertionSigner, (PathBuf, AssertionKeyFault)> {
        let key = key.map_err(|fault| (self.key.clone(), fault))?;
        let previous = self.previous.as_ref();
        let previous =
            previous.map(|path| AssertionKey::read(path).map_err(|fault| (path.clone(), fault)));
        Ok(AssertionSigner::new(
            key,
            previous.transpose()?.as_ref(),
            system,
            &self.audience,
        ))
    }
}

/// Signs assertions.
#[derive(Debug)]
pub struct AssertionSigner {
    key: AssertionKey,
    header: String,
    issuer: String,
    audience: String,
    published: String,
}

impl AssertionSigner {
    /// Signs with `key`, and publishes `previous` too.
    pub fn new(
        key: AssertionKey,
        previous: Option<&AssertionKey>,
        issuer: &str,
        audience: &str,
    ) -> Self {
        let header = json!({ "alg": "ES256", "typ": "JWT", "kid": key.id() });
        let previous = previous.filter(|previous| previous.id() != key.id());
        let keys: Vec<_> = std::iter::once(&key)
            .chain(previous)
            .map(AssertionKey::jwk)
            .collect();
        Self {
            header: BASE64_URL_SAFE_NO_PAD.encode(header.to_string()),
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
            published: json!({ "keys": keys }).to_string(),
            key,
        }
    }

    /// The JWK set of the keys that verify assertions (RFC 7517).
    pub fn published(&self) -> &str {
        &self.published
    }

    /// A signed assertion in the compact form of RFC 7515. `id` is `jti`; `facts` are the claims in addition to the registered ones. `None`
    /// if no random numbers are available.
    pub fn assert(&self, id: &str, facts: Map<String, Value>, now: Timestamp) -> Option<String> {
        let mut claims = Map::new();
        claims.insert("iss".into(), json!(self.issuer));
        claims.insert("aud".into(), json!(self.audience));
        claims.insert("iat".into(), json!(now.unix()));
        let expires = now.unix().saturating_add(LIFETIME);
        claims.insert("exp".into(), json!(expires));
        claims.insert("jti".into(), json!(id));
        claims.extend(facts);
        let claims = serde_json::to_vec(&claims).ok()?;
        let mut token = self.header.clone();
        token.push('.');
        BASE64_URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self.key.sign(token.as_bytes())?;
        token.push('.');
        BASE64_URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    //= FWD-1 accepted
    #[test]
    fn an_assertion_verifies_with_the_published_key() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["a", "b"].map(|name| folder.path().join(name));
        let settings = AssertionSettings {
            key: path.clone(),
            previous: Some(other.clone()),
            audience: "core".into(),
        };
        let (missing, _) = settings.signer("bank").unwrap_err();
        assert_eq!(missing, other, "only the key that signs is made");
        AssertionKey::read_or_make(&other).unwrap();
        let signer = settings.signer("bank").unwrap();
        let keys: Value = serde_json::from_str(signer.published()).unwrap();
        assert_eq!(keys["keys"].as_array().unwrap().len(), 2);

        let mut facts = Map::new();
        facts.insert("method".into(), json!("GET"));
        let token = signer.assert("id-1", facts, Timestamp::from_unix(1_000));
        let token = token.unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).unwrap();
        let mut point = vec![4];
        for name in ["x", "y"] {
            point.extend(decode(keys["keys"][0][name].as_str().unwrap()));
        }
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(signed.as_bytes(), &decode(signature))
            .unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let json = |text| serde_json::from_slice::<Value>(&decode(text)).unwrap();
        assert_eq!(json(header)["kid"], keys["keys"][0]["kid"]);
        assert_eq!(
            json(claims),
            json!({ "iss": "bank", "aud": "core", "iat": 1_000, "exp": 1_060, "jti": "id-1", "method": "GET" })
        );
    }
}
