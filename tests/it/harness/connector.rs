//! TLS clients with OpenSSL.
//!
//! Not with the crate's `SslConnector`, which reads the machine's trust store whenever one is made, for 46 ms of CPU.

use super::world::World;
use openssl::{
    ssl::{
        HandshakeError, Ssl, SslContext, SslContextBuilder, SslMethod, SslMode, SslStream,
        SslVerifyMode, SslVersion,
    },
    x509::{X509, store::X509StoreBuilder},
};
use std::net::TcpStream;

/// The parameters of a TLS handshake.
#[derive(Clone, Copy)]
pub(crate) struct Tls {
    /// The only version that the client offers; `None` offers 1.2 and 1.3.
    pub(crate) only: Option<SslVersion>,
    /// The protocols that the client offers by ALPN, in wire format; empty for none.
    pub(crate) alpn: &'static [u8],
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            only: None,
            alpn: b"\x08http/1.1",
        }
    }
}

impl Tls {
    /// The connector for these parameters, which trusts the CA of the gateways' certificates.
    pub(crate) fn connector(self, world: &World) -> Connector {
        let mut builder = Connector::builder();
        if let Some(version) = self.only {
            // OpenSSL offers TLS 1.0 and 1.1 only at this security level.
            builder.set_security_level(0);
            builder.set_cipher_list("ALL:@SECLEVEL=0").unwrap();
            builder.set_min_proto_version(Some(version)).unwrap();
            builder.set_max_proto_version(Some(version)).unwrap();
        }
        if !self.alpn.is_empty() {
            builder.set_alpn_protos(self.alpn).unwrap();
        }
        let mut store = X509StoreBuilder::new().unwrap();
        store
            .add_cert(X509::from_pem(world.tls_ca.pem().as_bytes()).unwrap())
            .unwrap();
        builder.set_cert_store(store.build());
        builder.set_verify(SslVerifyMode::PEER);
        Connector(builder.build())
    }
}

/// Connects by TLS.
#[derive(Clone)]
pub(crate) struct Connector(SslContext);

impl Connector {
    /// One that trusts any certificate, with these further parameters.
    pub(crate) fn trusting(set: impl FnOnce(&mut SslContextBuilder)) -> Self {
        let mut builder = Self::builder();
        set(&mut builder);
        Self(builder.build())
    }

    fn builder() -> SslContextBuilder {
        let mut builder = SslContext::builder(SslMethod::tls_client()).unwrap();
        // A write that is repeated after its time-out may have moved.
        builder.set_mode(SslMode::ACCEPT_MOVING_WRITE_BUFFER | SslMode::ENABLE_PARTIAL_WRITE);
        builder
    }

    /// A handshake that asks for this host, or for none.
    pub(crate) fn handshake(&self, host: Option<&str>) -> Ssl {
        let mut handshake = Ssl::new(&self.0).unwrap();
        if let Some(host) = host {
            handshake.set_hostname(host).unwrap();
            handshake.param_mut().set_host(host).unwrap();
        }
        handshake
    }

    /// Shakes hands with a server of this name.
    pub(crate) fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<SslStream<TcpStream>, HandshakeError<TcpStream>> {
        self.handshake(Some(host)).connect(stream)
    }
}
