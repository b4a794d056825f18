//! Networks of IP addresses: those that a configuration lists, and that of one client.
//!
//! Invariant: an address in the IPv4-mapped form of IPv6 counts as IPv4 everywhere. Deliberately not here: which addresses may be called.

use ipnet::IpNet;
use std::{fmt, net::IpAddr, str::FromStr};

/// A network, as in `10.1.0.0/16`, `127.0.0.1` or `fd00::/8`. The bits behind the prefix are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network(IpNet);

/// The reason why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNetwork {
    /// It has another form.
    #[error("no IP address with the length of a prefix")]
    Form,
    /// Addresses are compared in their IPv4 form, so such a network would contain none.
    #[error("an IPv4 network in the form of IPv6: write it as IPv4")]
    Mapped,
    /// The address has bits behind the prefix: one of the two is probably wrong.
    #[error("the address has bits behind the prefix; the network is {0}")]
    HostBits(Network),
}

impl Network {
    /// The network of one client, by which callers are counted: an IPv4 address, or the /64 of an IPv6 address, all of which belongs to one
    /// customer.
    pub fn of_client(address: IpAddr) -> Self {
        Self::of(address, 32, 64)
    }

    /// The network by which strangers are usually kept away: the /24 of an IPv4 address, or the /56 of an IPv6 address.
    pub fn of_site(address: IpAddr) -> Self {
        Self::of(address, 24, 56)
    }

    fn of(address: IpAddr, v4: u8, v6: u8) -> Self {
        let address = address.to_canonical();
        let length = if address.is_ipv4() { v4 } else { v6 };
        // Neither is longer than its addresses.
        let network = IpNet::new(address, length).unwrap_or_else(|_| address.into());
        Self(network.trunc())
    }

    /// Whether the network is larger than any that one operator has: 10.0.0.0/8, or fc00::/7.
    pub const fn is_too_large_for_one_operator(self) -> bool {
        match self.0 {
            IpNet::V4(network) => network.prefix_len() < 8,
            IpNet::V6(network) => network.prefix_len() < 7,
        }
    }

    /// Whether the network contains an address.
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        // The standard library reads the address: ipnet accepts 010.0.0.0, which some programs read as 8.0.0.0. The prefix has one spelling
        // for the same reason.
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork::Form)?;
        let network = match prefix {
            Some(prefix) => {
                let length: u8 = prefix.parse().map_err(|_| InvalidNetwork::Form)?;
                if length.to_string() != prefix {
                    return Err(InvalidNetwork::Form);
                }
                IpNet::new(address, length).map_err(|_| InvalidNetwork::Form)?
            }
            None => address.into(),
        };
        if address.to_canonical() != address {
            return Err(InvalidNetwork::Mapped);
        }
        let truncated = Self(network.trunc());
        match truncated.0 == network {
            true => Ok(truncated),
            false => Err(InvalidNetwork::HostBits(truncated)),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let network = |text: &str| text.parse::<Network>();
        for (text, inside, outside) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("10.1.0.0/16", "10.1.255.1", "10.2.0.1"),
            ("0.0.0.0/0", "192.168.0.1", "::1"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("::/0", "fd00::1", "10.0.0.1"),
        ] {
            let network = network(text).unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{text}");
            assert!(!network.contains(outside.parse().unwrap()), "{text}");
        }
        assert!(
            network("127.0.0.0/8")
                .unwrap()
                .contains("::ffff:127.0.0.1".parse().unwrap())
        );
        for bad in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0/8",
            "010.0.0.0/8",
            "a/8",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "10.0.0.0/010",
            "10.0.0.0/8/8",
        ] {
            assert_eq!(network(bad), Err(InvalidNetwork::Form), "{bad}");
        }
        for mapped in ["::ffff:0:0/96", "::ffff:10.0.0.1"] {
            assert_eq!(network(mapped), Err(InvalidNetwork::Mapped), "{mapped}");
        }
        for (text, meant) in [
            ("10.1.2.3/16", "10.1.0.0/16"),
            ("10.0.0.1/31", "10.0.0.0/31"),
            ("0.0.0.1/0", "0.0.0.0/0"),
            ("2001:db8::1/32", "2001:db8::/32"),
        ] {
            let meant = network(meant).unwrap();
            assert_eq!(
                network(text),
                Err(InvalidNetwork::HostBits(meant)),
                "{text}"
            );
        }
    }

    #[test]
    fn the_networks_of_a_client_and_of_its_site() {
        for (address, client, site) in [
            ("192.0.2.7", "192.0.2.7/32", "192.0.2.0/24"),
            ("::ffff:192.0.2.7", "192.0.2.7/32", "192.0.2.0/24"),
            (
                "2001:db8:1:23ff:3:4:5:6",
                "2001:db8:1:23ff::/64",
                "2001:db8:1:2300::/56",
            ),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(Network::of_client(address).to_string(), client);
            assert_eq!(Network::of_site(address).to_string(), site);
        }
    }
}
