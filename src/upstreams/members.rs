//! The addresses of a group's endpoints at this time, as pingora's service discovery.

use super::{
    connection::TlsTarget,
    endpoint::{Endpoint, Tally},
    names::{Addresses, Name, Names},
};
use crate::{
    config::{Host, UpstreamEndpoint, UpstreamGroup, UpstreamTls},
    telemetry::{CoreEndpoint, Telemetry},
};
use arc_swap::{ArcSwap, Guard};
use async_trait::async_trait;
use pingora::{Result, protocols::l4::socket};
use pingora_load_balancing::{Backend, Extensions, discovery::ServiceDiscovery};
use rustls::pki_types::ServerName;
use std::{
    collections::{BTreeSet, HashMap},
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// An endpoint, with its entry in pingora's registry.
pub(super) type Member = (Backend, Arc<Endpoint>);

/// The endpoints of a group.
pub(super) struct Members {
    group: Arc<UpstreamGroup>,
    /// The configured endpoints, each with its count of failures, and its addresses if it is a name.
    sources: Vec<(UpstreamEndpoint, Arc<Tally>, Option<Arc<Name>>)>,
    current: ArcSwap<Vec<Member>>,
    telemetry: Arc<Telemetry>,
}

impl Members {
    /// The endpoints of a group; those of `before` that fit stay.
    pub(super) fn new(
        group: Arc<UpstreamGroup>,
        before: Option<&Self>,
        names: &Names,
        telemetry: &Arc<Telemetry>,
    ) -> Arc<Self> {
        let tally = |endpoint: &UpstreamEndpoint| {
            let label = endpoint.to_string();
            let mut known = before.iter().flat_map(|before| before.tallies());
            let known = known.find(|known| known.of.endpoint == label).cloned();
            known.unwrap_or_else(|| {
                let of = CoreEndpoint::new(group.name.clone(), label);
                Arc::new(Tally::new(of))
            })
        };
        let sources = group.endpoints.iter().map(|endpoint| {
            let name = match &endpoint.host {
                Host::Address(_) => None,
                Host::Name(name) => Some(names.follow(name, &group.name_servers)),
            };
            (endpoint.clone(), tally(endpoint), name)
        });
        let kept = before.map(|before| before.current.load_full());
        Arc::new(Self {
            sources: sources.collect(),
            current: ArcSwap::new(kept.unwrap_or_default()),
            group,
            telemetry: Arc::clone(telemetry),
        })
    }

    /// The endpoints at this time.
    pub(super) fn list(&self) -> Guard<Arc<Vec<Member>>> {
        self.current.load()
    }

    /// The counts of failures, in the order of the configuration.
    pub(super) fn tallies(&self) -> impl Iterator<Item = &Arc<Tally>> {
        self.sources.iter().map(|(_, tally, _)| tally)
    }

    /// The changes of each name's addresses from now on.
    pub(super) fn name_changes(&self) -> Vec<Addresses> {
        let names = self.sources.iter().filter_map(|(_, _, name)| name.as_ref());
        names.map(|name| name.changes()).collect()
    }

    /// Makes the list anew. An endpoint whose address stays is kept, with its pool.
    fn renew(&self) -> Arc<Vec<Member>> {
        let before = self.current.load_full();
        let mut members: Vec<Member> = Vec::new();
        for (endpoint, tally, name) in &self.sources {
            for ip in self.addresses(endpoint, name.as_deref()) {
                let address = SocketAddr::new(ip, endpoint.port);
                if members.iter().any(|(_, one)| one.address() == address) {
                    continue;
                }
                let mut known = before.iter().map(|(_, known)| known);
                let known = known.find(|known| {
                    known.address() == address
                        && known.fits(&self.group)
                        && Arc::ptr_eq(known.tally(), tally)
                });
                let known = known
                    .cloned()
                    .or_else(|| self.open(address, endpoint, tally));
                members.extend(known.map(|known| (backend(&known, endpoint.weight), known)));
            }
        }
        let members = Arc::new(members);
        self.current.store(Arc::clone(&members));
        members
    }

    /// A new endpoint; `None` if TLS is configured and its certificate could have no name.
    fn open(
        &self,
        address: SocketAddr,
        endpoint: &UpstreamEndpoint,
        tally: &Arc<Tally>,
    ) -> Option<Arc<Endpoint>> {
        let tls = match &self.group.tls {
            None => None,
            Some(tls) => Some(target(tls, endpoint)?),
        };
        let (group, tally) = (Arc::clone(&self.group), Arc::clone(tally));
        let opened = Endpoint::new(address, group, tls, tally, &self.telemetry);
        Some(Arc::new(opened))
    }

    /// The addresses of an endpoint that it may have.
    fn addresses(&self, endpoint: &UpstreamEndpoint, name: Option<&Name>) -> Vec<IpAddr> {
        let found = match (endpoint.address(), name) {
            (Some(address), _) => vec![address],
            (None, Some(name)) => name.addresses(),
            (None, None) => Vec::new(),
        };
        let allowed = |address: &IpAddr| {
            let is_allowed = self.group.networks.allow(*address);
            if !is_allowed {
                tracing::warn!(upstream = self.group.name, %endpoint, %address, "an address of an endpoint is refused: networks do not contain it");
            }
            is_allowed
        };
        found.into_iter().filter(allowed).collect()
    }
}

/// TLS to an endpoint: the configured name, or its own.
fn target(tls: &UpstreamTls, endpoint: &UpstreamEndpoint) -> Option<TlsTarget> {
    let own = || match &endpoint.host {
        Host::Address(address) => Some(ServerName::IpAddress((*address).into())),
        Host::Name(name) => ServerName::try_from(name.clone()).ok(),
    };
    Some(TlsTarget {
        client: Arc::clone(&tls.client),
        name: tls.name.clone().or_else(own)?,
    })
}

fn backend(endpoint: &Arc<Endpoint>, weight: usize) -> Backend {
    let mut ext = Extensions::new();
    ext.insert(Arc::clone(endpoint));
    Backend {
        addr: socket::SocketAddr::Inet(endpoint.address()),
        weight,
        ext,
    }
}

/// pingora's view of a group's endpoints.
pub(super) struct Discovery(pub(super) Arc<Members>);

#[async_trait]
impl ServiceDiscovery for Discovery {
    async fn discover(&self) -> Result<(BTreeSet<Backend>, HashMap<u64, bool>)> {
        let members = self.0.renew();
        let backends = members.iter().map(|(backend, _)| backend.clone());
        Ok((backends.collect(), HashMap::new()))
    }
}
