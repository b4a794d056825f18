//! A host with an optional port, as in Host, Origin and the configuration.
//!
//! Invariant: authorities of the same host are equal: names are in lower case, addresses are numbers. Deliberately not here:
//! resolving names.

use crate::interface::headers::authority;
use std::net::IpAddr;

/// A host, and an optional port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port; `None` if it is left out.
    pub port: Option<u16>,
}

/// A host: an address or a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address; an IPv4-mapped IPv6 address becomes an IPv4 address.
    Address(IpAddr),
    /// A name in lower case.
    Name(String),
}

impl Authority {
    /// Parses `host` or `host:port`, with an IPv6 address in brackets. `None` for anything else, such as user information.
    pub fn parse(text: &str) -> Option<Self> {
        let read = authority::parse(text.as_bytes())?;
        let bare = read.host().trim_start_matches('[').trim_end_matches(']');
        let host = match bare.parse::<IpAddr>() {
            Ok(address) => Host::Address(address.to_canonical()),
            Err(_) => Host::Name(bare.to_ascii_lowercase()),
        };
        Some(Self {
            host,
            port: read.named_port(),
        })
    }
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
            ("127.1", None),
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
