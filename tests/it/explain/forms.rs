//! The six forms of a saved request, written as curl 7.88 (`tool_cb_dbg.c`), mitmproxy 11 and browsers write them.

use super::requests::{Recorded, Wire};
use serde_json::{Value, json};

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    Raw,
    Verbose,
    Trace,
    TraceAscii,
    Har,
    Flows,
}

/// The own lines of curl before a request.
const CONNECTED: &str = "Connected to localhost (127.0.0.1) port 8443 (#0)";

impl Form {
    pub(super) const ALL: [Self; 6] = [
        Self::Raw,
        Self::Verbose,
        Self::Trace,
        Self::TraceAscii,
        Self::Har,
        Self::Flows,
    ];

    /// The file; `None` if no program records this request in this form.
    pub(super) fn record(self, request: &Recorded) -> Option<Vec<u8>> {
        match self {
            // Over HTTP/2 there are no lines.
            Self::Raw => matches!(request.wire, Wire::Http1).then(|| request.bytes()),
            Self::Verbose => Some(verbose(&request.head, &request.framed)),
            Self::Trace => Some(trace(&request.head, &request.framed, false)),
            Self::TraceAscii => Some(trace(&request.head, &request.framed, true)),
            Self::Har => request.is_parsable.then(|| har(request)),
            Self::Flows => request.is_parsable.then(|| flow(request)),
        }
    }

    /// Whether the form keeps everything of this request that the gateway judges.
    pub(super) fn loses_nothing(self, request: &Recorded) -> bool {
        match self {
            Self::Raw | Self::Trace | Self::Flows => true,
            Self::Verbose => request.framed.is_empty(),
            Self::TraceAscii => request.has_only_signed_dots(),
            Self::Har => {
                let is_kept = by_mitmproxy(request) || request.head.is_ascii();
                let has_text = std::str::from_utf8(&request.body).is_ok() || by_mitmproxy(request);
                let names_host = request.fields().iter().any(|(name, _)| is_host(name));
                let is_http2 = matches!(request.wire, Wire::Http2(_));
                let has_fragment = request.target().contains(&b'#') && !by_mitmproxy(request);
                is_kept
                    && !has_fragment
                    && (names_host || is_http2)
                    && (request.body.is_empty() || (has_text && keeps_body(request)))
            }
        }
    }

    pub(super) const fn may_lose_the_body(self) -> bool {
        matches!(self, Self::Verbose | Self::Har)
    }
}

fn is_host(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"host")
}

/// `curl -v 2> FILE`.
fn verbose(head: &[u8], framed: &[u8]) -> Vec<u8> {
    let mut file = format!("*   Trying 127.0.0.1:8443...\n* {CONNECTED}\n").into_bytes();
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        file.extend_from_slice(b"> ");
        file.extend_from_slice(line);
    }
    if !framed.is_empty() {
        file.extend_from_slice(format!("}} [{} bytes data]\n", framed.len()).as_bytes());
    }
    file.extend_from_slice(
        b"* Mark bundle as not supporting multiuse\n< HTTP/1.1 200 OK\r\n< Date: now\r\n< \r\n{ [2 bytes data]\n",
    );
    file
}

/// `curl --trace FILE`, or `--trace-ascii FILE`.
pub(super) fn trace(head: &[u8], framed: &[u8], is_ascii: bool) -> Vec<u8> {
    let mut file = format!("== Info: {CONNECTED}\n").into_bytes();
    dump("=> Send header", head, is_ascii, &mut file);
    if !framed.is_empty() {
        dump("=> Send data", framed, is_ascii, &mut file);
    }
    dump(
        "<= Recv header",
        b"HTTP/1.1 200 OK\r\n",
        is_ascii,
        &mut file,
    );
    file
}

fn dump(title: &str, bytes: &[u8], is_ascii: bool, file: &mut Vec<u8>) {
    let width = if is_ascii { 0x40 } else { 0x10 };
    file.extend(format!("{title}, {0} bytes (0x{0:x})\n", bytes.len()).bytes());
    let ends = |at: usize| {
        bytes
            .get(at..)
            .is_some_and(|rest| rest.starts_with(b"\r\n"))
    };
    let mut at = 0;
    while at < bytes.len() {
        file.extend(format!("{at:04x}: ").bytes());
        if !is_ascii {
            for column in 0..width {
                match bytes.get(at + column) {
                    Some(byte) => file.extend(format!("{byte:02x} ").bytes()),
                    None => file.extend_from_slice(b"   "),
                }
            }
        }
        let mut next = at + width;
        for column in 0..width {
            let Some(byte) = bytes.get(at + column) else {
                break;
            };
            if is_ascii && ends(at + column) {
                next = at + column + 2;
                break;
            }
            let is_shown = (0x20..0x80).contains(byte);
            file.push(if is_shown { *byte } else { b'.' });
            if is_ascii && ends(at + column + 1) {
                next = at + column + 3;
                break;
            }
        }
        file.push(b'\n');
        at = next;
    }
}

