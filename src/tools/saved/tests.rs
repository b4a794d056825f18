//! Tables of the formats of a saved request; the traces are from curl 7.88, the flow and the HAR of bytes from mitmproxy 11.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table is as long as its cases"
)]

use super::{KeptBody, SavedFault, SavedRequest, Wire, request, response};
use crate::admission::Announced;

fn read(input: &str) -> SavedRequest {
    request(input.as_bytes(), None).unwrap_or_else(|fault| panic!("{fault}: {input}"))
}

fn value<'a>(request: &'a SavedRequest, name: &str) -> Option<&'a [u8]> {
    request.headers.get(name).map(http::HeaderValue::as_bytes)
}

/// The head of the tables, with CRLF.
const HEAD: &str = "POST /v1/x?a=%20 HTTP/1.1\r\nHost: a\r\nX-N:  b \r\n";

#[test]
fn raw_bodies() {
    let table: [(&str, &[u8], &[&str]); 10] = [
        ("\r\n", b"", &[]),
        ("", b"", &["no empty line"]),
        ("\r\n\r\n\n", b"", &[]),
        ("\r\n{}", b"{}", &["no Content-Length"]),
        ("Content-Length: 2\r\n\r\n{}", b"{}", &[]),
        (
            "Content-Length: 2\r\n\r\n{}\n",
            b"{}",
            &["1 bytes (an editor's line end) follow"],
        ),
        ("Content-Length: 2\r\n\r\n{}xy", b"{}", &["2 bytes follow"]),
        ("Content-Length: 5\r\n\r\n{}", b"{}", &["3 fewer"]),
        (
            "Transfer-Encoding: chunked\r\n\r\n1;x=y\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
            b"{}",
            &[],
        ),
        (
            "Transfer-Encoding: chunked\r\n\r\n{}",
            b"{}",
            &["not in chunks"],
        ),
    ];
    for (rest, body, notes) in table {
        let found = read(&format!("{HEAD}{rest}"));
        assert_eq!(
            (found.method.as_str(), &found.target[..]),
            ("POST", &b"/v1/x?a=%20"[..])
        );
        assert_eq!(value(&found, "x-n"), Some(&b"b"[..]));
        assert_eq!(found.body, body, "{rest:?}");
        assert_eq!(
            found.notes.len(),
            notes.len(),
            "{rest:?}: {:?}",
            found.notes
        );
        assert!(
            found
                .notes
                .iter()
                .zip(notes)
                .all(|(note, text)| note.contains(text)),
            "{:?}",
            found.notes
        );
    }
}

#[test]
fn line_ends() {
    let crlf = read(&format!("{HEAD}\r\n"));
    let bare = read(&format!("\u{feff}\n{HEAD}\r\n").replace("\r\n", "\n"));
    assert_eq!(crlf.wire, Wire::Lines(format!("{HEAD}\r\n").into_bytes()));
    assert_eq!(bare.wire, crlf.wire);
    assert!(crlf.notes.is_empty() && bare.notes[0].contains("bare LF"));
    // In a file with CRLF, a bare LF belongs to the request, and the gateway judges it.
    let mixed = format!("{HEAD}X-A: b\nX-B: c\r\n\r\n");
    assert_eq!(read(&mixed).wire, Wire::Lines(mixed.clone().into_bytes()));
    let body = read("POST / HTTP/1.1\nContent-Length: 4\n\na\r\nb");
    assert_eq!(body.body, b"a\r\nb");
}

