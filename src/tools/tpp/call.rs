//! A signed request sent over TLS, and its answer.
//!
//! Invariant: the signed target goes over the wire unchanged, or nothing is sent. Redirects are not followed: a signature is for one target.
//! Deliberately not here: retries. A second try needs a new Date and a new X-Request-ID (REP-1).

use super::{SignedRequest, TppFault};
use reqwest::{Certificate, Client, Method, Url};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one call may take. The gateway's own deadlines are far shorter.
const DEADLINE: Duration = Duration::from_secs(30);

/// The most of an answer that is read, in bytes: enough for any page of transactions.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;

/// How to connect.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// A PEM file whose certificates alone are trusted; `None`: those of the system.
    pub cacert: Option<PathBuf>,
    /// Whether HTTP/2 may be chosen (ALPN); else HTTP/1.1.
    pub http2: bool,
}

/// What the gateway answered.
#[derive(Clone)]
pub struct TppAnswer {
    /// The HTTP status code.
    pub status: u16,
    /// The headers; bytes outside UTF-8 are replaced.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Prints no body: it may hold a PSU's data.
impl fmt::Debug for TppAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TppAnswer")
            .field("status", &self.status)
            .field("body_length", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl TppAnswer {
    /// The value of the first header of this name, in any letter case.
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
/// [`TppFault::TargetRewritten`] where the client's URL parser would change the target, [`TppFault::Client`] where no answer comes,
/// [`TppFault::AnswerTooLarge`] past 16 MiB.
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

/// The URL, provided that its parser leaves the target alone: it removes dot segments and encodes some letters.
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
    // reqwest is built without a provider of its own. A second installation fails, and the first one stays: that is what is wanted.
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
    // A proxy of the environment has no business between this machine and itself.
    if matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
        builder = builder.no_proxy();
    }
    Ok(builder.build()?)
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
    fn a_target_goes_out_as_it_was_signed_or_not_at_all() {
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
