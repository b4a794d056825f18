//! TLS (TLS-1): rustls on aws-lc-rs, 1.2 and 1.3, with HTTP/2 and HTTP/1.1 by ALPN (TLS-2).
//!
//! Ciphers and groups are the defaults of rustls: authenticated encryption with forward secrecy only, and X25519MLKEM768 where the
//! client prefers it.

use super::{client_auth, tickets::Tickets};
use crate::{clock::Clock, config::ClientAuth, in_use::Current};
use rustls::{
    Error, ServerConfig,
    crypto::aws_lc_rs,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Creates the acceptor that performs handshakes.
pub(super) fn acceptor(
    current: Arc<Current>,
    client_auth: ClientAuth,
    clock: Clock,
) -> Result<TlsAcceptor, Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS12, &TLS13])?;
    let builder = match client_auth::verifier(client_auth) {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let tickets = Tickets::new(Arc::clone(&current), client_auth, clock.clone())?;
    let certificates = CurrentCertificates { current, clock };
    let mut config = builder.with_cert_resolver(Arc::new(certificates));
    config.ticketer = Arc::new(tickets);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Resolves the certificate from the current configuration at each handshake.
#[derive(Debug)]
struct CurrentCertificates {
    current: Arc<Current>,
    clock: Clock,
}

impl ResolvesServerCert for CurrentCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let in_use = self.current.load();
        let found = in_use
            .certificates
            .find(hello.server_name(), self.clock.now());
        Some(Arc::clone(found))
    }
}
