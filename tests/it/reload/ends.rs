//! Each certificate that the gateway uses shows its end, and `check` warns before it.

use super::configure;
use crate::harness::{Connection, Gate, Tls, pki, world, write_private};
use portvakt::{
    clock::{Clock, Timestamp},
    config::Settings,
};
use std::fs;
use time::{Duration, OffsetDateTime};

const DAY: u64 = 86_400;

/// The keys of files with certificates: what they hold ends after this number of days.
const FILES: [(&str, u64); 8] = [
    ("listener.certificate", 50),
    ("response_signing.certificate", 51),
    ("control.certificate", 52),
    ("control.client_ca", 53),
    ("upstreams.core.tls.certificate", 54),
    ("upstreams.core.tls.ca", 55),
    ("trust.intermediates", 56),
    ("listener.client_anchors", 57),
];

/// A certificate that ends after so many days, and its key.
fn ending(days: u64) -> pki::Issued {
    let now = OffsetDateTime::now_utc();
    let key = pki::Key::RsaPem(world().tpp_key.clone());
    let end = now + Duration::days(days.try_into().unwrap());
    let issued = world().tls_ca.issue_server(&key, now - Duration::DAY, end);
    issued.unwrap()
}

/// A gate whose file of each key ends by [`FILES`]. The CA that is sent with the listener's certificate ends before that.
fn gate() -> Gate {
    let mut gate = Gate::builder().with_a_file();
    for (key, days) in FILES {
        let name = key.rsplit('.').next().unwrap();
        let file = match name {
            "certificate" => format!("{}.pem", key.split('.').next().unwrap()),
            "intermediates" | "client_anchors" => format!("{name}/ends.pem"),
            other => format!("{other}.pem"),
        };
        gate = gate.file(&file, ending(days).pem);
    }
    let listener = [ending(70).pem, ending(50).pem].concat();
    gate.file("listener.pem", listener)
        .private_file("own.key", world().tpp_key.clone())
        .listener("client_anchors: client_anchors")
        .groups("{core: {endpoints: [{address: '127.0.0.1:9'}], tls: {ca: ca.pem, certificate: upstreams.pem, key: own.key}}}")
        .line("response_signing: {certificate: response_signing.pem, key: own.key}")
        .start()
}

/// The configuration with TLS of the control listener, and with the certificates of this test.
fn yaml(gate: &Gate, client_ca: &str) -> String {
    let control = format!("control:\n  certificate: control.pem\n  key: own.key\n{client_ca}");
    gate.yaml().replace("control:\n", &control).replace(
        "certificate: server.pem\n  key: server.key",
        "certificate: listener.pem\n  key: own.key",
    )
}

fn warnings(gate: &Gate, now: Timestamp) -> Vec<String> {
    let settings = Settings::load(&gate.folder().join("gateway.yaml"));
    let warnings = settings.unwrap().reloadable.warnings;
    let warnings = warnings.iter().filter_map(|warning| warning.at(now));
    warnings.map(|warning| warning.to_string()).collect()
}

//= CRT-8 accepted
#[test]
fn no_certificate_ends_unseen() {
    let gate = gate();
    configure(&gate, &yaml(&gate, "  client_ca: client_ca.pem\n"));
    let now = Clock::System.now();
    let about = |warnings: &[String], key: &str| {
        let place = format!(": {key}: ");
        let about = warnings.iter();
        let about = about.filter(|warning| warning.contains(&place) && warning.contains(" end"));
        about.count()
    };
    for (key, days) in FILES {
        let days_before = |before: u64| Timestamp::from_unix(now.unix() + (days - before) * DAY);
        let [early, late] = [31, 29].map(|before| warnings(&gate, days_before(before)));
        assert_eq!(about(&early, key), 0, "{key}: {early:?}");
        assert_eq!(about(&late, key), 1, "{key}: {late:?}");
    }
    // Callers without a certificate read the metrics.
    configure(&gate, &yaml(&gate, ""));
    assert_eq!(gate.tell("/reload", &serde_json::json!({})).status, 200);
    let end = |of: &str| {
        let tls = Tls::default();
        let mut connection = Connection::shake(gate.control_address(), world(), tls).unwrap();
        let get = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        connection.send(get).unwrap();
        let text = String::from_utf8(connection.answer("GET").unwrap().body).unwrap();
        let name = format!("portvakt_certificate_end_timestamp_seconds{{of=\"{of}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
        Some((line.parse::<f64>().unwrap() - now.unix() as f64) / DAY as f64)
    };
    for (of, days) in [
        ("listener", 50.0),
        ("response_signing", 51.0),
        ("control", 52.0),
        ("upstream", 54.0),
        ("upstream_ca", 55.0),
        ("intermediate", 56.0),
        ("client_anchor", 57.0),
    ] {
        let found = end(of).unwrap_or_else(|| panic!("{of}"));
        assert!((found - days).abs() < 0.1, "{of}: {found}");
    }
    assert!(end("anchor").is_some() && end("control_ca").is_none());
    // A reload takes new files into use.
    write_private(&gate.folder().join("own.key"), &world().tpp_key);
    for file in [
        "ca.pem",
        "upstreams.pem",
        "control.pem",
        "response_signing.pem",
    ] {
        fs::write(gate.folder().join(file), ending(90).pem).unwrap();
    }
    let tls = Tls::default();
    let mut connection = Connection::shake(gate.control_address(), world(), tls).unwrap();
    let post = b"POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}";
    connection.send(post).unwrap();
    assert_eq!(connection.answer("POST").unwrap().status, 200);
    assert!(end("upstream_ca").unwrap() > 89.0);
    for (of, days) in [
        ("control", 90.0),
        ("upstream", 90.0),
        ("response_signing", 90.0),
    ] {
        let found = end(of).unwrap();
        assert!((found - days).abs() < 0.1, "{of}: {found}");
    }
}
