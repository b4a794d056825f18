//! The filtering of the core's answers: FWD-7.

use crate::harness::{Answer, Call, Gate, Protocol, Reply, accepted};

/// The caller's answer for a core's answer with these header lines, over each protocol.
fn answers(gate: &Gate, lines: &str, body: &str) -> Vec<Answer> {
    let length = body.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{lines}\r\n\r\n{body}")
        .into_bytes();
    gate.upstream().reply(Reply::Raw(answer));
    let passages = accepted(gate, &Call::plain());
    let answers = passages.into_iter().map(|passage| passage.answer);
    answers.collect()
}

//= FWD-7 accepted
#[test]
fn what_is_the_cores_own_business_ends_at_the_gateway() {
    let gate = Gate::builder()
        .upstream("answer_headers: [X-Kept, X-Hop]")
        .start();
    let lines = [
        "Connection: close, X-Hop, ETag",
        "Connection: x-other-hop",
        "X-Hop: 1",
        "x-other-hop: 1",
        "Keep-Alive: timeout=5",
        "Proxy-Authenticate: Basic",
        "Proxy-Connection: close",
        "TE: trailers",
        "Trailer: X-Sum",
        "Upgrade: h2c",
        "Set-Cookie: session=1",
        "Set-Cookie: other=1",
        "Set-Cookie2: x=1",
        "Server: Tomcat/9",
        "Via: 1.1 core-7",
        "X-Powered-By: Servlet",
        "Digest: SHA-256=AAAA",
        "Signature: keyId=\"core\"",
        "TPP-Signature-Certificate: AAAA",
        "Gateway-Sca: session",
        "Gateway-Anything: x",
        "Forwarded: for=10.0.0.9",
        "X-Forwarded-For: 10.0.0.9",
        "X-Backend-Server: core-7",
        "X-Request-ID: hop",
        "WWW-Authenticate: Basic realm=\"hop\"",
        "Warning: 199 hop \"stale\"",
        "Warning: 299 - \"fine\"",
        "ASPSP-SCA-Approach: REDIRECT",
        "ETag: \"7\"",
        "X-Kept: yes",
        "Content-Language: nb",
        "Content-Type: application/json",
        "Retry-After: 7",
    ];
    let may_stay = [
        "x-kept",
        "aspsp-sca-approach",
        "content-language",
        "content-type",
        "retry-after",
    ];
    let of_the_gateway = [
        "content-length",
        "date",
        "cache-control",
        "x-request-id",
        "connection",
        "strict-transport-security",
    ];
    for answer in answers(&gate, &lines.join("\r\n"), "{}") {
        for name in may_stay {
            assert!(answer.header(name).is_some(), "{name}");
        }
        for (name, value) in &answer.headers {
            let name = name.to_ascii_lowercase();
            let known = may_stay.iter().chain(&of_the_gateway);
            assert!(
                known.into_iter().any(|known| *known == name),
                "{name}: {value}"
            );
            assert!(
                !value.to_ascii_lowercase().contains("hop"),
                "{name}: {value}"
            );
        }
        assert_eq!(answer.body, b"{}");
    }
}

