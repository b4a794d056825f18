//! The proxies in front of the public listener: `listener.trusted_proxies` and `listener.client_address`.
//!
//! Invariant: only a trusted proxy names a client, and all proxies use the one configured way: a proxy that writes X-Forwarded-For
//! passes on a client's own Forwarded. Deliberately not here: reading what a proxy sends.

use std::net::IpAddr;

use super::section::Section;
use crate::network::Network;

/// The proxies in front of the public listener. By default, there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    pub(super) networks: Vec<Network>,
    pub(super) client_address: ClientAddress,
}

/// The source of a client's address, if the connection comes from a trusted proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAddress {
    /// The connection: the proxy keeps the client's address, or hides it.
    #[default]
    Connection,
    /// The PROXY protocol, version 1 or 2, before TLS.
    ProxyProtocol,
    /// The header Forwarded (RFC 7239).
    Forwarded,
    /// The header X-Forwarded-For.
    XForwardedFor,
}

impl Proxies {
    /// Whether an address is that of a trusted proxy.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(address))
    }

    /// The source of a client's address.
    pub const fn client_address(&self) -> ClientAddress {
        self.client_address
    }

    /// Reads both keys.
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        let values = section.optional_list("trusted_proxies").unwrap_or_default();
        let networks = values.iter().filter_map(|value| {
            let network: Network = value.parse("an IP address or a network such as 10.1.0.0/16")?;
            if network.is_too_large_for_one_operator() {
                value.fault(
                    "clients would be trusted proxies; expected a network of at most /8, or /7 of IPv6",
                );
            }
            Some(network)
        });
        let networks: Vec<_> = networks.collect();
        let client_address = section.optional("client_address").and_then(|value| {
            value.one_of(&[
                ("connection", ClientAddress::Connection),
                ("proxy-protocol", ClientAddress::ProxyProtocol),
                ("forwarded", ClientAddress::Forwarded),
                ("x-forwarded-for", ClientAddress::XForwardedFor),
            ])
        });
        let client_address = client_address.unwrap_or_default();
        if client_address != ClientAddress::Connection && values.is_empty() {
            section.fault(
                "client_address",
                "only a trusted proxy names a client; list the proxies in trusted_proxies",
            );
        }
        Self {
            networks,
            client_address,
        }
    }
}
