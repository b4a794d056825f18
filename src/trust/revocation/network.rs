//! The IP addresses that the gateway may call because a certificate names them (CRT-11).
//!
//! The issuer of a certificate chooses the addresses in it, so they must not lead into the bank's own network: the gateway calls only
//! addresses of the public Internet and of configured networks. Deliberately not here: names, because the check applies to the IP address
//! of the connection.

use portvakt_base::network::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    fn networks_that_are_not_public() {
        let all = ["0.0.0.0/0", "::/0"].map(|network| network.parse().unwrap());
        for never in ["0.0.0.0", "::", "224.0.0.1", "ff02::1"] {
            assert!(!may_be_called(never.parse().unwrap(), &all), "{never}");
        }
        assert!(may_be_called("10.0.0.1".parse().unwrap(), &all));
    }
}
