//! Decides whether the host of a URI reference is inside the bank's network.

use crate::{
    interface::headers::{authority, redirect_uri},
    trust::revocation,
};
use http::HeaderValue;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The schemes for which browsers parse an authority, regardless of the slashes before it (WHATWG URL, "special scheme").
const SPECIAL: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "file"];

/// The host of a URI reference, classified.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference<'a> {
    /// No host, or one outside.
    Outside,
    /// A host inside, with this path and query.
    Inside(&'a str),
    /// A reference that browsers may parse differently.
    Unreadable,
}

/// The inside hosts: the core's own, and those with a non-public address.
#[derive(Debug)]
pub(in crate::gateway) struct InnerHosts {
    own: [String; 2],
}

impl InnerHosts {
    /// Takes the core's address, and the Host header that it receives.
    pub(in crate::gateway) fn new(address: IpAddr, host: &HeaderValue) -> Self {
        let host = authority::parse(host.as_bytes()).map(|host| host.host().to_owned());
        Self {
            own: [address.to_string(), host.unwrap_or_default()],
        }
    }

    /// Parses a reference as browsers do.
    pub(super) fn read<'a>(&self, text: &'a str) -> Reference<'a> {
        let text = text.trim();
        // Browsers treat a backslash as a slash, and remove tabs and line ends.
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        if !text.bytes().all(plain) {
            return Reference::Unreadable;
        }
        let (scheme, rest) = split_scheme(text);
        let special = scheme.is_none_or(|scheme| {
            let mut known = SPECIAL.iter();
            known.any(|known| known.eq_ignore_ascii_case(scheme))
        });
        let Some(rest) = rest.strip_prefix("//") else {
            return match scheme {
                Some(_) if special => Reference::Unreadable,
                _ => Reference::Outside,
            };
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        match self.holds(authority) {
            Some(true) => Reference::Inside(path),
            None if special => Reference::Unreadable,
            Some(false) | None => Reference::Outside,
        }
    }

    /// Whether an authority is inside; `None` if it is not an authority.
    fn holds(&self, authority: &str) -> Option<bool> {
        let authority = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let (host, _) = redirect_uri::split_port(authority);
        if !redirect_uri::is_host(host) {
            return None;
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let bare = bare.strip_suffix('.').unwrap_or(bare);
        let own = |own: &String| bare.eq_ignore_ascii_case(own.trim_matches(['[', ']', '.']));
        let v4 = bare.parse::<Ipv4Addr>().map(IpAddr::V4);
        let address = v4.or_else(|_| bare.parse::<Ipv6Addr>().map(IpAddr::V6));
        let labels = bare.rsplit('.').next().unwrap_or_default();
        Some(
            self.own.iter().any(own)
                || labels.eq_ignore_ascii_case("localhost")
                || address.is_ok_and(|address| !revocation::is_public(address)),
        )
    }
}

/// RFC 3986, section 3.1.
fn split_scheme(text: &str) -> (Option<&str>, &str) {
    let is_scheme = |scheme: &str| {
        let mut bytes = scheme.bytes();
        bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        _ => (None, text),
    }
}