#[test]
fn unreadable_input() {
    use SavedFault::*;
    let header = |line, why| Header { line, why };
    let table = [
        ("", Empty),
        ("\r\n \n", Empty),
        ("hello", RequestLine),
        ("GET /v1/accounts", NoVersion),
        ("GET /v1/accounts\nDate: x\n\nsigning string:\n", NoVersion),
        ("GET accounts", RequestLine),
        ("* not curl's\n> quoted", RequestLine),
        ("HTTP/1.1 200 OK\r\n\r\n", RequestLine),
        (
            "GET / HTTP/2\r\nHost : a\r\n\r\n",
            header(2, "white space stands before the colon"),
        ),
        ("4:a;b,}", RequestLine),
        (
            "99:4:type;4:http;",
            Flows("the file ends early, or holds no flow of HTTP"),
        ),
        ("== Info: Trying\n== Info: failed\n", NoRequest),
        ("=> Send header, 4 bytes (0x4)\n", NoRequest),
        ("{}", Har("it has no log.entries".into())),
        (
            r#"{"log":{"entries":[]}}"#,
            Har("log.entries is empty".into()),
        ),
        (
            r#"{"log":{"entries":[{}]}}"#,
            Har("no entry of log.entries has a request".into()),
        ),
        (
            r#"{"log":{"entries":[{"request":{"method":"GET","url":"/v1"}}]}}"#,
            Har("the request's url is not absolute".into()),
        ),
    ];
    for (input, fault) in table {
        assert_eq!(
            request(input.as_bytes(), None).err(),
            Some(fault),
            "{input:?}"
        );
    }
    assert!(matches!(request(b"{", None), Err(Har(_))));
    assert_eq!(
        request(HEAD.as_bytes(), Some(2)).err(),
        Some(Entry {
            wanted: 2,
            found: 1
        })
    );
}

/// The gateway refuses such heads, so they are read.
#[test]
fn damaged_heads() {
    let table = [
        (
            "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            "line 3",
            "continues the line before",
        ),
        (
            "GET / HTTP/1.1\nHost : a\n\n",
            "line 2",
            "white space stands before the colon",
        ),
        ("GET / HTTP/1.1\nHost\n\n", "line 2", "it has no colon"),
        ("GET / HTTP/1.1\nH(: a\n\n", "line 2", "its name is not one"),
        (
            "GET / HTTP/1.1\nH: a\u{1}\n\n",
            "line 2",
            "holds a control character",
        ),
    ];
    for (input, line, why) in table {
        let found = read(input);
        let [said] = &found.damage[..] else {
            panic!("{:?}", found.damage)
        };
        assert!(said.starts_with(line) && said.contains(why), "{said}");
        assert!(said.contains("400 malformed-request"), "{said}");
    }
    for line in [
        "GET  / HTTP/1.1",
        "G(T / HTTP/1.1",
        " GET / HTTP/1.1",
        "GET / HTTP/9.9",
    ] {
        let found = read(&format!("{line}\r\nHost: a\r\n\r\n"));
        assert_eq!(
            found.wire,
            Wire::Lines(format!("{line}\r\nHost: a\r\n\r\n").into_bytes())
        );
    }
    // Empty lines before a request belong to it.
    let led = "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(read(led).wire, Wire::Lines(led.into()));
}

const VERBOSE: &str = "*   Trying 192.0.2.1:443...\n* Connected\n> POST /v1/x HTTP/1.1\r\n> Host: a\r\n> X-N: \u{f8}\r\n> Content-Length: 14\r\n> \r\n} [14 bytes data]\n< HTTP/1.1 200 OK\r\n< Host: b\r\n< \r\n{ [2 bytes data]\n";

