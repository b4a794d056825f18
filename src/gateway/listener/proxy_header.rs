//! The header of the PROXY protocol, version 1 or 2, by which a trusted proxy names the client before TLS.
//!
//! The format is HAProxy's specification `proxy-protocol.txt`. Invariant: no byte after the header is read, and the header is
//! bounded; its time is part of the handshake's. Deliberately not here: which peers must send the header.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The signature of version 2, and the number of bytes by which the versions are told apart.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The start of version 1.
const TEXT_START: &[u8] = b"PROXY ";

/// The longest header of version 1, with its CRLF, by the specification.
const MAX_TEXT: usize = 107;

/// The most bytes of version 2 after its fixed part. Addresses have at most 216; the rest is for type-length-value fields, which are
/// skipped, such as names of endpoints and a client's certificate.
const MAX_BINARY: u16 = 4096;

/// Reads the header; returns the client's address, or `None` if the proxy speaks for itself (a health check) or for a client
/// without an IP address.
///
/// # Errors
/// `InvalidData` if the bytes are no such header; otherwise, the connection failed.
pub(super) async fn read(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let mut start = [0; SIGNATURE.len()];
    socket.read_exact(&mut start).await?;
    if start == SIGNATURE {
        return read_binary(socket).await;
    }
    if !start.starts_with(TEXT_START) {
        return Err(invalid("no PROXY header"));
    }
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == MAX_TEXT {
            return Err(invalid("a PROXY header without an end"));
        }
        line.push(socket.read_u8().await?);
    }
    parse_text(&line).ok_or_else(|| invalid("a malformed PROXY header, version 1"))
}

/// Reads the rest of version 2, behind the signature.
async fn read_binary(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let command = socket.read_u8().await?;
    let family = socket.read_u8().await?;
    let length = socket.read_u16().await?;
    if length > MAX_BINARY {
        return Err(invalid("a PROXY header that is too long"));
    }
    let mut rest = vec![0; usize::from(length)];
    socket.read_exact(&mut rest).await?;
    parse_binary(command, family, &rest)
        .ok_or_else(|| invalid("a malformed PROXY header, version 2"))
}

/// Parses `PROXY TCP4 <source> <destination> <source port> <destination port>`, and the same with TCP6. `None` if it is malformed.
fn parse_text(line: &[u8]) -> Option<Option<SocketAddr>> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix("\r\n")?;
    let mut words = line.strip_prefix("PROXY ")?.split(' ');
    let family = words.next()?;
    if family == "UNKNOWN" {
        // By the specification, the rest of the line has no meaning.
        return Some(None);
    }
    let addresses: [IpAddr; 2] = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
    let ports = [port(words.next()?)?, port(words.next()?)?];
    let is_of_family = match family {
        "TCP4" => addresses.iter().all(IpAddr::is_ipv4),
        "TCP6" => addresses.iter().all(IpAddr::is_ipv6),
        _ => false,
    };
    let ([source, _], [port, _]) = (addresses, ports);
    (is_of_family && words.next().is_none()).then(|| Some(canonical(source, port)))
}

/// Parses a port: decimal, without a sign or leading zeros.
fn port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = text == "0" || !text.starts_with('0');
    (is_number && is_plain).then(|| text.parse().ok())?
}

/// Parses the fields of version 2. `None` if they are malformed.
fn parse_binary(command: u8, family: u8, rest: &[u8]) -> Option<Option<SocketAddr>> {
    match (command, family) {
        // LOCAL: the connection is the proxy's own, and the rest has no meaning.
        (0x20, _) => Some(None),
        // A stream over IPv4: source, destination, and their ports.
        (0x21, 0x11) => {
            let (source, rest) = rest.split_first_chunk::<4>()?;
            let (_, rest) = rest.split_first_chunk::<4>()?;
            let (port, _) = rest.split_first_chunk::<4>()?.0.split_first_chunk::<2>()?;
            let source = Ipv4Addr::from(*source);
            Some(Some(canonical(source.into(), u16::from_be_bytes(*port))))
        }
        // A stream over IPv6.
        (0x21, 0x21) => {
            let (source, rest) = rest.split_first_chunk::<16>()?;
            let (_, rest) = rest.split_first_chunk::<16>()?;
            let (port, _) = rest.split_first_chunk::<4>()?.0.split_first_chunk::<2>()?;
            let source = Ipv6Addr::from(*source);
            Some(Some(canonical(source.into(), u16::from_be_bytes(*port))))
        }
        // Unspecified, or a Unix socket: the client has no IP address, and the proxy's counts. Datagrams are refused.
        (0x21, 0x00 | 0x31) => Some(None),
        _ => None,
    }
}