//= FWD-7 accepted
#[test]
fn addresses_that_lead_into_the_banks_network() {
    let gate = Gate::builder().upstream("host: core.bank.internal").start();
    let core = gate.upstream().address();
    let path = "/v1/payments/norwegian-domestic-credit-transfers/7/status?x=1";
    for host in [
        format!("http://{core}"),
        "https://core.bank.internal".into(),
        "//CORE.bank.internal:8080".into(),
        "http://localhost".into(),
        "http://10.0.0.5:9000".into(),
        "http://[fe80::1]".into(),
    ] {
        for name in ["Location", "Content-Location"] {
            for answer in answers(&gate, &format!("{name}: {host}{path}"), "{}") {
                assert_eq!(answer.header(name), Some(path), "{host}");
            }
            for elsewhere in ["/admin", "", "//evil.example/v1/accounts"] {
                for answer in answers(&gate, &format!("{name}: {host}{elsewhere}"), "{}") {
                    assert_eq!(answer.header(name), None, "{host}{elsewhere}");
                }
            }
        }
        let links = format!("Link: <{host}{path}>; rel=\"status\", <{host}/x>; rel=\"x\", </y>");
        for answer in answers(&gate, &links, "{}") {
            let expected = format!("<{path}>; rel=\"status\", </y>");
            assert_eq!(answer.header("link"), Some(expected.as_str()));
        }
    }
    for kept in [
        "Location: https://bank.example/sca?request=x",
        "Location: /v1/accounts",
        "Content-Location: /nowhere",
        "Link: <https://bank.example/docs>; rel=\"help\"",
    ] {
        let (name, value) = kept.split_once(": ").unwrap();
        for answer in answers(&gate, kept, "{}") {
            assert_eq!(answer.header(name), Some(value));
        }
    }
    let counted = |place: &str, done: &str| {
        let labels = [format!("place=\"{place}\""), format!("done=\"{done}\"")];
        let labels = labels.each_ref().map(String::as_str);
        gate.metric_at_rest("portvakt_inner_addresses_total", &labels)
    };
    // Six hosts, over two protocols.
    assert_eq!(counted("location", "made-relative"), 12.0);
    assert_eq!(counted("location", "removed"), 36.0);
    assert_eq!(counted("content-location", "removed"), 36.0);
    assert_eq!(counted("link", "made-relative"), 12.0);
    assert_eq!(counted("link", "removed"), 12.0);
}

/// `upstream.host` and the addresses of the endpoints, wherever they stand.
//= FWD-7 accepted
#[test]
fn the_cores_own_hosts_in_other_headers() {
    let gate = Gate::builder()
        .upstream("host: core.bank.internal")
        .upstream("answer_headers: [X-Bank-Notice]")
        .start();
    let own = format!("http://{}/", gate.upstream().address());
    let lines = [
        "ASPSP-Warning: 199 core.bank.internal:8080 \"stale\"".to_owned(),
        "ASPSP-Realm: Basic realm=\"CORE.bank.internal\"".into(),
        "Content-Disposition: attachment; filename=\"core.bank.internal\"".into(),
        "ETag: \"core.bank.internal\"".into(),
        "Retry-After: core.bank.internal".into(),
        "Sunset: core.bank.internal".into(),
        "Allow: core.bank.internal".into(),
        "ASPSP-Node: core.bank.internal".into(),
        "Content-Type: application/json; host=core.bank.internal".into(),
        format!("X-Bank-Notice: {own}"),
        "Location: https://bank.example/?u=http%3A%2F%2Fcore.bank.internal%3A8080".into(),
        "Link: </v1/x>; title=\"at core.bank.internal\"".into(),
        "Location: http://core01/".into(),
    ];
    for (index, line) in lines.iter().enumerate() {
        let name = line.split(':').next().unwrap();
        for answer in answers(&gate, line, "{}") {
            assert_eq!(answer.header(name), None, "{line}");
            assert_eq!(answer.body, b"{}");
        }
        let counted = gate.metric_at_rest("portvakt_inner_addresses_total", &["done=\"removed\""]);
        assert_eq!(counted, 2.0 * (index + 1) as f64, "{line}");
    }
    let other = gate.metric_at_rest("portvakt_inner_addresses_total", &["place=\"other\""]);
    assert_eq!(other, 20.0);
    for answer in answers(
        &gate,
        "ASPSP-Warning: 199 - \"stale\"\r\nETag: \"core\"",
        "{}",
    ) {
        assert_eq!(answer.header("aspsp-warning"), Some("199 - \"stale\""));
        assert_eq!(answer.header("etag"), Some("\"core\""));
    }
}

