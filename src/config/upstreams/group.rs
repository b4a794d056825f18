//! A group of endpoints of the core, with its limits.

use super::super::answer_sizes::{AnswerSizes, WrittenSizes};
use super::super::authority::{Authority, Host};
use super::super::endpoints::{answer_header, authority, duration, header_value};
use super::super::inspection::Inspection;
use super::super::section::Section;
use super::endpoint::{UpstreamEndpoint, Written};
use super::health::{ActiveCheck, Ejection};
use super::networks::UpstreamNetworks;
use super::tls::UpstreamTls;
use crate::interface::operations::Catalogue;
use http::{HeaderName, HeaderValue};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The most endpoints of a group.
const MOST_ENDPOINTS: usize = 32;

/// A group of endpoints, any of which may answer a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamGroup {
    /// The name, which metrics and log lines show.
    pub name: String,
    /// The endpoints, at least one.
    pub endpoints: Vec<UpstreamEndpoint>,
    /// The Host that the core receives (FWD-2). Default the first endpoint.
    pub host: HeaderValue,
    /// The networks that endpoints may be in. Default all but link-local and metadata addresses.
    pub networks: UpstreamNetworks,
    /// The DNS servers that resolve the names of endpoints. Default those of /etc/resolv.conf.
    pub name_servers: Vec<SocketAddr>,
    /// TLS to the endpoints; `None`, the default, for plain HTTP.
    pub tls: Option<UpstreamTls>,
    /// Active checks; `None`, the default, for none.
    pub health: Option<ActiveCheck>,
    /// Passive ejection, if the group has several endpoints; `None` for none.
    pub ejection: Option<Ejection>,
    /// Whether `/readyz` fails while no endpoint is healthy. Default true.
    pub needed: bool,
    /// The most retries, in percent of requests. Default 20.
    pub retry_percent: u32,
    /// The time-out of connecting, with the TLS handshake. Default 2 s: a segment that is lost is sent again after one.
    pub connect_timeout: Duration,
    /// The time-out of an answer's head, and of each pause in its body. Default 30 s.
    pub read_timeout: Duration,
    /// The time-out of everything until the end of the answer's head, with all retries. Default the sum of the two above, 32 s.
    pub timeout: Duration,
    /// The time-out of an idle connection in a pool. Default 60 s.
    pub idle_timeout: Duration,
    /// Whether connections are reused after a complete answer (FWD-3). Default on.
    pub reuse: bool,
    /// Requests that the group has at once; more are refused with 503. Default 512.
    pub max_in_flight: usize,
    /// Those of one TPP. Default 64.
    pub max_in_flight_per_tpp: usize,
    /// The size limits of answers (FWD-7). Default 16 MiB.
    pub answer_sizes: AnswerSizes,
    /// Headers of answers that TPPs get beside those of the allow-list (FWD-7). Default none.
    pub answer_headers: Vec<HeaderName>,
}

/// A group as written: groups of operations are checked when the catalogue is known.
pub(super) struct WrittenGroup {
    group: UpstreamGroup,
    answer_sizes: WrittenSizes,
}

