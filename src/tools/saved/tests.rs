//! Tables of the three formats of a saved request; the traces are from curl 7.88.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table is as long as its cases"
)]

use super::{SavedFault, SavedRequest, Wire, request, response};

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
        ("GET  / HTTP/1.1\r\n\r\n", RequestLine),
        ("G(T / HTTP/1.1\r\n\r\n", RequestLine),
        ("> GET / HTTP/1.1\r\n", Verbose),
        (
            "*   Trying 192.0.2.1:443...\n* Connected\n> GET /v1/accounts HTTP/2\r\n> Host: a\n",
            Verbose,
        ),
        ("* not curl's\n> quoted", RequestLine),
        ("HTTP/1.1 200 OK\r\n\r\n", RequestLine),
        (
            "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            header(
                3,
                "it continues the line before, which HTTP does not allow any more",
            ),
        ),
        (
            "GET / HTTP/1.1\nHost : a\n\n",
            header(2, "white space stands before the colon"),
        ),
        ("GET / HTTP/1.1\nHost\n\n", header(2, "it has no colon")),
        (
            "GET / HTTP/1.1\nH(: a\n\n",
            header(2, "its name is not one that a header can have"),
        ),
        (
            "GET / HTTP/1.1\nH: a\u{1}\n\n",
            header(2, "its value holds a control character"),
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
fn ambiguous_dots_are_noted() {
    let digest = "Digest: SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    let head = format!(
        "POST /v1/x HTTP/1.1\n0015: {digest}\n{:04x}: \n",
        0x15 + digest.len() + 2
    );
    let length = 0x15 + digest.len() + 4;
    let trace = format!(
        "=> Send header, {length} bytes (0x0)\n0000: {head}=> Send data, 3 bytes (0x3)\n0000: a..\n"
    );
    let found = read(&trace);
    assert_eq!(found.body, b"a..");
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("2 of its bytes are dots")),
        "{:?}",
        found.notes
    );
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
        Wire::Lines("GET / HTTP/1.1\r\nx-n: \u{f8}\r\nhost: bank.example\r\n\r\n".into())
    );
    assert_eq!(
        lines.notes.len(),
        2,
        "no Host, and a letter: {:?}",
        lines.notes
    );

    let lost = read(&har(
        r#"{"method":"POST","url":"https://a/v1/x","httpVersion":"HTTP/1.1","bodySize":12,"headers":[{"name":"Host","value":"a"}]}"#,
    ));
    assert!(lost.notes[0].contains("has 0 bytes, and 12 were sent"));
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
    ];
    for input in inputs {
        for end in 0..input.len() {
            let _ = request(&input.as_bytes()[..end], None);
            let _ = response(&input.as_bytes()[..end]);
        }
    }
}