/// Every second request is one of mitmproxy's (`save.har`), and the others are a browser's.
fn by_mitmproxy(request: &Recorded) -> bool {
    request.number.is_multiple_of(2)
}

/// mitmproxy writes bodies of these methods only.
fn keeps_body(request: &Recorded) -> bool {
    ["POST", "PUT", "PATCH"].contains(&request.method().as_str())
}

/// Text whose bytes outside UTF-8 are marked by private characters, which [`python_json`] writes as Python does.
fn surrogates(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let odd = chunk.invalid().iter();
        text.extend(odd.map(|byte| char::from_u32(0xE000 + u32::from(*byte)).unwrap()));
    }
    text
}

fn har(request: &Recorded) -> Vec<u8> {
    let is_python = by_mitmproxy(request);
    let latin1 = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| char::from(*byte))
            .collect::<String>()
    };
    let text = |bytes: &[u8]| match is_python {
        true => surrogates(bytes),
        false => latin1(bytes),
    };
    let is_http2 = matches!(request.wire, Wire::Http2(_));
    let fields = request.fields();
    let authority = fields.iter().find(|(name, _)| is_host(name));
    let authority = authority.map_or("localhost".to_owned(), |(_, value)| text(value));
    let mut headers = Vec::new();
    let pair = |name: &str, value: &str| json!({"name": name, "value": value});
    if is_http2 && !is_python {
        headers.push(pair(":authority", &authority));
        headers.push(pair(":method", &request.method()));
        headers.push(pair(":path", &text(&request.target())));
        headers.push(pair(":scheme", "https"));
    }
    for (name, value) in &fields {
        if !(is_http2 && is_host(name)) {
            headers.push(pair(&text(name), &text(value)));
        }
    }
    let mut recorded = json!({
        "method": request.method(),
        "url": format!("https://{authority}{}", text(&request.target())),
        "httpVersion": match (is_http2, is_python) {
            (true, true) => "HTTP/2.0".to_owned(),
            (true, false) => "h2".to_owned(),
            (false, _) => request.version(),
        },
        "headers": headers,
        "queryString": [],
        "cookies": [],
        "headersSize": -1,
        "bodySize": request.body.len(),
    });
    if !request.body.is_empty() && keeps_body(request) {
        let body = match is_python {
            true => surrogates(&request.body),
            false => String::from_utf8_lossy(&request.body).into_owned(),
        };
        recorded["postData"] = json!({"mimeType": "application/json", "text": body});
    }
    let creator = if is_python {
        "mitmproxy"
    } else {
        "WebInspector"
    };
    let har = json!({"log": {
        "version": "1.2",
        "creator": {"name": creator, "version": "1"},
        "entries": [{"request": recorded, "response": {}}],
    }});
    python_json(&har).into_bytes()
}

/// JSON with the marks of [`surrogates`] as halves of surrogate pairs.
fn python_json(value: &Value) -> String {
    let text = value.to_string();
    let mut written = String::new();
    for character in text.chars() {
        match u32::from(character).checked_sub(0xE000) {
            Some(byte @ 0x80..=0xFF) => written.push_str(&format!("\\udc{byte:02x}")),
            _ => written.push(character),
        }
    }
    written
}

fn flow(request: &Recorded) -> Vec<u8> {
    let is_http2 = matches!(request.wire, Wire::Http2(_));
    let fields = request.fields();
    let host = fields.iter().find(|(name, _)| is_host(name));
    let host = host.map_or(&b""[..], |(_, value)| value);
    let headers = fields
        .iter()
        .filter(|(name, _)| !(is_http2 && is_host(name)));
    let headers =
        headers.map(|(name, value)| typed(']', &[typed(',', name), typed(',', value)].concat()));
    let headers = headers.collect::<Vec<_>>().concat();
    let version = match is_http2 {
        true => "HTTP/2.0".to_owned(),
        false => request.version(),
    };
    let entries = [
        ("path", typed(',', &request.target())),
        ("authority", typed(',', if is_http2 { host } else { &[] })),
        ("scheme", typed(',', b"https")),
        ("method", typed(',', request.method().as_bytes())),
        ("port", typed('#', b"8443")),
        ("host", typed(';', b"localhost")),
        ("timestamp_start", typed('^', b"1.5")),
        ("trailers", typed('~', b"")),
        ("content", typed(',', &request.body)),
        ("headers", typed(']', &headers)),
        ("http_version", typed(',', version.as_bytes())),
    ];
    let flow = [
        ("websocket", typed('~', b"")),
        ("response", typed('~', b"")),
        ("request", typed('}', &map(&entries))),
        ("type", typed(';', b"http")),
        ("version", typed('#', b"21")),
    ];
    typed('}', &map(&flow))
}

fn map(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let entries = entries.iter();
    let parts = entries.flat_map(|(key, value)| [typed(';', key.as_bytes()), value.clone()]);
    parts.collect::<Vec<_>>().concat()
}

/// A typed netstring.
fn typed(kind: char, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_string();
    [
        length.as_bytes(),
        b":",
        content,
        kind.to_string().as_bytes(),
    ]
    .concat()
}
