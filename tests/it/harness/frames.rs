//! A client that sends single HTTP/2 frames, so that a test can send any frame in any order.

use super::{
    call::Sealed,
    connector::{Connector, Tls},
    gate::Gate,
    h1::Connection,
};
use std::{io, net::Ipv4Addr};

/// RFC 9113, section 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The error code of RST_STREAM and GOAWAY.
    pub(crate) fn code(&self) -> Option<u8> {
        match self.kind {
            3 => self.payload.get(3).copied(),
            7 => self.payload.get(7).copied(),
            _ => None,
        }
    }

    /// The status in the HEADERS of a response: an index, or three digits in clear or in Huffman's code.
    pub(crate) fn status(&self) -> Option<u16> {
        if self.kind != 1 {
            return None;
        }
        let updates = |byte: &&u8| (0x20..0x3f).contains(*byte);
        let block = &self.payload[self.payload.iter().take_while(updates).count()..];
        let digits = match *block {
            [first @ 0x88..=0x8e, ..] => {
                return Some([200, 204, 206, 304, 400, 404, 500][usize::from(first - 0x88)]);
            }
            [_, 3, ref digits @ ..] => digits.get(..3)?.to_vec(),
            [_, length @ 0x82..=0x83, ref coded @ ..] => {
                huffman_digits(coded.get(..usize::from(length - 0x80))?)?
            }
            _ => return None,
        };
        std::str::from_utf8(&digits).ok()?.parse().ok()
    }
}

/// Three digits in Huffman's code (RFC 7541, appendix B): 0 to 2 have five bits, 3 to 9 six.
fn huffman_digits(coded: &[u8]) -> Option<Vec<u8>> {
    let bits = coded
        .iter()
        .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
    let mut left = 8 * coded.len();
    let mut take = |count: usize| {
        left = left.checked_sub(count)?;
        Some((bits >> left) as u8 & ((1 << count) - 1))
    };
    let mut digits = Vec::new();
    for _ in 0..3 {
        let five = take(5)?;
        digits.push(match five {
            0..=2 => b'0' + five,
            // 3 is 011001.
            _ => b'0' + (five << 1 | take(1)?) - 0b01_1001 + 3,
        });
    }
    Some(digits)
}

/// A connection.
pub(crate) struct Frames {
    connection: Connection,
}

impl Frames {
    /// Connects and sends nothing.
    pub(crate) fn silent(gate: &Gate) -> Self {
        let tls = Tls {
            alpn: b"\x02h2",
            ..Tls::default()
        };
        Self {
            connection: Connection::shake(gate.address(), gate.world(), tls).unwrap(),
        }
    }

    /// Connects with an existing connector and sends nothing.
    pub(crate) fn over(gate: &Gate, connector: &Connector) -> Result<Self, String> {
        let connection = Connection::over(gate.address(), connector)?;
        Ok(Self { connection })
    }

    /// Connects and sends the preface and empty SETTINGS.
    pub(crate) fn open(gate: &Gate) -> Self {
        Self::silent(gate).begun()
    }

    /// The same from a given local address, with an existing connector.
    pub(crate) fn from(source: Ipv4Addr, gate: &Gate, connector: &Connector) -> Self {
        let connection = Connection::from(source, gate.address(), connector).unwrap();
        Self { connection }.begun()
    }

    fn begun(mut self) -> Self {
        self.preface();
        self.send(4, 0, 0, &[]).unwrap();
        self
    }

    /// Sends bytes unchanged.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.connection.send(bytes)
    }

    /// Sends only the preface.
    pub(crate) fn preface(&mut self) {
        self.bytes(PREFACE).unwrap();
    }

    /// Sends a frame.
    pub(crate) fn send(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> io::Result<()> {
        self.bytes(&frame(kind, flags, stream, payload))
    }

    /// The next frame.
    pub(crate) fn next(&mut self) -> io::Result<Frame> {
        let header = self.connection.exactly(9)?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        Ok(Frame {
            kind: header[3],
            flags: header[4],
            stream: u32::from_be_bytes([header[5], header[6], header[7], header[8]]),
            payload: self.connection.exactly(length as usize)?,
        })
    }

    /// The next frame of a stream that is a response head or a reset, or GOAWAY.
    pub(crate) fn outcome(&mut self, stream: u32) -> io::Result<Frame> {
        loop {
            let frame = self.next()?;
            if frame.kind == 7 || (frame.stream == stream && matches!(frame.kind, 1 | 3)) {
                return Ok(frame);
            }
        }
    }

    /// The error code of the GOAWAY that ends the connection; `None` if the connection ends without GOAWAY.
    pub(crate) fn goaway(&mut self) -> Option<u8> {
        while let Ok(frame) = self.next() {
            if frame.kind == 7 {
                return frame.code();
            }
        }
        None
    }
}

impl Frames {
    /// Waits until the gateway has processed all frames before this one. Other frames that come meanwhile are lost.
    pub(crate) fn processed(&mut self) {
        self.send(6, 0, 0, b"settled?").unwrap();
        loop {
            let frame = self.next().unwrap();
            if (frame.kind, frame.flags & 1) == (6, 1) && frame.payload == b"settled?" {
                return;
            }
        }
    }
}

/// A frame as bytes.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A literal header field with a literal name, without indexing.
pub(crate) fn field(name: &str, value: &[u8]) -> Vec<u8> {
    [&[0][..], &string(name.as_bytes()), &string(value)].concat()
}

/// A string without Huffman coding.
pub(crate) fn string(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match text.len() {
        short @ 0..0x7f => bytes.push(short as u8),
        long => {
            bytes.push(0x7f);
            let mut rest = long - 0x7f;
            while rest >= 0x80 {
                bytes.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
    }
    bytes.extend_from_slice(text);
    bytes
}

/// The header block of a request with a given encoding of `:path`.
pub(crate) fn block(sealed: &Sealed, path: &[u8]) -> Vec<u8> {
    let request = &sealed.request;
    let authority = request.header("host").unwrap_or("localhost");
    let mut block = field(":method", request.method.as_bytes());
    block.extend(field(":scheme", b"https"));
    block.extend(field(":authority", authority.as_bytes()));
    block.extend_from_slice(path);
    for (name, value) in &request.headers {
        if !name.eq_ignore_ascii_case("host") {
            block.extend(field(&name.to_ascii_lowercase(), value.as_bytes()));
        }
    }
    block
}
