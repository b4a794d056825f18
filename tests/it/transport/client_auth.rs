//! Mutual TLS with a QWAC: TLS-3.
//!
//! The client is rustls, which can resume sessions; each handshake is one of TLS 1.2 or 1.3, over HTTP/1.1 or HTTP/2.

use crate::harness::{
    Answer, Call, Crl, Gate, LIMIT, Source, Tpp, Wire,
    bundle::Bundle,
    check_error, eventually_is, exchange_by, pki,
    pki::{Issued, Key, LeafSpec, QcType},
    render, world,
};
use portvakt::clock::{Clock, Stopwatch, Timestamp};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    version::{TLS12, TLS13},
};
use std::{io::Write, net::TcpStream, sync::Arc};

pub(crate) const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// A QWAC without faults.
pub(crate) fn qwac() -> LeafSpec {
    LeafSpec {
        qc_type: Some(QcType::Web),
        key: Key::EcP256,
        ..world().leaf()
    }
}

pub(crate) fn issue(spec: &LeafSpec) -> Issued {
    world().issuing.issue(spec).unwrap()
}

/// A client that shows a certificate, or none.
pub(crate) fn client(
    version: &'static SupportedProtocolVersion,
    shown: Option<&Issued>,
    alpn: &[u8],
) -> Arc<ClientConfig> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    client_by(provider, version, shown, alpn)
}

/// A client that shows a certificate and its issuer so many times.
fn client_with(
    version: &'static SupportedProtocolVersion,
    shown: &Issued,
    issuers: usize,
) -> Arc<ClientConfig> {
    let issuing = world().issuing.der().to_vec();
    let mut config = ClientConfig::clone(&client(version, None, b"http/1.1"));
    let mut chain = vec![CertificateDer::from(shown.der.clone())];
    chain.extend((0..issuers).map(|_| CertificateDer::from(issuing.clone())));
    let key = PrivateKeyDer::from_pem_slice(shown.key_pem.as_bytes()).unwrap();
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).unwrap();
    let shown = rustls::sign::CertifiedKey::new(chain, key);
    config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(shown));
    Arc::new(config)
}

