//! Connections of TPPs to the gateway.

use super::{gateway::Gateway, tpps::Tpps};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
};

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
