//! Signs a request as the interface requires: §Request signing, rules SIG-2 to SIG-9, DIG-1, DAT-1 and CRT-1.
//!
//! Invariant: the signature is valid for the returned request. Tests alter the request afterwards on purpose.
//! Deliberately not shared with the gateway: two independent implementations of the specification check each other.

use super::{TppFault, TppIdentity};
use crate::interface::token::is_token;
use base64::prelude::{BASE64_STANDARD, Engine};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// The headers that are signed if the request has them, in this order (SIG-7).
pub const SIGNED_HEADERS: [&str; 6] = [
    "date",
    "digest",
    "x-request-id",
    "psu-id",
    "psu-corporate-id",
    "tpp-redirect-uri",
];

/// The first second that a Date header cannot represent: the year 10000, in seconds since 1970.
const YEAR_10000: u64 = 253_402_300_800;

/// A request before it is signed.
#[derive(Clone, Debug, Default)]
pub struct Unsigned {
    /// The method, in upper case.
    pub method: String,
    /// Path and query as sent.
    pub target: String,
    /// Headers, name and value. Given values of Date, Digest, X-Request-ID and TPP-Signature-Certificate are kept.
    pub headers: Vec<(String, String)>,
    /// The body, if any; an empty body counts as one.
    pub body: Option<Vec<u8>>,
}

/// The signing options.
#[derive(Clone, Debug)]
pub struct SignOptions {
    /// The time of the Date header.
    pub date: SystemTime,
    /// The names to sign, in this order, present or not; `None`: `(request-target)` and the present headers of
    /// [`SIGNED_HEADERS`].
    pub headers: Option<Vec<String>>,
    /// Whether to add a random X-Request-ID if there is none.
    pub add_request_id: bool,
    /// A keyId other than the certificate's own, to test spellings (SIG-4).
    pub key_id: Option<String>,
}

impl SignOptions {
    /// The options that the interface requires, at this time.
    pub fn at(date: SystemTime) -> Self {
        Self {
            date,
            headers: None,
            add_request_id: true,
            key_id: None,
        }
    }
}

/// A request to send. Its fields are public so that a test can alter it after signing.
#[derive(Clone)]
pub struct SignedRequest {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// All headers; those added by signing are last.
    pub headers: Vec<(String, String)>,
    /// The body, if any.
    pub body: Option<Vec<u8>>,
    /// The signing string (SIG-8).
    pub signing_string: String,
}

/// Omits body and header values, which may contain a PSU's data.
impl fmt::Debug for SignedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("SignedRequest")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

impl SignedRequest {
    /// The value of the first header of this name, case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// All headers, as an HTTP library needs them.
    ///
    /// # Errors
    /// The first invalid name or value.
    pub fn header_map(&self) -> Result<HeaderMap, TppFault> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let fault = || TppFault::Header(name.clone());
            map.append(
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| fault())?,
                HeaderValue::from_bytes(value.as_bytes()).map_err(|_| fault())?,
            );
        }
        Ok(map)
    }

    /// Replaces every header of this name by one with `value`.
    pub fn set_header(&mut self, name: &str, value: &str) {
        self.remove_header(name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    /// Removes every header of this name.
    pub fn remove_header(&mut self, name: &str) {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }
}

/// Signs a request: adds Date, X-Request-ID, Digest (of a body), TPP-Signature-Certificate and Signature.
///
/// Replaces an earlier Signature. A name in `options.headers` that the request lacks is signed as empty, which the gateway must
/// refuse (SIG-6).
///
/// # Errors
/// [`TppFault::Method`], [`TppFault::Target`] and [`TppFault::Header`] for invalid input, [`TppFault::Date`] and
/// [`TppFault::Signing`].
pub fn sign(
    identity: &TppIdentity,
    request: Unsigned,
    options: &SignOptions,
) -> Result<SignedRequest, TppFault> {
    check(&request)?;
    let Unsigned {
        method,
        target,
        mut headers,
        body,
    } = request;
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("signature"));
    complete(&mut headers, identity, body.as_deref(), options)?;
    let names = options.headers.clone().unwrap_or_else(|| present(&headers));
    let signing_string = signing_string(&names, &method, &target, &headers);
    let key_id = options.key_id.as_deref().unwrap_or(identity.key_id());
    let signature = identity.signature(&signing_string)?;
    headers.push((
        "Signature".to_owned(),
        signature_header(key_id, &names, &signature),
    ));
    Ok(SignedRequest {
        method,
        target,
        headers,
        body,
        signing_string,
    })
}

fn check(request: &Unsigned) -> Result<(), TppFault> {
    if !is_token(&request.method) {
        return Err(TppFault::Method(request.method.clone()));
    }
    let visible = request.target.bytes().all(|byte| byte.is_ascii_graphic());
    if !request.target.starts_with('/') || !visible || request.target.contains('#') {
        return Err(TppFault::Target(request.target.clone()));
    }
    for (name, value) in &request.headers {
        if !is_token(name) || value.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(TppFault::Header(name.clone()));
        }
    }
    Ok(())
}

/// Adds the headers that signing needs and the caller did not provide.
fn complete(
    headers: &mut Vec<(String, String)>,
    identity: &TppIdentity,
    body: Option<&[u8]>,
    options: &SignOptions,
) -> Result<(), TppFault> {
    let mut add = |name: &str, value: String| {
        if find(headers, name).is_none() {
            headers.push((name.to_owned(), value));
        }
    };
    add("Date", imf_fixdate(options.date)?);
    if options.add_request_id {
        add("X-Request-ID", Uuid::new_v4().to_string());
    }
    if let Some(body) = body {
        let digest = BASE64_STANDARD.encode(Sha256::digest(body));
        add("Digest", format!("SHA-256={digest}"));
    }
    add("TPP-Signature-Certificate", identity.certificate_header());
    Ok(())
}

/// RFC 7231 IMF-fixdate (DAT-1).
fn imf_fixdate(date: SystemTime) -> Result<String, TppFault> {
    let end = UNIX_EPOCH + Duration::from_secs(YEAR_10000);
    if date < UNIX_EPOCH || date >= end {
        return Err(TppFault::Date);
    }
    Ok(httpdate::fmt_http_date(date))
}

fn present(headers: &[(String, String)]) -> Vec<String> {
    let there = SIGNED_HEADERS
        .iter()
        .filter(|name| find(headers, name).is_some());
    std::iter::once(&"(request-target)")
        .chain(there)
        .map(|name| (*name).to_owned())
        .collect()
}

/// SIG-8: `name: value` per line, lower-case names, a repeated header joined with `, `.
fn signing_string(
    names: &[String],
    method: &str,
    target: &str,
    headers: &[(String, String)],
) -> String {
    let line = |name: &String| {
        let name = name.to_ascii_lowercase();
        if name == "(request-target)" {
            return format!("{name}: {} {target}", method.to_ascii_lowercase());
        }
        let values: Vec<&str> = headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(&name))
            .map(|(_, value)| value.trim_matches([' ', '\t']))
            .collect();
        format!("{name}: {}", values.join(", "))
    };
    names.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The four parts (SIG-2), as an RFC 2047 encoded word where an issuer's name is not ASCII (§Request signing 9).
fn signature_header(key_id: &str, names: &[String], signature: &str) -> String {
    let plain = format!(
        "keyId=\"{key_id}\",algorithm=\"rsa-sha256\",headers=\"{}\",signature=\"{signature}\"",
        names.join(" ")
    );
    if plain.is_ascii() {
        plain
    } else {
        format!("=?utf-8?B?{}?=", BASE64_STANDARD.encode(plain))
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}
