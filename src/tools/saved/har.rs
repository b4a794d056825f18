//! HAR 1.2, the JSON format of browsers, proxies and HTTP clients.
//!
//! A HAR contains a program's view of a request, not its bytes: late headers may be missing, and the body is text. Relevant
//! losses are noted.

use super::{
    KeptBody, SavedFault, SavedRequest, Wire, body, choice::choose, doubts::Doubts, header::header,
};
use crate::{admission::Announced, hex};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderValue,
    header::{HOST, TRANSFER_ENCODING},
};
use serde_json::Value;
use std::borrow::Cow;

pub(super) fn request(input: &[u8], entry: Option<usize>) -> Result<SavedRequest, SavedFault> {
    let har: Value = serde_json::from_slice(&without_lone_surrogates(input))
        .map_err(|fault| SavedFault::Har(fault.to_string()))?;
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
    let creator = har.pointer("/log/creator/name").and_then(Value::as_str);
    let keeps_bytes = creator.is_some_and(|name| name.starts_with("mitmproxy"));
    read(request, Vec::from_iter(note), keeps_bytes)
}

fn read(
    request: &Value,
    mut notes: Vec<String>,
    keeps_bytes: bool,
) -> Result<SavedRequest, SavedFault> {
    let text = |name: &str| request.get(name).and_then(Value::as_str);
    let (authority, target) = address(request, keeps_bytes, &mut notes)?;
    let version = text("httpVersion").unwrap_or_default().to_ascii_lowercase();
    let framed = ["http/2", "h2", "http/3", "h3"]
        .iter()
        .any(|known| version.starts_with(known));
    let method = text("method").unwrap_or_default().to_owned();
    if http::Method::from_bytes(method.as_bytes()).is_err() {
        return Err(fault("the request's method is none"));
    }
    let mut damage = Vec::new();
    let mut headers = headers(request, &mut damage);
    let mut doubts = doubts(request, keeps_bytes);
    doubts.target = !keeps_bytes && !target.is_ascii();
    let wire = if framed {
        if let Some(fault) = damage.into_iter().next() {
            return Err(fault);
        }
        damage = Vec::new();
        let host = headers.remove(HOST);
        let host = host.and_then(|host| Some(host.to_str().ok()?.to_owned()));
        let named = pseudo(request, ":authority").or(host);
        Wire::Frames(Some(named.unwrap_or(authority)))
    } else {
        let mut fields = fields(request);
        if !headers.contains_key(HOST)
            && let Ok(host) = HeaderValue::from_str(&authority)
        {
            notes.push("the HAR has no Host header; it is taken from the URL".to_owned());
            headers.insert(HOST, host);
            fields.push((b"host".to_vec(), authority.into_bytes()));
        }
        let version = match version.as_str() {
            "http/1.0" => "HTTP/1.0",
            _ => "HTTP/1.1",
        };
        Wire::Lines(lines(&method, &target, version, &fields))
    };
    let (body, is_whole) = body(request, &headers, &mut notes);
    let kept = match (is_whole, framed) {
        (Err(sent), _) => KeptBody::Lost(sent),
        (Ok(()), true) => KeptBody::Alone,
        (Ok(()), false) => body::framed_anew(&headers, &body),
    };
    Ok(SavedRequest {
        form: "HAR",
        method,
        target,
        wire,
        headers,
        body,
        kept,
        notes,
        damage: damage.iter().map(ToString::to_string).collect(),
        doubts,
    })
}

/// The authority and the target of a request.
fn address(
    request: &Value,
    keeps_bytes: bool,
    notes: &mut Vec<String>,
) -> Result<(String, Vec<u8>), SavedFault> {
    let url = request.get("url").and_then(Value::as_str);
    let url = url.ok_or_else(|| fault("the request has no url"))?;
    // mitmproxy has the target as it was sent; a browser keeps a fragment for itself.
    let (sent, fragment) = match url.split_once('#') {
        Some((sent, fragment)) if !keeps_bytes => (sent, Some(fragment)),
        _ => (url, None),
    };
    let split = split(sent);
    let (authority, target) = split.ok_or_else(|| fault("the request's url is not absolute"))?;
    let path = pseudo(request, ":path");
    if fragment.is_some() && path.is_none() {
        notes.push("the URL has a fragment, which browsers do not send; it is left out".to_owned());
    }
    Ok((authority, bytes_of(&path.unwrap_or(target))))
}

/// A pseudo-header of HTTP/2.
fn pseudo(request: &Value, wanted: &str) -> Option<String> {
    let found = pairs(request).find(|(name, _)| *name == wanted);
    found.map(|(_, value)| value.to_owned())
}

