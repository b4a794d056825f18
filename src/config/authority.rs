//! A host with or without a port, as a Host header, an Origin and the configuration name it.
//!
//! Invariant: two authorities that name one host are equal: names are in lower case, addresses are numbers. Deliberately
//! not here: looking names up.

use std::net::{IpAddr, Ipv6Addr};

/// The longest name of a host (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;

/// A host, and a port where one is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port; none where it is left out.
    pub port: Option<u16>,
}

/// A host by its address or by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address; an IPv4 address that is mapped into IPv6 is an IPv4 address.
    Address(IpAddr),
    /// A name in lower case.
    Name(String),
}

impl Authority {
    /// Reads `host` or `host:port`, an IPv6 address in brackets. None for anything else, such as user information.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                let port = match rest {
                    "" => None,
                    rest => Some(rest.strip_prefix(':')?),
                };
                (Host::Address(IpAddr::V6(address).to_canonical()), port)
            }
            None => {
                let (host, port) = match text.split_once(':') {
                    None => (text, None),
                    Some((host, port)) => (host, Some(port)),
                };
                (Host::of_text(host)?, port)
            }
        };
        let port = port.map(parse_port);
        Some(Self {
            host,
            port: match port {
                None => None,
                Some(port) => Some(port?),
            },
        })
    }
}

impl Host {
    fn of_text(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        let is_name = (1..=MAX_NAME).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        is_name.then(|| Self::Name(text.to_ascii_lowercase()))
    }
}

/// Digits alone: `u16::from_str` takes a sign too.
fn parse_port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        let parse = |text: &str| Authority::parse(text).map(|found| (found.host, found.port));
        let name = |name: &str| Host::Name(name.to_owned());
        let address = |text: &str| Host::Address(text.parse().unwrap());
        let table = [
            ("localhost", Some((name("localhost"), None))),
            ("LocalHost:80", Some((name("localhost"), Some(80)))),
            ("10.0.0.7:9100", Some((address("10.0.0.7"), Some(9100)))),
            ("[::1]", Some((address("::1"), None))),
            ("[0:0::1]:9100", Some((address("::1"), Some(9100)))),
            ("[::ffff:127.0.0.1]", Some((address("127.0.0.1"), None))),
            ("127.1", Some((name("127.1"), None))),
            ("", None),
            (":80", None),
            ("a:", None),
            ("a:+80", None),
            ("a:65536", None),
            ("a:80:80", None),
            ("::1", None),
            ("[::1", None),
            ("[::1]9100", None),
            ("u@a", None),
            ("a b", None),
            ("a/b", None),
            ("\u{e6}.example", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(parse(&"a".repeat(254)), None);
    }
}
