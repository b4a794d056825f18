//! The IP addresses that the gateway may call because a certificate names them (CRT-11).
//!
//! The issuer of a certificate chooses the addresses in it, so they must not lead into the bank's own network: the gateway calls only
//! addresses of the public Internet and of configured networks. Deliberately not here: names, because the check applies to the IP address
//! of the connection.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// A network, as in `10.1.0.0/16`, `127.0.0.1` or `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    prefix: u8,
}

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
    /// Whether the network is larger than any that one operator has: 10.0.0.0/8, or fc00::/7.
    pub const fn is_too_large_for_one_operator(self) -> bool {
        self.prefix < if self.base.is_ipv4() { 8 } else { 7 }
    }

    /// Whether the network contains an address. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.base.is_ipv4() && first_of(address, self.prefix) == self.base
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (base, prefix) = match text.split_once('/') {
            Some((base, prefix)) => (
                base,
                Some(prefix.parse::<u8>().map_err(|_| InvalidNetwork::Form)?),
            ),
            None => (text, None),
        };
        let base: IpAddr = base.parse().map_err(|_| InvalidNetwork::Form)?;
        let longest = if base.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(longest);
        if prefix > longest {
            return Err(InvalidNetwork::Form);
        }
        if base.to_canonical() != base {
            return Err(InvalidNetwork::Mapped);
        }
        let network = Self {
            base: first_of(base, prefix),
            prefix,
        };
        match network.base == base {
            true => Ok(network),
            false => Err(InvalidNetwork::HostBits(network)),
        }
    }
}

/// The first address of the network of this address: the bits behind the prefix are zero.
fn first_of(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix.into()));
            Ipv4Addr::from_bits(address.to_bits() & mask.unwrap_or(0)).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix.into()));
            Ipv6Addr::from_bits(address.to_bits() & mask.unwrap_or(0)).into()
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

/// Whether the gateway may connect to an address: public or in one of these networks, and never multicast or unspecified.
pub(super) fn may_be_called(address: IpAddr, also: &[Network]) -> bool {
    let address = address.to_canonical();
    let is_a_host = !address.is_multicast() && !address.is_unspecified();
    is_a_host && (is_public(address) || also.iter().any(|network| network.contains(address)))
}

/// Whether an address is public. An IPv4-mapped IPv6 address counts as IPv4.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Excludes the special-purpose addresses (RFC 6890) that are not globally reachable.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || first == 0
        || first >= 240
        || address.is_multicast()
        // Shared address space (RFC 6598), protocol assignments, 6to4 relays, benchmarking.
        || (first == 100 && (64..128).contains(&second))
        || (first, second, third) == (192, 0, 0)
        || (first, second, third) == (192, 88, 99)
        || (first == 198 && (18..20).contains(&second));
    !special
}

/// Global unicast is 2000::/3. Teredo and 6to4, which embed arbitrary IPv4 addresses, and documentation addresses are excluded.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let special = (first == 0x2001 && (second < 0x200 || second == 0xdb8))
        || first == 0x2002
        || first == 0x3fff;
    first & 0xe000 == 0x2000 && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses() {
        for public in [
            "8.8.8.8",
            "192.0.1.1",
            "100.128.0.1",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
        ] {
            assert!(may_be_called(public.parse().unwrap(), &[]), "{public}");
        }
        for other in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "100.64.0.1",
            "192.0.0.1",
            "198.18.0.1",
            "198.51.100.1",
            "::",
            "::1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001:0:1::",
            "2001:db8::1",
        ] {
            assert!(!may_be_called(other.parse().unwrap(), &[]), "{other}");
        }
    }

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
            "a/8",
            "10.0.0.0/-1",
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
        let all = [network("0.0.0.0/0").unwrap(), network("::/0").unwrap()];
        for never in ["0.0.0.0", "::", "224.0.0.1", "ff02::1"] {
            assert!(!may_be_called(never.parse().unwrap(), &all), "{never}");
        }
        assert!(may_be_called("10.0.0.1".parse().unwrap(), &all));
    }
}