/// An IPv4-mapped IPv6 address is the IPv4 address, so that a client has one address.
fn canonical(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address.to_canonical(), port)
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result, and the bytes that were not read.
    async fn result(bytes: &[u8]) -> (io::Result<Option<SocketAddr>>, usize) {
        let mut rest = bytes;
        let result = read(&mut rest).await;
        (result, rest.len())
    }

    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    const V4: [u8; 12] = [192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x34, 1, 187];

    fn v6(source: &str) -> Vec<u8> {
        let address = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
        let ports = [0x12, 0x34, 1, 187];
        [&address(source)[..], &address("2001:db8::1"), &ports].concat()
    }

    #[tokio::test]
    async fn headers_that_name_a_client() {
        let fields = [&V4[..], &[4, 0, 3, 1, 2, 3]].concat();
        let table = [
            (
                b"PROXY TCP4 192.0.2.7 10.0.0.1 4660 443\r\n".to_vec(),
                "192.0.2.7:4660",
            ),
            (
                b"PROXY TCP6 2001:db8::7 2001:db8::1 4660 443\r\n".to_vec(),
                "[2001:db8::7]:4660",
            ),
            (
                b"PROXY TCP6 ::ffff:192.0.2.7 ::1 4660 443\r\n".to_vec(),
                "192.0.2.7:4660",
            ),
            (binary(0x21, 0x11, &V4), "192.0.2.7:4660"),
            (binary(0x21, 0x11, &fields), "192.0.2.7:4660"),
            (binary(0x21, 0x21, &v6("2001:db8::7")), "[2001:db8::7]:4660"),
            (
                binary(0x21, 0x21, &v6("::ffff:192.0.2.7")),
                "192.0.2.7:4660",
            ),
        ];
        for (header, expected) in table {
            let (found, left) = result(&[&header[..], b"\x16\x03\x01"].concat()).await;
            assert_eq!(found.unwrap(), Some(expected.parse().unwrap()));
            assert_eq!(left, 3, "the bytes of TLS are not read");
        }
    }

    #[tokio::test]
    async fn headers_without_a_client() {
        for header in [
            b"PROXY UNKNOWN\r\n".to_vec(),
            b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n".to_vec(),
            binary(0x20, 0x00, b""),
            binary(0x20, 0x11, &V4),
            binary(0x20, 0xff, b"x"),
            binary(0x21, 0x00, b""),
            binary(0x21, 0x31, &[0; 216]),
        ] {
            let (found, left) = result(&[&header[..], b"\x16"].concat()).await;
            assert_eq!((found.unwrap(), left), (None, 1), "{header:?}");
        }
    }

    #[tokio::test]
    async fn other_bytes_are_no_header() {
        let long = format!("PROXY TCP4 {}\r\n", "1".repeat(107));
        let unknown = format!("PROXY UNKNOWN {}\r\n", "1".repeat(107));
        let text = [
            "GET / HTTP/1.1\r\n\r\n",
            "PROXY  TCP4 192.0.2.7 10.0.0.1 1 2\r\n",
            "PROXY TCP4 192.0.2.7  10.0.0.1 1 2\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 1 2 \r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 1 2 3\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 1\r\n",
            "PROXY TCP4 192.0.2.07 10.0.0.1 1 2\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 +1 2\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 01 2\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 1 65536\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 1 \r\n",
            "PROXY TCP4 2001:db8::7 2001:db8::1 1 2\r\n",
            "PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n",
            "PROXY TCP6 192.0.2.7 2001:db8::1 1 2\r\n",
            "PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n",
            "PROXY tcp4 192.0.2.7 10.0.0.1 1 2\r\n",
            "PROXY TCP4 192.0.2.7\n10.0.0.1 1 2\r\n",
            "proxy TCP4 192.0.2.7 10.0.0.1 1 2\r\n",
            "PROXY TCP4 localhost 10.0.0.1 1 2\r\n",
            &long,
            &unknown,
        ];
        let binaries = [
            binary(0x11, 0x11, &V4),
            binary(0x31, 0x11, &V4),
            binary(0x22, 0x11, &V4),
            binary(0x21, 0x12, &V4),
            binary(0x21, 0x22, &v6("::1")),
            binary(0x21, 0x32, &[0; 216]),
            binary(0x21, 0x41, &V4),
            binary(0x21, 0x10, &V4),
            binary(0x21, 0x11, &V4[..11]),
            binary(0x21, 0x21, &V4),
            binary(0x21, 0x11, &[0; 4097]),
        ];
        let text = text.into_iter().map(|text| text.as_bytes().to_vec());
        for bytes in text.chain(binaries) {
            let fault = result(&bytes).await.0.unwrap_err();
            let shown = String::from_utf8_lossy(&bytes);
            assert_eq!(fault.kind(), io::ErrorKind::InvalidData, "{shown}");
        }
        // A header that ends early fails with the connection.
        for end in 0..28 {
            let whole = binary(0x21, 0x11, &V4);
            let fault = result(&whole[..end]).await.0.unwrap_err();
            assert_eq!(fault.kind(), io::ErrorKind::UnexpectedEof, "{end}");
        }
    }
}
