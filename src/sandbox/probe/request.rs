//! Requests as the gateway forwards them, and their assertions, right ones and wrong ones.
//!
//! Invariant: [`Gateway::forwarded`] has the headers that docs/upstream-contract.md lists for such a request; a test compares
//! them with those of a running gateway.

use axum::http::Method;
use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_URL_SAFE_NO_PAD};
use portvakt::signing::AssertionSigner;
use portvakt_base::clock::{Clock, Timestamp};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The age of an assertion that no core accepts, in seconds: also beyond a generous tolerance.
const OLD: u64 = 600;

/// The headers whose values are hashed together, in this order.
const HASHED: [&str; 3] = ["signature", "x-psu-identity", "psu-context"];

/// The fixes that are on for every request, because their default dates have passed (HDR-16).
const FIXES: &str = "amount-as-string, cardaccount-switch-originalamount-and-transactionamount, longer-names, cash-account-type-iso";

/// The header of the assertion.
const ASSERTION: &str = "Gateway-Assertion";

/// An operation of the core with an example.
#[derive(Clone, Debug)]
pub(super) struct Example {
    /// Its name in the table of operations.
    pub(super) operation: String,
    /// The method.
    pub(super) method: Method,
    /// Path and query.
    pub(super) target: String,
    /// The body, if it has one.
    pub(super) body: Vec<u8>,
}

/// A request, to be sent as it is.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The method.
    pub(super) method: Method,
    /// Path and query.
    pub(super) target: String,
    /// The headers in order, framing included.
    pub(super) headers: Vec<(&'static str, Vec<u8>)>,
    /// The body.
    pub(super) body: Vec<u8>,
}

