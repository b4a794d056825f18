//! TLS (TLS-1): rustls on aws-lc-rs, 1.2 and 1.3, with HTTP/2 and HTTP/1.1 by ALPN (TLS-2).

use super::{client_auth, door::Connection};
use crate::{config::ClientAuth, in_use::Current, trust::Shown};
use async_trait::async_trait;
use pingora::{
    Result,
    listeners::{TlsAccept, tls::TlsSettings},
    protocols::tls::TlsRef,
};
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use std::{any::Any, sync::Arc};

/// What the listener speaks.
pub(super) fn settings(current: Arc<Current>, client_auth: ClientAuth) -> Result<TlsSettings> {
    let mut settings = TlsSettings::with_callbacks(Box::new(Greeter))?;
    settings.set_cert_resolver(Arc::new(CurrentIdentity(current)));
    if let Some(verifier) = client_auth::verifier(client_auth) {
        settings.set_client_cert_verifier(verifier);
    }
    settings.enable_h2();
    Ok(settings)
}

/// The certificate of the configuration in use: each handshake asks anew.
#[derive(Debug)]
struct CurrentIdentity(Arc<Current>);

impl ResolvesServerCert for CurrentIdentity {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.load().identity))
    }
}

/// Gives each connection a place for what is known of it.
struct Greeter;

#[async_trait]
impl TlsAccept for Greeter {
    async fn handshake_complete_callback(
        &self,
        tls: &TlsRef,
    ) -> Option<Arc<dyn Any + Send + Sync>> {
        let chain = tls.peer_cert_chain_der().unwrap_or_default();
        let shown = Shown::new(chain.iter().map(AsRef::as_ref));
        Some(Arc::new(Connection::of(shown)))
    }
}
