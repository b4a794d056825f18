//! The gateway's own side of a handshake: certificates by host name, OCSP responses, ciphers and groups (TLS-1, CRT-8).

use super::client_auth::client_by;
use crate::harness::{
    Connector, Gate, GateBuilder, ocsp_answer_for,
    pki::{
        Ca, CaSpec, ExtendedKeyUsagePurpose, Extension, Issued, Key, LeafSpec, der, der_sequence,
    },
    world,
};
use openssl::{
    hash::MessageDigest,
    ocsp::{OcspCertId, OcspRequest},
    ssl::{SslVersion, StatusType},
    x509::X509,
};
use portvakt::clock::{Clock, Timestamp};
use rustls::{
    ClientConnection,
    crypto::aws_lc_rs::{
        self,
        kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768},
    },
    pki_types::ServerName,
    version::TLS13,
};
use serde_json::json;
use std::{
    fs,
    net::{SocketAddr, TcpStream},
};
use time::OffsetDateTime;

/// A server certificate for these DNS names.
fn server(names: &[&str]) -> Issued {
    let names: Vec<_> = names
        .iter()
        .map(|name| der(0x82, name.as_bytes()))
        .collect();
    let leaf = LeafSpec {
        key: Key::EcP256,
        extended_key_usages: vec![ExtendedKeyUsagePurpose::ServerAuth],
        extra_extensions: vec![Extension {
            oid: vec![2, 5, 29, 17],
            critical: false,
            content: der_sequence(&names),
        }],
        ..world().leaf()
    };
    world().tls_ca.issue(&leaf).unwrap()
}

/// The DER of the certificate that a client gets which asks for a host, or for none; and the OCSP response.
fn shown(address: SocketAddr, host: Option<&str>) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut handshake = Connector::trusting(|_| {}).handshake(host);
    handshake.set_status_type(StatusType::OCSP).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    let stream = handshake.connect(stream).unwrap();
    let leaf = stream.ssl().peer_certificate().unwrap();
    let stapled = stream.ssl().ocsp_status().map(<[u8]>::to_vec);
    (leaf.to_der().unwrap(), stapled)
}

fn with(builder: GateBuilder, name: &str, issued: &Issued) -> GateBuilder {
    builder
        .file(&format!("{name}.pem"), issued.pem.as_str())
        .private_file(&format!("{name}.key"), issued.key_pem.as_str())
}

#[test]
fn a_host_has_its_certificate() {
    let [api, wild] = [&["api.bank.example"][..], &["*.bank.example"]].map(server);
    let builder = Gate::builder().with_a_file().listener(
        "other_certificates: [{certificate: api.pem, key: api.key}, {certificate: wild.pem, key: wild.key, hosts: [Psd2.bank.example, '*.bank.example']}]",
    );
    let gate = with(with(builder, "api", &api), "wild", &wild).start();
    let first = &world().server;
    let check = |table: &[(Option<&str>, &Issued)]| {
        for (host, expected) in table {
            let (leaf, _) = shown(gate.address(), *host);
            assert_eq!(leaf, expected.der, "{host:?}");
        }
    };
    check(&[
        (None, first),
        (Some("localhost"), first),
        (Some("other.example"), first),
        (Some("bank.example"), first),
        (Some("api.bank.example"), &api),
        (Some("API.bank.example"), &api),
        (Some("psd2.bank.example"), &wild),
        (Some("x.bank.example"), &wild),
        (Some("a.b.bank.example"), first),
    ]);
    let renewed = server(&["api.bank.example"]);
    fs::write(gate.folder().join("api.pem"), &renewed.pem).unwrap();
    fs::write(gate.folder().join("api.key"), &renewed.key_pem).unwrap();
    assert_eq!(gate.tell("/reload", &json!({})).status, 200);
    check(&[(Some("api.bank.example"), &renewed), (None, first)]);
}