#[test]
fn verbose_output() {
    for input in [
        VERBOSE.to_owned(),
        VERBOSE.replace("> ", "10:07:16.342435 [0-0] > "),
    ] {
        let found = read(&input);
        assert_eq!(found.form, "curl -v");
        let head = "POST /v1/x HTTP/1.1\r\nHost: a\r\nX-N: \u{f8}\r\nContent-Length: 14\r\n\r\n";
        assert_eq!(found.wire, Wire::Lines(head.into()));
        assert_eq!(found.kept, KeptBody::Lost(Announced::Length(14)));
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
    // As a terminal shows it.
    let copied = read(&VERBOSE.replace('\r', ""));
    assert!(copied.notes[0].contains("bare LF") && copied.notes.len() == 1);
    let none = read("> GET / HTTP/1.1\r\n> Host: a\r\n>\r\n");
    assert_eq!(none.kept, KeptBody::Framed(Vec::new()));
    let streamed = read("> POST / HTTP/2\r\n> Host: a\r\n> \r\n} [5 bytes data]\n");
    assert_eq!(streamed.kept, KeptBody::Lost(Announced::Unknown));
    let two = format!("{VERBOSE}> GET /two HTTP/1.1\r\n> Host: a\r\n> \r\n");
    assert_eq!(read(&two).target, b"/two");
    assert_eq!(request(two.as_bytes(), Some(1)).unwrap().target, b"/v1/x");
}

/// A typed netstring, as mitmproxy writes it.
fn netstring(kind: char, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_string();
    [
        length.as_bytes(),
        b":",
        content,
        kind.to_string().as_bytes(),
    ]
    .concat()
}

fn flow(
    version: &str,
    authority: &str,
    headers: &[(&[u8], &[u8])],
    content: Option<&[u8]>,
) -> Vec<u8> {
    let headers = headers.iter().map(|(name, value)| {
        netstring(']', &[netstring(',', name), netstring(',', value)].concat())
    });
    let headers = headers.collect::<Vec<_>>().concat();
    let request = [
        netstring(';', b"path"),
        netstring(',', b"/v1/x?a=%20"),
        netstring(';', b"authority"),
        netstring(',', authority.as_bytes()),
        netstring(';', b"method"),
        netstring(',', b"POST"),
        netstring(';', b"port"),
        netstring('#', b"8443"),
        netstring(';', b"timestamp_end"),
        netstring('^', b"2.0"),
        netstring(';', b"content"),
        content.map_or_else(|| netstring('~', b""), |content| netstring(',', content)),
        netstring(';', b"headers"),
        netstring(']', &headers),
        netstring(';', b"http_version"),
        netstring(',', version.as_bytes()),
    ];
    let flow = [
        netstring(';', b"websocket"),
        netstring('~', b""),
        netstring(';', b"request"),
        netstring('}', &request.concat()),
        netstring(';', b"version"),
        netstring('#', b"21"),
    ];
    netstring('}', &flow.concat())
}

#[test]
fn flows_of_mitmproxy_keep_every_byte() {
    let headers: [(&[u8], &[u8]); 3] = [
        (b"Host", b"a"),
        (b"X-N", b"Bj\xf8rn\x01"),
        (b"Content-Length", b"2"),
    ];
    let found = request(&flow("HTTP/1.1", "", &headers, Some(b"{}")), None).unwrap();
    let head =
        b"POST /v1/x?a=%20 HTTP/1.1\r\nHost: a\r\nX-N: Bj\xf8rn\x01\r\nContent-Length: 2\r\n\r\n";
    assert_eq!(found.wire, Wire::Lines(head.to_vec()));
    assert_eq!(found.kept, KeptBody::Framed(b"{}".to_vec()));
    assert!(found.notes.is_empty() && found.doubts.why.is_empty());
    let chunked: [(&[u8], &[u8]); 2] = [(b"Host", b"a"), (b"Transfer-Encoding", b"chunked")];
    let found = request(&flow("HTTP/1.1", "", &chunked, Some(b"{}")), None).unwrap();
    assert_eq!(
        found.kept,
        KeptBody::Framed(b"2\r\n{}\r\n0\r\n\r\n".to_vec())
    );
    let streamed = request(&flow("HTTP/1.1", "", &headers, None), None).unwrap();
    assert_eq!(streamed.kept, KeptBody::Lost(Announced::Length(2)));
    let framed = flow("HTTP/2.0", "a:1", &[(b"x-n", b"b")], Some(b"{}"));
    let found = request(&framed, None).unwrap();
    assert_eq!(found.wire, Wire::Frames(Some("a:1".into())));
    assert_eq!(
        (found.form, &found.body[..]),
        ("flows of mitmproxy", &b"{}"[..])
    );
    let two = [framed.clone(), flow("HTTP/1.1", "", &headers, Some(b"{}"))].concat();
    let found = request(&two, Some(1)).unwrap();
    assert!(found.notes[0].contains("request 1 of 2"));
    for end in 0..framed.len() {
        let _ = request(&framed[..end], None);
    }
}

const ASCII: &str = r#"== Info: Connected to 127.0.0.1 (127.0.0.1) port 18999 (#0)
=> Send SSL data, 5 bytes (0x5)
0000: .....
=> Send header, 358 bytes (0x166)
0000: POST /v1/x HTTP/1.1
0015: Host: 127.0.0.1:18999
002c: X-A: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
006d: X-B: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
00af: X-E:
00b5: X-C: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
00f5: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
0130: Content-Type: application/json
0150: Content-Length: 14
0164: 
=> Send data, 14 bytes (0xe)
0000: {"a":
0007: "b"}
000d: .
<= Recv header, 17 bytes (0x11)
0000: HTTP/1.1 200 OK
"#;

#[test]
fn a_trace_restores_every_line_ending() {
    for input in [ASCII.to_owned(), ASCII.replace('\n', "\r\n")] {
        let found = read(&input);
        assert_eq!(found.form, "curl --trace-ascii");
        let Wire::Lines(raw) = &found.wire else {
            panic!("{:?}", found.wire)
        };
        assert_eq!(raw.len(), 358);
        assert_eq!(value(&found, "x-a").map(<[u8]>::len), Some(58));
        assert_eq!(value(&found, "x-b").map(<[u8]>::len), Some(59));
        assert_eq!(value(&found, "x-c").map(<[u8]>::len), Some(116));
        assert_eq!(value(&found, "x-e"), Some(&b""[..]));
        assert_eq!(found.body, b"{\"a\":\r\n\"b\"}\r\n.");
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
    let timed = ASCII
        .replace("=> Send", "10:07:16.342435 => Send")
        .replace("== Info", "10:07:16.1 == Info");
    assert_eq!(read(&timed).body.len(), 14);
    let ids = ASCII.replace("=> Send", "[0-0] => Send");
    assert_eq!(read(&ids).body.len(), 14);
}

#[test]
fn a_changed_trace_is_noted() {
    let cut = ASCII.replace("0150: Content-Length: 14\n", "");
    assert!(
        read(&cut)
            .notes
            .iter()
            .any(|note| note.contains("do not add up"))
    );
    let longer = ASCII.replace("000d: .", "000d: ....");
    assert!(
        read(&longer)
            .notes
            .iter()
            .any(|note| note.contains("`Send data` do not add up"))
    );
    // `X: b ` lost its last space to an editor.
    let trimmed =
        read("=> Send header, 25 bytes (0x19)\n0000: GET / HTTP/1.1\n0010: X: b\n0017:\n");
    assert_eq!(
        trimmed.wire,
        Wire::Lines(b"GET / HTTP/1.1\r\nX: b \r\n\r\n".to_vec())
    );
    assert!(
        trimmed
            .notes
            .iter()
            .any(|note| note.contains("do not add up"))
    );
}

#[test]
fn ambiguous_dots_are_doubts() {
    let found = read(ASCII);
    assert!(found.doubts.body && !found.doubts.target);
    assert!(
        found.doubts.headers.is_empty(),
        "{:?}",
        found.doubts.headers
    );
    // Only curl's own line vouches for Host.
    let unknown = read(&ASCII.replace("== Info: Connected to 127.0.0.1 (127.0.0.1)", "== Info: x"));
    assert_eq!(unknown.doubts.headers, ["host"]);
    for (value, is_known) in [
        ("curl/7.88.1", true),
        ("curl/7.88.1 a.b", false),
        ("a.b", false),
    ] {
        let length = 14 + value.len();
        let trace = format!(
            "=> Send header, {} bytes (0x0)\n0000: GET /a.b HTTP/1.1\n0013: User-Agent: {value}\n{:04x}: \n",
            0x13 + length + 2,
            0x13 + length
        );
        let found = read(&trace);
        assert_eq!(found.doubts.headers.is_empty(), is_known, "{value}");
        assert!(
            found.doubts.target && found.notes.is_empty(),
            "{:?}",
            found.notes
        );
    }
}

#[test]
fn a_trace_in_hexadecimal_keeps_every_byte() {
    let found = read(
        "=> Send header, 127 bytes (0x7f)
0000: 50 4f 53 54 20 2f 76 31 2f 78 20 48 54 54 50 2f POST /v1/x HTTP/
0010: 31 2e 31 0d 0a 48 6f 73 74 3a 20 31 32 37 2e 30 1.1..Host: 127.0
0020: 2e 30 2e 31 3a 31 38 39 39 39 0d 0a 58 2d 4e 3a .0.1:18999..X-N:
0030: 20 42 6a c3 b8 72 6e 0d 0a 43 6f 6e 74 65 6e 74  Bj..rn..Content
0040: 2d 4c 65 6e 67 74 68 3a 20 33 0d 0a 43 6f 6e 74 -Length: 3..Cont
0050: 65 6e 74 2d 54 79 70 65 3a 20 61 70 70 6c 69 63 ent-Type: applic
0060: 61 74 69 6f 6e 2f 78 2d 77 77 77 2d 66 6f 72 6d ation/x-www-form
0070: 2d 75 72 6c 65 6e 63 6f 64 65 64 0d 0a 0d 0a    -urlencoded....
=> Send data, 3 bytes (0x3)
0000: c3 b8 78                                        ..x
",
    );
    assert_eq!(found.form, "curl --trace");
    assert_eq!(value(&found, "x-n"), Some("Bj\u{f8}rn".as_bytes()));
    assert_eq!(found.body, "\u{f8}x".as_bytes());
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

#[test]
fn one_of_several() {
    let trace = "=> Send header, 58 bytes (0x3a)
0000: GET /one HTTP/1.1
0013: Host: 127.0.0.1:18999
002a: Signature: s
0038: 
<= Recv header, 17 bytes (0x11)
0000: HTTP/1.1 200 OK
=> Send header, 42 bytes (0x2a)
0000: GET /two HTTP/2
0011: Host: 127.0.0.1:18999
0028: 
";
    let found = read(trace);
    assert_eq!(found.target, b"/one", "the last that is signed");
    assert!(found.notes[0].contains("request 1 of 2"));
    let second = request(trace.as_bytes(), Some(2)).unwrap();
    assert_eq!(second.target, b"/two");
    assert_eq!(second.wire, Wire::Frames(Some("127.0.0.1:18999".into())));
    assert!(value(&second, "host").is_none());
    for wanted in [0, 3] {
        assert_eq!(
            request(trace.as_bytes(), Some(wanted)).err(),
            Some(SavedFault::Entry { wanted, found: 2 })
        );
    }
}

fn har(request: &str) -> String {
    format!(r#"{{"log":{{"version":"1.2","entries":[{{"request":{request}}}]}}}}"#)
}

#[test]
fn hars() {
    let browser = har(
        r#"{"method":"POST","url":"https://bank.example/v1/x?a=%20#top","httpVersion":"http/2.0","bodySize":3,
            "headers":[{"name":":authority","value":"bank.example:8443"},{"name":":path","value":"/v1/x?a=%20"},{"name":"x-n","value":"b"}],
            "postData":{"mimeType":"application/json","text":"{ø"}}"#,
    );
    let found = read(&browser);
    assert_eq!(
        (found.form, &found.target[..]),
        ("HAR", &b"/v1/x?a=%20"[..])
    );
    assert_eq!(found.wire, Wire::Frames(Some("bank.example:8443".into())));
    assert_eq!(found.body, "{\u{f8}".as_bytes());
    assert!(found.notes.is_empty(), "{:?}", found.notes);

    let lines = read(&har(
        r#"{"method":"GET","url":"https://bank.example","httpVersion":"HTTP/1.1","bodySize":-1,"headers":[{"name":"X-N","value":"ø"}]}"#,
    ));
    assert_eq!(
        lines.wire,
        Wire::Lines("GET / HTTP/1.1\r\nX-N: \u{f8}\r\nhost: bank.example\r\n\r\n".into())
    );
    assert_eq!(lines.notes.len(), 1, "no Host: {:?}", lines.notes);
    assert_eq!(lines.doubts.headers, ["x-n"]);
    // Python writes a byte that is not UTF-8 as half a surrogate pair, and mitmproxy nothing else otherwise.
    let kept = read(
        r#"{"log":{"creator":{"name":"mitmproxy"},"entries":[{"request":{"method":"POST","url":"https://a/","httpVersion":"HTTP/1.1",
            "headers":[{"name":"Host","value":"a"},{"name":"X-N","value":"Bj\udcf8rn \u00f8 \\ud800 \ud83d\ude00"}],
            "postData":{"text":"\udcff"}}}]}}"#,
    );
    let sent = b"Bj\xf8rn \xc3\xb8 \\ud800 \xf0\x9f\x98\x80";
    assert_eq!(value(&kept, "x-n"), Some(&sent[..]));
    assert_eq!(
        (&kept.body[..], kept.doubts.headers.len()),
        (&b"\xff"[..], 0)
    );
    let half = read(&har(
        r#"{"method":"GET","url":"https://a/","headers":[{"name":"Host","value":"a"},{"name":"X","value":"\ud83d"}]}"#,
    ));
    assert_eq!(
        (half.doubts.headers.as_slice(), value(&half, "x")),
        (&["x".to_owned()][..], Some("\u{fffd}".as_bytes()))
    );

    let lost = read(&har(
        r#"{"method":"POST","url":"https://a/v1/x","httpVersion":"HTTP/1.1","bodySize":12,"headers":[{"name":"Host","value":"a"}]}"#,
    ));
    assert!(lost.notes[0].contains("has 0 bytes, and 12 were sent"));
    assert_eq!(lost.kept, KeptBody::Lost(Announced::Length(12)));
    let base64 = read(&har(
        r#"{"method":"POST","url":"https://a/v1/x","httpVersion":"h2","headers":[],"postData":{"text":"e30=","encoding":"base64"}}"#,
    ));
    assert_eq!(base64.body, b"{}");
}

