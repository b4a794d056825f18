//! TLS to the database, by rustls: the server's certificate must chain to the configured CA and be valid for the host name.
//!
//! The files are read for each connection, so that renewed certificates are used without a restart.

use super::settings::PostgresTls;
use portvakt_base::private_file;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use std::{
    io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::{TlsConnector, client};

/// The longest file of a key that is read, in bytes.
const MAX_KEY: usize = 64 * 1024;

/// Makes TLS connections to the database.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

/// A TLS connection to a host.
pub(super) struct TlsToHost {
    connector: TlsConnector,
    host: ServerName<'static>,
}

/// The encrypted stream.
pub(super) struct Encrypted(Box<client::TlsStream<Socket>>);

impl Tls {
    /// Reads the files of the settings. Without settings the result is never used.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn new(settings: Option<&PostgresTls>) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut roots = RootCertStore::empty();
        if let Some(tls) = settings {
            for certificate in certificates(&tls.ca)? {
                roots
                    .add(certificate)
                    .map_err(|error| in_file(&tls.ca, &error))?;
            }
        }
        let builder = builder.with_root_certificates(roots);
        let config = match settings.and_then(|tls| tls.identity.as_ref()) {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let pem = private_file::read(key, MAX_KEY).map_err(|fault| in_file(key, &fault))?;
                let private =
                    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| in_file(key, &error))?;
                builder
                    .with_client_auth_cert(certificates(chain)?, private)
                    .map_err(|error| in_file(chain, &error))?
            }
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| in_file(path, &error))?;
    if found.is_empty() {
        return Err(format!("{}: no certificate in PEM", path.display()));
    }
    Ok(found)
}

fn in_file(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = TlsToHost;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<TlsToHost> {
        // Unix sockets have no host, and no TLS.
        let name = if host.is_empty() { "localhost" } else { host };
        let host = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        Ok(TlsToHost {
            connector: self.0.clone(),
            host,
        })
    }
}

impl TlsConnect<Socket> for TlsToHost {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.host, stream).await?;
            Ok(Encrypted(Box::new(stream)))
        })
    }
}

impl TlsStream for Encrypted {
    /// None: the certificate is verified, and the password is never sent to another server.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}
