//! The address and the limits of the public listener. The control listener's are in `control`, the core's in `upstreams`.
//!
//! Invariant: the three addresses differ; a gateway that is its own upstream would forward requests in a loop. Deliberately not
//! here: binding and connecting.

use std::net::SocketAddr;
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::documentation;
use super::proxies::Proxies;
use super::section::Section;
use super::value::Value;
use crate::interface::headers::{answer, authority};

/// A year: the least max-age that browsers accept into their lists.
const ONE_YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The public listener, without its certificates and ticket keys, which a reload replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The address that it binds.
    pub address: SocketAddr,
    /// Whether TPPs present a client certificate (TLS-3). Default off.
    pub client_auth: ClientAuth,
    /// Worker threads. Default `auto`: the parallelism of the machine.
    pub threads: usize,
    /// The proxies in front of the listener. By default none.
    pub proxies: Proxies,
    /// The max-age of Strict-Transport-Security in answers; `None` for no such header. Default one year.
    pub hsts: Option<Duration>,
    /// Whether callers without a signature get the OpenAPI description and its page. Default off.
    pub description: bool,
    /// The base of `documentation` in error bodies (ERR-10), which the reason follows at once. `None`, the default: no such member.
    pub documentation: Option<String>,
    /// The limits of connections (ERR-4, HTTP-9).
    pub limits: ListenerLimits,
    /// The time-out of a body, from the end of the head. Default 10 s.
    pub body_timeout: Duration,
    /// The time-out of an idle connection. Default 60 s.
    pub keepalive: Duration,
}

/// The limits of connections: their number, time-outs and sizes (ERR-4, HTTP-9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerLimits {
    /// The most open connections, counted from acceptance; others are closed at once. Default 10 000.
    pub connections: usize,
    /// The most open connections per IPv4 address or IPv6 /64; `None` for no limit. Default 256.
    pub connections_per_address: Option<usize>,
    /// The time-out of a TLS handshake. Default 10 s.
    pub handshake_timeout: Duration,
    /// HTTP/1.1: the time-out of a connection's first byte, from the end of the handshake. Default 10 s.
    pub first_byte_timeout: Duration,
    /// The time-out of the HTTP/2 preface and the first SETTINGS, from the end of the handshake. Default 5 s.
    pub preface_timeout: Duration,
    /// The time-out of a head, from its first byte. Default 10 s.
    pub head_timeout: Duration,
    /// The time-out of a blocked write of an answer. Default 15 s.
    pub write_timeout: Duration,
    /// The time-out of the whole answer, from the end of its head. Default 120 s.
    pub answer_timeout: Duration,
    /// The most bytes of answers that are read from the core before their slow callers take them; 0 reads none. Default 128 MiB.
    pub read_ahead: usize,
    /// The least rate of a body after its first second, in bytes per second; `None` for none. Default 1 KiB.
    pub body_rate: Option<u32>,
    /// The most bytes of a head: names, values and separators. Default 32 KiB.
    pub head_size: usize,
    /// The most fields of a head. Default 100.
    pub head_fields: usize,
    /// The delay of tasks above which strangers are refused; `None` refuses nobody. Default 20 ms.
    pub overload_delay: Option<Duration>,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_address: Some(256),
            handshake_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(10),
            preface_timeout: Duration::from_secs(5),
            head_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(15),
            answer_timeout: Duration::from_secs(120),
            read_ahead: 128 * 1024 * 1024,
            body_rate: Some(1024),
            head_size: 32 * 1024,
            head_fields: 100,
            overload_delay: Some(Duration::from_millis(20)),
        }
    }
}

