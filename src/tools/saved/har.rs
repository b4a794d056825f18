//! HAR 1.2, the JSON format of browsers, proxies and HTTP clients.
//!
//! A HAR contains a program's view of a request, not its bytes: late headers may be missing, and the body is text. Relevant
//! losses are noted.

use super::{SavedFault, SavedRequest, Wire, choice::choose, header::header};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, header::HOST};
use serde_json::Value;

pub(super) fn request(input: &[u8], entry: Option<usize>) -> Result<SavedRequest, SavedFault> {
    let har: Value =
        serde_json::from_slice(input).map_err(|fault| SavedFault::Har(fault.to_string()))?;
    let entries = har
        .pointer("/log/entries")
        .and_then(Value::as_array)
        .ok_or_else(|| fault("it has no log.entries"))?;
    if entries.is_empty() {
        return Err(fault("log.entries is empty"));
    }
    let requests: Vec<&Value> = entries
        .iter()
        .filter_map(|entry| entry.get("request"))
        .collect();
    if requests.is_empty() {
        return Err(fault("no entry of log.entries has a request"));
    }
    let is_signed =
        |request: &&Value| pairs(request).any(|(name, _)| name.eq_ignore_ascii_case("signature"));
    let (request, note) = choose(requests, entry, is_signed)?;
    read(request, Vec::from_iter(note))
}

fn read(request: &Value, mut notes: Vec<String>) -> Result<SavedRequest, SavedFault> {
    let text = |name: &str| request.get(name).and_then(Value::as_str);
    let url = text("url").ok_or_else(|| fault("the request has no url"))?;
    let (authority, target) =
        split(url).ok_or_else(|| fault("the request's url is not absolute"))?;
    let pseudo = |wanted: &str| {
        let found = pairs(request).find(|(name, _)| *name == wanted);
        found.map(|(_, value)| value.to_owned())
    };
    let version = text("httpVersion").unwrap_or_default().to_ascii_lowercase();
    let framed = ["http/2", "h2", "http/3", "h3"]
        .iter()
        .any(|known| version.starts_with(known));
    let target = pseudo(":path").unwrap_or(target);
    let method = text("method").unwrap_or_default().to_owned();
    if http::Method::from_bytes(method.as_bytes()).is_err() {
        return Err(fault("the request's method is none"));
    }
    let mut headers = headers(request)?;
    if headers.values().any(|value| !value.as_bytes().is_ascii()) {
        notes.push(
            "a header's value is not ASCII; it is read as UTF-8, which may not be what was sent"
                .to_owned(),
        );
    }
    let wire = if framed {
        let host = headers.remove(HOST);
        let host = host.and_then(|host| Some(host.to_str().ok()?.to_owned()));
        Wire::Frames(Some(pseudo(":authority").or(host).unwrap_or(authority)))
    } else {
        if !headers.contains_key(HOST)
            && let Ok(host) = HeaderValue::from_str(&authority)
        {
            notes.push("the HAR has no Host header; it is taken from the URL".to_owned());
            headers.insert(HOST, host);
        }
        Wire::Lines(lines(&method, &target, &headers))
    };
    let body = body(request, &headers, &mut notes);
    Ok(SavedRequest {
        form: "HAR",
        method,
        target: target.into_bytes(),
        wire,
        headers,
        body,
        notes,
    })
}

/// Splits a URL into authority and target. The fragment was never sent.
fn split(url: &str) -> Option<(String, String)> {
    let (_, rest) = url.split_once("://")?;
    let rest = rest.split('#').next()?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at_checked(end)?;
    let slash = if target.starts_with('/') { "" } else { "/" };
    Some((authority.to_owned(), format!("{slash}{target}")))
}

fn pairs(request: &Value) -> impl Iterator<Item = (&str, &str)> {
    let headers = request.get("headers").and_then(Value::as_array);
    headers
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair.get("name")?.as_str()?, pair.get("value")?.as_str()?)))
}

fn headers(request: &Value) -> Result<HeaderMap, SavedFault> {
    let mut headers = HeaderMap::new();
    for (index, (name, value)) in pairs(request).enumerate() {
        if name.starts_with(':') {
            continue;
        }
        let (name, value) = header(name.as_bytes(), value.as_bytes(), index.saturating_add(1))?;
        let _ = headers.try_append(name, value);
    }
    Ok(headers)
}

/// Reconstructs the head of an HTTP/1.1 request.
fn lines(method: &str, target: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut raw = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
    for (name, value) in headers {
        raw.extend_from_slice(name.as_str().as_bytes());
        raw.extend_from_slice(b": ");
        raw.extend_from_slice(value.as_bytes());
        raw.extend_from_slice(b"\r\n");
    }
    raw.extend_from_slice(b"\r\n");
    raw
}

fn body(request: &Value, headers: &HeaderMap, notes: &mut Vec<String>) -> Vec<u8> {
    let data = request.get("postData");
    let text = data.and_then(|data| data.get("text")?.as_str());
    let is_base64 = data.and_then(|data| data.get("encoding")?.as_str()) == Some("base64");
    let body = match text {
        Some(text) if is_base64 => STANDARD.decode(text).unwrap_or_else(|_| {
            notes.push("the body says that it is base64 and is not".to_owned());
            text.as_bytes().to_vec()
        }),
        Some(text) => text.as_bytes().to_vec(),
        None => Vec::new(),
    };
    let said = headers
        .get(http::header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok())
        .or_else(|| usize::try_from(request.get("bodySize")?.as_u64()?).ok());
    if let Some(said) = said.filter(|said| *said != body.len()) {
        notes.push(format!(
            "the body in the HAR has {} bytes, and {said} were sent: its bytes are not what was signed",
            body.len()
        ));
    }
    body
}

fn fault(why: &str) -> SavedFault {
    SavedFault::Har(why.to_owned())
}
