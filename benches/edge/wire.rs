//! The attackers' side of a connection: TCP from a chosen address, TLS, and HTTP/2 frames made by hand.

use rustls::{ClientConfig, RootCertStore, client::Resumption, pki_types::CertificateDer};
use std::{io, net::Ipv4Addr, path::Path, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// A TLS connection.
pub type Tls = TlsStream<TcpStream>;

/// The attackers' address.
pub const ATTACKER: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The honest client's address.
pub const HONEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Where attackers come from who have more than one address: the limit of one address shall not be what is measured.
pub fn one_of(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, u8::try_from(number % 16 + 1).unwrap())
}

/// The protocol that a client offers (ALPN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// Opens connections to the peers.
#[derive(Clone)]
pub struct Dialer {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl Dialer {
    /// Trusts the CA of the peers' certificate. Every handshake is a full one.
    pub fn new(root: &Path) -> Self {
        let pem = std::fs::read(root).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(pem.contents)).unwrap();
        let offering = |protocol: &[u8]| {
            let mut config = ClientConfig::builder()
                .with_root_certificates(roots.clone())
                .with_no_client_auth();
            config.alpn_protocols = vec![protocol.to_vec()];
            config.resumption = Resumption::disabled();
            Arc::new(config)
        };
        Self {
            http1: offering(b"http/1.1"),
            http2: offering(b"h2"),
        }
    }

    /// The configuration of TLS.
    pub fn config(&self, offer: Offer) -> Arc<ClientConfig> {
        Arc::clone(match offer {
            Offer::Http1 => &self.http1,
            Offer::Http2 => &self.http2,
        })
    }

    /// A connection after its handshake.
    pub async fn tls(&self, from: Ipv4Addr, port: u16, offer: Offer) -> io::Result<Tls> {
        let stream = tcp(from, port).await?;
        let name = "localhost".try_into().unwrap();
        TlsConnector::from(self.config(offer))
            .connect(name, stream)
            .await
    }

    /// A connection with HTTP/2, after the preface and these settings.
    pub async fn http2(&self, from: Ipv4Addr, port: u16, settings: &[u8]) -> io::Result<Tls> {
        let mut tls = self.tls(from, port, Offer::Http2).await?;
        tls.write_all(&[PREFACE, &frame(4, 0, 0, settings)].concat())
            .await?;
        tls.flush().await?;
        Ok(tls)
    }
}

/// The kernel's share of what was sent and not yet read by the peer, in bytes. By itself it grows to 4 MiB and more: 50 000 small frames
/// count as sent then, of which a peer that reads no more has read a few hundred.
const UNREAD: u32 = 64 * 1024;

/// A TCP connection to a port of this machine.
pub async fn tcp(from: Ipv4Addr, port: u16) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_send_buffer_size(UNREAD)?;
    // Without a bound address, the kernel can use one local port for connections to several peers.
    if from != ATTACKER {
        socket.set_reuseaddr(true)?;
        socket.bind((from, 0).into())?;
    }
    let stream = socket.connect((Ipv4Addr::LOCALHOST, port).into()).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Reads and discards until the other side has ended the connection.
pub async fn drain(stream: &mut (impl AsyncRead + Unpin)) {
    let mut some = [0; 4_096];
    while matches!(stream.read(&mut some).await, Ok(1..)) {}
}

/// RFC 9113, section 3.4.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// SETTINGS_INITIAL_WINDOW_SIZE of zero: no answer may carry a body.
pub const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];

/// Flags of HEADERS: the end of the stream, and of the header block.
pub const END_STREAM: u8 = 1;
/// See [`END_STREAM`].
pub const END_HEADERS: u8 = 4;

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length.to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A header field: a literal with a literal name, without indexing (RFC 7541, section 6.2.2).
pub fn field(name: &str, value: &str) -> Vec<u8> {
    [&[0][..], &string(name), &string(value)].concat()
}

/// A header field that the receiver adds to its table (section 6.2.1).
pub fn indexed(name: &str, value: &str) -> Vec<u8> {
    [&[0x40][..], &string(name), &string(value)].concat()
}

/// The newest entry of the receiver's table.
pub const NEWEST: u8 = 0xbe;

/// A string without Huffman's code.
fn string(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.len();
    if rest < 0x7f {
        bytes.push(u8::try_from(rest).unwrap());
    } else {
        bytes.push(0x7f);
        rest -= 0x7f;
        while rest >= 0x80 {
            bytes.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        bytes.push(u8::try_from(rest).unwrap());
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// The header block of a request.
pub fn block(method: &str, path: &str, headers: &[(String, String)]) -> Vec<u8> {
    let mut block = [
        field(":method", method),
        field(":scheme", "https"),
        field(":authority", "localhost"),
        field(":path", path),
    ]
    .concat();
    for (name, value) in headers {
        block.extend(field(&name.to_ascii_lowercase(), value));
    }
    block
}

/// The header block of an unsigned request: the peers forward it, Portvakt refuses it.
pub fn unsigned(method: &str) -> Vec<u8> {
    block(method, "/v1/accounts", &[])
}
