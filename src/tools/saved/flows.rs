//! The flows of mitmproxy, as `mitmdump -w FILE` writes them: one typed netstring for each (`12:content-here,`).
//!
//! A flow has the bytes of names, values, target and body, but not the framing of the body: mitmproxy refuses a request whose lines or
//! chunks are malformed. Streamed bodies are not kept.

use super::{
    KeptBody, SavedFault, SavedRequest, Wire, body, choice::choose, doubts::Doubts, header::header,
    raw,
};
use crate::admission::Announced;
use http::{
    HeaderMap,
    header::{HOST, TRANSFER_ENCODING},
};

/// A netstring: the letter of its type, and its content.
#[derive(Clone, Copy)]
struct Element<'a> {
    kind: u8,
    content: &'a [u8],
}

/// The most digits of a length: mitmproxy reads no more.
const MAX_DIGITS: usize = 10;

/// Whether the input begins with a map that begins with a text, as every flow does.
pub(super) fn are_flows(input: &[u8]) -> bool {
    let key = length(input).and_then(|(_, map)| next(map));
    key.is_some_and(|(key, _)| matches!(key.kind, b';' | b','))
}

pub(super) fn request(input: &[u8], entry: Option<usize>) -> Result<SavedRequest, SavedFault> {
    let mut requests = Vec::new();
    let mut rest = input;
    while let Some((flow, after)) = next(rest) {
        rest = after;
        requests.extend(flow.get(b"request").filter(|request| request.kind == b'}'));
    }
    if requests.is_empty() {
        return Err(SavedFault::Flows(
            "the file ends early, or holds no flow of HTTP",
        ));
    }
    let is_signed = |request: &Element<'_>| {
        let mut names = request.fields().map(|(name, _)| name);
        names.any(|name| name.eq_ignore_ascii_case(b"signature"))
    };
    let (request, note) = choose(requests, entry, is_signed)?;
    read(request, Vec::from_iter(note))
}

fn read(request: Element<'_>, notes: Vec<String>) -> Result<SavedRequest, SavedFault> {
    let bytes = |name: &[u8]| request.get(name).map(|value| value.content);
    let method = bytes(b"method").ok_or(SavedFault::Flows("a request without a method"))?;
    let target = bytes(b"path").ok_or(SavedFault::Flows("a request without a path"))?;
    let version = bytes(b"http_version").unwrap_or_default();
    let is_framed = version.starts_with(b"HTTP/2") || version.starts_with(b"HTTP/3");
    let content = request
        .get(b"content")
        .filter(|content| content.kind != b'~');
    let content = content.map(|content| content.content);
    let mut saved = match is_framed {
        false => {
            // A target in absolute form; over plain HTTP it was for the proxy.
            let is_absolute = bytes(b"scheme") == Some(b"https");
            let authority = bytes(b"authority").filter(|name| is_absolute && !name.is_empty());
            let origin = authority.map_or_else(Vec::new, |name| [b"https://", name].concat());
            let mut head = [method, b" ", &origin, target, b" ", version, b"\r\n"].concat();
            for (name, value) in request.fields() {
                head.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
            }
            head.extend_from_slice(b"\r\n");
            // The body comes after this, because its framing is made anew.
            raw::request(&head, raw::InputOrigin::Record)?
        }
        true => SavedRequest {
            form: "",
            method: String::from_utf8_lossy(method).into_owned(),
            target: target.to_vec(),
            wire: Wire::Frames(None),
            headers: headers(request)?,
            body: Vec::new(),
            kept: KeptBody::Alone,
            notes: Vec::new(),
            damage: Vec::new(),
            doubts: Doubts::default(),
        },
    };
    if is_framed {
        let host = saved.headers.remove(HOST);
        let host = host.map(|host| host.as_bytes().to_vec());
        let authority = bytes(b"authority").filter(|authority| !authority.is_empty());
        let authority = authority.map(<[u8]>::to_vec).or(host);
        saved.wire =
            Wire::Frames(authority.map(|name| String::from_utf8_lossy(&name).into_owned()));
    }
    saved.form = "flows of mitmproxy";
    saved.notes = notes;
    saved.kept = match content {
        None => KeptBody::Lost(announced(&saved.headers)),
        Some(_) if is_framed => KeptBody::Alone,
        Some(content) => body::framed_anew(&saved.headers, content),
    };
    saved.body = content.unwrap_or_default().to_vec();
    Ok(saved)
}

fn announced(headers: &HeaderMap) -> Announced {
    match (
        headers.contains_key(TRANSFER_ENCODING),
        body::length(headers),
    ) {
        (false, Ok(Some(length))) => {
            u64::try_from(length).map_or(Announced::Unknown, Announced::Length)
        }
        _ => Announced::Unknown,
    }
}

fn headers(request: Element<'_>) -> Result<HeaderMap, SavedFault> {
    let mut headers = HeaderMap::new();
    for (index, (name, value)) in request.fields().enumerate() {
        if name.starts_with(b":") {
            continue;
        }
        let (name, value) = header(name, value, index.saturating_add(1))?;
        let _ = headers.try_append(name, value);
    }
    Ok(headers)
}

impl<'a> Element<'a> {
    /// The elements of a list, or keys and values of a map in turns.
    fn elements(self) -> impl Iterator<Item = Self> {
        let mut rest = self.content;
        std::iter::from_fn(move || {
            let (element, after) = next(rest)?;
            rest = after;
            Some(element)
        })
    }

    /// The value of a key of a map.
    fn get(self, wanted: &[u8]) -> Option<Self> {
        if self.kind != b'}' {
            return None;
        }
        let mut elements = self.elements();
        loop {
            let (key, value) = (elements.next()?, elements.next()?);
            if key.content == wanted {
                return Some(value);
            }
        }
    }

    /// Names and values of the headers.
    fn fields(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let headers = self.get(b"headers").filter(|list| list.kind == b']');
        headers
            .into_iter()
            .flat_map(Self::elements)
            .filter_map(|pair| {
                let mut pair = pair.elements();
                Some((pair.next()?.content, pair.next()?.content))
            })
    }
}

/// The first netstring, and the bytes after it.
fn next(input: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (length, rest) = length(input)?;
    let (content, rest) = rest.split_at_checked(length)?;
    let (kind, rest) = rest.split_first()?;
    Some((
        Element {
            kind: *kind,
            content,
        },
        rest,
    ))
}

/// The length in front of a netstring, and the bytes after the colon.
fn length(input: &[u8]) -> Option<(usize, &[u8])> {
    let colon = memchr::memchr(b':', input).filter(|at| (1..=MAX_DIGITS).contains(at))?;
    let (digits, rest) = input.split_at_checked(colon)?;
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let length = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    Some((length.parse().ok()?, rest.strip_prefix(b":")?))
}
