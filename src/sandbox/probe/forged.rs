//! Assertions of somebody without the gateway's key, in the forms that verifiers are known to accept (RFC 8725, sections 2.1,
//! 3.1 and 3.10): the public key as the secret of an HMAC, and a key that the token itself names.

use super::publish::{self, Published};
use super::report::{ASSERTION as AREA, Check};
use super::request::Request;
use super::session::{Session, listed};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A point on P-256 as SubjectPublicKeyInfo (RFC 5480) begins with these bytes.
const SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The length of a coordinate of such a point, in bytes.
const COORDINATE: usize = 32;

/// All checks of forged tokens.
pub(super) fn checks(session: &Session) -> Vec<Check> {
    let mend = "accept the algorithm ES256 only, whatever the token names: with HS256 the public key would be a secret \
                that everybody knows";
    let hmac = refused(session, "hmac", hmacs(session), mend);
    let mend = "verify with a key from the gateway's /.well-known/jwks.json only, and ignore jwk, jku, x5c and x5u of a token: \
                its author chose them";
    let Some(stranger) = Stranger::new() else {
        let found = "not tested: the probe cannot make a key".to_owned();
        return vec![hmac, Check::new(AREA, "embedded-key", found, false, mend)];
    };
    let keys = stranger.publish(session);
    let tokens = stranger.tokens(session, keys.as_ref().map(|keys| keys.address));
    vec![hmac, refused(session, "embedded-key", tokens, mend)]
}

/// A token of given claims, in base64url, by the name of its form.
type Forged = (&'static str, Box<dyn Fn(&str) -> String>);

/// Sends each token with a GET and with a change. The core must refuse all.
fn refused(session: &Session, name: &'static str, tokens: Vec<Forged>, mend: &str) -> Check {
    let (mut count, mut believed) = (0_usize, Vec::new());
    for (form, token) in &tokens {
        for example in [&session.read, &session.write] {
            let request = session.gateway.forwarded(example);
            let request: Request = session.gateway.vouch_forged(request, token);
            let outcome = session.ask(&format!("{} with {form}", example.method), &request);
            count = count.saturating_add(1);
            if !outcome.is_refused() {
                believed.push(outcome);
            }
        }
    }
    let found = match believed.is_empty() {
        true => format!("{count} refused"),
        false => listed(&believed),
    };
    Check::new(AREA, name, found, believed.is_empty(), mend)
}

/// Tokens with HS256, whose secret is the gateway's public key in the forms that a core may hold.
fn hmacs(session: &Session) -> Vec<Forged> {
    let jwk = session.gateway.public_key();
    let coordinate = |name: &str| {
        let text = jwk.get(name).and_then(Value::as_str).unwrap_or_default();
        BASE64_URL_SAFE_NO_PAD.decode(text).unwrap_or_default()
    };
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    let spki = [SPKI.to_vec(), point.clone()].concat();
    let pem = pem(&spki);
    let secrets = [
        ("the key in PEM", pem.clone().into_bytes()),
        (
            "the key in PEM without its last line feed",
            pem.trim_end().into(),
        ),
        ("the key in DER", spki),
        ("the point", point),
        ("the JWK", jwk.to_string().into_bytes()),
        (
            "the JWK set",
            session.gateway.signer.published().as_bytes().to_vec(),
        ),
    ];
    let kid = kid(&jwk);
    let forge = |(form, secret): (_, Vec<u8>)| -> Forged {
        let header = json!({"alg": "HS256", "typ": "JWT", "kid": kid});
        let sign = move |claims: &str| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
            compact(&header, claims, |signed| {
                hmac::sign(&key, signed).as_ref().to_vec()
            })
        };
        (form, Box::new(sign))
    };
    secrets.into_iter().map(forge).collect()
}

/// A key that no gateway has.
struct Stranger {
    pkcs8: Vec<u8>,
    jwk: Value,
    certificate: String,
}

impl Stranger {
    /// `None` if no random numbers are available.
    fn new() -> Option<Self> {
        let pair = rcgen::KeyPair::generate().ok()?;
        let certificate = rcgen::CertificateParams::default()
            .self_signed(&pair)
            .ok()?;
        let (_, point) = pair.public_key_raw().split_first()?;
        let (x, y) = point.split_at_checked(COORDINATE)?;
        let [x, y] = [x, y].map(|bytes| BASE64_URL_SAFE_NO_PAD.encode(bytes));
        Some(Self {
            jwk: json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "probe", "use": "sig", "alg": "ES256"}),
            certificate: BASE64_STANDARD.encode(certificate.der()),
            pkcs8: pair.serialize_der(),
        })
    }

    /// Publishes the key for a core that fetches what `jku` names, where that is possible.
    fn publish(&self, session: &Session) -> Option<Published> {
        let address = session.core.connect().ok()?.local_address()?;
        let keys = [kid(&session.gateway.public_key()), "probe".to_owned()].map(|kid| {
            let mut key = self.jwk.clone();
            if let Some(members) = key.as_object_mut() {
                members.insert("kid".to_owned(), json!(kid));
            }
            key
        });
        let keys = json!({ "keys": keys }).to_string();
        publish::publish(SocketAddr::new(address, 0), keys).ok()
    }

    /// Tokens that name the key: under the gateway's kid, which the core knows, and under another.
    fn tokens(&self, session: &Session, published: Option<SocketAddr>) -> Vec<Forged> {
        let url = published.map(|address| format!("http://{address}{}", publish::PATH));
        let mut named = vec![("jwk", json!(self.jwk)), ("x5c", json!([self.certificate]))];
        named.extend(url.map(|url| ("jku", json!(url))));
        let kids = [kid(&session.gateway.public_key()), "probe".to_owned()];
        let mut tokens = Vec::new();
        for (member, value) in named {
            for kid in &kids {
                let header = json!({"alg": "ES256", "typ": "JWT", "kid": kid, member: value});
                let pkcs8 = self.pkcs8.clone();
                let sign =
                    move |claims: &str| compact(&header, claims, |bytes| sign(&pkcs8, bytes));
                let token: Box<dyn Fn(&str) -> String> = Box::new(sign);
                tokens.push((member, token));
            }
        }
        tokens
    }
}

/// R and S (RFC 7518, section 3.4).
fn sign(pkcs8: &[u8], bytes: &[u8]) -> Vec<u8> {
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8);
    let signature = pair
        .ok()
        .and_then(|pair| pair.sign(&SystemRandom::new(), bytes).ok());
    signature.map_or_else(Vec::new, |signature| signature.as_ref().to_vec())
}

/// The compact form (RFC 7515, section 7.1).
fn compact(header: &Value, claims: &str, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let signed = format!(
        "{}.{claims}",
        BASE64_URL_SAFE_NO_PAD.encode(header.to_string())
    );
    let signature = BASE64_URL_SAFE_NO_PAD.encode(sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn kid(jwk: &Value) -> String {
    let kid = jwk.get("kid").and_then(Value::as_str);
    kid.unwrap_or_default().to_owned()
}

/// A public key in PEM (RFC 7468).
fn pem(spki: &[u8]) -> String {
    let base64 = BASE64_STANDARD.encode(spki);
    let (first, rest) = base64.split_at_checked(64).unwrap_or((&base64, ""));
    format!("-----BEGIN PUBLIC KEY-----\n{first}\n{rest}\n-----END PUBLIC KEY-----\n")
}