/// Splits a URL into authority and target.
fn split(url: &str) -> Option<(String, String)> {
    let (_, rest) = url.split_once("://")?;
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

/// Names and values as bytes.
fn fields(request: &Value) -> Vec<(Vec<u8>, Vec<u8>)> {
    let fields = pairs(request).filter(|(name, _)| !name.starts_with(':'));
    fields
        .map(|(name, value)| (bytes_of(name), bytes_of(value)))
        .collect()
}

fn headers(request: &Value, damage: &mut Vec<SavedFault>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (index, (name, value)) in fields(request).into_iter().enumerate() {
        // The request line is the first line.
        match header(&name, &value, index.saturating_add(2)) {
            Ok((name, value)) => {
                let _ = headers.try_append(name, value);
            }
            Err(fault) => damage.push(fault),
        }
    }
    headers
}

/// The places whose text is not ASCII, unless the program keeps bytes.
fn doubts(request: &Value, keeps_bytes: bool) -> Doubts {
    let mut doubts = Doubts {
        why: "a HAR has characters and not bytes: what is not ASCII is read as UTF-8, and may have been sent otherwise",
        body: sent_text(request).is_some_and(|text| text.contains(char::REPLACEMENT_CHARACTER)),
        ..Doubts::default()
    };
    for (name, value) in pairs(request) {
        let is_odd = match keeps_bytes {
            true => value.contains(char::REPLACEMENT_CHARACTER),
            false => !value.is_ascii() || !name.is_ascii(),
        };
        if is_odd {
            doubts.doubt(name);
        }
    }
    doubts
}

/// Reconstructs the head of an HTTP/1.1 request.
fn lines(method: &str, target: &[u8], version: &str, fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut raw = [
        method.as_bytes(),
        b" ",
        target,
        b" ",
        version.as_bytes(),
        b"\r\n",
    ]
    .concat();
    for (name, value) in fields {
        raw.extend_from_slice(&[name.as_slice(), b": ", value, b"\r\n"].concat());
    }
    raw.extend_from_slice(b"\r\n");
    raw
}

/// The text of the body, unless it is in base64.
fn sent_text(request: &Value) -> Option<&str> {
    let data = request.get("postData")?;
    let encoding = data.get("encoding").and_then(Value::as_str);
    data.get("text")?
        .as_str()
        .filter(|_| encoding != Some("base64"))
}

/// The body, and whether it is the one that was sent; if not, the announcement of that one.
fn body(
    request: &Value,
    headers: &HeaderMap,
    notes: &mut Vec<String>,
) -> (Vec<u8>, Result<(), Announced>) {
    let data = request.get("postData");
    let text = data.and_then(|data| data.get("text")?.as_str());
    let body = match (sent_text(request), text) {
        (Some(text), _) => bytes_of(text),
        (None, Some(base64)) => STANDARD.decode(base64).unwrap_or_else(|_| {
            notes.push("the body says that it is base64 and is not".to_owned());
            base64.as_bytes().to_vec()
        }),
        (None, None) => Vec::new(),
    };
    let said = body::length(headers)
        .ok()
        .flatten()
        .or_else(|| usize::try_from(request.get("bodySize")?.as_u64()?).ok());
    let Some(said) = said.filter(|said| *said != body.len()) else {
        return (body, Ok(()));
    };
    notes.push(format!(
        "the body in the HAR has {} bytes, and {said} were sent: its bytes are not what was signed",
        body.len()
    ));
    let announced = match headers.contains_key(TRANSFER_ENCODING) {
        false => u64::try_from(said).map_or(Announced::Unknown, Announced::Length),
        true => Announced::Unknown,
    };
    (body, Err(announced))
}

/// The bytes of a text of the HAR, in UTF-8, with the bytes that [`without_lone_surrogates`] has kept.
fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        let kept = u32::from(character).checked_sub(KEPT_BYTES);
        match kept.and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) if byte >= 0x80 => bytes.push(byte),
            _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// The private characters U+10FF80 to U+10FFFF stand for the bytes 0x80 to 0xFF.
const KEPT_BYTES: u32 = 0x10_FF00;

/// Replaces escapes of half a surrogate pair, which no parser of JSON accepts. Python writes `\udc80` to `\udcff` for a byte that is not
/// UTF-8 (PEP 383), and so does mitmproxy: each becomes a private character. Any other half becomes U+FFFD.
fn without_lone_surrogates(json: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memmem::find(json, b"\\ud").is_none()
        && memchr::memmem::find(json, b"\\uD").is_none()
    {
        return Cow::Borrowed(json);
    }
    let mut written = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (before, escape) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        written.extend_from_slice(before);
        let (length, replacement) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, None),
            (Some(byte @ 0xDC80..=0xDCFF), _) => {
                (6, Some(format!("\\udbff\\udf{:02x}", byte & 0xFF)))
            }
            (Some(0xD800..=0xDFFF), _) => (6, Some("\\ufffd".to_owned())),
            _ => (2, None),
        };
        let (taken, after) = escape.split_at_checked(length).unwrap_or((escape, &[]));
        match replacement {
            Some(replacement) => written.extend_from_slice(replacement.as_bytes()),
            None => written.extend_from_slice(taken),
        }
        rest = after;
    }
    written.extend_from_slice(rest);
    Cow::Owned(written)
}

/// The UTF-16 code unit of an escape `\u1234`.
fn unit(escape: &[u8]) -> Option<u16> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    u16::try_from(hex::number(digits)?).ok()
}

fn fault(why: &str) -> SavedFault {
    SavedFault::Har(why.to_owned())
}
