//! Changes of a request before it is signed, and of its bytes after that.

use crate::harness::{Call, Dice, chunked};

/// A change before the request is signed.
pub(super) type Recipe = fn(Call) -> Call;

pub(super) const RECIPES: &[(&str, Recipe)] = &[
    ("as-it-is", |call| call),
    ("present", |call| call.present()),
    ("late", |call| call.off_by(-90)),
    ("early", |call| call.off_by(75)),
    ("just-in-time", |call| call.off_by(-20)),
    ("target-signed", |call| {
        call.signing(&[
            "(request-target)",
            "date",
            "digest",
            "x-request-id",
            "psu-id",
            "tpp-redirect-uri",
        ])
    }),
    ("date-only", |call| call.signing(&["date"])),
    ("host-signed", |call| {
        call.signing(&[
            "(request-target)",
            "host",
            "date",
            "x-request-id",
            "psu-id",
            "tpp-redirect-uri",
        ])
    }),
    ("unknown-listed", |call| {
        call.signing(&["date", "x-nothing"])
    }),
    ("other-serial", |call| call.key_id("SN=00AB12,CA=CN=x")),
    ("no-key", |call| call.key_id("serial 12")),
    ("no-request-id", |call| call.without("X-Request-ID")),
    ("no-redirect", |call| call.without("TPP-Redirect-URI")),
    ("no-psu", |call| call.without("PSU-ID")),
    ("psu-malformed", |call| call.with("PSU-ID", "me")),
    ("psu-empty", |call| call.with("PSU-ID", "")),
    ("address-malformed", |call| {
        call.with("PSU-IP-Address", "192.0.2.300")
    }),
    ("address-v6", |call| {
        call.with("PSU-IP-Address", "2001:db8::1")
    }),
    ("port-malformed", |call| call.with("PSU-IP-Port", "70000")),
    ("redirect-http", |call| {
        call.with("TPP-Redirect-URI", "http://tpp.example/")
    }),
    ("redirect-loopback", |call| {
        call.with("TPP-Redirect-URI", "http://127.0.0.1/")
    }),
    ("context", |call| call.with("PSU-Context", "PRIVATE")),
    ("context-unknown", |call| call.with("PSU-Context", "OTHER")),
    ("fix-unknown", |call| {
        call.with("x-accept-fix", "no-such-fix")
    }),
    ("html", |call| call.with("Accept", "text/html")),
    ("any", |call| {
        call.with("Accept", "*/*")
            .with("User-Agent", "tpp/1.0 (x; y)")
    }),
    ("agent", |call| call.with("User-Agent", "curl/7.88.1")),
    ("nominates", |call| call.with("Connection", "PSU-ID")),
    ("host-odd", |call| call.with("Host", "local_host:x")),
    ("host-other", |call| call.with("Host", "localhost:9443")),
    ("form", |call| call.with("Content-Type", "text/plain")),
    ("coded", |call| call.with("Content-Encoding", "gzip")),
    ("nowhere", |call| call.at("/v1/nothing.here")),
    ("slash", |call| call.at("/v1/accounts/")),
    ("dots", |call| call.at("/v1/accounts/../accounts")),
    ("encoded", |call| call.at("/v1/accounts/a%2Fb/balances")),
    ("product", |call| call.at("/v1/payments/no-such-product")),
    ("query", |call| {
        call.at("/v1/accounts/a.b/transactions?dateFrom=2026-01-01&bookingStatus=booked")
    }),
    ("query-malformed", |call| {
        call.at("/v1/accounts/42/transactions?dateFrom=yesterday&bookingStatus=booked")
    }),
    ("query-missing", |call| {
        call.at("/v1/accounts/42/transactions")
    }),
    ("chunks", |call| call.chunked()),
    ("json-broken", |call| call.json("{")),
    ("json-wrong", |call| {
        call.json(r#"{"instructedAmount":{"amount":"x","currency":"NOK"}}"#)
    }),
    ("json-letters", |call| {
        call.json("{\"instructedAmount\":{\"amount\":\"1.00\",\"currency\":\"NOK\"},\"creditorName\":\"Bj\u{f8}rn \u{e5}\"}")
    }),
    ("body-empty", |call| call.json("")),
    ("body-binary", |call| {
        call.with("Content-Type", "application/json")
            .body(b"\xff\xfe{.}\x00\r\n.")
    }),
];

/// A head and a body after they were signed.
pub(super) struct Draft {
    pub(super) lines: Vec<Vec<u8>>,
    pub(super) body: Vec<u8>,
    pub(super) framed: Vec<u8>,
}

impl Draft {
    fn add(&mut self, line: &[u8]) {
        self.lines.push(line.to_vec());
    }

    fn line(&mut self, name: &str) -> Option<&mut Vec<u8>> {
        let name = format!("{name}:").to_ascii_lowercase().into_bytes();
        let is_it = |line: &&mut Vec<u8>| line.to_ascii_lowercase().starts_with(&name);
        self.lines.iter_mut().find(is_it)
    }

    fn any(&mut self, dice: &mut Dice) -> &mut Vec<u8> {
        let at = 1 + dice.below(self.lines.len() as u64 - 1) as usize;
        &mut self.lines[at]
    }

    /// Frames the changed body.
    fn resize(&mut self) {
        if self.line("transfer-encoding").is_some() {
            self.framed = chunked(&self.body);
        }
        let length = format!("Content-Length: {}", self.body.len()).into_bytes();
        if let Some(line) = self.line("content-length") {
            *line = length;
            self.framed = self.body.clone();
        }
    }

    fn request_line(&mut self, from: &str, to: &[u8]) {
        let line = &mut self.lines[0];
        let at = line
            .windows(from.len())
            .position(|window| window == from.as_bytes());
        if let Some(at) = at {
            line.splice(at..at + from.len(), to.iter().copied());
        }
    }
}

/// A change of the bytes after the request was signed.
pub(super) type Change = fn(&mut Draft, &mut Dice);

/// The changes, and whether a proxy still reads the request.
pub(super) const CHANGES: &[(&str, bool, Change)] = &[
    ("control", true, |draft, dice| {
        let byte = [1, 7, 8, 11, 27, 31, 127][dice.below(7) as usize];
        draft.add(&[b"X-Odd: a", &[byte][..], b"b"].concat());
    }),
    ("control-somewhere", true, |draft, dice| {
        let byte = [1, 7, 11, 27, 127][dice.below(5) as usize];
        let line = draft.any(dice);
        let end = line.len();
        line.insert(end, byte);
        line.push(b'x');
    }),
    ("letter", true, |draft, _| {
        draft.add(b"X-Navn: Bj\xc3\xb8rn")
    }),
    ("letter-latin1", true, |draft, _| {
        draft.add(b"X-Navn: Bj\xf8rn \xe5")
    }),
    ("letter-signed", true, |draft, _| {
        if let Some(line) = draft.line("tpp-redirect-uri") {
            line.extend_from_slice(b"\xf8");
        }
    }),
    ("letter-in-id", true, |draft, _| {
        if let Some(line) = draft.line("x-request-id") {
            line.extend_from_slice(b"\xc3\xb8");
        }
    }),
    ("key-letters-utf8", true, |draft, _| {
        raw_letters(draft, |byte| vec![byte])
    }),
    ("key-letters-latin1", true, |draft, _| {
        raw_letters(draft, |byte| match byte {
            0xC3 => vec![],
            second => vec![second + 0x40],
        });
    }),
    ("tab", true, |draft, _| draft.add(b"X-Tab: a\tb")),
    ("blanks-behind", true, |draft, dice| {
        draft.any(dice).extend_from_slice(b" \t  ")
    }),
    ("blanks-before", true, |draft, dice| {
        let line = draft.any(dice);
        let colon = line.iter().position(|byte| *byte == b':').unwrap();
        line.splice(colon + 1..colon + 1, *b"  \t");
    }),
    ("no-blank", true, |draft, _| {
        for line in &mut draft.lines[1..] {
            let colon = line.iter().position(|byte| *byte == b':').unwrap();
            if line.get(colon + 1) == Some(&b' ') {
                line.remove(colon + 1);
            }
        }
    }),
    ("twice", true, |draft, dice| {
        let line = draft.any(dice).clone();
        draft.add(&line);
    }),
    ("signature-twice", true, |draft, _| {
        let line = draft.line("signature").unwrap().clone();
        draft.add(&line);
    }),
    ("unsigned-twice", true, |draft, _| {
        draft.add(b"X-More: a.b");
        draft.add(b"x-more: c");
    }),
    ("reversed", true, |draft, _| draft.lines[1..].reverse()),
    ("shuffled", true, |draft, dice| {
        for at in (2..draft.lines.len()).rev() {
            draft.lines.swap(at, 1 + dice.below(at as u64) as usize);
        }
    }),
    ("lower-case", true, |draft, _| {
        for line in &mut draft.lines[1..] {
            let colon = line.iter().position(|byte| *byte == b':').unwrap();
            line[..colon].make_ascii_lowercase();
        }
    }),
    ("upper-case", true, |draft, _| {
        for line in &mut draft.lines[1..] {
            let colon = line.iter().position(|byte| *byte == b':').unwrap();
            line[..colon].make_ascii_uppercase();
        }
    }),
    ("long", true, |draft, dice| {
        let length = 3_000 + dice.below(50_000) as usize;
        draft.add(&[b"X-Long: ".to_vec(), vec![b'x'; length]].concat());
    }),
    ("many", true, |draft, dice| {
        for number in 0..60 + dice.below(90) {
            draft.add(format!("X-{number}: y").as_bytes());
        }
    }),
    ("body-bent", true, |draft, _| {
        if let Some(byte) = draft.body.last_mut() {
            *byte ^= 1;
        }
        draft.resize();
    }),
    ("body-cut", true, |draft, _| {
        draft.body.pop();
        draft.resize();
    }),
    ("body-line", true, |draft, _| {
        if !draft.body.is_empty() {
            draft.body.extend_from_slice(b"\r\n");
        }
        draft.resize();
    }),
    ("http-1.0", true, |draft, _| {
        draft.request_line("HTTP/1.1", b"HTTP/1.0")
    }),
    ("expects", true, |draft, _| draft.add(b"Expect: 200-ok")),
    ("continues", true, |draft, _| {
        draft.add(b"Expect: 100-continue")
    }),
    ("host-twice", true, |draft, _| draft.add(b"Host: localhost")),
    ("no-host", true, |draft, _| {
        draft
            .lines
            .retain(|line| !line.to_ascii_lowercase().starts_with(b"host:"));
    }),
    ("signature-bent", true, |draft, _| {
        let line = draft.line("signature").unwrap();
        let at = line.len() - 20;
        line[at] = if line[at] == b'A' { b'B' } else { b'A' };
    }),
    ("certificate-cut", true, |draft, _| {
        let line = draft.line("tpp-signature-certificate").unwrap();
        line.truncate(200);
    }),
    ("certificate-gone", true, |draft, _| {
        draft
            .lines
            .retain(|line| !line.to_ascii_lowercase().starts_with(b"tpp-sig"));
    }),
    ("digest-other", true, |draft, _| {
        draft.add(b"Digest: MD5=AAAA")
    }),
    ("target-letter", true, |draft, _| {
        draft.request_line(" /v1/", b" /v1/\xf8")
    }),
    ("target-dot", true, |draft, _| {
        draft.request_line(" HTTP/", b"?x=a.b HTTP/")
    }),
    ("target-fragment", true, |draft, _| {
        draft.request_line(" HTTP/", b"#top HTTP/")
    }),
    // No proxy records these.
    ("fold", false, |draft, _| draft.add(b"X-Fold: a\r\n b")),
    ("bare-lf", false, |draft, _| draft.add(b"X-A: b\nX-B: c")),
    ("bare-cr", false, |draft, _| draft.add(b"X-A: b\rX-B: c")),
    ("space-before-colon", false, |draft, _| {
        draft.add(b"X-A : b")
    }),
    ("no-colon", false, |draft, _| draft.add(b"nothing")),
    ("name-odd", false, |draft, _| draft.add(b"X(y): z")),
    ("two-framings", false, |draft, _| {
        draft.add(b"Content-Length: 5");
        draft.add(b"Transfer-Encoding: chunked");
        draft.framed = chunked(&draft.body);
    }),
    ("chunks-odd", false, |draft, _| {
        if !draft.body.is_empty() {
            draft
                .lines
                .retain(|line| !line.to_ascii_lowercase().starts_with(b"content-length"));
            draft.add(b"Transfer-Encoding: chunked");
            draft.framed = b"x\r\n{}\r\n0\r\n\r\n".to_vec();
        }
    }),
];

/// Replaces the escapes of the issuer's letters in keyId, which no signature covers, by their bytes.
fn raw_letters(draft: &mut Draft, as_bytes: fn(u8) -> Vec<u8>) {
    let line = draft.line("signature").unwrap();
    let mut written = Vec::new();
    let mut rest = line.as_slice();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped.filter(|_| *byte == b'\\') {
            Some(letter) => {
                written.extend(as_bytes(letter));
                rest = &after[2..];
            }
            None => {
                written.push(*byte);
                rest = after;
            }
        }
    }
    *line = written;
}
