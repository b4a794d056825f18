//! The address of a connection's client, behind trusted proxies or without one.
//!
//! Invariant: an address that a peer names counts only if the peer is a trusted proxy. IPv4-mapped IPv6 addresses are IPv4 addresses.
//! Deliberately not here: the limits and rates by address.

use super::proxy_header;
use crate::{
    config::{ClientAddress, Proxies},
    interface::headers::forwarded::{self, ForwardedBy},
};
use http::HeaderMap;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};
use tokio::io::AsyncRead;

/// The address that a connection comes from.
#[derive(Debug)]
pub(super) struct ConnectionOrigin {
    address: SocketAddr,
    /// The header that names the client, if the address is a trusted proxy's.
    named_by: Option<(ForwardedBy, Arc<Proxies>)>,
}

impl ConnectionOrigin {
    /// Whether the address is that of a trusted proxy that writes headers: it is an HTTP server, and not the client's own connection.
    pub(super) const fn is_proxy(&self) -> bool {
        self.named_by.is_some()
    }

    /// The address of the client's connection, or of the proxy's.
    pub(super) const fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// The client's address for a request with these headers. The port is 0 if a header names the client.
    pub(super) fn client(&self, headers: &HeaderMap) -> SocketAddr {
        let named = self
            .named_by
            .as_ref()
            .and_then(|(by, proxies)| forwarded::client(headers, *by, |ip| proxies.trusts(ip)));
        named.map_or(self.address, |client| SocketAddr::new(client, 0))
    }
}

/// The peer of a connection, before any byte is read.
#[derive(Debug)]
pub(super) struct ConnectionPeer {
    address: SocketAddr,
    is_proxy: bool,
    proxies: Arc<Proxies>,
}

impl ConnectionPeer {
    /// The peer at this address.
    pub(super) fn new(address: SocketAddr, proxies: &Arc<Proxies>) -> Self {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        Self {
            address,
            is_proxy: proxies.trusts(address.ip()),
            proxies: Arc::clone(proxies),
        }
    }

    /// The address that the connection is counted by from its acceptance; `None` for a trusted proxy.
    pub(super) fn client(&self) -> Option<SocketAddr> {
        (!self.is_proxy).then_some(self.address)
    }

    /// Whether the peer is a trusted proxy.
    pub(super) const fn is_proxy(&self) -> bool {
        self.is_proxy
    }

    /// Whether the peer must send a header of the PROXY protocol before TLS.
    pub(super) fn sends_header(&self) -> bool {
        self.is_proxy && self.proxies.client_address() == ClientAddress::ProxyProtocol
    }

    /// Reads the header of the PROXY protocol, if the peer must send one; returns the address that it names.
    ///
    /// # Errors
    /// There is no such header, or the connection failed.
    pub(super) async fn read_client(
        &self,
        socket: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Option<SocketAddr>> {
        match self.sends_header() {
            true => proxy_header::read(socket).await,
            false => Ok(None),
        }
    }

    /// The origin of the connection, whose proxy named this client.
    pub(super) fn origin(self, named: Option<SocketAddr>) -> ConnectionOrigin {
        let by = match self.proxies.client_address() {
            ClientAddress::Forwarded => Some(ForwardedBy::Forwarded),
            ClientAddress::XForwardedFor => Some(ForwardedBy::XForwardedFor),
            ClientAddress::Connection | ClientAddress::ProxyProtocol => None,
        };
        ConnectionOrigin {
            address: named.unwrap_or(self.address),
            named_by: by.filter(|_| self.is_proxy).map(|by| (by, self.proxies)),
        }
    }
}