/// Addresses of the bank's network that are not the core's own, in every header that may pass, in each form.
//= FWD-7 accepted
#[test]
fn inner_addresses_in_other_headers() {
    const NAMES: [&str; 6] = [
        "ASPSP-Node",
        "ASPSP-SCA-Approach",
        "X-Bank-Notice",
        "ETag",
        "Content-Disposition",
        "Retry-After",
    ];
    let gate = Gate::builder()
        .upstream("answer_headers: [X-Bank-Notice]")
        .start();
    let counted = || gate.metric_at_rest("portvakt_inner_addresses_total", &["other", "removed"]);
    for (index, value) in [
        "10.0.0.5",
        "192.168.1.7:8443",
        "a, 172.16.3.4;q=1",
        "\"127.0.0.1\"",
        "http://169.254.169.254/latest",
        "see <https://user@10.0.0.5:8080/x>",
        "[fe80::1]:8080",
        "for=\"[fd00::7]\"",
        "::1",
        "::ffff:10.0.0.5",
        "http%3A%2F%2F10%2E0%2E0%2E5%2F",
        "http://127.1/",
        "http://core01:8080/",
        "localhost:8080",
    ]
    .into_iter()
    .enumerate()
    {
        let name = NAMES[index % NAMES.len()];
        let before = counted();
        for answer in answers(&gate, &format!("{name}: {value}"), "{}") {
            assert_eq!(answer.header(name), None, "{name}: {value}");
            assert_eq!(answer.body, b"{}");
        }
        assert_eq!(counted(), before + 2.0, "{name}: {value}");
    }
    let before = counted();
    for value in [
        "93.184.216.34:8080",
        "https://bank.example/a?b=c",
        "[2a00:1450::1]:8443",
        "1.21.6",
        "core",
    ] {
        for answer in answers(&gate, &format!("ASPSP-Node: {value}"), "{}") {
            assert_eq!(answer.header("aspsp-node"), Some(value));
        }
    }
    assert_eq!(counted(), before);
}

/// A body is forwarded unchanged: it may be signed, or only resemble a link.
//= FWD-7 accepted
#[test]
fn links_in_a_body_are_counted() {
    let gate = Gate::start();
    let core = gate.upstream().address();
    let counted = || {
        gate.metric_at_rest(
            "portvakt_inner_addresses_total",
            &["place=\"body\"", "passed"],
        )
    };
    for (href, count) in [
        (format!("http://{core}/v1/accounts"), 2.0),
        ("http:\\/\\/10.0.0.5\\/v1\\/accounts".into(), 4.0),
        ("/v1/accounts".into(), 4.0),
        ("https://bank.example/".into(), 4.0),
    ] {
        let body = format!(r#"{{"_links":{{"self":{{"href":"{href}"}}}}}}"#);
        for answer in answers(&gate, "Content-Type: application/json", &body) {
            assert_eq!(answer.body, body.as_bytes());
        }
        assert_eq!(counted(), count, "{href}");
    }
}

/// The framing of the answer is the gateway's own.
//= FWD-7 accepted
#[test]
fn answers_are_framed_anew() {
    let gate = Gate::start();
    let table: [(&str, u16, Option<&str>, &[u8]); 6] = [
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            200,
            Some("2"),
            b"{}",
        ),
        ("HTTP/1.0 200 OK\r\n\r\n{}", 200, None, b"{}"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}",
            200,
            Some("2"),
            b"{}",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
            200,
            Some("2"),
            b"{}",
        ),
        (
            "HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n",
            204,
            None,
            b"",
        ),
        (
            "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n",
            204,
            None,
            b"",
        ),
    ];
    for (answer, status, length, body) in table {
        gate.upstream().reply(Reply::Raw(answer.into()));
        for protocol in Protocol::ALL {
            let found = gate.send(&Call::plain(), protocol);
            assert_eq!(
                (found.status, found.body.as_slice()),
                (status, body),
                "{answer}"
            );
            if protocol == Protocol::Http1 {
                assert_eq!(found.header("content-length"), length, "{answer}");
            }
        }
    }
}
