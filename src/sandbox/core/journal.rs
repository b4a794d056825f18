//! Logs the requests from the gateway, so that a demo can show them.

use axum::http::HeaderMap;
use portvakt_base::{hex, terminal::complain};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;

/// The headers that are never logged: a national identity number (HDR-12), a token that starts an SCA, and an assertion, which
/// contains that token.
const WITHHELD: [&str; 3] = [
    "x-psu-identity",
    "gateway-sca-redirect",
    "gateway-assertion",
];

/// The log entry of one request. Header names are in lower case, and repeated headers are joined.
pub(super) fn entry(method: &str, target: &str, headers: &HeaderMap, body: &[u8]) -> Value {
    let headers: Vec<[String; 2]> = headers
        .iter()
        .map(|(name, value)| {
            let value = match WITHHELD.contains(&name.as_str()) {
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

/// The log file, if there is one. Each line is one write, so that lines of two requests never mix.
#[derive(Debug, Default)]
pub(super) struct Journal(Option<Mutex<File>>);

impl Journal {
    pub(super) fn open(path: Option<&PathBuf>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
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