#[test]
fn answers() {
    let found = response(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nDigest: x\r\n\r\n{}\n").unwrap();
    assert_eq!(
        (found.status.as_str(), &found.body[..]),
        ("HTTP/1.1 200 OK", &b"{}"[..])
    );
    assert_eq!(found.notes.len(), 1);
    let found = response(b"HTTP/2 204\ndate: x\n\n").unwrap();
    assert_eq!((found.status.as_str(), found.body.len()), ("HTTP/2 204", 0));
    assert_eq!(
        response(b"GET / HTTP/1.1\r\n\r\n").err(),
        Some(SavedFault::StatusLine)
    );
    for no_answer in [&b"\x00\x01\n\xff"[..], b"HTTP/1.1 100 Continue\r\n\r\n"] {
        assert_eq!(response(no_answer).err(), Some(SavedFault::StatusLine));
    }
    assert_eq!(response(b" \n").err(), Some(SavedFault::Empty));
}

#[test]
fn no_truncated_input_panics() {
    let inputs = [
        ASCII.to_owned(),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n0\r\n\r\n"),
        har("{}"),
        VERBOSE.to_owned(),
    ];
    for input in inputs {
        for end in 0..input.len() {
            let _ = request(&input.as_bytes()[..end], None);
            let _ = response(&input.as_bytes()[..end]);
        }
    }
}
