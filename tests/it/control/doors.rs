//! Authentication, transport and limits of the listener.

use super::bank::{Site, bank, exchange, fails, free_address, get, post};
use crate::harness::world;
use portvakt::{clock::Stopwatch, config::ControlAddress, control::Bound};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::json;
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
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
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["sca-service".into()]).unwrap();
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        Self {
            ca,
            chain: vec![leaf.der().clone()],
            key: PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap(),
        }
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
        let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
        let mut answer = Vec::new();
        stream
            .write_all(&get("/livez", ""))
            .and_then(|()| stream.read_to_end(&mut answer))
            .map(|_| answer)
    };
    let answer = String::from_utf8(ask(Some(&known)).unwrap()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(ask(Some(&stranger)).is_err());
    assert!(ask(None).is_err());
    // Nor over plain HTTP.
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&get("/livez", "")).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
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
    let started = Stopwatch::start();
    let mut slow = post("/sca/read", &[b' '; 100], "");
    slow.truncate(slow.len() - 1);
    let answer = exchange(TcpStream::connect(address).unwrap(), &slow);
    fails(&answer, 408, "BAD_REQUEST", "request-timeout");
    assert!(started.elapsed() < Duration::from_secs(9));
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