impl Request {
    /// The first value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&[u8]> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_slice())
    }

    /// With this value in place of all others of the name.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name, value.into()));
        self
    }

    /// Without this header.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// With a further header before all others but Host.
    pub(super) fn with_before(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        let first = self.headers.len().min(1);
        self.headers.insert(first, (name, value.into()));
        self
    }

    /// With a further header behind all others.
    pub(super) fn with_behind(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// With another body, its length and its Digest.
    pub(super) fn with_body(mut self, body: Vec<u8>) -> Self {
        let digest = format!("SHA-256={}", BASE64_STANDARD.encode(Sha256::digest(&body)));
        let length = body.len().to_string();
        self.body = body;
        self.with("Digest", digest).with("Content-Length", length)
    }

    /// With this method and target.
    pub(super) fn to(mut self, method: Method, target: String) -> Self {
        (self.method, self.target) = (method, target);
        self
    }

    /// The head, with the empty line.
    pub(super) fn head(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// Head and body.
    pub(super) fn bytes(&self) -> Vec<u8> {
        [self.head(), self.body.clone()].concat()
    }
}

/// The gateway, as far as the core knows it.
#[derive(Debug)]
pub(super) struct Gateway {
    /// The signer whose key the core knows.
    pub(super) signer: AssertionSigner,
    /// A signer with another key.
    pub(super) stranger: AssertionSigner,
    /// The core's authority.
    pub(super) host: String,
    /// Gateway-Tpp-Id.
    pub(super) tpp: String,
    /// The PSU that every request is about.
    pub(super) psu: Option<Uuid>,
}

impl Gateway {
    /// A request with the right assertion.
    pub(super) fn vouched(&self, example: &Example) -> Request {
        self.vouch(self.forwarded(example))
    }

    /// The same request with an assertion for it as it is.
    pub(super) fn vouch(&self, request: Request) -> Request {
        let token = token(&self.signer, &request, &[], now());
        request.with(ASSERTION, token)
    }

    /// As [`Self::vouch`], but with these claims in place of the right ones.
    pub(super) fn vouch_with(&self, request: Request, claims: &[(&str, &str)]) -> Request {
        let token = token(&self.signer, &request, claims, now());
        request.with(ASSERTION, token)
    }

    /// With an assertion that has expired.
    pub(super) fn vouch_too_early(&self, request: Request) -> Request {
        let then = Timestamp::from_unix(now().unix().saturating_sub(OLD));
        let token = token(&self.signer, &request, &[], then);
        request.with(ASSERTION, token)
    }

    /// With an assertion that another key signed, under that key's id.
    pub(super) fn vouch_by_another(&self, request: Request) -> Request {
        let token = token(&self.stranger, &request, &[], now());
        request.with(ASSERTION, token)
    }

    /// With the right claims, and a signature that does not belong to them.
    pub(super) fn vouch_badly(&self, request: Request) -> Request {
        let [right, other] =
            [&self.signer, &self.stranger].map(|signer| token(signer, &request, &[], now()));
        let signed = right.rsplit_once('.').map_or("", |(signed, _)| signed);
        let signature = other
            .rsplit_once('.')
            .map_or("", |(_, signature)| signature);
        request.with(ASSERTION, format!("{signed}.{signature}"))
    }

    /// With the right claims under the algorithm "none" (RFC 7519, section 6.1).
    pub(super) fn vouch_unsigned(&self, request: Request) -> Request {
        let kid = self.public_key().get("kid").cloned().unwrap_or_default();
        self.vouch_forged(request, |claims| {
            let header = json!({"alg": "none", "typ": "JWT", "kid": kid});
            let header = BASE64_URL_SAFE_NO_PAD.encode(header.to_string());
            format!("{header}.{claims}.")
        })
    }

    /// With a token that `forge` makes of the right claims, which it gets in base64url.
    pub(super) fn vouch_forged(
        &self,
        request: Request,
        forge: impl FnOnce(&str) -> String,
    ) -> Request {
        let right = token(&self.signer, &request, &[], now());
        let forged = forge(right.split('.').nth(1).unwrap_or_default());
        request.with(ASSERTION, forged)
    }

    /// The public key that the core knows, as a JWK (RFC 7517).
    pub(super) fn public_key(&self) -> Value {
        let published: Value = serde_json::from_str(self.signer.published()).unwrap_or_default();
        published.pointer("/keys/0").cloned().unwrap_or_default()
    }

    /// A request as the gateway forwards it, with another X-Request-ID each time, without an assertion.
    pub(super) fn forwarded(&self, example: &Example) -> Request {
        let id = Uuid::new_v4().to_string();
        let date = httpdate::fmt_http_date(now().system_time());
        let trace = Uuid::new_v4().simple().to_string();
        let span = trace.get(..16).unwrap_or_default();
        let own = |name, value: &str| (name, value.as_bytes().to_vec());
        let has_body = !example.body.is_empty();
        let signed = if has_body {
            "date digest x-request-id"
        } else {
            "date x-request-id"
        };
        let signature = format!(
            "keyId=\"SN=1,CA=CN=portvakt-sandbox probe\",algorithm=\"rsa-sha256\",headers=\"{signed}\",signature=\"{}\"",
            BASE64_STANDARD.encode([0x5a; 256])
        );
        let mut headers = vec![
            own("Host", &self.host),
            own("Accept", "application/json"),
            own("X-Request-ID", &id),
            own("TPP-Redirect-URI", "https://tpp.example/back"),
            own("Date", &date),
            own(
                "TPP-Signature-Certificate",
                &BASE64_STANDARD.encode([0x30; 1_500]),
            ),
            own("Signature", &signature),
            own("Forwarded", "for=192.0.2.1;host=localhost;proto=https"),
            own("x-accept-fix", FIXES),
            own("Accept-Encoding", "identity"),
            own("traceparent", &format!("00-{trace}-{span}-01")),
            own("Gateway-Environment", "sandbox"),
            own("Gateway-Operation", &example.operation),
            own("Gateway-Request-Id", &id),
            own("Gateway-Tpp-Id", &self.tpp),
            own("Gateway-Tpp-Name", "portvakt-sandbox probe"),
            own("Gateway-Tpp-Roles", "PSP_PI,PSP_AI"),
            own("Gateway-Signed-Headers", signed),
            own(
                "Gateway-Psu-Present",
                if self.psu.is_some() { "yes" } else { "no" },
            ),
            own("Gateway-Sca", "none"),
        ];
        if let Some(psu) = self.psu {
            headers.push(own("PSU-ID", &psu.to_string()));
            headers.push(own("PSU-IP-Address", "192.0.2.7"));
        }
        if example.method != Method::GET {
            let link = "https://bank.example/sca?request=cHJvYmU";
            headers.push(own("Gateway-Sca-Redirect", link));
            headers.push(own("Content-Length", "0"));
        }
        let request = Request {
            method: example.method.clone(),
            target: example.target.clone(),
            headers,
            body: Vec::new(),
        };
        match has_body {
            false => request,
            true => request
                .with("Content-Type", "application/json")
                .with_body(example.body.clone()),
        }
    }
}

fn now() -> Timestamp {
    Clock::System.now()
}

/// An assertion about a request, with these claims in place of the right ones.
fn token(
    signer: &AssertionSigner,
    request: &Request,
    claims: &[(&str, &str)],
    at: Timestamp,
) -> String {
    let mut facts = Map::new();
    facts.insert("method".into(), json!(request.method.as_str()));
    facts.insert("target".into(), json!(request.target));
    facts.insert("body_sha256".into(), json!(hash(&request.body)));
    facts.insert("headers_sha256".into(), json!(hash(&hashed_lines(request))));
    // The gateway vouches for no PSU that only the TPP names.
    let is_known = request.header("Gateway-Psu-Bound").is_none();
    if let Some(psu) = request.header("PSU-ID").filter(|_| is_known) {
        facts.insert("psu_id".into(), json!(String::from_utf8_lossy(psu)));
    }
    let established = request.headers.iter();
    for (name, value) in
        established.filter(|(name, _)| name.starts_with("Gateway-") && *name != ASSERTION)
    {
        facts.insert(name.to_lowercase(), json!(String::from_utf8_lossy(value)));
    }
    for (name, value) in claims {
        facts.insert((*name).to_owned(), json!(value));
    }
    let text = |name: &str| facts.get(name).and_then(Value::as_str).unwrap_or_default();
    let id = hash(format!("{}\n{}", text("gateway-tpp-id"), text("gateway-request-id")).as_bytes());
    signer.assert(&id, facts, at).unwrap_or_default()
}

/// The lines that `headers_sha256` covers.
fn hashed_lines(request: &Request) -> Vec<u8> {
    let lines = HASHED.iter().filter_map(|name| {
        let value = request.header(name)?.trim_ascii();
        Some([name.as_bytes(), b": ", value, b"\n"].concat())
    });
    lines.flatten().collect()
}

fn hash(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(bytes))
}
