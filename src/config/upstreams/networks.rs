//! The networks that endpoints may be in: `networks` of an upstream group.
//!
//! Invariant: an address of a cloud's metadata service, a link-local, multicast or unspecified address is an endpoint only if the
//! operator lists a network that contains it, and the last two never are. An IPv6 address that leads to such an IPv4 address by a
//! translation counts as that address. A name in the configuration thus cannot lead requests to such
//! an address, whoever answers for the name.

use super::super::section::Section;
use crate::network::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of metadata services that are not link-local.
const METADATA: [IpAddr; 10] = [
    // AWS, and its credentials of containers.
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23]),
    // Google Cloud.
    v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]),
    // Oracle Cloud.
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe]),
    // Alibaba Cloud.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    v6([0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200]),
    // Scaleway, Akamai, Azure.
    v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42]),
    v6([0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1]),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

const fn v6(segments: [u16; 8]) -> IpAddr {
    let [a, b, c, d, e, f, g, h] = segments;
    IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h))
}

/// The networks of a group's endpoints; none listed means every network without the excluded addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamNetworks(Vec<Network>);

impl UpstreamNetworks {
    /// Whether an endpoint may have this address.
    pub fn allow(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
        if address.is_unspecified() || address.is_multicast() || is_broadcast {
            return false;
        }
        if self.0.is_empty() {
            return !is_excluded(address) && !embedded(address).into_iter().any(is_excluded);
        }
        self.0.iter().any(|network| network.contains(address))
    }

    /// Reads the key.
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        let values = section.optional_list("networks").unwrap_or_default();
        let expected = "an IP address or a network such as 10.1.0.0/16";
        let networks = values.iter().filter_map(|value| value.parse(expected));
        Self(networks.collect())
    }
}

/// Whether an address is used only where `networks` contains it.
fn is_excluded(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    is_link_local || METADATA.contains(&address)
}

/// The IPv4 addresses to which a network may translate an IPv6 address.
fn embedded(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(address) = address else {
        return Vec::new();
    };
    let [.., j, k, l, m, n, o, p] = address.octets();
    let last = Ipv4Addr::new(m, n, o, p);
    let [_, _, a, b, c, d, e, f, ..] = address.octets();
    let found = match address.segments() {
        // NAT64: the well-known prefix, and the network's own, whose prefixes have 48, 56, 64 or 96 bits (RFC 6052, RFC 8215).
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![last],
        [0x64, 0xff9b, 1, ..] => vec![
            Ipv4Addr::new(e, f, j, k),
            Ipv4Addr::new(f, j, k, l),
            Ipv4Addr::new(j, k, l, m),
            last,
        ],
        // 6to4 (RFC 3056) and Teredo (RFC 4380).
        [0x2002, ..] => vec![Ipv4Addr::new(a, b, c, d)],
        [0x2001, 0, ..] => vec![Ipv4Addr::from_bits(!last.to_bits())],
        // IPv4-compatible (RFC 4291), and IPv4-translated (RFC 2765).
        [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => vec![last],
        _ => Vec::new(),
    };
    found.into_iter().map(IpAddr::V4).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_endpoints() {
        let any = UpstreamNetworks::default();
        let inner = UpstreamNetworks(vec![
            "10.0.0.0/8".parse().unwrap(),
            "169.254.7.0/24".parse().unwrap(),
        ]);
        for (address, by_default, in_network) in [
            ("10.1.2.3", true, true),
            ("::ffff:10.1.2.3", true, true),
            ("127.0.0.1", true, false),
            ("192.0.2.7", true, false),
            ("fd00::7", true, false),
            ("169.254.7.1", false, true),
            ("169.254.169.254", false, false),
            ("::ffff:169.254.169.254", false, false),
            ("fe80::1", false, false),
            ("fd00:ec2::254", false, false),
            ("100.100.100.200", false, false),
            ("168.63.129.16", false, false),
            ("192.0.0.192", false, false),
            ("fd20:ce::254", false, false),
            ("fd00:42::42", false, false),
            ("fd00:ec2::23", false, false),
            ("fd00:c1::a9fe:a9fe", false, false),
            ("fd00:100::100:200", false, false),
            ("fd00:a9fe:a9fe::1", false, false),
            ("64:ff9b::169.254.169.254", false, false),
            ("64:ff9b::192.0.0.192", false, false),
            ("64:ff9b::10.1.2.3", true, false),
            ("64:ff9b:1::169.254.169.254", false, false),
            ("64:ff9b:1:a9fe:a9:fe00::", false, false),
            ("64:ff9b:1:a9:fe:a9fe::", false, false),
            ("64:ff9b:1::a9:fea9:fe00:0", false, false),
            ("64:ff9b:1::10.1.2.3", true, false),
            ("2002:a9fe:a9fe::1", false, false),
            ("2002:a01:203::1", true, false),
            ("2001:0:1:2:3:4:5601:5601", false, false),
            ("::169.254.169.254", false, false),
            ("::ffff:0:169.254.169.254", false, false),
            ("::ffff:100.100.100.200", false, false),
            ("::1", true, false),
            ("0.0.0.0", false, false),
            ("::", false, false),
            ("224.0.0.1", false, false),
            ("255.255.255.255", false, false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(any.allow(address), by_default, "{address}");
            assert_eq!(inner.allow(address), in_network, "{address}");
        }
    }
}
