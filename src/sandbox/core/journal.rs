//! Logs the requests from the gateway, so that a demo can show them.

use axum::http::HeaderMap;
use portvakt_base::{hex, terminal::complain};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Mutex;

/// The headers that are never logged: a national identity number (HDR-12), a token that starts an SCA, an assertion, which
/// contains that token, and the credentials of HTTP, such as the token of `/tail`.
const WITHHELD: [&str; 6] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-psu-identity",
    "gateway-sca-redirect",
    "gateway-assertion",
];

/// The log entry of one request. Header names are in lower case, and repeated headers are joined.
pub(super) fn entry(method: &str, target: &str, headers: &HeaderMap, body: &[u8]) -> Value {
    let headers: Vec<[String; 2]> = headers
        .iter()
        .map(|(name, value)| {
            let value = match is_withheld(name.as_str(), value.as_bytes()) {
                true => format!("(withheld, {} bytes)", value.len()),
                false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
            };
            [name.to_string(), value]
        })
        .collect();
    json!({
        "method": method,
        "target": target,
        "headers": headers,
        "body_length": body.len(),
        "body_sha256": hex::encode(&Sha256::digest(body)),
    })
}

/// Whether a header is not logged: by its name, or because its value begins as credentials do (RFC 6750, RFC 7617).
fn is_withheld(name: &str, value: &[u8]) -> bool {
    let value = value.trim_ascii_start();
    let begins = |scheme: &str| {
        let start = value.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    WITHHELD.contains(&name) || begins("bearer") || begins("basic")
}

/// The log file, if there is one. Each line is one write, so that lines of two requests never mix.
#[derive(Debug, Default)]
pub(super) struct Journal(Option<Mutex<File>>);

impl Journal {
    /// Opens the log, and creates it for its owner only. The mode of a file that exists is kept.
    pub(super) fn open(path: Option<&PathBuf>) -> io::Result<Self> {
        let open = |path| {
            let mut options = OpenOptions::new();
            options.create(true).append(true).mode(0o600).open(path)
        };
        Ok(Self(path.map(open).transpose()?.map(Mutex::new)))
    }

    /// A failed write is reported and does not affect the caller: the journal only serves the demo.
    pub(super) fn append(&self, entry: &Value) {
        let Some(file) = &self.0 else { return };
        let line = format!("{entry}\n");
        let written = match file.lock() {
            Ok(mut file) => file.write_all(line.as_bytes()),
            Err(poisoned) => poisoned.into_inner().write_all(line.as_bytes()),
        };
        if let Err(fault) = written {
            complain(
                "portvakt-sandbox",
                format_args!("the request log cannot be written: {fault}"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn credentials_are_never_logged_and_other_headers_are() {
        for (name, value, is_logged) in [
            ("authorization", "Bearer secret", false),
            ("authorization", "secret", false),
            ("cookie", "id=secret", false),
            ("proxy-authorization", "Basic secret", false),
            ("x-token", "bearer secret", false),
            ("x-token", "BASIC secret", false),
            ("gateway-assertion", "secret", false),
            ("x-request-id", "secret", true),
            ("x-token", "Base secret", true),
        ] {
            let mut headers = HeaderMap::new();
            let name = HeaderName::from_static(name);
            headers.insert(name.clone(), HeaderValue::from_static(value));
            let logged = entry("GET", "/tail/", &headers, b"").to_string();
            assert!(logged.contains(name.as_str()), "{logged}");
            assert_eq!(logged.contains("secret"), is_logged, "{logged}");
        }
    }

    #[test]
    fn a_new_log_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("core.jsonl");
        let journal = Journal::open(Some(&path)).unwrap();
        journal.append(&json!({"method": "GET"}));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"method\":\"GET\"}\n");
    }
}
