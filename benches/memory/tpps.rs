//! TPPs with certificates, and their requests; and the certificate of the gateway that they trust.

use portvakt::tools::tpp::{SignOptions, TppIdentity, Unsigned, sign};
use portvakt_development_pki as pki;
use rustls::{ClientConfig, RootCertStore, client::Resumption, pki_types::CertificateDer};
use std::{sync::Arc, time::SystemTime};

/// TPPs with their own certificates and identities. They share one key: making 5 000 keys takes an hour, and a shared key uses the
/// same memory.
pub(super) struct Tpps {
    identities: Vec<TppIdentity>,
    pub(super) root: String,
    pub(super) issuing: String,
    pub(super) server: pki::Issued,
    pub(super) http1: Arc<ClientConfig>,
    pub(super) http2: Arc<ClientConfig>,
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

/// The certificate of the listener, and the CA that clients trust for it.
fn server() -> (pki::Ca, pki::Issued) {
    let spec = pki::CaSpec {
        key: pki::Key::EcP256,
        ..pki::CaSpec::development_root()
    };
    let authority = pki::Ca::root(&spec).unwrap();
    let server = authority
        .issue_server(&pki::Key::EcP256, spec.not_before, spec.not_after)
        .unwrap();
    (authority, server)
}
