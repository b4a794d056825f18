//! TLS (TLS-1): rustls on aws-lc-rs, 1.2 and 1.3, with HTTP/2 and HTTP/1.1 by ALPN (TLS-2).

use super::client_auth;
use crate::{config::ClientAuth, in_use::Current};
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
) -> Result<TlsAcceptor, Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS12, &TLS13])?;
    let builder = match client_auth::verifier(client_auth) {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(CurrentIdentity(current)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Resolves the certificate from the current configuration at each handshake.
#[derive(Debug)]
struct CurrentIdentity(Arc<Current>);

impl ResolvesServerCert for CurrentIdentity {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.load().identity))
    }
}
