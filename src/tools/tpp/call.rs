//! Sends a signed request over TLS, and reads the answer.
//!
//! Invariant: the signed target is sent unchanged, or nothing is sent. Redirects are not followed: a signature is for one
//! target.
//! Deliberately not here: retries. A second try needs a new Date and a new X-Request-ID (REP-1).

use super::{SignedRequest, TppFault};
use reqwest::{Certificate, Client, Method, Url};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time-out of a call. The gateway's own time-outs are far shorter.
const DEADLINE: Duration = Duration::from_secs(30);

/// The most bytes of an answer that are read: enough for any page of transactions.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;

/// The connection options.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// A PEM file of the trusted certificates; `None` for the system's.
    pub cacert: Option<PathBuf>,
    /// Whether to offer HTTP/2 by ALPN; otherwise HTTP/1.1 only.
    pub http2: bool,
}

/// The gateway's answer.
#[derive(Clone)]
pub struct TppAnswer {
    /// The HTTP status code.
    pub status: u16,
    /// The headers; invalid UTF-8 is replaced.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Omits the body, which may contain a PSU's data.
impl fmt::Debug for TppAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TppAnswer")
            .field("status", &self.status)
            .field("body_length", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl TppAnswer {
    /// The value of the first header of this name, case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Sends a request to `base_url` (scheme and authority) and reads the whole answer.
///
/// # Errors
/// [`TppFault::TargetRewritten`] if the client's URL parser would change the target, [`TppFault::NoClient`] without CA certificates,
/// [`TppFault::Client`] without an answer, [`TppFault::AnswerTooLarge`] above 16 MiB.
pub async fn call(
    request: &SignedRequest,
    base_url: &str,
    options: &CallOptions,
) -> Result<TppAnswer, TppFault> {
    let url = exact_url(base_url, &request.target)?;
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| TppFault::Method(request.method.clone()))?;
    let mut sending = client(&url, options)?
        .request(method, url)
        .headers(request.header_map()?);
    if let Some(body) = &request.body {
        sending = sending.body(body.clone());
    }
    let mut response = sending.send().await?;
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.to_string(), value)
        })
        .collect();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > ANSWER_LIMIT {
            let limit = ANSWER_LIMIT;
            return Err(TppFault::AnswerTooLarge { limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(TppAnswer {
        status: response.status().as_u16(),
        headers,
        body,
    })
}

/// Builds the URL, unless its parser would change the target: it removes dot segments and encodes some letters.
fn exact_url(base_url: &str, target: &str) -> Result<Url, TppFault> {
    let text = format!("{}{target}", base_url.trim_end_matches('/'));
    let url = Url::parse(&text).map_err(|_| TppFault::Target(text))?;
    let query = url.query().map(|query| format!("?{query}"));
    let sent = format!("{}{}", url.path(), query.unwrap_or_default());
    if sent == target {
        Ok(url)
    } else {
        Err(TppFault::TargetRewritten { sent })
    }
}

fn client(url: &Url, options: &CallOptions) -> Result<Client, TppFault> {
    // reqwest is built without a provider of its own. A second installation fails, and the first one stays, which is intended.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(DEADLINE);
    if let Some(cacert) = &options.cacert {
        builder = builder.tls_certs_only(Certificate::from_pem_bundle(&read(cacert)?)?);
    }
    if !options.http2 {
        builder = builder.http1_only();
    }
    // A proxy from the environment would change the connection.
    if matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(TppFault::NoClient)
}

fn read(path: &Path) -> Result<Vec<u8>, TppFault> {
    std::fs::read(path).map_err(|source| TppFault::File {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_sent_unchanged_or_refused() {
        for target in [
            "/v1/accounts",
            "/v1/a%2Fb?x=%20&y=",
            "/v1//a/",
            "/?",
            "/v1/a?",
        ] {
            let url = exact_url("https://localhost:8443", target);
            assert!(url.is_ok(), "{target}");
        }
        for target in ["/v1/../a", "/v1/%2e/a", "/a?'", "/a\"b"] {
            let url = exact_url("https://localhost:8443/", target);
            assert!(
                matches!(url, Err(TppFault::TargetRewritten { .. })),
                "{target}"
            );
        }
    }
}
