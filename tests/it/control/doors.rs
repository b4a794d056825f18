//! Authentication, transport and limits of the listener.

use super::bank::{Site, bank, exchange, fails, free_address, get, post};
use crate::{
    audit::records,
    harness::{Answer, connect_plainly, eventually, let_pass, world},
};
use portvakt::{config::ControlAddress, control::Bound};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::json;
use std::{
    fs,
    io::{Read, Write},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    sync::Arc,
    time::Duration,
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

//= ERR-7 accepted
#[test]
fn over_tcp() {
    let (_site, bank) = bank();
    for path in ["/livez", "/readyz", "/metrics", "/.well-known/jwks.json"] {
        assert_eq!(bank.send(&get(path, "")).status, 200, "{path}");
    }
    fails(&bank.send(&get("/", "")), 404, "NOT_FOUND", "call-unknown");
    fails(
        &bank.send(&post("/psu", b"{}", "")),
        404,
        "NOT_FOUND",
        "call-unknown",
    );
    let other = bank.send(&get("/sca/read", ""));
    fails(&other, 405, "BAD_REQUEST", "method-not-allowed");
    assert_eq!(other.header("allow"), Some("POST"));
}

#[test]
fn a_unix_socket_is_its_owners_alone() {
    let site = Site::new();
    let path = site.path().join("control.sock");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    {
        let bank = site.start("socket: control.sock");
        assert_eq!(mode(), 0o600);
        assert_eq!(bank.send(&get("/livez", "")).status, 200);
        // A process listens on this socket.
        let again = Bound::bind(&ControlAddress::Unix(path.clone())).unwrap_err();
        assert_eq!(again.kind(), std::io::ErrorKind::AddrInUse);
        assert_eq!(bank.send(&get("/livez", "")).status, 200);
    }
    // A socket that a killed process left.
    drop(std::os::unix::net::UnixListener::bind(site.path().join("stale")).unwrap());
    let _ = fs::rename(site.path().join("stale"), &path);
    let bank = site.start("socket: control.sock");
    assert_eq!(mode(), 0o600);
    assert_eq!(bank.send(&get("/livez", "")).status, 200);
    // A file that is not a socket stays unchanged.
    site.write("notes", "important");
    let other = Bound::bind(&ControlAddress::Unix(site.path().join("notes"))).unwrap_err();
    assert_eq!(other.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(site.path().join("notes")).unwrap(), b"important");
    let left: Vec<_> = fs::read_dir(site.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_bearer_token_is_asked_for() {
    let site = Site::new();
    site.write("token", format!("{TOKEN}\n"));
    let (_, address) = free_address();
    let bank = site.start(&format!("{address}, token_file: token"));
    let refused = [
        String::new(),
        "Authorization: Bearer \r\n".into(),
        format!("Authorization: Bearer {TOKEN}0\r\n"),
        format!("Authorization: Bearer {}\r\n", &TOKEN[1..]),
        format!("Authorization: Bearer {}\r\n", TOKEN.to_uppercase()),
        format!("Authorization: Basic {TOKEN}\r\n"),
        format!("Authorization: {TOKEN}\r\n"),
        format!("Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}\r\n"),
        format!("X-Authorization: Bearer {TOKEN}\r\n"),
    ];
    for headers in &refused {
        for request in [
            post("/psu/read", b"{}", headers),
            post("/sca/complete", b"{}", headers),
            get("/metrics", headers),
            get("/nothing", headers),
        ] {
            let answer = bank.send(&request);
            fails(&answer, 401, "FORBIDDEN", "caller-unknown");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
        // Load balancers have no token.
        for path in ["/livez", "/readyz", "/.well-known/jwks.json"] {
            assert_eq!(bank.send(&get(path, headers)).status, 200, "{path}");
        }
    }
    for scheme in ["Bearer", "bearer"] {
        let headers = format!("Authorization: {scheme} {TOKEN}\r\n");
        assert_eq!(bank.send(&get("/metrics", &headers)).status, 200);
        let answer = bank.send(&post("/psu/read", b"{}", &headers));
        fails(&answer, 400, "FORMAT_ERROR", "member-invalid");
    }
}

/// A CA, and a certificate that it issued with a key, PEM and DER.
struct Caller {
    ca: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Caller {
    fn mint() -> Self {
        let [caller] = Self::mint_all(["sca-service"]);
        caller
    }

    /// Certificates of one CA, each with a DNS name.
    fn mint_all<const N: usize>(names: [&str; N]) -> [Self; N] {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        names.map(|name| {
            let key = KeyPair::generate().unwrap();
            let leaf = CertificateParams::new(vec![name.into()]).unwrap();
            let leaf = leaf.signed_by(&key, &issuer).unwrap();
            Self {
                ca: ca.clone(),
                chain: vec![leaf.der().clone()],
                key: PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap(),
            }
        })
    }

    /// Sends a request with this certificate.
    fn ask(&self, address: SocketAddr, request: &[u8]) -> Answer {
        let mut roots = RootCertStore::empty();
        roots.add(world().tls_ca.der().to_vec().into()).unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let config = builder.with_client_auth_cert(self.chain.clone(), self.key.clone_key());
        let name = "localhost".try_into().unwrap();
        let connection = ClientConnection::new(Arc::new(config.unwrap()), name).unwrap();
        let stream = StreamOwned::new(connection, connect_plainly(address).unwrap());
        exchange(stream, request)
    }
}

#[test]
fn with_mutual_tls_only_known_callers_get_an_answer() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let site = Site::new();
    let [known, stranger] = [(); 2].map(|()| Caller::mint());
    site.write("callers.pem", &known.ca);
    let (address, key) = free_address();
    let tls = "certificate: server.pem, key: server.key, client_ca: callers.pem";
    let _bank = site.start(&format!("{key}, {tls}"));
    let mut roots = RootCertStore::empty();
    roots.add(world().tls_ca.der().to_vec().into()).unwrap();
    let ask = |caller: Option<&Caller>| {
        let builder = ClientConfig::builder().with_root_certificates(roots.clone());
        let config = match caller {
            Some(caller) => builder
                .with_client_auth_cert(caller.chain.clone(), caller.key.clone_key())
                .unwrap(),
            None => builder.with_no_client_auth(),
        };
        let name = "localhost".try_into().unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, connect_plainly(address).unwrap());
        let mut answer = Vec::new();
        stream
            .write_all(&get("/livez", ""))
            .and_then(|()| stream.read_to_end(&mut answer))
            .map(|_| answer)
    };
    let answer = String::from_utf8(ask(Some(&known)).unwrap()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let metrics = known.ask(address, &get("/metrics", "Connection: close\r\n"));
    let metrics = String::from_utf8(metrics.body).unwrap();
    assert!(metrics.contains("portvakt_certificate_end_timestamp_seconds{of=\"control_ca\"} "));
    assert!(ask(Some(&stranger)).is_err());
    assert!(ask(None).is_err());
    // Nor over plain HTTP.
    let mut stream = connect_plainly(address).unwrap();
    stream.write_all(&get("/livez", "")).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
}

/// Each certificate opens what the role of its name allows. With a token, both are required.
#[test]
fn client_certificates_have_roles() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let site = Site::new();
    let callers = Caller::mint_all(["sca.bank", "Prometheus.bank", "balancer.bank", "other.bank"]);
    site.write("callers.pem", &callers[0].ca);
    site.write("token", TOKEN);
    let tls = "certificate: server.pem, key: server.key, client_ca: callers.pem";
    let (livez, readyz, metrics) = (get("/livez", ""), get("/readyz", ""), get("/metrics", ""));
    let call = post("/psu/read", b"{}", "");
    let blocks = get("/tpp/blocks", "");
    for (clients, table) in [
        (
            "clients: {calls: [SCA.bank], metrics: [prometheus.bank], readiness: [balancer.bank], operate: [other.bank]}",
            [
                (&livez, [200; 4]),
                (&readyz, [403, 403, 200, 403]),
                (&metrics, [403, 200, 403, 403]),
                (&call, [400, 403, 403, 403]),
                (&blocks, [403, 403, 403, 200]),
            ],
        ),
        (
            "clients: {calls: [sca.bank]}",
            [
                (&livez, [200; 4]),
                (&readyz, [200; 4]),
                (&metrics, [200, 403, 403, 403]),
                (&call, [400, 403, 403, 403]),
                (&blocks, [403; 4]),
            ],
        ),
        (
            // A name permits exactly its certificate.
            "clients: {calls: [www.sca.bank, bank, sca.bank.example], metrics: [prometheus.ban], readiness: [balancer.bank.]}",
            [
                (&livez, [200; 4]),
                (&readyz, [403; 4]),
                (&metrics, [403; 4]),
                (&call, [403; 4]),
                (&blocks, [403; 4]),
            ],
        ),
        (
            "token_file: token, clients: {calls: [sca.bank], metrics: [prometheus.bank]}",
            [
                (&livez, [200; 4]),
                (&readyz, [200; 4]),
                (&metrics, [403, 401, 403, 403]),
                (&call, [401, 403, 403, 403]),
                (&blocks, [403; 4]),
            ],
        ),
    ] {
        let (address, key) = free_address();
        let _bank = site.start(&format!("{key}, {tls}, {clients}"));
        for (request, expected) in table {
            for (caller, status) in callers.iter().zip(expected) {
                let answer = caller.ask(address, request);
                // Prometheus uses any host.
                if request == &metrics {
                    let text = String::from_utf8_lossy(request);
                    let other = text.replace("Host: localhost", "Host: prometheus.example");
                    assert_ne!(other, text);
                    assert_eq!(caller.ask(address, other.as_bytes()).status, status);
                }
                let line = String::from_utf8_lossy(request);
                assert_eq!(answer.status, status, "{clients}: {line}");
                if status == 403 {
                    fails(&answer, 403, "FORBIDDEN", "role-other");
                }
            }
        }
    }
}

/// The audit has a record of each call that changes or reveals something, with its credentials, also of a refused one.
#[test]
fn calls_are_audited_with_their_credentials() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let site = Site::new();
    let [sca, other] = Caller::mint_all(["SCA.bank", "other.bank"]);
    site.write("callers.pem", &sca.ca);
    site.write("token", TOKEN);
    let (address, key) = free_address();
    let tls = "certificate: server.pem, key: server.key, client_ca: callers.pem";
    let _bank = site.start_audited(&format!(
        "{key}, {tls}, token_file: token, clients: {{calls: [sca.bank]}}"
    ));
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let calls = [
        "/sca/read",
        "/sca/complete",
        "/sca/fail",
        "/psu/read",
        "/psu/bind",
        "/psu/withdraw",
        "/psu/unbind",
        "/reload",
    ];
    let both = "certificate and token";
    let mut expected = Vec::new();
    for (number, call) in calls.into_iter().enumerate() {
        // A second has records of at most ten refused calls.
        if number == calls.len() / 2 {
            let_pass(Duration::from_millis(1_010));
        }
        let status = sca.ask(address, &post(call, b"{}", &token)).status;
        assert!(status != 401 && status != 403, "{call}: {status}");
        assert_eq!(sca.ask(address, &post(call, b"{}", "")).status, 401);
        assert_eq!(other.ask(address, &post(call, b"{}", &token)).status, 403);
        expected.extend([
            (call, both, "sca.bank", status),
            (call, "none", "sca.bank", 401),
            (call, "none", "other.bank", 403),
        ]);
    }
    // The others change and reveal nothing.
    for path in ["/livez", "/readyz", "/metrics", "/openapi.json", "/nothing"] {
        sca.ask(address, &get(path, &token));
    }
    let recorded = || {
        let mut records = records(&site.audit());
        records.retain(|record| record["kind"] == "call");
        records
    };
    eventually("every call is recorded", || {
        recorded().len() >= expected.len()
    });
    let found: Vec<_> = recorded()
        .iter()
        .map(|record| {
            let text = |name: &str| record[name].as_str().unwrap().to_owned();
            let caller = record["caller"].as_array().unwrap()[0].as_str().unwrap();
            let status = record["status"].as_u64().unwrap();
            (text("call"), text("credential"), caller.to_owned(), status)
        })
        .collect();
    let expected = expected
        .into_iter()
        .map(|(call, credential, caller, status)| {
            (
                call.to_owned(),
                credential.to_owned(),
                caller.to_owned(),
                u64::from(status),
            )
        });
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn bodies_have_a_size_a_time_and_a_type() {
    let site = Site::new();
    let (address, key) = free_address();
    let bank = site.start(&key);
    // A body of 64 KiB is read and judged; a body with one byte more is not read.
    let filled = |length: usize| {
        let frame = json!({ "request": "" }).to_string();
        json!({ "request": "x".repeat(length - frame.len()) }).to_string()
    };
    let answer = bank.send(&post("/sca/read", filled(65_536).as_bytes(), ""));
    fails(&answer, 400, "SCA_INVALID", "sca-request-invalid");
    let answer = bank.send(&post("/sca/read", filled(65_537).as_bytes(), ""));
    fails(&answer, 413, "BAD_REQUEST", "body-too-large");

    let text = post("/sca/read", b"{}", "");
    let form = String::from_utf8(text).unwrap();
    for kind in [
        "application/x-www-form-urlencoded",
        "text/plain",
        "",
        "application/jsonp",
    ] {
        let request = form.replace("application/json", kind);
        let answer = bank.send(request.as_bytes());
        fails(&answer, 415, "FORMAT_ERROR", "media-type-unsupported");
    }
    let request = form.replace("application/json", "Application/JSON; charset=utf-8");
    fails(
        &bank.send(request.as_bytes()),
        400,
        "FORMAT_ERROR",
        "member-invalid",
    );
    for body in [&b""[..], b"[]", b"{", b"{}x"] {
        let answer = bank.send(&post("/sca/read", body, ""));
        fails(&answer, 400, "FORMAT_ERROR", "body-malformed");
    }

    // A body that does not arrive.
    let mut slow = post("/sca/read", &[b' '; 100], "");
    slow.truncate(slow.len() - 1);
    let answer = exchange(connect_plainly(address).unwrap(), &slow);
    fails(&answer, 408, "BAD_REQUEST", "request-timeout");
}

//= ERR-4 refused
#[test]
fn without_its_state_nothing_is_promised() {
    let site = Site::new();
    let bank = site.start(&free_address().1);
    let state = site.path().join("state/portvakt.db");
    let elsewhere = site.path().join("state/elsewhere.db");
    std::fs::rename(&state, &elsewhere).unwrap();
    let body = json!({
        "tpp": super::bank::TPP, "psu_id": super::bank::PSU, "last_sca": super::bank::NOW.to_string(),
    });
    let answer = bank.post("/psu/bind", &body);
    fails(&answer, 503, "SYSTEM_ERROR", "state-unavailable");
    assert_eq!(answer.header("retry-after"), Some("1"));
    std::fs::rename(&elsewhere, &state).unwrap();
    assert_eq!(bank.post("/psu/bind", &body).status, 200);
}