impl WrittenGroup {
    /// Reads the keys that follow the endpoints.
    pub(super) fn read(
        name: &str,
        section: &mut Section<'_>,
        endpoints: Vec<Written<'_>>,
        base: &Path,
    ) -> Option<Self> {
        let host = section.optional("host");
        let host = host.and_then(|value| header_value(authority(&value)?));
        let networks = UpstreamNetworks::read(section);
        let endpoints = checked_endpoints(endpoints, &networks);
        let name_servers = section.optional_list("name_servers").unwrap_or_default();
        let name_servers = name_servers.iter();
        let name_servers = name_servers.filter_map(|value| {
            value.socket_address("an IP address and a port, such as 10.0.0.53:53")
        });
        let name_servers = name_servers.collect();
        let has_tls = section.has("tls");
        let tls = UpstreamTls::read(section, base);
        let health = ActiveCheck::read(section);
        let ejection = Ejection::read(section);
        let needed = section.optional("needed").and_then(|value| value.boolean());
        let retry_percent = section.optional("retry_percent");
        let retry_percent = retry_percent.and_then(|value| value.integer(0..=100));
        let connect_timeout = duration(section, "connect_timeout", 10, 30_000);
        let read_timeout = duration(section, "read_timeout", 100, 300_000);
        let timeout = duration(section, "timeout", 100, 600_000);
        let idle_timeout = duration(section, "idle_timeout", 1_000, 3_600_000);
        let mut most = |key| {
            let value = section.optional(key);
            value.and_then(|value| value.integer(1..=100_000))
        };
        let max_in_flight = most("max_in_flight");
        let max_in_flight_per_tpp = most("max_in_flight_per_tpp");
        let reuse = section.optional("reuse");
        let reuse = reuse.and_then(|value| value.one_of(&[("off", false), ("on", true)]));
        let answer_sizes = WrittenSizes::read(section);
        let answer_headers = section.optional_list("answer_headers").unwrap_or_default();
        let answer_headers = answer_headers.iter().filter_map(answer_header).collect();
        let first = endpoints.first()?.to_string();
        if has_tls && tls.is_none() {
            return None;
        }
        let connect_timeout = connect_timeout.unwrap_or(Duration::from_secs(2));
        let read_timeout = read_timeout.unwrap_or(Duration::from_secs(30));
        let group = UpstreamGroup {
            name: name.to_owned(),
            endpoints,
            host: host.or_else(|| header_value(&first))?,
            networks,
            name_servers,
            tls,
            health,
            ejection,
            needed: needed.unwrap_or(true),
            retry_percent: retry_percent.unwrap_or(20),
            connect_timeout,
            read_timeout,
            timeout: timeout.unwrap_or(connect_timeout.saturating_add(read_timeout)),
            idle_timeout: idle_timeout.unwrap_or(Duration::from_secs(60)),
            reuse: reuse.unwrap_or(true),
            max_in_flight: max_in_flight.unwrap_or(512),
            max_in_flight_per_tpp: max_in_flight_per_tpp.unwrap_or(64),
            answer_sizes: AnswerSizes::default(),
            answer_headers,
        };
        Some(Self {
            group,
            answer_sizes,
        })
    }

    /// The time-out until the head of an answer.
    pub(super) const fn timeout(&self) -> Duration {
        self.group.timeout
    }

    /// The group; reports a group of operations that has none.
    pub(super) fn checked(self, catalogue: &Catalogue, inspection: &Inspection) -> UpstreamGroup {
        UpstreamGroup {
            answer_sizes: self.answer_sizes.checked(catalogue, inspection),
            ..self.group
        }
    }
}

impl UpstreamGroup {
    /// The address of the first endpoint; `None` if it is a name.
    pub fn first_address(&self) -> Option<SocketAddr> {
        let first = self.endpoints.first()?;
        Some(SocketAddr::new(first.address()?, first.port))
    }

    /// The names and addresses by which only the bank's network knows the group (FWD-7).
    pub fn inner_names(&self) -> Vec<String> {
        let host = Authority::parse(self.host.to_str().unwrap_or_default());
        let hosts = self.endpoints.iter().map(|endpoint| endpoint.host.clone());
        let hosts = hosts.chain(host.map(|host| host.host));
        let names = hosts.map(|host| match host {
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name,
        });
        names.collect()
    }
}

/// The endpoints; reports those that are not allowed, or listed twice.
fn checked_endpoints(
    written: Vec<Written<'_>>,
    networks: &UpstreamNetworks,
) -> Vec<UpstreamEndpoint> {
    let mut endpoints: Vec<UpstreamEndpoint> = Vec::new();
    for (endpoint, place) in written.into_iter().take(MOST_ENDPOINTS) {
        place.check(&endpoint, networks);
        let mut known = endpoints.iter();
        if known.any(|known| (&known.host, known.port) == (&endpoint.host, endpoint.port)) {
            place.is_double();
        }
        endpoints.push(endpoint);
    }
    endpoints
}