#[test]
fn faults_of_other_certificates() {
    let api = server(&["api.bank.example"]);
    let nameless = world().issue(&world().leaf());
    for (listed, expected) in [
        (
            "{certificate: api.pem, key: api.key}, {certificate: api.pem, key: api.key}",
            "listener.other_certificates[1]: api.bank.example is a host of another certificate too; name the hosts of each certificate in hosts",
        ),
        (
            "{certificate: api.pem, key: api.key, hosts: [api.bank.example, www.bank.example]}",
            "listener.other_certificates[0].hosts[1]: found \"www.bank.example\"; expected a DNS name of the certificate (api.bank.example)",
        ),
        (
            "{certificate: api.pem, key: api.key, hosts: []}",
            "listener.other_certificates[0]: no client can ask for this certificate: it has no DNS name, or hosts is empty",
        ),
        (
            "{certificate: nameless.pem, key: nameless.key}",
            "listener.other_certificates[0]: no client can ask for this certificate: it has no DNS name, or hosts is empty",
        ),
        (
            "{certificate: api.pem, key: server.key}",
            "listener.other_certificates[0].key: the key is not that of the certificate",
        ),
        (
            "{certificate: api.pem}",
            "listener.other_certificates[0].key: missing key",
        ),
    ] {
        let builder = Gate::builder().listener(&format!("other_certificates: [{listed}]"));
        let builder = with(builder, "api", &api);
        let faults = with(builder, "nameless", &nameless.issued)
            .try_start()
            .err()
            .unwrap();
        assert!(
            faults.ends_with(expected) && faults.lines().count() == 1,
            "{faults}"
        );
    }
}

/// An OCSP response about a leaf of the TLS CA, by a responder of a CA.
fn response(leaf: &Issued, ca: &Ca, time: [&str; 2], is_good: bool) -> Vec<u8> {
    let end = LeafSpec::default().not_after;
    response_until(end, MessageDigest::sha1(), leaf, ca, time, is_good)
}

/// The same by a responder whose certificate ends then, with the certificate's identifier by this hash.
fn response_until(
    signer_end: OffsetDateTime,
    hash: MessageDigest,
    leaf: &Issued,
    ca: &Ca,
    time: [&str; 2],
    is_good: bool,
) -> Vec<u8> {
    let signer = ca
        .issue(&LeafSpec {
            key: Key::EcP256,
            extended_key_usages: vec![ExtendedKeyUsagePurpose::OcspSigning],
            not_after: signer_end,
            ..LeafSpec::default()
        })
        .unwrap();
    let certificate = X509::from_der(&leaf.der).unwrap();
    let issuer = X509::from_der(ca.der()).unwrap();
    let mut request = OcspRequest::new().unwrap();
    let id = OcspCertId::from_cert(hash, &certificate, &issuer).unwrap();
    request.add_id(id).unwrap();
    let serial = certificate.serial_number().to_bn().unwrap().to_vec();
    let (good, revoked) = if is_good {
        (vec![&serial[..]], vec![])
    } else {
        (vec![], vec![&serial[..]])
    };
    let request = request.to_der().unwrap();
    ocsp_answer_for(time, &request, &ca.pem(), &signer, &good, &revoked)
}