impl ListenerLimits {
    /// Each key, and whether its values are equal.
    pub(super) fn compare(&self, other: &Self) -> [(&'static str, bool); 13] {
        let Self {
            connections,
            connections_per_address,
            handshake_timeout,
            first_byte_timeout,
            preface_timeout,
            head_timeout,
            write_timeout,
            answer_timeout,
            read_ahead,
            body_rate,
            head_size,
            head_fields,
            overload_delay,
        } = other;
        [
            ("listener.max_connections", self.connections == *connections),
            (
                "listener.max_connections_per_address",
                self.connections_per_address == *connections_per_address,
            ),
            (
                "listener.handshake_timeout",
                self.handshake_timeout == *handshake_timeout,
            ),
            (
                "listener.first_byte_timeout",
                self.first_byte_timeout == *first_byte_timeout,
            ),
            (
                "listener.preface_timeout",
                self.preface_timeout == *preface_timeout,
            ),
            ("listener.head_timeout", self.head_timeout == *head_timeout),
            (
                "listener.write_timeout",
                self.write_timeout == *write_timeout,
            ),
            (
                "listener.answer_timeout",
                self.answer_timeout == *answer_timeout,
            ),
            ("listener.read_ahead", self.read_ahead == *read_ahead),
            ("listener.min_body_rate", self.body_rate == *body_rate),
            ("listener.max_head_size", self.head_size == *head_size),
            ("listener.max_head_fields", self.head_fields == *head_fields),
            (
                "listener.overload_delay",
                self.overload_delay == *overload_delay,
            ),
        ]
    }

    fn read(section: &mut Section<'_>) -> Self {
        let mut limits = Self::default();
        let connections = section.optional("max_connections");
        if let Some(most) = connections.and_then(|value| value.integer(1..=1_000_000)) {
            limits.connections = most;
        }
        if let Some(value) = section.optional("max_connections_per_address") {
            limits.connections_per_address =
                match value.is_off("one address may take every connection") {
                    true => None,
                    false => value.integer(1..=1_000_000),
                };
        }
        for (key, limit, to) in [
            ("handshake_timeout", &mut limits.handshake_timeout, 60_000),
            ("first_byte_timeout", &mut limits.first_byte_timeout, 60_000),
            ("preface_timeout", &mut limits.preface_timeout, 60_000),
            ("head_timeout", &mut limits.head_timeout, 60_000),
            ("write_timeout", &mut limits.write_timeout, 300_000),
            ("answer_timeout", &mut limits.answer_timeout, 3_600_000),
        ] {
            *limit = duration(section, key, 100, to).unwrap_or(*limit);
        }
        if let Some(value) = section.optional("min_body_rate") {
            limits.body_rate =
                match value.is_off("a slow body may hold its connection for body_timeout") {
                    true => None,
                    false => value
                        .size(1..=1024 * 1024)
                        .and_then(|rate| u32::try_from(rate).ok()),
                };
        }
        if let Some(value) = section.optional("read_ahead") {
            let size = match value.is("off") {
                true => Some(0),
                false => value.size(1024 * 1024..=64 * 1024 * 1024 * 1024),
            };
            limits.read_ahead = size
                .and_then(|size| usize::try_from(size).ok())
                .unwrap_or(limits.read_ahead);
        }
        let size = section.optional("max_head_size");
        if let Some(size) = size.and_then(|value| value.size(8 * 1024..=256 * 1024)) {
            limits.head_size = usize::try_from(size).unwrap_or(limits.head_size);
        }
        let fields = section.optional("max_head_fields");
        if let Some(fields) = fields.and_then(|value| value.integer(20..=250)) {
            limits.head_fields = fields;
        }
        if let Some(value) = section.optional("overload_delay") {
            limits.overload_delay =
                match value.is_off("under a flood known TPPs wait as long as strangers") {
                    true => None,
                    false => value.duration(Duration::from_millis(5)..=Duration::from_secs(10)),
                };
        }
        limits
    }
}

/// Whether TPPs present a client certificate (TLS-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// The server does not request a certificate.
    #[default]
    Off,
    /// The server requests a certificate; a client without one is accepted.
    Optional,
    /// The server requires a certificate.
    Required,
}

impl Listener {
    /// Reads the address alone, so that the other endpoints are compared with it even if the rest of the section is faulty.
    pub(super) fn address(section: &mut Section<'_>) -> Option<SocketAddr> {
        let value = section.required("address")?;
        value.socket_address("an IP address and a port, such as 0.0.0.0:8443")
    }

