//! An HTTP/1.1 client over TLS with OpenSSL, which can send any byte and offer any version of TLS.

use super::{
    call::{Framing, Sealed},
    connector::{Connector, Tls},
    gate::Gate,
    waiting::LIMIT,
    wire::{Answer, Wire},
    world::World,
};
use openssl::ssl::SslStream;
use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
};
use tokio::{net::TcpSocket, runtime::Builder};

/// A connection to the gateway, its certificate verified.
pub(crate) struct Connection {
    wire: Wire<SslStream<TcpStream>>,
}

impl Connection {
    /// Connects.
    pub(crate) fn open(gate: &Gate) -> Self {
        Self::shake(gate.address(), gate.world(), Tls::default()).unwrap()
    }

    /// Connects with these parameters, or returns the error of the handshake.
    pub(crate) fn shake(address: SocketAddr, world: &World, tls: Tls) -> Result<Self, String> {
        Self::over(address, &tls.connector(world))
    }

    /// Connects with an existing connector.
    pub(crate) fn over(address: SocketAddr, connector: &Connector) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(|fault| fault.to_string())?;
        Self::on(stream, connector)
    }

    /// Connects from a given local address.
    pub(crate) fn from(
        source: Ipv4Addr,
        address: SocketAddr,
        connector: &Connector,
    ) -> Result<Self, String> {
        let connect = || {
            let runtime = Builder::new_current_thread().enable_io().build()?;
            let stream = runtime.block_on(async {
                let socket = TcpSocket::new_v4()?;
                socket.bind(SocketAddr::from((source, 0)))?;
                socket.connect(address).await
            })?;
            let stream = stream.into_std()?;
            stream.set_nonblocking(false)?;
            io::Result::Ok(stream)
        };
        Self::on(connect().map_err(|fault| fault.to_string())?, connector)
    }

    /// Connects, and sends these bytes before the handshake.
    pub(crate) fn behind(
        header: &[u8],
        address: SocketAddr,
        connector: &Connector,
    ) -> Result<Self, String> {
        let mut stream = TcpStream::connect(address).map_err(|fault| fault.to_string())?;
        stream
            .write_all(header)
            .map_err(|fault| fault.to_string())?;
        Self::on(stream, connector)
    }

    fn on(stream: TcpStream, connector: &Connector) -> Result<Self, String> {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        let stream = connector
            .connect("localhost", stream)
            .map_err(|fault| fault.to_string())?;
        Ok(Self {
            wire: Wire::new(stream),
        })
    }

    /// Ends the connection with a reset: the peer cannot write any more.
    pub(crate) fn reset(self) {
        let stream = self.wire.reader.stream.get_ref().try_clone().unwrap();
        let stream = TcpSocket::from_std_stream(stream);
        stream.set_zero_linger().unwrap();
    }

    /// Whether the peer ended the idle connection: a client that notices opens another one for its next request.
    pub(crate) fn has_ended(&self) -> bool {
        let stream = self.wire.reader.stream.get_ref();
        stream.set_nonblocking(true).unwrap();
        let peeked = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        !peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// The version of TLS.
    pub(crate) fn version(&self) -> &'static str {
        self.wire.reader.stream.ssl().version_str()
    }

    /// The protocol that ALPN chose.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.wire.reader.stream.ssl().selected_alpn_protocol()
    }

    /// Sends bytes unchanged.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.wire.reader.stream.write_all(bytes)?;
        self.wire.reader.stream.flush()
    }

    /// Sends bytes, and others behind them that are no TLS, in one segment.
    pub(crate) fn send_garbled(&mut self, bytes: &[u8], garbage: &[u8]) {
        let mut socket = self.wire.reader.stream.get_ref().try_clone().unwrap();
        rustix::net::sockopt::set_tcp_cork(&socket, true).unwrap();
        self.send(bytes).unwrap();
        socket.write_all(garbage).unwrap();
        rustix::net::sockopt::set_tcp_cork(&socket, false).unwrap();
    }

    /// Reads the next response; the method tells whether the response has a body.
    pub(crate) fn answer(&mut self, method: &str) -> io::Result<Answer> {
        self.wire.answer(method)
    }

    /// Waits until the next response has begun, and leaves it to be read.
    pub(crate) fn begun(&mut self) -> io::Result<()> {
        self.wire.begun()
    }

    /// Reads the next TLS record.
    pub(crate) fn record(&mut self) -> io::Result<Vec<u8>> {
        // OpenSSL returns the bytes of one record at most.
        let mut bytes = vec![0; 16 * 1024];
        let count = self.wire.reader.stream.read(&mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Reads exactly this number of bytes.
    pub(crate) fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        self.wire.exactly(count)
    }

    /// Reads until the gateway closes the connection, and returns the bytes.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.wire.rest()
    }

    /// Sends a request and reads the response. The gateway may answer and close before it has read the whole request: the response counts.
    pub(crate) fn exchange(&mut self, sealed: &Sealed) -> io::Result<Answer> {
        let sent = self.send(&render(sealed));
        match self.answer(&sealed.request.method) {
            Ok(answer) => Ok(answer),
            Err(fault) => Err(sent.err().unwrap_or(fault)),
        }
    }
}

/// Connects without TLS. No read waits for longer than [`LIMIT`].
pub(crate) fn connect_plainly(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LIMIT))?;
    Ok(stream)
}

/// Reads a connection without TLS until the peer ends it, with or without an error, and returns the bytes.
#[track_caller]
pub(crate) fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    Wire::new(stream).rest()
}

/// A request as bytes.
pub(crate) fn render(sealed: &Sealed) -> Vec<u8> {
    let mut bytes = render_head(sealed);
    bytes.extend(match (&sealed.request.body, sealed.framing) {
        (Some(body), Framing::Length) => body.clone(),
        (Some(body), Framing::Chunked) => chunked(body),
        (None, _) => Vec::new(),
    });
    bytes
}

/// The head of a request, with its framing.
pub(crate) fn render_head(sealed: &Sealed) -> Vec<u8> {
    let request = &sealed.request;
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match (&request.body, sealed.framing) {
        (Some(body), Framing::Length) => {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()))
        }
        (Some(_), Framing::Chunked) => head.push_str("Transfer-Encoding: chunked\r\n"),
        (None, _) => {}
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// A body in chunks of irregular sizes.
pub(crate) fn chunked(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in body.chunks(7_919) {
        bytes.extend(chunk(part));
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// One chunk.
pub(crate) fn chunk(part: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat()
}