#[test]
fn an_ocsp_response_is_sent_while_it_is_current() {
    let now = Clock::System.now();
    let clock = Clock::standing(now);
    let leaf = &world().server;
    let about = |leaf, time, is_good| response(leaf, &world().tls_ca, time, is_good);
    let first = about(leaf, ["-nmin", "10"], true);
    let gate = Gate::builder()
        .with_a_file()
        .clock(&clock)
        .listener("ocsp_response: server.ocsp")
        .file(
            "server.pem",
            [leaf.pem.clone(), world().tls_ca.pem()].concat(),
        )
        .file("server.ocsp", first.clone())
        .start();
    let stapled = || shown(gate.address(), Some("localhost")).1;
    // The responder is another process: its clock reads a moment later.
    clock.set(Timestamp::from_unix(now.unix() + 60));
    assert_eq!(stapled(), Some(first));
    // A machine whose clock is slow: its clients would refuse the response.
    clock.set(Timestamp::from_unix(now.unix() - 3_600));
    assert_eq!(stapled(), None, "it is not valid yet");
    let end = || {
        gate.metric_now(
            "portvakt_certificate_end_timestamp_seconds",
            &["listener_ocsp"],
        )
    };
    let minutes = (end() - now.unix() as f64) / 60.0;
    assert!((9.0..12.0).contains(&minutes), "{minutes}");
    clock.set(Timestamp::from_unix(now.unix() + 1_200));
    assert_eq!(stapled(), None, "it has ended");
    let file = gate.folder().join("server.ocsp");
    let next = about(leaf, ["-ndays", "5"], true);
    let in_an_hour = OffsetDateTime::now_utc() + time::Duration::hours(1);
    let (sha256, ca) = (MessageDigest::sha256(), &world().tls_ca);
    let short = response_until(in_an_hour, sha256, leaf, ca, ["-ndays", "5"], true);
    for response in [&short, &next] {
        fs::write(&file, response).unwrap();
        assert_eq!(gate.tell("/reload", &json!({})).status, 200);
        assert_eq!(stapled(), Some(response.clone()));
        if *response == short {
            assert_eq!(end(), in_an_hour.unix_timestamp() as f64);
            clock.set(Timestamp::from_unix(now.unix() + 3_700));
            assert_eq!(stapled(), None, "its responder's certificate has ended");
            clock.set(Timestamp::from_unix(now.unix() + 1_200));
        }
    }
    let other_ca = Ca::root(&CaSpec {
        common_name: "Portvakt Test TLS".into(),
        key: Key::EcP256,
        ..CaSpec::development_root()
    })
    .unwrap();
    let mut altered = next.clone();
    *altered.last_mut().unwrap() ^= 1;
    for (content, expected) in [
        (
            about(leaf, ["-ndays", "5"], false),
            "the certificate is revoked",
        ),
        (
            about(&server(&["x.example"]), ["-ndays", "5"], true),
            "another certificate",
        ),
        (
            response(leaf, &other_ca, ["-ndays", "5"], true),
            "another certificate",
        ),
        (b"-----BEGIN".to_vec(), "it is no OCSP response"),
        (Vec::new(), "it is no OCSP response"),
    ] {
        fs::write(&file, content).unwrap();
        let answer = gate.tell("/reload", &json!({}));
        let text = answer.json().to_string();
        assert!(answer.status != 200 && text.contains(expected), "{text}");
        assert!(text.contains("listener.ocsp_response"), "{text}");
        assert_eq!(stapled(), Some(next.clone()));
    }
    let alone = Gate::builder()
        .listener("ocsp_response: server.ocsp")
        .file("server.ocsp", next);
    let fault = alone.try_start().err().unwrap();
    assert!(
        fault.contains("does not contain the issuer's certificate"),
        "{fault}"
    );
}

/// Key exchange: post-quantum where the client offers it first, otherwise as the client prefers.
//= TLS-1 accepted
#[test]
fn the_hybrid_group_is_on() {
    let gate = Gate::start();
    for group in [X25519MLKEM768, X25519, SECP256R1, SECP384R1] {
        let mut provider = aws_lc_rs::default_provider();
        provider.kx_groups = vec![group];
        let config = client_by(provider, &TLS13, None, b"http/1.1");
        let name = ServerName::try_from("localhost").unwrap();
        let mut session = ClientConnection::new(config, name).unwrap();
        let mut stream = TcpStream::connect(gate.address()).unwrap();
        session.complete_io(&mut stream).unwrap();
        let agreed = session.negotiated_key_exchange_group().unwrap();
        assert_eq!(agreed.name(), group.name());
    }
}

/// Only authenticated encryption with forward secrecy.
//= TLS-1 refused
#[test]
fn old_ciphers_are_refused() {
    let gate = Gate::start();
    let shake = |ciphers: &str| {
        let connector = Connector::trusting(|set| {
            set.set_security_level(0);
            set.set_max_proto_version(Some(SslVersion::TLS1_2)).unwrap();
            set.set_cipher_list(ciphers).unwrap();
        });
        let stream = TcpStream::connect(gate.address()).unwrap();
        let shaken = connector.connect("localhost", stream);
        shaken.map(|stream| stream.ssl().current_cipher().unwrap().name())
    };
    for cipher in [
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    ] {
        assert_eq!(shake(cipher).unwrap(), cipher);
    }
    for cipher in [
        "ECDHE-ECDSA-AES128-SHA",
        "ECDHE-ECDSA-AES256-SHA384",
        "ECDHE-ECDSA-AES128-CCM8",
        "ALL:!ECDHE:@SECLEVEL=0",
        "ALL:!AESGCM:!CHACHA20:@SECLEVEL=0",
    ] {
        let fault = shake(cipher).err().unwrap().to_string();
        assert!(fault.contains("alert"), "{cipher}: {fault}");
    }
    assert!(gate.upstream().saw_nothing());
}
