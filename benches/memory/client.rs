//! Requests of many TPPs, and their connections.

use super::gateway::{Gateway, server};
use portvakt::tools::tpp::{SignOptions, TppIdentity, Unsigned, sign};
use portvakt_development_pki as pki;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, client::Resumption,
    pki_types::CertificateDer,
};
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
    time::SystemTime,
};

/// TPPs with their own certificates and identities. They share one key: making 5 000 keys takes an hour, and a shared key uses the
/// same memory.
pub(super) struct Tpps {
    identities: Vec<TppIdentity>,
    pub(super) root: String,
    pub(super) issuing: String,
    pub(super) server: pki::Issued,
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl Tpps {
    pub(super) fn new(count: usize) -> Self {
        let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
        let issuing = root.issue_ca(&pki::CaSpec::default()).unwrap();
        let first = issuing.issue(&pki::LeafSpec::default()).unwrap();
        let identities = (0..count).map(|number| {
            let name = format!("Eksempel {number}");
            let spec = pki::LeafSpec {
                common_name: name.clone(),
                organization: name,
                organization_identifier: Some(format!("PSDNO-FSA-{number:06}")),
                key: pki::Key::RsaPem(first.key_pem.clone()),
                ..pki::LeafSpec::default()
            };
            let issued = issuing.issue(&spec).unwrap();
            TppIdentity::from_pem(&issued.pem, &issued.key_pem).unwrap()
        });
        let (authority, server) = server();
        let speaking = |protocol: &[u8]| {
            let mut roots = RootCertStore::empty();
            let authority = CertificateDer::from(authority.der().to_vec());
            roots.add(authority).unwrap();
            let mut config = ClientConfig::builder()
                .with_root_certificates(roots)
                .with_no_client_auth();
            config.alpn_protocols = vec![protocol.to_vec()];
            // Each connection has an unknown TPP.
            config.resumption = Resumption::disabled();
            Arc::new(config)
        };
        Self {
            identities: identities.collect(),
            root: root.pem(),
            issuing: issuing.pem(),
            http1: speaking(b"http/1.1"),
            http2: speaking(b"h2"),
            server,
        }
    }

    /// A request of this TPP, signed now, for the status of a payment. The request needs no PSU and uses no quota.
    pub(super) fn request(&self, number: usize) -> Vec<u8> {
        let headers = [
            ("Host", "bank.example"),
            ("Accept", "application/json"),
            ("TPP-Redirect-URI", "https://tpp.example/callback"),
            ("PSU-IP-Address", "192.0.2.10"),
        ];
        let request = Unsigned {
            method: "GET".into(),
            target: "/v1/payments/norwegian-domestic-credit-transfers/4711/status".into(),
            headers: headers
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
            body: None,
        };
        let options = SignOptions::at(SystemTime::now());
        let signed = sign(&self.identities[number], request, &options).unwrap();
        let lines: String = signed
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        format!("GET {} HTTP/1.1\r\n{lines}\r\n", signed.target).into()
    }

    /// Requests of these TPPs, signed in advance by two threads.
    pub(super) fn requests(&self, numbers: &[usize]) -> Vec<Vec<u8>> {
        let sign = |numbers: &[usize]| -> Vec<_> {
            numbers.iter().map(|number| self.request(*number)).collect()
        };
        let (some, others) = numbers.split_at(numbers.len() / 2);
        std::thread::scope(|scope| {
            let some = scope.spawn(|| sign(some));
            let others = sign(others);
            [some.join().unwrap(), others].concat()
        })
    }
}

/// A connection to the gateway after the handshake.
pub(super) struct Link(StreamOwned<ClientConnection, TcpStream>);

impl Link {
    /// A connection with HTTP/1.1.
    pub(super) fn open(gateway: &Gateway, tpps: &Tpps) -> Self {
        Self::by(gateway, &tpps.http1)
    }

    /// A connection with HTTP/2, after the gateway's SETTINGS.
    pub(super) fn open_http2(gateway: &Gateway, tpps: &Tpps) -> Self {
        let mut link = Self::by(gateway, &tpps.http2);
        // RFC 9113, section 3.4: the preface, empty SETTINGS, and the acknowledgement of the gateway's SETTINGS.
        link.0
            .write_all(
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0",
            )
            .unwrap();
        let mut head = [0; 9];
        link.0.read_exact(&mut head).unwrap();
        assert_eq!(head[3], 4, "settings come first");
        link
    }

    fn by(gateway: &Gateway, config: &Arc<ClientConfig>) -> Self {
        let mut stream = TcpStream::connect(gateway.address).unwrap();
        stream.set_nodelay(true).unwrap();
        let name = "localhost".try_into().unwrap();
        let mut tls = ClientConnection::new(Arc::clone(config), name).unwrap();
        while tls.is_handshaking() {
            tls.complete_io(&mut stream).unwrap();
        }
        Self(StreamOwned::new(tls, stream))
    }

    /// Sends a request and asserts that the core answers.
    pub(super) fn ask(&mut self, request: &[u8]) {
        self.0.write_all(request).unwrap();
        let mut answer = Vec::new();
        let mut some = [0; 4_096];
        while !answer.ends_with(b"\r\n\r\n{}") {
            let read = self.0.read(&mut some).unwrap();
            answer.extend_from_slice(&some[..read]);
            assert!(
                read > 0 && answer.starts_with(b"HTTP/1.1 200 "),
                "{}",
                String::from_utf8_lossy(&answer)
            );
        }
    }
}
