//! An endpoint of an upstream group: an address or a name, with its port and weight.

use super::super::address::fault_of;
use super::super::authority::{Authority, Host};
use super::super::endpoints::meet;
use super::super::value::Value;
use super::networks::UpstreamNetworks;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The form of an endpoint's address.
const EXPECTED: &str = "a host and a port, such as 127.0.0.1:8080 or core.bank.internal:8080";

/// An endpoint of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamEndpoint {
    /// The address, or the name, which is resolved ahead.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// Its share of the group's requests, in proportion to the others. Default 1.
    pub weight: usize,
}

impl UpstreamEndpoint {
    /// The IP address; `None` for a name.
    pub const fn address(&self) -> Option<IpAddr> {
        match self.host {
            Host::Address(address) => Some(address),
            Host::Name(_) => None,
        }
    }

    /// Reads an element of `endpoints`.
    pub(super) fn read<'a>(value: &Value<'a>, own: [Option<SocketAddr>; 2]) -> Option<Written<'a>> {
        let mut section = value.as_section();
        let address = section.required("address");
        let weight = section.optional("weight");
        let weight = weight.and_then(|value| value.integer(1..=100));
        section.finish();
        Self::of(&address?, weight.unwrap_or(1), own)
    }

    /// Reads an address, which must not be the gateway's own.
    pub(super) fn of<'a>(
        value: &Value<'a>,
        weight: usize,
        own: [Option<SocketAddr>; 2],
    ) -> Option<Written<'a>> {
        let text = value.as_str()?;
        let Some(Authority {
            host,
            port: Some(port),
        }) = Authority::parse(text)
        else {
            return match fault_of(text) {
                fault if fault.contains("leave out") || fault.contains("brackets") => {
                    value.refuse(&format!("{EXPECTED} ({fault})"))
                }
                _ => value.refuse(EXPECTED),
            };
        };
        if let Host::Address(ip) = host {
            let address = SocketAddr::new(ip, port);
            if own.into_iter().flatten().any(|own| meet(own, address)) {
                value.fault(format!("{address} is the gateway's own"));
            }
        }
        let endpoint = Self { host, port, weight };
        let refusal = Refusable(value.clone());
        Some((endpoint, refusal))
    }
}

/// An endpoint as written: its networks are checked when they are read.
pub(super) type Written<'a> = (UpstreamEndpoint, Refusable<'a>);

/// The place of an endpoint, for faults that are found later.
pub(super) struct Refusable<'a>(Value<'a>);

impl Refusable<'_> {
    /// Reports an address that no endpoint may have.
    pub(super) fn check(&self, endpoint: &UpstreamEndpoint, networks: &UpstreamNetworks) {
        if let Some(address) = endpoint.address()
            && !networks.allow(address)
        {
            self.0.fault(format!(
                "{address} may not be an endpoint: link-local, metadata and unspecified addresses, and those outside networks, are refused"
            ));
        }
    }

    /// Reports an endpoint that the group has already.
    pub(super) fn is_double(&self) {
        self.0.fault("the group has this endpoint already");
    }
}

impl fmt::Display for UpstreamEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}