/// The same with other cryptography.
pub(crate) fn client_by(
    provider: CryptoProvider,
    version: &'static SupportedProtocolVersion,
    shown: Option<&Issued>,
    alpn: &[u8],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let anchor = world().tls_ca.der().to_vec();
    roots.add(CertificateDer::from(anchor)).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match shown {
        None => builder.with_no_client_auth(),
        Some(issued) => {
            let chain = vec![
                CertificateDer::from(issued.der.clone()),
                CertificateDer::from(world().issuing.der().to_vec()),
            ];
            let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    Arc::new(config)
}

/// One call on a new connection: the answer, and the kind of the handshake.
pub(crate) fn call(
    gate: &Gate,
    client: &Arc<ClientConfig>,
    call: &Call,
) -> Result<(Answer, HandshakeKind), String> {
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::clone(client), name).unwrap();
    let stream = TcpStream::connect(gate.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut wire = Wire::new(StreamOwned::new(session, stream));
    let sealed = gate.seal(call);
    let sent = wire.reader.stream.write_all(&render(&sealed));
    let answer = wire.answer(&sealed.request.method).map_err(|fault| {
        let sent = sent.err().map(|fault| fault.to_string());
        sent.unwrap_or_else(|| fault.to_string())
    })?;
    Ok((answer, wire.reader.stream.conn.handshake_kind().unwrap()))
}

/// Both versions of TLS, with both versions of HTTP.
fn everywhere(gate: &Gate, shown: Option<&Issued>, made: &Call, check: impl Fn(&Answer)) {
    for version in VERSIONS {
        let (answer, _) = call(gate, &client(version, shown, b"http/1.1"), made).unwrap();
        check(&answer);
        let tls = tokio_rustls::TlsConnector::from(client(version, shown, b"h2"));
        check(&exchange_by(gate, &gate.seal(made), tls).unwrap());
    }
}

fn passes(gate: &Gate, shown: Option<&Issued>, made: &Call) {
    everywhere(gate, shown, made, |answer| {
        assert_eq!(answer.status, 200, "{:?}", answer.json());
    });
}

fn refused(gate: &Gate, shown: &Issued, made: &Call, reason: &str) {
    let before = gate.metric_at_rest("portvakt_refusals_total", &[reason]);
    let connections = gate.upstream().connections();
    gate.upstream().take();
    everywhere(gate, Some(shown), made, |answer| {
        assert_eq!(answer.status, 403);
        assert_eq!(answer.json()["reason"], reason);
    });
    assert!(gate.upstream().take().is_empty());
    assert_eq!(gate.upstream().connections(), connections);
    // The gateway counts a request after it has sent the answer.
    gate.eventually_metric("portvakt_refusals_total", &[reason], before + 4.0);
}

//= TLS-3 accepted
//= TLS-3 refused
#[test]
fn a_qwac_is_that_of_the_tpp_that_signs() {
    let own = issue(&qwac());
    let other = issue(&LeafSpec {
        organization_identifier: Some("PSDNO-FSA-111111".into()),
        ..qwac()
    });
    for client_auth in ["optional", "required"] {
        let gate = Gate::builder()
            .listener(&format!("client_auth: {client_auth}"))
            .start();
        passes(&gate, Some(&own), &Call::accounts());
        refused(
            &gate,
            &other,
            &Call::accounts(),
            "certificate-identity-mismatch",
        );
        let of_other = Call::accounts().by(&world().aisp);
        passes(&gate, Some(&other), &of_other);
        refused(&gate, &own, &of_other, "certificate-identity-mismatch");
    }
}

/// Where the certificate is only observed, the QWAC of a TPP that the bank blocks still refuses, with whatever certificate it signs.
//= FWD-6 refused
#[test]
fn the_qwac_of_a_blocked_tpp() {
    let gate = Gate::builder()
        .listener("client_auth: optional")
        .file("tpps.yaml", "allow: []\nblock: [{tpp: PSDNO-FSA-666666}]\n")
        .line("registers: {check: on, local: tpps.yaml}")
        .line("observe: {checks: [certificate, register]}")
        .start();
    let of = |tpp: &str| {
        issue(&LeafSpec {
            organization_identifier: Some(tpp.into()),
            ..qwac()
        })
    };
    let blocked = of("PSDNO-FSA-666666");
    refused(&gate, &blocked, &Call::accounts(), "tpp-blocked");
    passes(&gate, Some(&of("PSDNO-FSA-111111")), &Call::accounts());
}

//= TLS-3 accepted
//= TLS-3 refused
#[test]
fn who_shows_none() {
    let optional = Gate::builder().listener("client_auth: optional").start();
    passes(&optional, None, &Call::accounts());
    let required = Gate::builder().listener("client_auth: required").start();
    for version in VERSIONS {
        let client = client(version, None, b"http/1.1");
        assert!(call(&required, &client, &Call::accounts()).is_err());
    }
    assert!(required.upstream().saw_nothing());
    // With `client_auth: off` the gateway ignores client certificates.
    let other = issue(&LeafSpec {
        organization_identifier: Some("PSDNO-FSA-111111".into()),
        ..qwac()
    });
    passes(&Gate::start(), Some(&other), &Call::accounts());
}

/// A resumed session presents no certificate: the certificate of its first handshake still counts.
//= TLS-3 accepted
//= TLS-3 refused
#[test]
fn a_resumed_session_keeps_its_certificate() {
    let own = issue(&qwac());
    let gate = Gate::builder().listener("client_auth: required").start();
    for version in VERSIONS {
        let client = client(version, Some(&own), b"http/1.1");
        let (answer, kind) = call(&gate, &client, &Call::accounts()).unwrap();
        assert_eq!((answer.status, kind), (200, HandshakeKind::Full));
        let (answer, kind) = call(&gate, &client, &Call::accounts()).unwrap();
        assert_eq!((answer.status, kind), (200, HandshakeKind::Resumed));
        let stolen = Call::accounts().by(&world().aisp);
        let (answer, kind) = call(&gate, &client, &stolen).unwrap();
        assert_eq!(kind, HandshakeKind::Resumed);
        check_error(
            "resumed",
            &answer,
            403,
            "FORBIDDEN",
            "certificate-identity-mismatch",
        );
    }
}

/// A QWAC is judged like a QSealC: chain, type, identity and, at each request, validity.
//= TLS-3 refused
#[test]
fn a_qwac_that_does_not_hold() {
    let gate = Gate::builder().listener("client_auth: optional").start();
    let seal = issue(&LeafSpec {
        qc_type: Some(QcType::Eseal),
        ..qwac()
    });
    let nobody = issue(&LeafSpec {
        roles: None,
        ..qwac()
    });
    let own_root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
    let stranger = own_root.issue(&qwac()).unwrap();
    let old = issue(&LeafSpec {
        not_after: time::macros::datetime!(2021-01-01 0:00 UTC),
        ..qwac()
    });
    for (shown, reason) in [
        (&seal, "certificate-wrong-type"),
        (&nobody, "certificate-not-psd2"),
        (&stranger, "certificate-untrusted"),
        (&old, "certificate-expired"),
    ] {
        println!("{reason}");
        refused(&gate, shown, &Call::accounts(), reason);
    }
}

/// A certificate of the connection is judged only for a caller whose signature verified, and its chain has the budget of all chains.
//= TLS-3 refused
//= QUO-12 refused
#[test]
fn chains_of_clients_have_the_budget_of_all_chains() {
    show_chains(40);
}

/// `make flood`.
//= TLS-3 refused
//= QUO-12 refused
#[test]
#[ignore = "make flood"]
fn a_thousand_chains_of_one_address() {
    show_chains(1_000);
}

/// Strangers of one address show so many chains.
fn show_chains(count: usize) {
    let gate = Gate::builder()
        .listener("client_auth: optional")
        .line("rates: {chains_per_address: 1, chains: 1000}")
        .start();
    passes(&gate, None, &Call::accounts());
    let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
    let strangers: Vec<_> = (0..count).map(|_| root.issue(&qwac()).unwrap()).collect();
    gate.upstream().take();
    let reason = |shown: &Issued, made: &Call| {
        let client = client(&TLS13, Some(shown), b"http/1.1");
        let (answer, _) = call(&gate, &client, made).unwrap();
        answer.reason()
    };
    let forged = Call::accounts()
        .altered(|request| request.set_header("TPP-Redirect-URI", "https://elsewhere.example/"));
    for shown in &strangers {
        assert_eq!(reason(shown, &forged), "signature-mismatch");
    }
    // One in a second, and three at first.
    let since = Stopwatch::start();
    let mut built = 0;
    for shown in &strangers {
        match reason(shown, &Call::accounts()).as_str() {
            "certificate-untrusted" => built += 1,
            other => assert_eq!(other, "too-many-at-once"),
        }
        assert!(built <= 4 + since.elapsed().as_secs());
    }
    println!("{built} of {count} chains were built");
    assert!(built > 0 && gate.upstream().take().is_empty());
}

/// A connection keeps the chain that its client shows.
//= TLS-3 accepted
//= TLS-3 refused
#[test]
fn a_chain_that_is_too_long() {
    let gate = Gate::builder().listener("client_auth: optional").start();
    let own = issue(&qwac());
    let issuing = world().issuing.der().len();
    let most = (16 * 1024 - own.der.len()) / issuing;
    for version in VERSIONS {
        let made = |count| client_with(version, &own, count);
        let (answer, _) = call(&gate, &made(most), &Call::accounts()).unwrap();
        assert_eq!(answer.status, 200, "{:?}", answer.json());
        gate.upstream().take();
        assert!(call(&gate, &made(most + 1), &Call::accounts()).is_err());
        assert!(gate.upstream().take().is_empty());
    }
}

/// An accepted one is known at the next connection, which needs no chain.
//= TLS-3 accepted
//= QUO-12 accepted
#[test]
fn a_known_qwac_needs_no_chain() {
    let gate = Gate::builder()
        .listener("client_auth: optional")
        .line("rates: {chains_per_address: off, chains: 1}")
        .start();
    let own = issue(&qwac());
    // The chains of the seal and of the connection are built in different seconds.
    let shown = client(&TLS13, Some(&own), b"http/1.1");
    eventually_is("the status", 200, || {
        call(&gate, &shown, &Call::accounts()).unwrap().0.status
    });
    for _ in 0..10 {
        passes(&gate, Some(&own), &Call::accounts());
    }
}

//= TLS-3 refused
#[test]
fn a_qwac_that_ends_while_it_is_connected() {
    let clock = Clock::standing(Timestamp::from_unix(1_800_000_000));
    let gate = Gate::builder()
        .clock(&clock)
        .listener("client_auth: optional")
        .start();
    let shown = issue(&LeafSpec {
        not_after: time::OffsetDateTime::from_unix_timestamp(1_800_000_010).unwrap(),
        ..qwac()
    });
    let client = client(&TLS13, Some(&shown), b"http/1.1");
    for (seconds, status) in [(0, 200), (10, 200), (11, 403)] {
        clock.set(Timestamp::from_unix(1_800_000_000 + seconds));
        let (answer, _) = call(&gate, &client, &Call::accounts()).unwrap();
        assert_eq!(answer.status, status, "{seconds}");
    }
}

/// Its revocation is judged like that of the signing certificate.
//= TLS-3 refused
//= CRT-6 refused
#[test]
fn a_qwac_that_is_revoked() {
    let (good, bad) = ([0x61, 8], [0x61, 9]);
    let list = Crl::at(Clock::System.now()).revoking(&bad);
    let source = Source::serving(list.sign(&world().issuing, &world().issuing_key));
    let gate = Gate::builder()
        .file("anchors/root.pem", world().issuing.pem())
        .listener("client_auth: optional")
        .line("revocation: {check: on, unreachable: closed, private_addresses: [127.0.0.1]}")
        .start();
    let of = |spec: LeafSpec, serial: [u8; 2]| {
        issue(&LeafSpec {
            serial: Some(serial.to_vec()),
            crl_urls: vec![source.url()],
            ..spec
        })
    };
    let made = Call::accounts().by(&Tpp::of(of(world().leaf(), [0x61, 7])));
    passes(&gate, Some(&of(qwac(), good)), &made);
    refused(&gate, &of(qwac(), bad), &made, "certificate-revoked");
}

/// QWACs may have anchors of their own.
//= TLS-3 accepted
//= TLS-3 refused
//= CRT-8 accepted
//= CRT-8 refused
#[test]
fn anchors_for_websites_in_a_bundle() {
    let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bundle = Bundle::of(&[world().root.pem()], &[root.pem()]);
    bundle.put(folder.path(), "one");
    // Without trust.anchors, no seal's anchor is one of clients.
    let gate = Gate::builder()
        .listener("client_auth: optional")
        .trust(&format!(
            "bundle: {}",
            folder.path().join("current").display()
        ))
        .with_a_file()
        .for_program();
    let yaml = gate.yaml().replace("  anchors: anchors\n", "");
    assert_ne!(yaml, gate.yaml());
    std::fs::write(gate.folder().join("gateway.yaml"), yaml).unwrap();
    let _program = gate.run_silently(&mut gate.program());
    passes(
        &gate,
        Some(&root.issue(&qwac()).unwrap()),
        &Call::accounts(),
    );
    let of_seals = issue(&qwac());
    refused(&gate, &of_seals, &Call::accounts(), "certificate-untrusted");
}

/// No rule judges extendedKeyUsage: a QWAC with serverAuth alone signs and is shown, as one that has clientAuth too.
//= TLS-3 accepted
#[test]
fn a_qwac_with_server_auth_alone() {
    use pki::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    let gate = Gate::builder().listener("client_auth: required").start();
    for usages in [vec![ServerAuth], vec![ServerAuth, ClientAuth], Vec::new()] {
        let tpp = world().issue(&LeafSpec {
            qc_type: Some(QcType::Web),
            extended_key_usages: usages,
            ..world().leaf()
        });
        passes(&gate, Some(&tpp.issued), &Call::accounts().by(&tpp));
    }
}

//= TLS-3 accepted
//= TLS-3 refused
#[test]
fn anchors_for_websites() {
    let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
    let gate = Gate::builder()
        .listener("client_auth: optional")
        .listener("client_anchors: web")
        .file("web/root.pem", root.pem())
        .start();
    passes(
        &gate,
        Some(&root.issue(&qwac()).unwrap()),
        &Call::accounts(),
    );
    let of_seals = issue(&qwac());
    refused(&gate, &of_seals, &Call::accounts(), "certificate-untrusted");
}