    /// Reads the rest of the section. The keys that a reload replaces have been read.
    pub(super) fn read(mut section: Section<'_>, address: Option<SocketAddr>) -> Option<Self> {
        let client_auth = section.optional("client_auth").and_then(|value| {
            value.one_of(&[
                ("off", ClientAuth::Off),
                ("optional", ClientAuth::Optional),
                ("required", ClientAuth::Required),
            ])
        });
        let threads = section
            .optional("threads")
            .and_then(|value| threads(&value));
        let proxies = Proxies::read(&mut section);
        let hsts = hsts(&mut section);
        let description = section
            .optional("description")
            .and_then(|value| value.one_of(&[("on", true), ("off", false)]));
        let documentation = documentation::read(&mut section);
        let limits = ListenerLimits::read(&mut section);
        let body_timeout = duration(&mut section, "body_timeout", 100, 60_000);
        let keepalive = duration(&mut section, "keepalive", 1_000, 3_600_000);
        section.finish();
        Some(Self {
            address: address?,
            client_auth: client_auth.unwrap_or_default(),
            threads: threads.unwrap_or_else(machine_threads),
            proxies,
            hsts,
            description: description.unwrap_or(false),
            documentation,
            limits,
            body_timeout: body_timeout.unwrap_or(Duration::from_secs(10)),
            keepalive: keepalive.unwrap_or(Duration::from_secs(60)),
        })
    }
}

/// Reads a host, with or without a port (FWD-2).
pub(super) fn authority<'a>(value: &Value<'a>) -> Option<&'a str> {
    let expected = "a host with or without a port, such as api.bank.example or 10.0.0.7:8080";
    let text = value.text(expected)?;
    match authority::parse(text.as_bytes()) {
        Some(_) => Some(text),
        None => value.refuse(expected),
    }
}

/// Reads the name of a header of the core's answers (FWD-7).
pub(super) fn answer_header(value: &Value<'_>) -> Option<HeaderName> {
    let name: HeaderName = value.parse("the name of a header, such as X-Bank-Notice")?;
    if !answer::may_pass(&name) {
        value.fault(format!(
            "{name} of the core never reaches a TPP: the gateway writes it itself, or it is about the connection to the core; leave it out"
        ));
    }
    Some(name)
}

/// A header value of an authority.
pub(super) fn header_value(authority: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(authority).ok()
}

/// Reads the authorities of this gateway (FWD-2); empty if every authority is accepted.
pub(super) fn hosts(section: &mut Section<'_>) -> Vec<String> {
    let hosts = section.optional_list("hosts").unwrap_or_default();
    let hosts = hosts.iter().filter_map(authority);
    hosts.map(str::to_owned).collect()
}

/// Reads the max-age of Strict-Transport-Security (RFC 6797).
fn hsts(section: &mut Section<'_>) -> Option<Duration> {
    match section.optional("hsts") {
        None => Some(ONE_YEAR),
        Some(value) if value.is("off") => None,
        Some(value) => value.duration(Duration::from_secs(1)..=ONE_YEAR.saturating_mul(2)),
    }
}

fn threads(value: &Value<'_>) -> Option<usize> {
    if value.is("auto") {
        return Some(machine_threads());
    }
    value.integer(1..=1_024)
}

fn machine_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Reads a duration between two bounds in milliseconds.
pub(super) fn duration(
    section: &mut Section<'_>,
    key: &'static str,
    from: u64,
    to: u64,
) -> Option<Duration> {
    section
        .optional(key)?
        .duration(Duration::from_millis(from)..=Duration::from_millis(to))
}

/// Whether the addresses exclude each other or lead to the same socket. The unspecified address includes loopback.
pub(super) fn meet(bound: SocketAddr, other: SocketAddr) -> bool {
    let covers =
        bound.ip() == other.ip() || bound.ip().is_unspecified() && other.ip().is_loopback();
    bound.port() == other.port() && covers
}
