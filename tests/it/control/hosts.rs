//! The checks of Host and Origin: a browser on the machine, or one under DNS rebinding, cannot change anything
//! (control.hosts).

use super::bank::{Bank, PSU, Site, TPP, bank, exchange, fails, free_address, pending};
use crate::harness::{Answer, Gate, skipped};
use portvakt::config::{ControlAddress, Settings};
use serde_json::json;
use std::{
    net::{TcpListener, TcpStream},
    os::unix::net::UnixStream,
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const METRICS_TOKEN: &str = "fedcba9876543210fedcba9876543210";

/// A request with these lines behind the request line.
fn request(line: &str, headers: &[String], body: &str) -> Vec<u8> {
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    let kind = "Content-Type: application/json\r\n";
    format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\n{kind}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Binds the PSU, if the listener accepts these headers.
fn bind(bank: &Bank, headers: &[String]) -> Answer {
    let body = json!({ "tpp": TPP, "psu_id": PSU, "last_sca": "2026-12-01T00:00:00Z" });
    bank.send(&request("POST /psu/bind", headers, &body.to_string()))
}

/// Whether the PSU is known, asked with headers that the listener always accepts.
fn is_bound(bank: &Bank, own: &str) -> bool {
    let body = json!({ "tpp": TPP, "psu_id": PSU }).to_string();
    let asked = request("POST /psu/read", &[format!("Host: {own}")], &body);
    bank.send(&asked).status == 200
}

fn port(bank: &Bank) -> u16 {
    bank.address.tcp().unwrap().port()
}

#[test]
fn a_foreign_host_is_told_that_it_is_not_here() {
    let (_site, bank) = bank();
    let port = port(&bank);
    let foreign = [
        vec!["Host: evil.example".to_owned()],
        vec![format!("Host: evil.example:{port}")],
        vec![format!("Host: localhost.evil.example:{port}")],
        vec![format!("Host: localhost.:{port}")],
        vec![format!("Host: 127.0.0.1:{}", port - 1)],
        vec![format!("Host: 127.0.0.2:{port}")],
        vec![format!("Host: [::1]:{port}")],
        vec![format!("Host: user@localhost:{port}")],
        vec![format!("Host: localhost:+{port}")],
        vec!["Host: 127.1".to_owned()],
        vec!["Host: ".to_owned()],
        vec![],
        vec!["Host: localhost".to_owned(), "Host: localhost".to_owned()],
    ];
    for headers in &foreign {
        let answer = bind(&bank, headers);
        fails(&answer, 421, "BAD_REQUEST", "host-foreign");
        for line in ["POST /sca/read", "POST /reload", "GET /psu/read", "GET /x"] {
            let answer = bank.send(&request(line, headers, ""));
            assert_eq!(answer.status, 421, "{line} {headers:?}");
        }
        assert!(!is_bound(&bank, "localhost"), "{headers:?}");
        // Kubelets and load balancers use any Host.
        for path in [
            "/livez",
            "/readyz",
            "/openapi.json",
            "/.well-known/jwks.json",
        ] {
            let answer = bank.send(&request(&format!("GET {path}"), headers, ""));
            assert_eq!(answer.status, 200, "{path} {headers:?}");
        }
    }
    // The host of an absolute target overrides Host (RFC 9112, section 3.2.2).
    let whole = request(
        "POST http://evil.example/psu/bind",
        &["Host: localhost".to_owned()],
        "{}",
    );
    fails(&bank.send(&whole), 421, "BAD_REQUEST", "host-foreign");
}

#[test]
fn its_own_address_and_localhost_are_its_hosts() {
    let (_site, bank) = bank();
    let port = port(&bank);
    for own in [
        "localhost".to_owned(),
        "LOCALHOST".to_owned(),
        format!("localhost:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{port}"),
    ] {
        let answer = bind(&bank, &[format!("Host: {own}")]);
        assert_eq!(answer.status, 200, "{own}");
        assert!(is_bound(&bank, &own));
    }
}

#[test]
fn a_page_of_another_origin_gets_nothing_done() {
    let (_site, bank) = bank();
    let port = port(&bank);
    let host = format!("Host: localhost:{port}");
    for origin in [
        "https://evil.example".to_owned(),
        "http://localhost".to_owned(),
        "http://localhost:3000".to_owned(),
        format!("https://localhost:{port}"),
        format!("http://127.0.0.1:{port}"),
        format!("http://localhost:{port}/"),
        format!("http://localhost:{port}.evil.example"),
        "null".to_owned(),
        String::new(),
    ] {
        let headers = [host.clone(), format!("Origin: {origin}")];
        let answer = bind(&bank, &headers);
        fails(&answer, 403, "FORBIDDEN", "origin-foreign");
        let reload = bank.send(&request("POST /reload", &headers, ""));
        fails(&reload, 403, "FORBIDDEN", "origin-foreign");
        assert!(!is_bound(&bank, "localhost"), "{origin}");
    }
    let own = format!("Origin: http://localhost:{port}");
    let twice = [host.clone(), own.clone(), own.clone()];
    fails(&bind(&bank, &twice), 403, "FORBIDDEN", "origin-foreign");
    assert_eq!(bind(&bank, &[host, own]).status, 200);
}

#[test]
fn hosts_are_those_that_are_named() {
    let site = Site::new();
    let (address, key) = free_address();
    let named = "hosts: [Gateway.Internal, 'mapped.internal:9999', '10.0.0.7']";
    let bank = site.start(&format!("{key}, {named}"));
    let port = address.port();
    for own in [
        "gateway.internal".to_owned(),
        format!("GATEWAY.internal:{port}"),
        "mapped.internal:9999".to_owned(),
        format!("10.0.0.7:{port}"),
    ] {
        let answer = bind(&bank, &[format!("Host: {own}")]);
        assert_eq!(answer.status, 200, "{own}");
    }
    for foreign in [
        "localhost".to_owned(),
        format!("127.0.0.1:{port}"),
        "gateway.internal:9999".to_owned(),
        "mapped.internal".to_owned(),
        format!("mapped.internal:{port}"),
    ] {
        let answer = bind(&bank, &[format!("Host: {foreign}")]);
        fails(&answer, 421, "BAD_REQUEST", "host-foreign");
    }
}

#[test]
fn a_unix_socket_has_hosts_too() {
    let site = Site::new();
    let bank = site.start("socket: control.sock");
    let ControlAddress::Unix(path) = &bank.address else {
        panic!("a socket");
    };
    for (host, status) in [("localhost", 400), ("evil.example", 421)] {
        let asked = request("POST /sca/read", &[format!("Host: {host}")], "{}");
        let answer = exchange(UnixStream::connect(path).unwrap(), &asked);
        assert_eq!(answer.status, status, "{host}");
    }
}

#[test]
fn on_every_address_the_one_that_was_reached_is_its_own() {
    if TcpListener::bind("[::]:0").is_err() {
        return skipped("this machine has no IPv6");
    }
    let site = Site::new();
    site.write("token", TOKEN);
    let (address, _) = free_address();
    let port = address.port();
    let _bank = site.start(&format!("address: '[::]:{port}', token_file: token"));
    let ask = |host: String| {
        let headers = [
            format!("Host: {host}"),
            format!("Authorization: Bearer {TOKEN}"),
        ];
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        exchange(stream, &request("POST /sca/read", &headers, "{}")).status
    };
    assert_eq!(ask(format!("127.0.0.1:{port}")), 400);
    assert_eq!(ask(format!("127.0.0.2:{port}")), 421);
    assert_eq!(ask(format!("evil.example:{port}")), 421);
}

#[test]
fn metrics_have_a_credential_of_their_own() {
    let site = Site::new();
    site.write("token", TOKEN);
    site.write("metrics", METRICS_TOKEN);
    let ask = |bank: &Bank, path: &str, token: Option<&str>, host: &str| {
        let mut headers = vec![format!("Host: {host}")];
        headers.extend(token.map(|token| format!("Authorization: Bearer {token}")));
        bank.send(&request(path, &headers, "{}")).status
    };
    let (metrics, read) = ("GET /metrics", "POST /psu/read");
    let keys = free_address().1;
    let both = site.start(&format!(
        "{keys}, token_file: token, metrics_token_file: metrics"
    ));
    for (path, token, host, status) in [
        (metrics, None, "localhost", 401),
        (metrics, Some(TOKEN), "localhost", 401),
        (metrics, Some(METRICS_TOKEN), "localhost", 200),
        (metrics, Some(METRICS_TOKEN), "prometheus.example", 200),
        (read, Some(METRICS_TOKEN), "localhost", 401),
        (read, Some(TOKEN), "localhost", 400),
        (read, Some(TOKEN), "prometheus.example", 421),
    ] {
        assert_eq!(
            ask(&both, path, token, host),
            status,
            "{path} {token:?} {host}"
        );
    }
    drop(both);
    let own = site.start(&format!(
        "{}, metrics_token_file: metrics",
        free_address().1
    ));
    for (path, token, status) in [
        (metrics, None, 401),
        (metrics, Some(METRICS_TOKEN), 200),
        (read, None, 400),
    ] {
        assert_eq!(
            ask(&own, path, token, "localhost"),
            status,
            "{path} {token:?}"
        );
    }
    drop(own);
    // A page must not read the answers without credentials either.
    let (_site, open) = bank();
    for (host, status) in [("localhost", 200), ("evil.example", 421)] {
        assert_eq!(ask(&open, metrics, None, host), status, "{host}");
    }
}

/// SCA-10 to SCA-12, SCA-19: the listener refuses ambiguous JSON at every depth.
#[test]
fn doubled_members_are_refused_by_name() {
    let (_site, bank) = bank();
    let token = bank.token(&pending());
    let other = "0192f0c1-5a5b-7def-8000-ffffffffffff";
    let calls = [
        (
            "/psu/bind",
            format!(
                r#"{{"tpp":"{TPP}","psu_id":"{other}","psu_id":"{PSU}","last_sca":"2026-12-01T00:00:00Z"}}"#
            ),
            "psu_id",
        ),
        (
            "/psu/bind",
            format!(
                r#"{{"tpp":"{TPP}","psu_id":"{other}","psu\u005fid":"{PSU}","last_sca":"2026-12-01T00:00:00Z"}}"#
            ),
            "psu_id",
        ),
        (
            "/psu/withdraw",
            format!(r#"{{"tpp":"{TPP}","psu_id":"{PSU}","what":"session","what":"consents"}}"#),
            "what",
        ),
        (
            "/sca/complete",
            format!(
                r#"{{"request":"{token}","psu_id":"{PSU}","context":"PRIVATE","consent":null,"consent":true}}"#
            ),
            "consent",
        ),
        (
            "/sca/read",
            format!(r#"{{"request":"{token}","request":"{token}"}}"#),
            "request",
        ),
        (
            "/sca/read",
            format!(r#"{{"request":"{token}","more":[{{"psu_id":"{PSU}","psu_id":"{other}"}}]}}"#),
            "more.psu_id",
        ),
    ];
    for (path, body, member) in calls {
        let answer = bank.send(&request(
            &format!("POST {path}"),
            &["Host: localhost".to_owned()],
            &body,
        ));
        fails(&answer, 400, "FORMAT_ERROR", "member-invalid");
        let fault = &answer.json()["faults"][0];
        assert_eq!(fault["path"], member);
        assert_eq!(fault["text"], "it stands more than once");
        let text = String::from_utf8(answer.body).unwrap();
        assert!(!text.contains(PSU) && !text.contains(&token), "{text}");
        assert!(!is_bound(&bank, "localhost"));
    }
    // None of them spent the token.
    let body = json!({ "request": token, "psu_id": PSU, "context": "PRIVATE" });
    assert_eq!(bank.post("/sca/complete", &body).status, 200);
}

#[test]
fn a_query_says_nothing_here() {
    let (_site, bank) = bank();
    let body = json!({ "tpp": TPP, "psu_id": PSU, "last_sca": "2026-12-01T00:00:00Z" }).to_string();
    let host = ["Host: localhost".to_owned()];
    for query in ["?psu_id=0192f0c1-5a5b-7def-8000-ffffffffffff", "?"] {
        let answer = bank.send(&request(&format!("POST /psu/bind{query}"), &host, &body));
        fails(&answer, 400, "BAD_REQUEST", "query-unexpected");
        assert!(!is_bound(&bank, "localhost"));
        let answer = bank.send(&request(&format!("POST /reload{query}"), &host, ""));
        fails(&answer, 400, "BAD_REQUEST", "query-unexpected");
    }
    for (query, status) in [("", 200), ("?local=1", 200), ("?", 400), ("?local", 400)] {
        let answer = bank.send(&request(&format!("GET /readyz{query}"), &host, ""));
        assert_eq!(answer.status, status, "{query}");
    }
}

#[test]
fn a_reload_takes_no_members_and_no_form() {
    let gate = Gate::builder().with_a_file().start();
    let control = gate.control_address();
    let reload = |kind: &str, body: &str| {
        let length = body.len();
        let asked = format!(
            "POST /reload HTTP/1.1\r\nHost: {control}\r\nConnection: close\r\n{kind}Content-Length: {length}\r\n\r\n{body}"
        );
        exchange(TcpStream::connect(control).unwrap(), asked.as_bytes()).status
    };
    let json = "Content-Type: application/json\r\n";
    assert_eq!(reload("", ""), 200);
    assert_eq!(reload(json, "{}"), 200);
    assert_eq!(reload("", "{}"), 415);
    assert_eq!(reload("Content-Type: text/plain\r\n", "{}"), 415);
    assert_eq!(reload(&json.repeat(2), "{}"), 415);
    assert_eq!(reload(json, r#"{"a":1}"#), 400);
    assert!((gate.metric_at_rest("portvakt_reloads_total", &["taken"]) - 2.0).abs() < 0.1);
}

/// CRT-9: in production every client authenticates, on loopback too.
#[test]
fn production_is_not_open_on_loopback() {
    let site = Site::new();
    site.write("token", TOKEN);
    let faults = |control: &str| {
        let yaml = Site::yaml(control).replace("environment: sandbox", "environment: production");
        let faults = Settings::parse("gateway.yaml", &yaml, site.path()).unwrap_err();
        let faults = faults.iter().map(ToString::to_string);
        faults
            .filter(|fault| fault.contains("control"))
            .collect::<Vec<_>>()
    };
    let open = faults("address: '127.0.0.1:9100'");
    assert_eq!(open.len(), 1, "{open:?}");
    assert!(
        open[0].starts_with("gateway.yaml:3:11: control.address: ")
            && open[0].contains("token_file")
            && open[0].contains("socket"),
        "{open:?}"
    );
    assert_eq!(faults("").len(), 1);
    for guarded in ["token_file: token", "socket: control.sock"] {
        assert_eq!(faults(guarded), [""; 0], "{guarded}");
    }
}

#[test]
fn readiness_has_a_credential_of_its_own() {
    let site = Site::new();
    site.write("token", TOKEN);
    site.write("metrics", METRICS_TOKEN);
    let readiness = "abcdef0123456789abcdef0123456789";
    site.write("readiness", readiness);
    let bank = site.start(&format!(
        "{}, token_file: token, metrics_token_file: metrics, readiness_token_file: readiness",
        free_address().1
    ));
    let (ready, live) = ("GET /readyz", "GET /livez");
    for (path, token, status) in [
        (ready, None, 401),
        (ready, Some(TOKEN), 401),
        (ready, Some(METRICS_TOKEN), 401),
        (ready, Some(readiness), 200),
        (live, None, 200),
        ("GET /metrics", Some(readiness), 401),
        ("GET /openapi.json", Some(readiness), 401),
        ("POST /psu/read", Some(readiness), 401),
    ] {
        // A balancer uses any host.
        let host = if path == ready {
            "balancer"
        } else {
            "localhost"
        };
        let mut headers = vec![format!("Host: {host}")];
        headers.extend(token.map(|token| format!("Authorization: Bearer {token}")));
        let answer = bank.send(&request(path, &headers, "{}"));
        assert_eq!(answer.status, status, "{path} {token:?}");
    }
    site.write("same", METRICS_TOKEN);
    let same = format!(
        "{}, metrics_token_file: metrics, readiness_token_file: same",
        free_address().1
    );
    site.write("gateway.yaml", Site::yaml(&same));
    let refused = portvakt::config::Settings::load(&site.path().join("gateway.yaml"));
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("readiness_token_file: it is the token of another key"),
        "{said}"
    );
}
