//! TLS in front of the recording upstream, and its certificates.

use super::pki;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use time::macros::datetime;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::TlsAcceptor;

/// A server with TLS in front of a recording upstream. It requires a client certificate.
pub(crate) struct TlsFront {
    address: SocketAddr,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

struct Shared {
    config: Mutex<Arc<ServerConfig>>,
    /// The client certificate of the last connection.
    last: Mutex<Vec<u8>>,
}

impl TlsFront {
    /// Starts it in front of this core.
    pub(crate) fn start(config: Arc<ServerConfig>, core: SocketAddr) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            config: Mutex::new(config),
            last: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(Arc::clone(&serving).serve(stream, core));
            }
        });
        Self {
            address,
            shared,
            _runtime: runtime,
        }
    }

    /// Its own address.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves later connections with another certificate, or for other clients.
    pub(crate) fn serve_with(&self, config: Arc<ServerConfig>) {
        *self.shared.config.lock().unwrap() = config;
    }

    /// The client certificate of the last connection.
    pub(crate) fn last(&self) -> Vec<u8> {
        self.shared.last.lock().unwrap().clone()
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, stream: TcpStream, core: SocketAddr) {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.config.lock().unwrap()));
        let Ok(mut stream) = acceptor.accept(stream).await else {
            return;
        };
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        *self.last.lock().unwrap() = shown;
        let mut core = TcpStream::connect(core).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut core).await;
    }
}

/// A CA.
pub(crate) fn ca(name: &str) -> pki::Ca {
    let spec = pki::CaSpec {
        common_name: name.into(),
        key: pki::Key::EcP256,
        ..pki::CaSpec::development_root()
    };
    pki::Ca::root(&spec).unwrap()
}

/// A server whose certificate is of `own`, for clients of `clients`.
pub(crate) fn tls_server(own: &pki::Ca, clients: &pki::Ca) -> Arc<ServerConfig> {
    let (from, until) = (
        datetime!(2020-01-01 0:00 UTC),
        datetime!(2040-01-01 0:00 UTC),
    );
    let issued = own.issue_server(&pki::Key::EcP256, from, until).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(der(&clients.pem()).remove(0)).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_client_cert_verifier(verifier.build().unwrap());
    let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
    Arc::new(builder.with_single_cert(der(&issued.pem), key).unwrap())
}

fn der(pem: &str) -> Vec<CertificateDer<'static>> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes());
    all.map(Result::unwrap).collect()
}

/// A client certificate of this CA.
pub(crate) fn client_certificate(ca: &pki::Ca) -> pki::Issued {
    let spec = pki::LeafSpec {
        key: pki::Key::EcP256,
        not_before: datetime!(2020-01-01 0:00 UTC),
        not_after: datetime!(2040-01-01 0:00 UTC),
        extended_key_usages: vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth],
        ..pki::LeafSpec::default()
    };
    ca.issue(&spec).unwrap()
}
